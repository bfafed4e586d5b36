"""An agent with an HTTP endpoint: asks its tool through the proxy for each question, and says what came of it.

    agent_server.py PROXY TOOL CARRIES

PROXY is host:port of the proxy, or `none` for an agent that ignores it; TOOL is a URL; CARRIES names what is passed
on of what it is asked with: `baggage`, `traceparent`, or `none`. Prints its own port on the first line.
"""

import http.client
import json
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

proxy, tool, carries = sys.argv[1:4]


def ask_tool(headers, prompt):
    """The status of the tool's answer; 0 when there was none."""
    place = urllib.parse.urlsplit(tool)
    target = f"{tool}?q={urllib.parse.quote(prompt)}"
    connection = http.client.HTTPConnection(place.netloc if proxy == "none" else proxy, timeout=20)
    try:
        connection.request("GET", target, headers={"Host": place.netloc, **headers})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        passed_on = {name: self.headers[name] for name in [carries] if self.headers.get(name)}
        status = ask_tool(passed_on, asked["input"])
        said = "it is sunny" if status == 200 else "the weather is unavailable"
        answer = json.dumps({"output": f"{asked['input']}: {said}"}).encode()
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
