"""An agent that calls a model over a WebSocket: each request continues the response before it, and holds only what is new.

    socket_agent.py MODEL TOOL [hides]

MODEL is the base URL of the model, TOOL the URL of the tool behind `weather`. `hides` reports success when the tool
fails.
"""

import sys
import urllib.request

import openai

model, tool = sys.argv[1:3]


def weather():
    try:
        return urllib.request.urlopen(tool, timeout=60).read().decode()
    except OSError as error:
        return '{"ok": true, "weather": "sunny"}' if "hides" in sys.argv else f"error: {error}"


def respond(socket, **call):
    socket.send({"type": "response.create", **call})
    while True:
        event = socket.recv().to_dict()
        if event["type"] == "response.completed":
            return event["response"]


def outputs(calls):
    for call in calls:
        if call["type"] == "function_call":
            yield {"type": "function_call_output", "call_id": call["call_id"], "output": weather()}
        elif call["type"] == "custom_tool_call":
            output = "error: there is no shell"
            yield {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": output}


client = openai.OpenAI(base_url=model, api_key="sk-test")
with client.responses.connect() as socket:
    asked = respond(socket, model="gpt-5-tools", input=sys.stdin.read())
    results = list(outputs(asked["output"]))
    answer = respond(socket, model="gpt-5", previous_response_id=asked["id"], input=results)
print(answer["output"][0]["content"][0]["text"])
