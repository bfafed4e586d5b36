"""What agents with an HTTP endpoint share: a question comes as `{"input": PROMPT}`, and goes as `{"output": TEXT}`."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(answer):
    """Serves `answer(prompt, headers)`, after the port on a line of its own."""

    class Agent(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            said = json.dumps({"output": answer(prompt, self.headers)}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    ThreadingHTTPServer.request_queue_size = 128
    server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
    print(server.server_address[1], flush=True)
    server.serve_forever()
