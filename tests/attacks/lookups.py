"""Thousands of names that a dead DNS server never answers for, and beside them a name of the hosts file.

The daemon runs with a resolver and a hosts file of its own (a mount namespace, which takes root).
"""

import http.server
import os
import pathlib
import resource
import socket
import subprocess
import tempfile
import threading
import time

import attack as attacks
from attack import Daemon, check, main, until

WRAPPER = """#!/bin/sh
exec unshare --mount sh -c 'mount --bind {dir}/hosts /etc/hosts && mount --bind {dir}/resolv.conf /etc/resolv.conf \\
    && exec {binary} "$@"' squall "$@"
"""


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def ask(daemon, host):
    connection = socket.create_connection(("127.0.0.1", daemon.proxy))
    connection.settimeout(60)
    connection.sendall(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return connection


def status(connection):
    with connection:
        return int(connection.makefile("rb").readline().split()[1])


def threads(daemon):
    said = pathlib.Path(f"/proc/{daemon.child.pid}/status").read_text()
    return int(next(line.split()[1] for line in said.splitlines() if line.startswith("Threads")))


def attack(full):
    names = 3000 if full else 1500
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        print("  skipped  a resolver of its own takes root and mount namespaces")
        return
    dead = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        dead.bind(("127.0.0.53", 53))
    except OSError as error:
        print(f"  skipped  no port for a DNS server: {error}")
        return
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "hosts").write_text("127.0.0.1 localhost known.example\n")
        (directory / "resolv.conf").write_text("nameserver 127.0.0.53\n")
        wrapper = directory / "squall"
        wrapper.write_text(WRAPPER.format(dir=directory, binary=attacks.BINARY))
        wrapper.chmod(0o755)
        attacks.BINARY = str(wrapper)
        with Daemon({"proxy": {"limits": {"connections": 8000}}}) as daemon:
            before = threads(daemon)
            known = f"known.example:{upstream.server_port}"
            answer = status(ask(daemon, known))
            check(answer == 200, "a name of the hosts file resolves", answer)
            lost = [ask(daemon, f"dead-{number}.example") for number in range(names)]
            same = [ask(daemon, "same.example") for _ in range(100)]
            until(lambda: threads(daemon) > before, "lookups to begin")
            began = time.monotonic()
            answer = status(ask(daemon, known))
            took = time.monotonic() - began
            check(answer == 200 and took < 2, f"it does so beside {names} names of a dead DNS server",
                  f"{answer} in {took:.2f} s")
            grown = threads(daemon) - before
            check(grown <= 70, "lookups take a bounded number of threads", f"{grown} more")
            statuses = {status(connection) for connection in lost[:50] + lost[-50:] + same}
            check(statuses <= {502, 504}, "names that do not resolve are a 502 or a 504", sorted(statuses))
    upstream.shutdown()


if __name__ == "__main__":
    main(attack)
