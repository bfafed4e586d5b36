"""An agent of OpenAI's Responses that a suite starts: a model call, a tool, a model call with the tool's result.

    model_turns.py BASE http|websocket

Its model calls are streamed POSTs, or messages of WebSockets. It tries a
model call three times, and waits as a 429 asks. It accepts whatever a tool says.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

BASE = sys.argv[1]
PATIENCE = 2
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


class Failed(Exception):
    """A model call that has no whole response; `wait` is what the response asks for."""

    def __init__(self, wait=0.0):
        super().__init__()
        self.wait = wait


def over_http(call):
    request = urllib.request.Request(f"{BASE}/v1/responses", json.dumps({**call, "stream": True}).encode(),
                                     {"Content-Type": "application/json", "Authorization": "Bearer sk-test"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
    except urllib.error.HTTPError as error:
        raise Failed(float(error.headers.get("retry-after", 0))) from error


def over_websocket(call):
    url = BASE.replace("http", "ws", 1) + "/v1/responses"
    options = {"additional_headers": {"Authorization": "Bearer sk-test"}, "proxy": os.environ.get("HTTP_PROXY")}
    with connect(url, **options) as socket:
        socket.send(json.dumps({"type": "response.create", **call}))
        while True:
            event = json.loads(socket.recv(timeout=PATIENCE))
            if event["type"] == "error":
                raise Failed(float(event.get("headers", {}).get("retry-after", 0)))
            yield event


def ask(given):
    """The response's output."""
    call = {"model": "gpt-5", "input": given, "tools": [WEATHER]}
    if len(given) > 1:
        del call["tools"]
    carry = over_websocket if sys.argv[2] == "websocket" else over_http
    for attempt in range(3):
        try:
            for event in carry(call):
                if event["type"] == "response.completed":
                    return event["response"]["output"]
        except Failed as failed:
            time.sleep(failed.wait)
        except (OSError, ConnectionClosed):
            pass
    sys.exit("the model is unavailable")


given = [{"role": "user", "content": sys.stdin.read().strip()}]
wish = next(item for item in ask(given) if item["type"] == "function_call")
try:
    result = urllib.request.urlopen(f"{BASE}/weather", timeout=PATIENCE).read().decode()
except OSError:
    result = "the tool is down"
given += [wish, {"type": "function_call_output", "call_id": wish["call_id"], "output": result}]
text = "".join(part["text"] for item in ask(given) if item["type"] == "message" for part in item["content"])
print(text, "(the tool is down)" if result == "the tool is down" else "")
