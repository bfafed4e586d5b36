"""Serves the agents of `shop` by HTTP: `POST /MODEL/NAME` with `{"input": PROMPT}`. Prints its port."""

import http.server
import json
import sys

import models
import shop

AGENTS = shop.by_name()
# One client for all agents: those of `httpx` may be shared between threads.
MODELS = {name: model() for name, model in models.BY_NAME.items()}


class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model, name = self.path.strip("/").split("/")
        agent = AGENTS[name](MODELS[model], self.headers.get("baggage"))
        try:
            self.answer(200, {"output": agent.chat(asked["input"])})
        except Exception as error:  # noqa: BLE001 - an agent that fails answers so
            self.answer(500, {"error": f"{type(error).__name__}: {error}"})

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agent)
print(server.server_port)
sys.stdout.flush()
server.serve_forever()
