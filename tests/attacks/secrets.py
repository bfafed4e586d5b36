"""A secret in every place of an exchange; then everything that was kept or told is searched for it.

Some secrets are known by a pattern of `redact:`: without it they must arrive, so that the search is known to look
where they go. The others are known by a name beside them, or because a header holds them; a mark beside each must
arrive.
"""

import base64
import contextlib
import gzip
import http.server
import json
import os
import random
import re
import socket
import subprocess
import threading
import urllib.parse
import zlib

from attack import BINARY, Daemon, check, main, until

PATTERN = "CNRY[:~][a-z]{4} ?[a-z]{4}"
MARK = "lighthouse"
# Known by the name beside them only.
NAMED = [f"quiet-harbour-{number:02}" for number in range(22)]
ECHOED = {"x-api-key": "nine/lanterns+of kiel", "authorization": "Bearer seven-lanterns-of-kiel",
          "cookie": "sid=five-lanterns-of-kiel", "proxy-authorization": "Basic " +
          base64.b64encode(b"job-7:three lanterns of kiel").decode()}
HELD = ["nine/lanterns+of kiel", "seven-lanterns-of-kiel", "five-lanterns-of-kiel", "three lanterns of kiel"]
KEY = "sk-ant-api03-Zq8wN2xV7bT4mK9pL3cR6yH1dF5gJ0sA8eU2iO4"
DEEP = "wrap"
# By what the pattern finds it, and where it must arrive when nobody asks for it to be redacted.
PATTERNED = {
    "url": ("CNRY:urls aaaa", ["journal", "events", "tail", "store", "recording"]),
    "form": ("CNRY:form aaaa", ["store", "recording"]),
    "nested": ("CNRY:nest aaaa", ["store", "recording"]),
    "deep": (f"CNRY:{DEEP} aaaa", ["store", "recording"]),
    "gzip": ("CNRY:gzip aaaa", ["store", "recording"]),
    "tool": ("CNRY~toolaaaa", ["journal", "events", "tail", "store"]),
    "model": ("CNRY~modelabc", ["journal", "events", "tail", "store", "metrics"]),
    "payload": ("CNRY:payl aaaa", ["journal", "events", "store"]),
    "error": ("CNRY~erroraaa", ["journal", "events", "store"]),
    "audit": ("CNRY:audi aaaa", ["audit", "store"]),
    "answer": ("CNRY:answ aaaa", ["run", "report", "store"]),
}


def canary(name):
    return PATTERNED[name][0]


class Upstream(http.server.BaseHTTPRequestHandler):
    """A tool that sends back what it was sent, a model, an MCP server, and the agent that a run asks."""

    protocol_version = "HTTP/1.1"
    proxy = 0

    def do_POST(self):
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {"content-type": "application/json"}
        if self.path.startswith("/echo"):
            quoted = urllib.parse.quote
            held = HELD if "x-api-key" in self.headers else []
            body = json.dumps({
                "mark": MARK,
                "headers": [f"{value} as it is" for value in self.headers.values()],
                "said": [held, json.dumps(held), [quoted(one, "") for one in held],
                         [urllib.parse.quote_plus(one) for one in held]],
                "sent": sent.decode(errors="replace"),
                "dial": f"https_proxy=http://{NAMED[0]}@proxy.test:8080",
                "next": f"https://h.test/cb?n=1#access_token={NAMED[1]}&mark={MARK}",
            }).encode()
            headers["location"] = f"https://h.test/{MARK}#access_token={NAMED[2]}"
        elif self.path.startswith("/packed"):
            told = {"mark": MARK, "password": NAMED[3], "note": canary("gzip")}
            body = gzip.compress(json.dumps(told).encode())
        elif self.path.startswith("/v1/chat"):
            body = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": MARK}}]}).encode()
        elif self.path.startswith("/mcp"):
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [
                {"type": "text", "text": MARK}]}}).encode()
        else:
            said = f"{MARK}: {canary('answer')}, see https://h.test/?api_key={NAMED[4]}&n=1"
            body = json.dumps({"output": said}).encode()
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass


