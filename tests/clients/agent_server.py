"""An agent with an HTTP endpoint: asks its tool through the proxy for each question, and says what came of it.

    agent_server.py PROXY TOOL CARRIES

PROXY is host:port of the proxy; TOOL is a URL; CARRIES names what is passed on of what it is asked with: `baggage`,
`traceparent`, or `none`. Prints its own port on the first line.
"""

import http.client
import sys
import urllib.parse

from serving import serve

proxy, tool, carries = sys.argv[1:4]


def ask_tool(headers, prompt):
    """The status of the tool's answer; 0 when there was none."""
    place = urllib.parse.urlsplit(tool)
    target = f"{tool}?q={urllib.parse.quote(prompt)}"
    connection = http.client.HTTPConnection(proxy, timeout=20)
    try:
        connection.request("GET", target, headers={"Host": place.netloc, **headers})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def answer(prompt, headers):
    passed_on = {name: headers[name] for name in [carries] if headers.get(name)}
    status = ask_tool(passed_on, prompt)
    said = "it is sunny" if status == 200 else "the weather is unavailable"
    return f"{prompt}: {said}"


serve(answer)
