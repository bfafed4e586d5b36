"""Agents post long documents slowly, under a rule that wants to read them before they go on."""

import concurrent.futures
import http.server
import json
import socket
import threading

from attack import Daemon, check, main, until

MIB = 1 << 20
BODY = 8 * MIB
RULES = {
    "a rule that draws": {"llm_faults": [{"mode": "rate_limit", "probability": 0.000001}]},
    "a rule that rewrites": {"context_attacks": [{"type": "overflow", "inject_tokens": 1000}]},
}


class Server(http.server.ThreadingHTTPServer):
    """Accepts many connections at once."""

    request_queue_size = 128


class Upstream(http.server.BaseHTTPRequestHandler):
    """Reads all that comes, and answers."""

    protocol_version = "HTTP/1.1"
    begun = 0

    def do_POST(self):
        type(self).begun += 1
        left = int(self.headers["content-length"])
        while left > 0 and (got := len(self.rfile.read(min(left, MIB)))):
            left -= got
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def document():
    """A model call of exactly `BODY` bytes."""
    call = {"model": "any", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": ""}]}
    call["messages"][1]["content"] = "word " * ((BODY - len(json.dumps(call))) // 5)
    return json.dumps(call).encode().ljust(BODY)


def post(daemon, upstream, body):
    """Sends all but the last byte."""
    connection = socket.create_connection(("127.0.0.1", daemon.proxy))
    connection.settimeout(60)
    head = (
        f"POST http://127.0.0.1:{upstream}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{upstream}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode())
    connection.sendall(memoryview(body)[:-1])
    return connection


def finish(connection, body):
    """Sends the last byte; the status of the answer."""
    connection.sendall(body[-1:])
    with connection:
        return int(connection.makefile("rb").readline().split()[1])


def attack(full):
    memory, posts = (256, 80) if full else (32, 12)
    upstream = Server(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    body = document()
    for what, rules in RULES.items():
        with Daemon({"proxy": {"limits": {"inspect_memory": f"{memory}MiB"}}}) as daemon:
            status, said = daemon.call("PUT", "/v1/chaos", {"chaos": rules, "seed": 1})
            check(status in (200, 201), f"{what} is put in force", said if status > 299 else status)
            before = daemon.rss()
            with concurrent.futures.ThreadPoolExecutor(posts) as pool:
                slow = list(pool.map(lambda _: post(daemon, upstream.server_port, body), range(posts)))
                held = memory // (BODY // MIB)
                statuses = list(pool.map(lambda one: finish(one, body), slow))
            grown = daemon.peak() - before
            # Beside bodies: a buffer of each connection, and the document that is being parsed.
            bound = memory + posts * 1.25 + 8 * BODY / MIB
            check(grown < bound, f"memory stays near inspect_memory under {what}",
                  f"{posts} × 8 MiB, at most {held} held: {grown:.0f} MiB of {bound:.0f}")
            check(set(statuses) == {200}, f"every post is answered under {what}", sorted(set(statuses)))
            seen = json.loads(daemon.call("GET", "/v1/exchanges?limit=1000")[1])["items"]
            said = {rule.get("reason") for one in seen for rule in one.get("rules", [])}
            if "context_attacks" in rules:
                full_memory = any("inspect_memory" in str(one) for one in said)
                check(full_memory, "the journal says which rules were bypassed for want of memory")
    with Daemon() as daemon:
        rule = {"network_faults": [{"mode": "latency", "delay_ms": 1}]}
        status, said = daemon.call("PUT", "/v1/chaos", {"chaos": rule, "seed": 1})
        Upstream.begun = 0
        slow = post(daemon, upstream.server_port, body)
        try:
            reached = until(lambda: Upstream.begun, "the request's head")
        except TimeoutError:
            reached = 0
        check(reached, "a rule that needs no body does not wait for one", said if status > 299 else "")
        finish(slow, body)
    upstream.shutdown()


if __name__ == "__main__":
    main(attack)
