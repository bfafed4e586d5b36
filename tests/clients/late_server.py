"""An agent with an HTTP endpoint that goes on calling for invocations that are over.

    late_server.py PROXY TOOL CARRIES

PROXY is host:port of the proxy, TOOL a URL, CARRIES what is passed on of what it is asked with: `baggage`,
`traceparent`, or both with a comma between them. Asked a prompt again, it first calls the tool with what it was asked
with the first time, and only then for this invocation. Prints its own port on the first line.
"""

import http.client
import sys
import threading
import urllib.parse

from serving import serve

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


def answer(prompt, headers):
    passed_on = {name: headers[name] for name in carries.split(",")}
    with lock:
        first = first_asked_with.setdefault(prompt, passed_on)
    late = call(first, f"LATE-OF-{prompt}") if first is not passed_on else 200
    status = call(passed_on, prompt)
    said = "it is sunny" if status == 200 else "the weather is unavailable"
    return f"{prompt}: {said}, late {late}"


serve(answer)
