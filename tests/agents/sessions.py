"""An agent with sessions, over HTTP, and twins of it with one bug each: `sessions.py TOOL BUG`. It prints its port.

A session is a name, a reference and a cart. The agent sends each order to the tool.

| bug | what it does |
|---|---|
| none | nothing wrong |
| forgets | begins a new session with each turn |
| moody | gives another answer every second time |
| shared | answers with the reference that was given last, in whatever session |
| leaks | sends the references of all sessions to the tool |
| unscoped-leaks | the same, without a scope |
| invents | answers with a name when it knows none |
| doubles | takes a repeated order for a new one |
| races | loses an order that arrives during another one |
| short | keeps the last three turns of a session |
"""

import collections
import json
import re
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL, BUG = sys.argv[1:]


class Session:
    def __init__(self):
        self.turns = []
        self.cart = []
        self.lock = threading.Lock()
        self.both = threading.Barrier(2)


sessions = collections.defaultdict(Session)
references = []
answers = 0


def order(session, text, baggage):
    """Adds to the cart, unless the same order was the turn before."""
    if BUG not in ("doubles", "races") and session.turns[-2:-1] == [text]:
        return
    cart = list(session.cart)
    if BUG == "races":
        try:
            session.both.wait(timeout=3)
        except threading.BrokenBarrierError:
            session.both.reset()
    session.cart = cart + [text]
    body = {"order": text, "references": references if "leaks" in BUG else []}
    headers = {} if BUG == "unscoped-leaks" else {"baggage": baggage}
    request = urllib.request.Request(TOOL, json.dumps(body).encode(), headers)
    urllib.request.urlopen(request, timeout=60).read()


def last(session, pattern):
    turns = session.turns[-3:] if BUG == "short" else session.turns
    found = [match[1] for turn in turns for match in re.finditer(pattern, turn)]
    return found[-1] if found else None


def answer(session, text, baggage):
    global answers
    session.turns.append(text)
    references.extend(re.findall(r"My reference is (\S+)\.", text))
    if text.startswith("Add"):
        order(session, text, baggage)
    if "How many" in text:
        return f"{len(session.cart)} in the cart."
    if "my name?" in text:
        name = last(session, r"My name is (\w+)")
        return f"Your name is {name or 'Bob'}." if name or BUG == "invents" else "I do not know your name."
    if "my reference?" in text:
        return f"It is {references[-1] if BUG == 'shared' else last(session, r'My reference is (.+)[.]')}."
    if "capital" in text:
        answers += 1
        return "No idea, sorry!" if BUG == "moody" and answers % 2 == 0 else "The capital of Norway is Oslo."
    return "Noted."


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/reset":
            sessions.clear()
            return self.reply({})
        asked = json.loads(body)
        session = sessions[asked.get("conversation_id", id(asked))]
        if BUG == "forgets":
            session = Session()
        baggage = self.headers.get("baggage", "")
        if BUG == "races":
            return self.reply({"output": answer(session, asked["input"], baggage)})
        with session.lock:
            self.reply({"output": answer(session, asked["input"], baggage)})

    def reply(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
