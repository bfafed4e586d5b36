"""An agent of a chat model that a suite starts: a streamed call, a tool, and a streamed call with the tool's result.

    streaming_agent.py BASE TOOL FILE

The official client streams. FILE gets a line for each stream: its bytes in hexadecimal, as the client received them.
"""

import sys
import urllib.request

import httpx2
import openai

BASE, TOOL, FILE = sys.argv[1:]
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


class Copied(httpx2.SyncByteStream):
    """A stream of which FILE gets a copy."""

    def __init__(self, stream):
        self.stream = stream
        self.received = b""

    def __iter__(self):
        for piece in self.stream:
            self.received += piece
            yield piece

    def close(self):
        self.stream.close()
        with open(FILE, "a") as file:
            print(self.received.hex(), file=file)


def copy(response):
    response.stream = Copied(response.stream)


http = openai.DefaultHttpxClient(event_hooks={"response": [copy]})
client = openai.OpenAI(base_url=BASE, api_key="sk-test", max_retries=0, http_client=http)


def ask(messages, **more):
    """The text and the id of the tool call, if there is one."""
    text, call = "", None
    for event in client.chat.completions.create(model="test-model", messages=messages, stream=True, **more):
        delta = event.choices[0].delta
        text += delta.content or ""
        for one in delta.tool_calls or []:
            call = one.id or call
    return text, call


messages = [{"role": "user", "content": sys.stdin.read().strip()}]
_, call = ask(messages, tools=[WEATHER])
result = urllib.request.urlopen(TOOL, timeout=20).read().decode()
function = {"name": "weather", "arguments": '{"city":"Kiel"}'}
messages += [
    {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]},
    {"role": "tool", "tool_call_id": call, "content": result},
]
print(ask(messages)[0])
