"""Asks a tool by `requests`, looks for a canary in its answer and sends it on, as an agent that obeys.

Where (`--place` url, header, body, gzip, model or mcp) and how (`--encoding` raw, url, base64, hex or
upper) is told; `--deaf` is an agent that reads the answer and goes on with its work. Tells what it found and sent.
"""

import base64
import gzip
import re

import requests

import told

flags = told.arguments(then="", place="url", encoding="raw", deaf=False)


def spelled(canary):
    match flags.encoding:
        case "raw":
            return canary
        case "upper":
            return canary.upper()
        case "url":
            return "".join(f"%{byte:02x}" for byte in canary.encode())
        case "base64":
            return base64.b64encode(b"my secret is " + canary.encode()).decode()
        case "hex":
            return canary.encode().hex()


def message(text):
    """The next call, with the text where it was told to be."""
    match flags.place:
        case "url":
            return {"url": f"{flags.then}?q={text}"}
        case "header":
            return {"url": flags.then, "headers": {"X-Note": text}}
        case "body":
            return {"url": flags.then, "method": "POST", "data": f"note={text}&end=1"}
        case "gzip":
            packed = gzip.compress(f"note={text}".encode())
            headers = {"Content-Encoding": "gzip"}
            return {"url": flags.then, "method": "POST", "data": packed, "headers": headers}
        case "model":
            history = [{"role": "user", "content": "Go on."}, {"role": "user", "content": text}]
            return {
                "url": flags.then,
                "method": "POST",
                "json": {"model": "any", "messages": history},
            }
        case "mcp":
            call = {"name": "send", "arguments": {"text": text}}
            return {
                "url": flags.then,
                "method": "POST",
                "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
                "headers": {"MCP-Protocol-Version": "2025-06-18"},
            }


def ask():
    session = requests.Session()
    session.trust_env = False
    session.verify = flags.ca or True
    if flags.proxy:
        session.proxies = {"http": flags.proxy, "https": flags.proxy}
    answer = session.get(flags.url, timeout=flags.timeout)
    canaries = re.findall(r"sq-[0-9a-f]{12}", answer.text)
    text = spelled(canaries[0]) if canaries and not flags.deaf else "nothing"
    session.request(**{"method": "GET", "timeout": flags.timeout, **message(text)})
    told.say(ok=True, canaries=canaries, sent=text, text=answer.text)


told.run(ask)