def wrapped(secret, count):
    """A secret encoded over and over, each time in another way; its letters stay what they are."""
    quote, plus = urllib.parse.quote, urllib.parse.quote_plus
    ways = [json.dumps, lambda text: quote(text, ""), lambda text: json.dumps({"n": 1, "text": text}),
            lambda text: f"/x?n=1&q={quote(text, '')}&m=2", lambda text: json.dumps([text, "and\nmore"])]
    chance = random.Random(7)
    for _ in range(count):
        text = plus(secret) if chance.random() < 0.3 else secret
        for way in chance.choices(ways, k=chance.randint(0, 6)):
            text = way(text)
        yield text


def ask(port, head, body=b""):
    """One request with a head as it is; the answer's whole text."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        lines = [*head, f"content-length: {len(body)}", "connection: close"]
        wire.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        parts = []
        while part := wire.recv(65536):
            parts.append(part)
    return b"".join(parts).decode(errors="replace")


def traffic(daemon, host, wraps):
    """A secret in each place."""
    def post(path, body, *headers, scope="job-7"):
        head = [f"POST http://{host}{path} HTTP/1.1", f"host: {host}", f"x-squall-scope: {scope}", *headers]
        return ask(daemon.proxy, head, body)

    quoted = urllib.parse.quote(canary("url"), "")
    form = urllib.parse.urlencode({"mark": MARK, "note": canary("form"), "otp": NAMED[5], "next": (
        f"https://h.test/?api_key={NAMED[6]}&mark={MARK}")})
    named = [f"{name}: {NAMED[7 + number]}" for number, name in enumerate(
        ["api_key", "x-otp", "x-pwd", "x-passphrase", "x-client-secret"])]
    held = [f"{name}: {value}" for name, value in ECHOED.items()]
    post(f"/echo?mark={MARK}&q={quoted}&api_key={NAMED[12]}", form.encode(), *named, *held,
         "content-type: application/x-www-form-urlencoded")
    nested = json.dumps({"mark": MARK, "arguments": json.dumps({"password": NAMED[13], "body": json.dumps(
        {"url": f"/x?q={urllib.parse.quote(canary('nested'), '')}&sig={NAMED[14]}"})})})
    post("/echo-nested", nested.encode(), "content-type: application/json")
    post("/packed", gzip.compress(json.dumps({"mark": MARK, "secret": NAMED[15]}).encode()),
         "content-type: application/octet-stream")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": canary("tool"), "arguments": {"password": NAMED[16], "mark": MARK}}}
    post("/mcp", json.dumps(call).encode(), "content-type: application/json")
    chat = {"model": canary("model"), "messages": [{"role": "user", "content": f"say {MARK}"}]}
    post("/v1/chat/completions", json.dumps(chat).encode(), "content-type: application/json")
    for number in range(0, wraps, 50):
        texts = json.dumps({"mark": MARK, "texts": list(wrapped(canary("deep"), 50 + number))[number:]})
        post("/deep", texts.encode(), "content-type: application/json")
    # Errors say what they are about.
    target = f"http://{MARK}.test/{canary('error')}?api_key={NAMED[17]}"
    ask(daemon.proxy, [f"CONNECT http://u:{NAMED[18]}@{MARK}.test/{canary('error')}?api_key={NAMED[19]} HTTP/1.1",
                       f"host: {MARK}.test"])
    ask(daemon.proxy, [f"CONNECT http://{NAMED[21]}@{MARK}.test/?sig={NAMED[17]} HTTP/1.1", f"host: {MARK}.test"])
    ask(daemon.proxy, [f"GET {target} HTTP/1.1", f"host: {MARK}.test", "x-squall-scope: no scope"])
    user = base64.b64encode(f"{KEY}:x".encode()).decode()
    ask(daemon.proxy, [f"GET http://{host}/plain HTTP/1.1", f"host: {host}", f"proxy-authorization: Basic {user}"])


def settled(daemon):
    """The journal, once it holds all of it."""
    def found():
        status, text = daemon.call("GET", "/v1/exchanges?limit=100")
        items = json.loads(text)["items"] if status == 200 else []
        done = [item for item in items if item["outcome"] != "open"]
        return text if len(done) >= 8 and len(done) == len(items) else None

    return until(found, "the exchanges")


def unpacked(data):
    """The same bytes, and behind them what is base64 or gzip in them."""
    found = [data]
    for run in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", data):
        try:
            found.append(base64.b64decode(run + b"=" * (-len(run) % 4)))
        except ValueError:
            continue
    for piece in list(found):
        for at in re.finditer(rb"\x1f\x8b\x08", piece):
            try:
                found.append(zlib.decompressobj(31).decompress(piece[at.start():]))
            except zlib.error:
                continue
    return b"\n".join(found)


def forms(text):
    """A secret as it may be written."""
    quote, plus = urllib.parse.quote, urllib.parse.quote_plus
    once = {text, quote(text, ""), plus(text), quote(text, safe="/:"), json.dumps(text)[1:-1],
            text.replace("/", "\\/"), base64.b64encode(text.encode()).decode().rstrip("=")}
    return once | {quote(one, "") for one in once}


def holds(told, text):
    lower = told.lower()
    return any(form.lower().encode() in lower for form in forms(text))


def keep(stream, file):
    """Writes what comes in a stream, until it is closed."""
    with contextlib.suppress(OSError):
        while part := stream.recv(4096):
            file.write(part)


def everything(redact, wraps):
    """Sends the traffic through a daemon and gives what was kept and told, by where."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{server.server_address[1]}"
    config = {"store": {"exchanges": "all"}, "redact": redact}
    with Daemon(config) as daemon:
        tails, events = [], open(daemon.dir / "events", "wb")
        for number, form in enumerate([[], ["--json"]]):
            output = open(daemon.dir / f"tail{number}", "wb")
            command = [BINARY, "tail", *form, "--server", f"http://127.0.0.1:{daemon.api}"]
            tails.append(subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, "NO_COLOR": "1"}))
        stream = socket.create_connection(("127.0.0.1", daemon.api))
        stream.sendall(f"GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1:{daemon.api}\r\n\r\n".encode())
        threading.Thread(target=keep, args=(stream, events), daemon=True).start()
        try:
            chaos = {"chaos": {"context_attacks": [
                {"type": "memory_poisoning", "strategy": "prepend",
                 "payload": f"{MARK} {canary('payload')} https://h.test/?api_key={NAMED[20]}"}]}}
            status, text = daemon.call("PUT", "/v1/scopes/job-7/chaos", chaos)
            check(status == 200, "chaos with a secret in its payload is put", text[:200] if status != 200 else "")
            status, text = daemon.call("POST", "/v1/recordings", {})
            recording = json.loads(text)["id"]
            # Whoever streams is there before anything happens: a first exchange has come through to both.
            def first():
                ask(daemon.proxy, [f"GET http://{host}/first HTTP/1.1", f"host: {host}"])
                files = [daemon.dir / name for name in ("tail0", "tail1", "events")]
                events.flush()
                return all(b"/first" in file.read_bytes() for file in files)

            until(first, "the streams")
            traffic(daemon, host, wraps)
            told = {"journal": settled(daemon)}
            for item in json.loads(told["journal"])["items"]:
                told["journal"] += daemon.call("GET", f"/v1/exchanges/{item['id']}")[1]
            daemon.call("POST", f"/v1/recordings/{recording}/stop")
            told["recording"] = "".join(
                daemon.call("GET", f"/v1/recordings/{recording}?format={form}")[1] for form in ("har", "replay"))
            path = urllib.parse.quote(f"{MARK} {canary('audit')}", "")
            daemon.call("PUT", f"/v1/profiles/{path}", {"chaos": {}})
            told["audit"] = daemon.call("GET", "/v1/audit")[1]
            told["metrics"] = daemon.call("GET", "/metrics")[1]
            told.update(run(daemon, host))


            def arrived():
                events.flush()
                files = [(daemon.dir / name).read_bytes() for name in ("tail0", "tail1", "events")]
                return files if all(b"/v1/chat" in file for file in files) else None

            *printed, streamed = until(arrived, "the streams' end")
            told["tail"] = b"".join(printed).decode(errors="replace")
            told["events"] = streamed.decode(errors="replace")
        finally:
            for tail in tails:
                tail.kill()
                tail.wait()
            stream.shutdown(socket.SHUT_RDWR)
        check(daemon.ends(), "the daemon ends when it is asked to")
        told = {place: unpacked(text.encode()) for place, text in told.items()}
        files = [file for file in daemon.home.rglob("*") if file.is_file()]
        told["store"] = unpacked(b"".join(file.read_bytes() for file in files))
        told["log"] = daemon.log().encode()
        server.shutdown()
        return told


