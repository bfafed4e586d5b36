"""Suites whose verdicts would hold their threads up for minutes: schemas that double, patterns that look ahead."""

import http.server
import json
import subprocess
import threading
import time

from attack import BINARY, Daemon, Watch, check, main, until

ANSWERS = {
    "schema": "{}",
    "pattern": "a" * 200_000,
    "pattern on the longest text": "a" * 16_384,
    "list of patterns": "a" * 16_384,
    "repetition": "a" * 160,
    "back-reference": "a" * 16_384,
    "states": "".join(map("ab".__getitem__, (n * n >> 7 & 1 for n in range(1_000_000)))),
    "pattern of a schema": json.dumps("a" * 200_000),
    "alternatives of a schema": json.dumps(list(range(20_000))),
}
PROFILE = "api_outage"


class Agent(http.server.BaseHTTPRequestHandler):
    """Answers each prompt with what its verdict starves on."""

    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        body = ANSWERS[prompt].encode()
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def doubling(depth):
    """A schema of `depth` definitions, each all of the next one twice."""
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{depth}": {"type": "object"}}}


def suites(agent):
    invariants = {
        "schema": {"type": "json_schema", "schema": doubling(40)},
        "pattern": {"type": "regex", "pattern": "(?=.*b)a+c"},
        "pattern on the longest text": {"type": "regex", "pattern": "(?=.*b)a+c"},
        "list of patterns": {"type": "excludes_pattern", "patterns": [f"(?=.*b{n})a+c" for n in range(100)], "negate": True},
        "repetition": {"type": "regex", "pattern": "(?:(?:(?=a).{0}){100}){90}b"},
        "back-reference": {"type": "regex", "pattern": r"(a*)*\1(a*)*\2b"},
        "states": {"type": "regex", "pattern": "[ab]*a[ab]{2000}c"},
        "pattern of a schema": {"type": "json_schema", "schema": {"pattern": "(?=.*b)a+c"}},
        "alternatives of a schema": {
            "type": "json_schema",
            "schema": {"items": {"anyOf": [{"const": f"v{n}"} for n in range(2400)]}},
        },
    }
    for prompt, invariant in invariants.items():
        yield prompt, {
            "agent": {"endpoint": f"http://127.0.0.1:{agent}/"},
            "golden_prompts": [prompt],
            "invariants": [invariant],
            "contract": {
                "name": "never judged",
                "invariants": [{"id": prompt, **invariant}],
                "chaos_matrix": [{"name": "clean"}],
            },
        }


def off(daemon):
    """`squall off`: whether it did, and how long it took."""
    began = time.monotonic()
    ended = subprocess.run([BINARY, "off", "--server", f"http://127.0.0.1:{daemon.api}"], timeout=60, check=False)
    return ended.returncode == 0, time.monotonic() - began


def profile_of(daemon, scope="s"):
    return json.loads(daemon.call("GET", f"/v1/scopes/{scope}/chaos")[1])["profile"]


def attack(full):
    agent = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agent)
    threading.Thread(target=agent.serve_forever, daemon=True).start()
    with Daemon() as daemon:
        runs = {}
        with Watch(daemon) as watch:
            for prompt, suite in suites(agent.server_port):
                status, said = daemon.call("POST", "/v1/runs", {"kind": "contract", "suite": suite})
                # A document that is known to be too much may be rejected as well.
                check(status in (201, 422), f"the suite of the {prompt} is answered", f"{status} {said[:400] if status != 201 else str()}")
                if status == 201:
                    runs[prompt] = json.loads(said)["id"]
            for run in runs.values():
                until(lambda run=run: asked(daemon, run), "the agent to be asked")
            chaos = {"profile": PROFILE, "ttl": "200ms"}
            status, said = daemon.call("PUT", "/v1/scopes/s/chaos", chaos)
            check(status == 200, "chaos is put in force", said if status != 200 else "")
            began = time.monotonic()
            until(lambda: profile_of(daemon) == "none", "chaos to end")
            took = time.monotonic() - began
            check(took < 2, "chaos ends at its time to live", f"{took * 1000:.0f} ms after it was set to 200 ms")
            if full:
                for prompt, run in runs.items():
                    judged(daemon, prompt, run)
            daemon.call("PUT", "/v1/chaos", {"profile": PROFILE})
            ended, took = off(daemon)
            check(ended and took < 5, "`squall off` ends all chaos", f"{took:.2f} s, with the program's start")
            check(profile_of(daemon, "default") == "none", "and none is in force after it")
        check(daemon.peak() < 512, "the daemon's memory stays below 512 MiB", f"{daemon.peak():.0f} MiB")
        longest = f"{watch.longest:.0f} ms at the longest, {watch.asked} times"
        check(not watch.failed and watch.longest < 2000, "/healthz answers all the time", longest)
        began = time.monotonic()
        ended = daemon.ends()
        took = time.monotonic() - began
        check(ended and took < 10, "SIGTERM ends the daemon", f"{took:.2f} s, exit code {daemon.child.returncode}")
    agent.shutdown()


def asked(daemon, run):
    """Whether the agent was asked all it is to be asked: what follows is judged."""
    run = json.loads(daemon.call("GET", f"/v1/runs/{run}")[1])
    return run["coverage"]["agent_invocations"] >= 2 or run["finished_at"]


def judged(daemon, prompt, run):
    """The run comes to its end, and its cell is a verdict or an error that says why."""
    began = time.monotonic()

    def over():
        found = json.loads(daemon.call("GET", f"/v1/runs/{run}")[1])
        return found if found["finished_at"] else None

    cells = until(over, f"the run of the {prompt}")["cells"]
    told = [(cell["state"], cell["reason"]) for cell in cells]
    holds = told and all(state != "passed" and reason for state, reason in told)
    check(holds, f"the {prompt} comes to a cell with its reason", f"{told}, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(attack)
