"""An agent with an HTTP endpoint that goes on calling for askings that are over.

    late_server.py PROXY TOOL CARRIES

PROXY is host:port of the proxy, TOOL a URL, CARRIES what is passed on of what it is asked with: `baggage`,
`traceparent`, or both with a comma between them. Asked a prompt again, it first calls the tool with what it was asked
with the first time, and only then for this asking. Prints its own port on the first line.
"""

import http.client
import json
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

proxy, tool, carries = sys.argv[1:4]
lock = threading.Lock()
first_asked_with = {}


def call(headers, query):
    """The status of the tool's answer; 0 when there was none."""
    target = f"{tool}?q={urllib.parse.quote(query)}"
    connection = http.client.HTTPConnection(proxy, timeout=20)
    try:
        host = urllib.parse.urlsplit(tool).netloc
        connection.request("GET", target, headers={"Host": host, **headers})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        passed_on = {name: self.headers[name] for name in carries.split(",")}
        with lock:
            first = first_asked_with.setdefault(prompt, passed_on)
        late = call(first, f"LATE-OF-{prompt}") if first is not passed_on else 200
        status = call(passed_on, prompt)
        said = "it is sunny" if status == 200 else "the weather is unavailable"
        answer = json.dumps({"output": f"{prompt}: {said}, late {late}"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


ThreadingHTTPServer.request_queue_size = 128
server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
print(server.server_address[1], flush=True)
server.serve_forever()
