"""An agent's session with an MCP server, by the official `mcp` client. `--url` is the endpoint.

`--era` is `legacy` (handshake, 2025-11-25), `2026-07-28`, `auto` (asks, then falls back) or `sse`
(2024-11-05). With `--list` the tools are listed; then those of `--tool`, a list of names or `-`, are called
one after the other, each for another city, with `--wait` seconds for each. With `--scopes`, a list, there is a
session in each scope: its name stands for SCOPE in the URL, and the line printed has a member per scope.
"""

import ssl
import warnings
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

import told

warnings.simplefilter("ignore")
flags = told.arguments(era="legacy", tool="get_weather", city="Oslo", wait=20.0, list=False, progress=False, scopes="")


def http(headers=None, timeout=None, auth=None):
    more = {}
    if flags.proxy:
        more["proxy"] = flags.proxy
        more["verify"] = ssl.create_default_context(cafile=flags.ca)
    timeout = timeout or httpx2.Timeout(30, read=300)
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, trust_env=False, **more)


@asynccontextmanager
async def transport(url):
    if flags.era == "sse":
        async with sse_client(url, httpx_client_factory=http) as streams:
            yield streams
    else:
        async with http() as client, streamable_http_client(url, http_client=client) as streams:
            yield streams


def leaf(error):
    """The one exception inside of a task group's."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def failure(error):
    error = leaf(error)
    code = getattr(getattr(error, "error", None), "code", None)
    return {"ok": False, "error": type(error).__name__, "code": code, "text": str(error)[:300]}


async def call(client, number, tool):
    progress = []

    async def heard(done, total, message):
        progress.append(done)

    arguments = {"city": flags.city if number == 0 else f"{flags.city}-{number}"}
    callback = {"progress_callback": heard} if flags.progress else {}
    try:
        result = await client.call_tool(tool, arguments, read_timeout_seconds=flags.wait, **callback)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        return failure(error) | {"progress": progress[:3]}
    return {
        "ok": True,
        "is_error": result.is_error,
        "text": [getattr(block, "text", None) for block in result.content],
        "structured": result.structured_content,
        "progress": progress[:3],
    }


async def tools(client):
    try:
        listed = (await client.list_tools()).tools
    except Exception as error:  # noqa: BLE001
        return failure(error)
    return [[tool.name, tool.description, list(tool.input_schema.get("properties", {}))] for tool in listed]


async def talk(url, heard):
    mode = "legacy" if flags.era == "sse" else flags.era
    async with Client(transport(url), mode=mode) as client:
        heard["version"] = client.protocol_version
        if flags.list:
            heard["tools"] = await tools(client)
        if flags.tool != "-":
            names = flags.tool.split(",")
            heard["calls"] = [await call(client, number, name) for number, name in enumerate(names)]


def session(url):
    heard = {}
    try:
        anyio.run(talk, url, heard)
    except BaseException as error:  # noqa: BLE001
        heard |= failure(error)
    first = heard.get("calls", [{}])[0]
    return {"ok": True} | heard | ({"first": first} if first else {})


def ask():
    scopes = flags.scopes.split(",") if flags.scopes else []
    if scopes:
        told.say(**{scope: session(flags.url.replace("SCOPE", scope)) for scope in scopes})
    else:
        told.say(**session(flags.url))


told.run(ask)
