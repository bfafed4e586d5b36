"""Calls of a model over WebSockets, one socket a call: by `websockets`, by the official OpenAI client, or by the
model of OpenAI's Agents SDK.

--client names it, --calls is a JSON list of calls: `model`, by which the results are printed, and
optionally `tools`, `previous` (the response that it continues), and in seconds `timeout`, after which a silent socket is given up. The line printed
has a member per model.
"""

import asyncio
import concurrent.futures
import contextlib
import json
import ssl
import threading
import time

import told
import websockets
from websockets.sync.client import connect

flags = told.arguments(client="openai", calls="[]")
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}
ENDS = ("response.completed", "response.failed", "response.incomplete", "error")


def options():
    trust = ssl.create_default_context(cafile=flags.ca) if flags.url.startswith("https:") else None
    return {"proxy": flags.proxy, "ssl": trust, "open_timeout": 60}


@contextlib.contextmanager
def openai_socket():
    import openai

    client = openai.OpenAI(base_url=flags.url, api_key="sk-test")
    with client.responses.connect(websocket_connection_options=options()) as socket:
        yield socket.send, lambda: socket.recv().to_dict(), socket._connection


@contextlib.contextmanager
def plain_socket():
    url = flags.url.replace("http", "ws", 1) + "/responses"
    with connect(url, additional_headers={"Authorization": "Bearer sk-test"}, **options()) as socket:
        yield lambda call: socket.send(json.dumps(call)), lambda: json.loads(socket.recv()), socket


async def by_agents_sdk(call, facts):
    """`closed` is 1006 for whatever ends it but an error frame: the SDK raises no code."""
    import agents
    import openai

    client = openai.AsyncOpenAI(base_url=flags.url, api_key="sk-test", max_retries=0)
    model = agents.OpenAIResponsesWSModel(call["model"], client)
    events = model.stream_response(
        None, "Say something.", agents.ModelSettings(), [], None, [], agents.ModelTracing.DISABLED,
        previous_response_id=None, conversation_id=None, prompt=None,
    )
    begun = time.monotonic()
    try:
        while facts["finish"] is None:
            event = await asyncio.wait_for(anext(events), call.get("timeout") or flags.timeout)
            take(event.to_dict(), facts)
            if facts["text"]:
                facts.setdefault("first", time.monotonic() - begun)
    except asyncio.TimeoutError:
        facts["waits"] = True
    except agents.models.openai_responses.ResponsesWebSocketError as error:
        take(error.payload, facts)
    except (RuntimeError, websockets.ConnectionClosed) as error:
        facts["closed"], facts["raised"] = 1006, repr(error)
    await model.close()


def make(call):
    facts = {"text": "", "pieces": 0, "finish": None, "refusal": False, "names": [], "inputs": []}
    request = {"type": "response.create", "model": call["model"], "input": "Say something."}
    if call.get("tools"):
        request["tools"] = [WEATHER]
    if call.get("previous"):
        request["previous_response_id"] = call["previous"]
    with (openai_socket if flags.client == "openai" else plain_socket)() as (send, receive, socket):

        def give_up():
            facts["waits"] = True
            socket.close()

        begun = time.monotonic()
        send(request)
        try:
            while facts["finish"] is None:
                silence = threading.Timer(call.get("timeout") or flags.timeout, give_up)
                silence.start()
                event = receive()
                silence.cancel()
                take(event, facts)
                if facts["text"]:
                    facts.setdefault("first", time.monotonic() - begun)
        except websockets.ConnectionClosed as error:
            facts["closed"] = error.rcvd.code if error.rcvd else 1006
        silence.cancel()
        facts["took"] = time.monotonic() - begun
    return call["model"], facts


def take(event, facts):
    kind = event.get("type")
    if kind == "response.output_text.delta":
        facts["text"] += event["delta"]
        facts["pieces"] += 1
    if kind == "error":
        facts.update(finish="error", status=event.get("status"), headers=event.get("headers"))
        facts["error"] = event["error"] if "error" in event else event
    elif kind in ENDS:
        facts["finish"] = event["response"]["status"]
        for item in event["response"]["output"]:
            if item["type"] == "function_call":
                facts["names"].append(item["name"])
                facts["inputs"].append(item["arguments"])
            elif item["type"] == "message":
                facts["refusal"] = any(part["type"] == "refusal" for part in item["content"])


def attempt(call):
    try:
        return make(call)
    except websockets.InvalidStatus as error:
        return call["model"], {"refused": error.response.status_code}


with concurrent.futures.ThreadPoolExecutor(32) as pool:
    told.say(**dict(pool.map(attempt, json.loads(flags.calls))))