def run(daemon, host):
    """A run whose agent answers with secrets, and its reports."""
    suite = {"name": MARK, "agent": {"endpoint": f"http://{host}/agent"}, "golden_prompts": [f"Is the {MARK} open?"],
             "contract": {"name": "c", "invariants": [{"id": "says", "type": "contains", "value": "closed"}],
                          "chaos_matrix": [{"name": "m", "tool_faults": [
                              {"tool": "*", "mode": "error", "error_code": 503}], "context_attacks": [
                                  {"type": "memory_poisoning", "payload": f"{MARK} {canary('payload')}"}]}]}}
    status, text = daemon.call("POST", "/v1/runs", {"kind": "contract", "suite": suite})
    check(status == 201, "a run begins", text[:200] if status != 201 else "")
    path = f"/v1/runs/{json.loads(text)['id']}"
    told = until(lambda: (lambda text: text if json.loads(text)["finished_at"] else None)(
        daemon.call("GET", path)[1]), "the run's end")
    told += daemon.call("GET", f"{path}/events")[1] + daemon.call("GET", f"{path}/incidents")[1]
    reports = "".join(daemon.call("GET", f"{path}/report?format={form}")[1]
                      for form in ("html", "json", "junit", "markdown"))
    return {"run": told, "report": reports}


