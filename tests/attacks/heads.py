"""Somebody without a token opens more connections than the daemon has descriptors, and sends half of each head."""

import contextlib
import http.client
import http.server
import resource
import socket
import subprocess
import threading
import time

from attack import BINARY, Daemon, Watch, check, main

FILES = 1024
TOKEN = "s3cret-of-the-operator"
HALF = b"GET /v1/chaos HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"fine")

    def log_message(self, *_):
        pass


def flood(port, sent, count, held):
    """Opens connections that each send this and stay; those that are not let in do not count."""
    for _ in range(count):
        connection = socket.socket()
        connection.settimeout(2)
        with contextlib.suppress(OSError):
            connection.connect(("127.0.0.1", port))
            connection.sendall(sent)
            held.append(connection)
            continue
        connection.close()


def through_proxy(daemon, upstream):
    """What the proxy answers; `None` if nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.proxy, timeout=10)
    try:
        connection.request("GET", f"http://127.0.0.1:{upstream}/")
        return connection.getresponse().read()
    except OSError as error:
        return repr(error)
    finally:
        connection.close()


def off(daemon):
    """`squall off`: whether it did, and how long it took."""
    began = time.monotonic()
    command = [BINARY, "off", "--server", f"http://127.0.0.1:{daemon.api}", "--token", TOKEN]
    ended = subprocess.run(command, timeout=60, check=False, capture_output=True)
    return ended.returncode == 0, time.monotonic() - began


def put_chaos(daemon):
    headers = {"authorization": f"Bearer {TOKEN}"}
    return daemon.call("PUT", "/v1/scopes/s/chaos", {"profile": "api_outage"}, headers)


def stopped(daemon, where, upstream):
    """Everything that must still go under the flood."""
    status, said = put_chaos(daemon)
    check(status == 200, f"{where}: the API answers who has a token", said if status != 200 else "")
    answer = through_proxy(daemon, upstream)
    check(answer == b"fine", f"{where}: the proxy forwards", answer)
    ended, took = off(daemon)
    check(ended and took < 5, f"{where}: `squall off` ends all chaos", f"{took:.2f} s, with the program's start")


def attack(full):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    api = {"tokens": [{"name": "operator", "role": "operator", "token": "${ATTACK_TOKEN}"}]}
    with Daemon({"api": api}, files=FILES, environment={"ATTACK_TOKEN": TOKEN}) as daemon:
        held = []
        with Watch(daemon) as watch:
            flood(daemon.api, HALF, 1100, held)
            stopped(daemon, "1,100 half heads at the API", upstream.server_port)
            flood(daemon.api, b"", 1100, held)
            stopped(daemon, "and 1,100 that send nothing", upstream.server_port)
            if full:
                drip(daemon)
        longest = f"{watch.longest:.0f} ms at the longest, {watch.asked} times"
        check(not watch.failed, "/healthz answers all the time", f"{longest} {watch.failed[:3]}")
        if full:
            renewing(daemon, upstream.server_port)
            flood(daemon.proxy, HALF, 2000, held)
            ended, took = off(daemon)
            check(ended and took < 5, "2,000 half heads at the proxy leave `squall off`", f"{took:.2f} s")
        check(daemon.ends(), "SIGTERM ends the daemon")
        for connection in held:
            connection.close()
    upstream.shutdown()


def renewing(daemon, upstream):
    """Four threads that open connections as fast as they can."""
    stop = threading.Event()

    def renew():
        while not stop.is_set():
            held = []
            flood(daemon.api, HALF, 100, held)
            for connection in held:
                connection.close()

    threads = [threading.Thread(target=renew, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    stopped(daemon, "a flood that goes on", upstream)
    slowest = max(took if ended else 99 for ended, took in (off(daemon) for _ in range(50)))
    check(slowest < 5, "and `squall off` ends it fifty times", f"{slowest:.2f} s at the longest")
    stop.set()
    for thread in threads:
        thread.join()


def drip(daemon):
    """A head that comes a byte at a time is not waited for."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", daemon.api)) as connection:
        connection.settimeout(0.5)
        connection.sendall(HALF)
        while (took := time.monotonic() - began) < 45:
            try:
                connection.sendall(b"x")
                if not connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    check(took < 40, "a head that never ends is not waited for", f"closed after {took:.0f} s")


if __name__ == "__main__":
    main(attack)
