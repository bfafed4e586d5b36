"""An agent that asks the proxy for one URL after the other, each as written.

Arguments: URLs of `http`. Each is asked for in absolute form and through a CONNECT; one with `HOST@` in front of the
host puts that HOST into the `Host` of the request inside the CONNECT. Prints a JSON list of `[URL, way, status]`.
Clients such as curl rewrite some spellings of an address before the proxy sees them: this one does not.
"""

import base64
import json
import os
import socket
import sys
from urllib.parse import unquote, urlsplit


def status(file):
    """The status of the response that comes next, its head read; 0 for none."""
    try:
        line = file.readline()
        while file.readline().strip():
            pass
        return int(line.split()[1])
    except (OSError, IndexError):
        return 0


def absolute(wire, file, named, authority, path, headers):
    wire.sendall(f"GET http://{authority}{path} HTTP/1.1\r\nHost: {named}\r\n{headers}Connection: close\r\n\r\n".encode())
    return status(file)


def connect(wire, file, named, authority, path, headers):
    wire.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{headers}\r\n".encode())
    opened = status(file)
    if opened != 200:
        return opened
    wire.sendall(f"GET {path} HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\n\r\n".encode())
    return status(file)


def main():
    proxy = urlsplit(os.environ["http_proxy"])
    credentials = base64.b64encode(unquote(f"{proxy.username}:{proxy.password}").encode()).decode()
    headers = f"Proxy-Authorization: Basic {credentials}\r\n"
    found = []
    for url in sys.argv[1:]:
        authority, _, path = url.removeprefix("http://").partition("/")
        named, _, authority = authority.rpartition("@")
        for ask in (absolute, connect):
            with socket.create_connection((proxy.hostname, proxy.port), timeout=20) as wire:
                answered = ask(wire, wire.makefile("rb"), named or authority, authority, f"/{path}", headers)
            found.append([url, ask.__name__, answered])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
