"""One exchange by `aiohttp`."""

import asyncio
import ssl

import aiohttp

import told

flags = told.arguments()


async def fetch():
    trust = ssl.create_default_context(cafile=flags.ca)
    timeout = aiohttp.ClientTimeout(total=flags.timeout)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        async with session.request(
            flags.method,
            flags.url,
            data=flags.data,
            proxy=flags.proxy,
            ssl=trust,
            allow_redirects=False,
        ) as answer:
            told.answered(answer.status, answer.headers.items(), await answer.read())


told.run(lambda: asyncio.run(fetch()))