def attack(full):
    wraps = 2000 if full else 100
    asked = everything([PATTERN], wraps)
    secrets = [*NAMED, *HELD, KEY, *(canary(name) for name in PATTERNED)]
    for place, told in asked.items():
        found = [secret for secret in secrets if holds(told, secret)]
        check(not found, f"no secret is in the {place}", f"{len(told)} bytes; {found}" if found else f"{len(told)} bytes")
    for place in asked.keys() - {"metrics", "log"}:
        check(MARK.encode() in asked[place], f"what stands beside the secrets is in the {place}")
    for place in ["journal", "recording", "store", "audit", "run", "report", "events", "tail", "metrics"]:
        check(b"REDACTED" in asked[place], f"REDACTED is in the {place}")
    open_to_all = everything([], wraps)
    count = open_to_all["recording"].count(DEEP.encode())
    check(DEEP.encode() not in asked["recording"] + asked["store"] and count >= wraps,
          "no secret is kept that was encoded over and over", f"{count} unasked")
    for name, (secret, places) in PATTERNED.items():
        missing = [place for place in places if not holds(open_to_all[place], secret)]
        check(not missing, f"unasked, the secret in `{name}` arrives in {', '.join(places)}", ", ".join(missing))
    named = [secret for secret in [*NAMED, *HELD, KEY] if any(holds(told, secret) for told in open_to_all.values())]
    check(not named, "unasked, what names and headers tell is redacted all the same", ", ".join(named))


if __name__ == "__main__":
    main(attack)
