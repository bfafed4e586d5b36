"""The agent of the staging setup: OpenAI's client, a model and two tools, behind Squall by `HTTP_PROXY`.

It works on its task every `PAUSE` seconds in scope `traffic`, and answers `POST /invoke` for runs on `HOST` and
`PORT`. OpenAI's client retries; tools are not retried, and a failed one is reported to the model.
"""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import openai

TASK = "Book me the cheapest flight from Oslo to Rome."
SEARCH = os.environ.get("SEARCH_URL", "http://search:8000")
BOOKING = os.environ.get("BOOKING_URL", "http://booking:8000")
PATIENCE = 5
TURNS = 6


def tool(name, description, *required):
    properties = {field: {"type": "string"} for field in required}
    function = {"name": name, "description": description, "strict": True, "parameters": {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }}
    return {"type": "function", "function": function}


TOOLS = [tool("search", "Lists flights", "from", "to"), tool("booking", "Books a flight", "flight")]


def call_tool(http, name, arguments):
    """The tool's result for the model: the body, or the error."""
    try:
        if name == "search":
            response = http.get(f"{SEARCH}/flights", params=arguments)
        else:
            response = http.post(f"{BOOKING}/bookings", json=arguments)
        response.raise_for_status()
        return response.text
    except httpx.HTTPError as error:
        return json.dumps({"error": str(error) or type(error).__name__})


def work(task, headers):
    """Calls the model and its tools until it answers. `headers` name the scope of its calls."""
    messages = [{"role": "user", "content": task}]
    with httpx.Client(headers=headers, timeout=PATIENCE) as http, \
            openai.OpenAI(default_headers=headers, timeout=PATIENCE) as model:
        for _ in range(TURNS):
            with model.chat.completions.stream(model="staging-1", messages=messages, tools=TOOLS) as stream:
                message = stream.get_final_completion().choices[0].message
            if not message.tool_calls:
                return message.content
            calls = [{"id": call.id, "type": "function", "function": {
                "name": call.function.name, "arguments": call.function.arguments,
            }} for call in message.tool_calls]
            messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
            for call in message.tool_calls:
                result = call_tool(http, call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError(f"no answer after {TURNS} turns")


class Invocations(BaseHTTPRequestHandler):
    """`POST /invoke` with `{"input": TASK}`, as a run sends it."""

    def log_message(self, *_arguments):
        """Squall's journal shows the calls."""

    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        scope = {"baggage": self.headers["baggage"]} if "baggage" in self.headers else {}
        try:
            status, reply = 200, {"output": work(task, scope)}
        except Exception as error:  # The run judges it.
            status, reply = 502, {"error": f"{type(error).__name__}: {error}"}
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    address = os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000"))
    server = ThreadingHTTPServer(address, Invocations)
    print(f"agent on port {server.server_port}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        try:
            print(work(TASK, {"baggage": "squall.scope=traffic"}), flush=True)
        except Exception as error:  # Under chaos it goes on with the next task.
            print(f"{type(error).__name__}: {error}", flush=True)
        time.sleep(float(os.environ.get("PAUSE", "1")))
