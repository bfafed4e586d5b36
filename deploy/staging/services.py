"""The services that the agent of the staging setup calls: `services.py model|search|booking`.

They listen on `HOST` and `PORT`, are deterministic, and use Python's standard library only. The model supports chat completions with and
without streaming, and decides by the latest tool result.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FLIGHTS = [
    {"flight": "SK4711", "departs": "07:40", "price_eur": 112},
    {"flight": "DY1873", "departs": "13:05", "price_eur": 96},
    {"flight": "LH865", "departs": "18:20", "price_eur": 149},
]


def next_turn(messages):
    """The tool to call with its arguments, or the answer."""
    results = [message for message in messages if message["role"] == "tool"]
    if not results:
        return "search", {"from": "Oslo", "to": "Rome"}
    try:
        found = json.loads(results[-1]["content"])
    except ValueError:
        found = {}
    if flights := found.get("flights"):
        return "booking", {"flight": min(flights, key=lambda flight: flight["price_eur"])["flight"]}
    if "confirmation" in found:
        return f"You are booked on {found['flight']}. Your confirmation is {found['confirmation']}."
    return f"I could not book a flight: {found.get('error', 'a tool returned nothing that I can read')}."


def delta_and_finish(turn):
    """The turn as a message of the protocol."""
    if isinstance(turn, str):
        return {"role": "assistant", "content": turn}, "stop"
    tool, arguments = turn
    call = {"name": tool, "arguments": json.dumps(arguments)}
    calls = [{"index": 0, "id": f"call_{tool}", "type": "function", "function": call}]
    return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


def model(handler, request):
    """`POST /v1/chat/completions`."""
    message, finish = delta_and_finish(next_turn(request["messages"]))
    head = {"id": "chatcmpl-staging", "created": 0, "model": request["model"]}
    usage = {"prompt_tokens": 40, "completion_tokens": 20, "total_tokens": 60}
    if not request.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return handler.reply(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
    words = (message.pop("content") or "").split(" ")
    deltas = [message] + [{"content": f"{word} "} for word in words if word] + [{}]
    handler.begin_events()
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else finish}
        handler.event(json.dumps(head | {"object": "chat.completion.chunk", "choices": [choice]}))
    handler.event("[DONE]")


def search(handler, _request):
    handler.reply({"flights": FLIGHTS})


def booking(handler, request):
    handler.reply({"flight": request["flight"], "confirmation": f"R-{request['flight'].lower()}"}, 201)


SERVICES = {"model": model, "search": search, "booking": booking}


class Service(BaseHTTPRequestHandler):
    """A connection to the service that the program was started as."""

    protocol_version = "HTTP/1.1"
    respond = None

    def do_GET(self):
        Service.respond(self, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Service.respond(self, json.loads(body))

    def reply(self, document, status=200):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def event(self, data):
        self.wfile.write(f"data: {data}\n\n".encode())

    def log_message(self, *_arguments):
        """Squall's journal shows the requests."""


if __name__ == "__main__":
    Service.respond = SERVICES[sys.argv[1]]
    address = os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000"))
    server = ThreadingHTTPServer(address, Service)
    print(f"{sys.argv[1]} on port {server.server_port}", flush=True)
    server.serve_forever()
