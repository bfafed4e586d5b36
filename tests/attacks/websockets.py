"""Both sides of a WebSocket of model calls send mutated frames, with a rule in force and without."""

import base64
import hashlib
import json
import random
import select
import socket
import struct
import threading

from attack import Daemon, Watch, check, main

RULES = {
    "no rule": None,
    "a content rule": {"llm_faults": [{"mode": "truncated_response", "max_tokens": 2}]},
}
CALL = {"type": "response.create", "model": "gpt-5", "input": "Say something."}
RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": [],
            "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}}
EVENTS = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "usage": None}},
    *({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": word}
      for word in ("Squalls", " pass", " and", " ships", " remain.")),
    {"type": "response.completed", "response": RESPONSE},
]


def frame(first, payload, mask=None):
    """One frame; `mask` is four bytes or none."""
    length = len(payload)
    flag = 0x80 if mask else 0
    if length < 126:
        head = bytes([first, flag | length])
    elif length < 1 << 16:
        head = bytes([first, flag | 126]) + struct.pack(">H", length)
    else:
        head = bytes([first, flag | 127]) + struct.pack(">Q", length)
    if mask:
        head += mask
        payload = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return head + payload


def mutated(messages, dice, mask):
    """Frames of messages, then changed: bits, lengths, cuts, repetitions, frames of other kinds."""
    frames = []
    for message in messages:
        text = json.dumps(message).encode()
        if dice.random() < 0.3:
            place = dice.randrange(len(text) + 1)
            frames += [frame(0x01, text[:place], mask), frame(0x80, text[place:], mask)]
        else:
            frames.append(frame(0x81, text, mask))
        if dice.random() < 0.2:
            frames.append(frame(dice.randrange(256), dice.randbytes(dice.choice([0, 1, 125, 126, 300])), mask))
    for _ in range(dice.randrange(4)):
        index = dice.randrange(len(frames))
        one = bytearray(frames[index])
        if len(one) < 2:
            continue  # It was cut before.
        match dice.randrange(6):
            case 0:
                one[dice.randrange(min(len(one), 14))] ^= 1 << dice.randrange(8)
            case 1:
                one[dice.randrange(len(one))] ^= 1 << dice.randrange(8)
            case 2:
                one[1:2] = bytes([one[1] & 0x80 | 127]) + struct.pack(">Q", dice.choice([0, 1 << 20, 1 << 40, 1 << 63]))
            case 3:
                del one[dice.randrange(len(one)) :]
            case 4:
                frames.insert(index, bytes(one))
            case 5:
                one += dice.randbytes(dice.randrange(1, 20))
        frames[index] = bytes(one)
    return b"".join(frames)


def head(stream):
    """The bytes up to an empty line, and those behind it; nothing if the connection has ended."""
    got = b""
    while b"\r\n\r\n" not in got:
        if not (piece := stream.recv(4096)):
            return None, b""
        got += piece
    return got.split(b"\r\n\r\n", 1)


def drain(stream):
    """Reads to the end of the connection, or to its silence."""
    try:
        while select.select([stream], [], [], 0.2)[0] and stream.recv(1 << 16):
            pass
    except OSError:
        pass


def serve(listener, dice):
    """Accepts upgrades, and sends mutated events, or whole ones to an agent that mutates."""

    def one(stream):
        with stream:
            asked, _ = head(stream)
            if asked is None:
                return
            lines = dict(line.lower().split(b": ", 1) for line in asked.split(b"\r\n")[1:])
            raw = next(line.split(b": ", 1)[1] for line in asked.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
            accept = base64.b64encode(hashlib.sha1(raw + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            try:
                if not stream.recv(1 << 16):
                    return
                if lines.get(b"x-mutated") == b"upstream":
                    stream.sendall(mutated(EVENTS * 2, dice, None))
                else:
                    stream.sendall(b"".join(frame(0x81, json.dumps(event).encode()) for event in EVENTS))
            except OSError:
                return
            drain(stream)

    while True:
        try:
            stream, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=one, args=(stream,), daemon=True).start()


def talk(daemon, upstream, side, dice):
    """One socket on which a side mutates; whether it was opened."""
    with socket.create_connection(("127.0.0.1", daemon.proxy)) as stream:
        stream.settimeout(30)
        stream.sendall(
            f"GET http://127.0.0.1:{upstream}/v1/responses HTTP/1.1\r\nHost: 127.0.0.1:{upstream}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Mutated: {side}\r\n\r\n".encode())
        answer, _ = head(stream)
        if answer is None or b" 101 " not in answer.split(b"\r\n")[0]:
            return False
        mask = dice.randbytes(4)
        calls = [{**CALL, **({"stream_id": dice.choice("abc")} if dice.random() < 0.5 else {})} for _ in range(3)]
        whole = b"".join(frame(0x81, json.dumps(call).encode(), mask) for call in calls)
        try:
            stream.sendall(mutated(calls, dice, mask) if side == "agent" else whole)
            stream.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        drain(stream)
        return True


def attack(full):
    # Sockets of a side under a rule, each with three calls or 14 events, and frames between them.
    inputs = 2_500 if full else 100
    dice = random.Random(7)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    threading.Thread(target=serve, args=(listener, dice), daemon=True).start()
    upstream = listener.getsockname()[1]
    for what, rules in RULES.items():
        with Daemon() as daemon, Watch(daemon) as watch:
            if rules:
                status, said = daemon.call("PUT", "/v1/chaos", {"chaos": rules, "seed": 1})
                check(status in (200, 201), f"{what} is put in force", said if status > 299 else status)
            for side in ("agent", "upstream"):
                # What the first sockets leave, such as the vocabulary that counts tokens, is no growth.
                opened = sum(talk(daemon, upstream, side, dice) for _ in range(inputs // 10))
                before = daemon.rss()
                opened += sum(talk(daemon, upstream, side, dice) for _ in range(inputs))
                grown = daemon.rss() - before
                check(opened == inputs + inputs // 10, f"{opened} sockets open while the {side} mutates, under {what}")
                # The journal in memory keeps at most 64 MiB, and grows in steps.
                bound = 64
                check(grown < bound, f"memory does not grow while the {side} mutates, under {what}",
                      f"{grown:.1f} MiB of {bound}")
            said = daemon.log()
            check(daemon.alive() and "panicked" not in said, f"nothing panics under {what}")
            check(not watch.failed, f"the API answers all the time under {what}", f"{watch.longest:.0f} ms at most")
            _, seen = daemon.call("GET", "/v1/exchanges?limit=1000")
            wrong = sum("broke the WebSocket protocol" in str(one.get("error")) for one in json.loads(seen)["items"])
            check(wrong, f"the journal says which side broke the protocol under {what}", f"{wrong} of the latest")
            check(daemon.ends(), f"SIGTERM ends it under {what}")
    listener.close()


if __name__ == "__main__":
    main(attack)
