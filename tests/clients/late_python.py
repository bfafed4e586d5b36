"""An agent in Python whose threads call on when it has answered."""

import threading
import urllib.request

asked = {}


def call(path):
    with urllib.request.urlopen(f"http://tool.test/{path}", timeout=20) as answer:
        return answer.status


def calls_late():
    call("hold/until-the-answer")
    call("json?q=LATE")


def ask(prompt):
    """Asked about Paris for the second time, it leaves two threads behind, each with a call under way."""
    asked[prompt] = asked.get(prompt, 0) + 1
    if prompt == "Paris" and asked[prompt] == 2:
        threading.Thread(target=calls_late, daemon=True).start()
        threading.Thread(target=call, args=("hold/until-the-late-call",), daemon=True).start()
        call("json/until-both-are-held?q=Paris")
    else:
        call(f"json?q={prompt}")
    return f"{prompt}: it is sunny"
