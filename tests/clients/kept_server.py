"""An agent with an HTTP endpoint that keeps its connection from one question to the next.

    kept_server.py PROXY TOOL CARRIES

PROXY is host:port of the proxy, TOOL a URL; of an https one the authority is trusted that SSL_CERT_FILE names. CARRIES
is passed on of what it is asked with. It says over which connection it called, counted from 1, and what came of it. A
connection is left only where an answer said so; one that closed otherwise is told as `closed unasked`. Prints its own
port on the first line.
"""

import http.client
import sys
import threading
import urllib.parse

from serving import serve

proxy, tool, carries = sys.argv[1:4]
place = urllib.parse.urlsplit(tool)
lock = threading.Lock()
kept = None
opened = 0


def connect():
    global opened
    opened += 1
    host, port = proxy.split(":")
    if place.scheme == "http":
        return http.client.HTTPConnection(host, int(port), timeout=20)
    connection = http.client.HTTPSConnection(host, int(port), timeout=20)
    connection.set_tunnel(place.netloc)
    connection.connect()
    return connection


def call(headers):
    """What the tool answered."""
    global kept
    is_fresh = kept is None
    try:
        kept = kept or connect()
        target = tool if place.scheme == "http" else place.path
        kept.request("GET", target, headers={"Host": place.netloc, **headers})
        answer = kept.getresponse()
        answer.read()
        if answer.will_close:
            kept = None
        return f"status {answer.status}"
    except OSError as error:
        kept = None
        return f"unavailable: {error}" if is_fresh else f"closed unasked: {error}"


def answer(prompt, headers):
    with lock:
        came = call({carries: headers[carries]})
        return f"{prompt}: {came}, over connection {opened}"


serve(answer)
