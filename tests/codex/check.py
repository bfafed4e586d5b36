"""Codex's command line against a simulated model on a WebSocket, through a daemon: unchanged without chaos, and how it
meets faults. `scripts/codex` installs it; its first argument is the program.
"""

import base64
import datetime
import hashlib
import itertools
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attacks"))

from attack import Daemon, check, failures

WORDS = "Squalls pass and ships remain."
SHELLS = {
    "exec_command": lambda line: {"cmd": line},
    "shell_command": lambda line: {"command": line},
    "shell": lambda line: {"command": ["bash", "-c", line]},
}


class Upstream:
    """A model that calls a shell, and says `WORDS` once it has the result; over WebSockets and event streams."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=32)
        self.port = self.listener.getsockname()[1]
        # Carrier and request of each call.
        self.calls = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            stream, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream):
        with stream, stream.makefile("rb") as reader:
            while line := reader.readline():
                fields = {}
                while (field := reader.readline().strip()) != b"":
                    name, value = field.split(b": ", 1)
                    fields[name.lower()] = value
                if fields.get(b"upgrade", b"").lower() == b"websocket":
                    return self._talk(stream, reader, fields[b"sec-websocket-key"])
                body = reader.read(int(fields.get(b"content-length", 0)))
                if not line.startswith(b"POST") or b"/responses" not in line:
                    stream.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")
                    continue
                events = self._events("http", json.loads(body))
                text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
                stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(text))
                stream.sendall(text)

    def _talk(self, stream, reader, key):
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        message = b""
        while head := reader.read(2):
            length = head[1] & 0x7F
            if length > 125:
                length = struct.unpack(*((">H", reader.read(2)) if length == 126 else (">Q", reader.read(8))))[0]
            mask = reader.read(4)
            payload = bytes(byte ^ mask[index % 4] for index, byte in enumerate(reader.read(length)))
            opcode = head[0] & 0x0F
            if opcode == 8:
                return stream.sendall(frame(0x88, payload))
            if opcode == 9:
                stream.sendall(frame(0x8A, payload))
            if opcode > 2:
                continue
            message += payload
            if head[0] & 0x80:
                try:
                    for event in self._events("websocket", json.loads(message)):
                        stream.sendall(frame(0x81, json.dumps(event).encode()))
                except OSError:
                    return  # The call was cut.
                message = b""

    def _events(self, carrier, request):
        warms_up = request.get("generate") is False
        if not warms_up:
            self.calls.append((carrier, request))
        given = request.get("input") or []
        has_result = any(item.get("type") == "function_call_output" for item in given)
        names = [tool.get("name") for tool in request.get("tools") or []]
        shell = next((name for name in names if name in SHELLS), None)
        number = len(self.calls)
        if warms_up:
            item = None
        elif shell and not has_result:
            arguments = json.dumps(SHELLS[shell]("echo squall-$((40 + 2))"))
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": shell,
                    "arguments": arguments, "status": "completed"}
        else:
            part = {"type": "output_text", "text": WORDS, "annotations": []}
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
        output = [item] if item else []
        response = {"id": f"resp_{number}_{warms_up}", "object": "response", "model": request.get("model"), "output": output,
                    "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                              "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 14}}
        yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
        if item:
            yield {"type": "response.output_item.added", "output_index": 0, "item": item}
            if item["type"] == "message":
                for word in WORDS.split(" "):
                    yield {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0,
                           "content_index": 0, "delta": word + " "}
            yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": {**response, "status": "completed"}}


def frame(first, payload):
    """An unmasked frame."""
    if len(payload) < 126:
        return bytes([first, len(payload)]) + payload
    return bytes([first, 126]) + struct.pack(">H", len(payload)) + payload


def codex(program, base):
    """Runs Codex on one task; its events and what it wrote beside them."""
    with tempfile.TemporaryDirectory(prefix="squall-codex-") as home:
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        done = subprocess.run(
            [program, "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
             "-c", f'openai_base_url="{base}"', "-c", 'model="gpt-5"', "Run the command and say how it went."],
            env={**keep, "HOME": home, "CODEX_HOME": home, "OPENAI_API_KEY": "sk-test", "CODEX_API_KEY": "sk-test"},
            cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return events, done.stdout + done.stderr


def summary(events):
    """The shell's outputs, then the last answer."""
    items = [event.get("item", {}) for event in events if event.get("type") == "item.completed"]
    outputs = [item.get("aggregated_output", "").strip() for item in items if item.get("type") == "command_execution"]
    answers = [item.get("text", "").strip() for item in items if item.get("type") == "agent_message"]
    return [*outputs, *answers[-1:]]


WHOLE = ["squall-42", WORDS]

REFUSE = {"llm": [{"match_url": "*", "websocket": "refuse"}]}


def through(program, rule=None, config=None):
    """Codex through a daemon with a rule in force: its answer, and a letter a call: `w` on a WebSocket, `h` over HTTP,
    upper case where a rule was applied.
    """
    upstream = Upstream()
    route = {"name": "up", "prefix": "/up", "upstream": f"http://127.0.0.1:{upstream.port}"}
    with Daemon({"routes": [route], **(config or {})}) as daemon:
        if rule:
            status, said = daemon.call("PUT", "/v1/chaos", {"chaos": {"llm_faults": [rule]}, "seed": 1})
            assert status < 300, said
        events, said = codex(program, f"http://127.0.0.1:{daemon.proxy}/up/v1")
        entries = json.loads(daemon.call("GET", "/v1/exchanges?kind=llm&limit=1000")[1])["items"]

    def letter(entry):
        one = "w" if entry.get("websocket") else "h"
        return one.upper() if any(rule["outcome"] == "applied" for rule in entry["rules"]) else one

    entries.reverse()
    times = [datetime.datetime.fromisoformat(entry["started_at"]) for entry in entries]
    waits = max(((after - before).total_seconds() for before, after in itertools.pairwise(times)), default=0)
    return summary(events), "".join(map(letter, entries)), waits, said


def main(program):
    # The first call of a socket warms it up, and draws nothing.
    for what, rule, config, answer, calls, least in (
        ("without chaos", None, None, WHOLE, "www", 0),
        ("waits and retries after a 429", {"mode": "rate_limit", "retry_after": 2, "limit": 1}, None, WHOLE, "wWww", 2),
        ("reconnects after a cut", {"mode": "stream_cut", "after_tokens": 1, "limit": 1}, None, WHOLE, "wWww", 0),
        ("falls back to HTTP under lasting errors", {"mode": "server_error"}, None, [], "wW+H+", 0),
        ("uses HTTP where WebSockets are refused", None, REFUSE, WHOLE, "hh", 0),
    ):
        got, made, waits, said = through(program, rule, config)
        holds = got == answer and re.fullmatch(calls, made) and waits >= least
        if not check(holds, f"Codex {what}", f"{got}, {made}, {waits:.1f} s between two calls at most"):
            print(said)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.exit(1 if failures else 0)
