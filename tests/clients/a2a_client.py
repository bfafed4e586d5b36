"""A caller of an A2A agent, by the official `a2a-sdk`. `--url` is the agent's endpoint.

`--version` is `1.0` or `0.3`; with `--stream` the message is streamed. With `--scopes`, a list, there is a client in
each scope: its name stands for SCOPE in the URL, and the line printed has a member per scope. `--times` is how often it
asks, and `--wait` for how many seconds.
"""

import asyncio
import ssl
import warnings

import httpx

import told
from a2a_asking import ask, card

warnings.simplefilter("ignore")
flags = told.arguments(version="1.0", stream=False, text="Oslo", times=1, wait=20.0, scopes="")


async def calls(url):
    more = {}
    if flags.proxy:
        more = {"proxy": flags.proxy, "verify": ssl.create_default_context(cafile=flags.ca)}
    async with httpx.AsyncClient(timeout=flags.wait, trust_env=False, **more) as http:
        texts = [flags.text, *(f"{flags.text}-{number}" for number in range(1, flags.times))]
        return [await ask(http, card(url, flags.version), text, flags.stream) for text in texts]


async def main():
    scopes = [scope for scope in flags.scopes.split(",") if scope]
    urls = [flags.url.replace("SCOPE", scope) for scope in scopes] or [flags.url]
    found = await asyncio.gather(*map(calls, urls))
    told.say(**(dict(zip(scopes, found)) if scopes else {"calls": found[0]}))


asyncio.run(main())
