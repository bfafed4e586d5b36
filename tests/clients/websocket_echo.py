"""Sends messages over a WebSocket by `websockets` and tells what comes back."""

import asyncio
import ssl

import websockets

import told

flags = told.arguments(messages=3, text="message")


async def talk():
    secure = flags.url.startswith("wss:")
    trust = ssl.create_default_context(cafile=flags.ca) if secure else None
    async with websockets.connect(
        flags.url,
        proxy=flags.proxy,
        ssl=trust,
        subprotocols=["echo.test", "other.test"],
        compression=None,
        open_timeout=flags.timeout,
        # The upstream echoes even the frame that says goodbye, which no client takes for an answer.
        close_timeout=0.2,
    ) as socket:
        echoes = []
        for number in range(flags.messages):
            await socket.send(f"{flags.text} {number}")
            echoes.append(await asyncio.wait_for(socket.recv(), flags.timeout))
        told.say(ok=True, echoes=echoes, protocol=socket.subprotocol)


told.run(lambda: asyncio.run(talk()))
