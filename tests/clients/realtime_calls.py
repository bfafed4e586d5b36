"""A response in each of several Realtime sessions, by the official OpenAI client.

--calls is a JSON list of sessions: `model`, by which the results are printed, and optionally `timeout` in
seconds, after which a silent session is given up. The line printed has a member per model.
"""

import concurrent.futures
import json
import ssl
import threading

import openai
import told
import websockets

flags = told.arguments(calls="[]")


def options():
    trust = ssl.create_default_context(cafile=flags.ca) if flags.url.startswith("https:") else None
    return {"proxy": flags.proxy, "ssl": trust}


def make(call):
    facts = {"text": "", "heard": 0}
    client = openai.OpenAI(base_url=flags.url, api_key="sk-test")
    with client.realtime.connect(model=call["model"], websocket_connection_options=options()) as session:

        def give_up():
            facts["waits"] = True
            session.close()

        session.response.create(event_id="ours")
        try:
            while "finish" not in facts:
                silence = threading.Timer(call.get("timeout") or flags.timeout, give_up)
                silence.start()
                event = session.recv()
                silence.cancel()
                take(event, facts)
        except websockets.ConnectionClosed as error:
            facts["closed"] = error.rcvd.code if error.rcvd else 1006
        silence.cancel()
    return call["model"], facts


def take(event, facts):
    if event.type in ("response.output_audio_transcript.delta", "response.output_text.delta"):
        facts["text"] += event.delta
    elif event.type == "response.output_audio.delta":
        facts["heard"] += 1
    elif event.type == "response.output_item.done" and event.item.type == "function_call":
        facts.update(name=event.item.name, arguments=event.item.arguments)
    elif event.type == "error":
        facts.update(finish="error", code=event.error.code, about=event.error.event_id)
    elif event.type == "response.done":
        details = event.response.status_details
        facts["finish"] = event.response.status
        if details and details.error:
            facts["code"] = details.error.code or details.error.type
        elif details:
            facts["code"] = details.reason


with concurrent.futures.ThreadPoolExecutor(32) as pool:
    told.say(**dict(pool.map(make, json.loads(flags.calls))))
