"""Asks for messages over a WebSocket by `websockets`: their texts, whether a ping is answered, how it ends.

--text is sent; --messages are awaited, each for --silence seconds at most. Then comes a ping, if the
socket is open, and a Close with code 1000.
"""

import ssl
import time

import told
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

flags = told.arguments(text="", messages=0, silence=2.0)


def ask(socket, facts):
    begun = time.monotonic()
    socket.send(flags.text)
    try:
        while len(facts["messages"]) < flags.messages:
            facts["messages"].append(socket.recv(flags.silence))
        facts["took"] = time.monotonic() - begun
    except TimeoutError:
        pass
    facts["pong"] = socket.ping().wait(flags.silence)
    socket.close(1000, "bye")


def talk():
    facts = {"messages": [], "pong": False, "closed": None, "reset": False}
    trust = ssl.create_default_context(cafile=flags.ca) if flags.url.startswith("wss:") else None
    options = {"compression": None, "ping_interval": None, "close_timeout": flags.silence}
    with connect(flags.url, proxy=flags.proxy, ssl=trust, **options) as socket:
        try:
            ask(socket, facts)
        except ConnectionClosed as error:
            facts["reset"] = isinstance(error.__cause__, ConnectionResetError)
    facts["closed"] = socket.close_code
    told.say(ok=True, **facts)


told.run(talk)
