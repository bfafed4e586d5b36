"""What the Python clients share: their arguments, and one JSON line about what happened."""

import argparse
import hashlib
import json
import sys


def arguments(**more):
    """--url, --proxy, --ca and the rest; `more` are further flags and their defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--proxy")
    parser.add_argument("--ca")
    parser.add_argument("--method", default="GET")
    parser.add_argument("--data")
    parser.add_argument("--timeout", type=float, default=20)
    for name, default in more.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        else:
            parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def say(**facts):
    print(json.dumps(facts))
    sys.stdout.flush()


def answered(status, headers, body):
    say(
        ok=True,
        status=status,
        headers=[[name.lower(), value] for name, value in headers],
        length=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        text=body[:2000].decode("utf-8", "replace"),
    )


def failed(error):
    """The error's class, and those of everything that caused it, outermost first."""
    chain, seen, queue = [], set(), [error]
    while queue:
        one = queue.pop(0)
        if one is None or id(one) in seen or not isinstance(one, BaseException):
            continue
        seen.add(id(one))
        chain.append(type(one).__name__)
        queue += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    say(ok=False, error=type(error).__name__, chain=chain, text=str(error)[:500])


def run(ask):
    """Calls `ask`, which reports its answer itself, and reports what it raises."""
    try:
        ask()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        failed(error)
