"""The world of the agents: a simulated model (chat completions and Responses of OpenAI), and two tools.

The model calls one tool, then the other with the result, then answers. It says so if a result is not as expected.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = {
    "/place": {"name": "Rome", "lat": 41.9, "lng": 12.5},
    "/weather": {"degrees": 21, "sky": "clear"},
}


def turn(results):
    """What the model does next: the tool that it calls with its arguments, or its answer."""
    if not results:
        return ("get_lat_lng", {"location": "Rome"}), None
    place = field(results[0], "lat"), field(results[0], "lng")
    if None in place:
        return None, "I could not find Rome."
    if len(results) == 1:
        return ("get_weather", dict(zip(("lat", "lng"), place))), None
    degrees = field(results[1], "degrees")
    if degrees is None:
        return None, "I could not look up the weather in Rome."
    text = "I looked up the weather in Rome for you: the sky is clear, there is hardly any wind, and it is"
    return None, f"{text} {degrees:.0f} degrees."


def field(result, name):
    """The number that the result has for this name, in JSON or as Python prints it."""
    found = re.search(rf"""["']{name}["']: ?([\d.]+)""", str(result))
    return found and float(found[1])


def chat_completion(request):
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    call, text = turn(results)
    message = {"role": "assistant", "content": text}
    if call:
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{name}", "type": "function", "function": function}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 110},
    }


def response(request):
    items = request["input"] if isinstance(request["input"], list) else []
    call, text = turn([item["output"] for item in items if item.get("type") == "function_call_output"])
    if call:
        name, arguments = call
        item = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": name}
        item["arguments"] = json.dumps(arguments)
    else:
        content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": request["model"],
        "output": [item | {"status": "completed"}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 90,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 110,
        },
    }


class World(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send(TOOLS[self.path.split("?")[0]])

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send(chat_completion(request) if self.path.endswith("/chat/completions") else response(request))

    def send(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):
        """Faults reset connections."""


def serve():
    """Serves in a thread; its address."""
    server = Server(("127.0.0.1", 0), World)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"
