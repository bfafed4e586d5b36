"""Suites by API lead the daemon to metadata, to denied hosts and to its own listeners, by every field with a URL."""

import http.server
import json
import threading

from attack import Daemon, check, main, until
from chained import METADATA, embedded, numeric

SECRET = "the-credentials-of-the-instance"


class Denied(http.server.BaseHTTPRequestHandler):
    """What nobody may reach; answers as every service that a suite can name."""

    seen = []

    def do_POST(self):
        self.seen.append(self.path)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        answer = {
            "output": SECRET,
            "message": {"content": SECRET},
            "choices": [{"message": {"content": SECRET}}],
            "data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [0, 1]}],
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Agent(Denied):
    """An agent that may be reached."""

    seen = []


def serve(handler):
    """A server on a free port of loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def suites(agent, there):
    """Suites that name `there` in one field each, the agent beside it."""
    fine = {"endpoint": f"{agent}/ask"}
    asks = [{"type": "similarity", "expected": "x", "threshold": 0.1}]
    judged = [{"type": "llm_judge", "criteria": "It is polite.", "threshold": 0.1}]
    return {
        "agent.endpoint": {"agent": {"endpoint": f"{there}/latest"}},
        "agent.endpoint of openai": {"agent": {"type": "openai", "endpoint": f"{there}/v1", "model": "m"}},
        "agent.reset_endpoint": {"agent": {**fine, "reset_endpoint": f"{there}/reset"}},
        "model.base_url": {"agent": fine, "model": {"name": "m", "base_url": there}, "invariants": judged},
        "embeddings.base_url": {"agent": fine, "embeddings": {"name": "m", "base_url": there}, "invariants": asks},
    }


def run(daemon, suite, kind="chaos"):
    """Asks for a run: its status, and all that the API ever says of it."""
    whole = {"golden_prompts": ["hello"], "invariants": [{"type": "completes"}],
             "chaos": {"network_faults": [{"mode": "latency", "delay_ms": 1}]}, **suite}
    status, text = daemon.call("POST", "/v1/runs", {"kind": kind, "suite": whole})
    if status != 201:
        return status, text
    path = f"/v1/runs/{json.loads(text)['id']}"
    until(lambda: json.loads(daemon.call("GET", path)[1]).get("finished_at"), "the end of a run")
    return status, "".join(daemon.call("GET", path + more)[1] for more in ("", "/events", "/report"))


def attack(full):
    denied, agent = serve(Denied), serve(Agent)
    config = {"proxy": {"deny": [f"127.0.0.1:{denied}", "denied.example"]}}
    with Daemon(config) as daemon:
        own = f"http://127.0.0.1:{agent}"
        places = [(f"127.0.0.1:{denied}", "written as an address")]
        forms = numeric("127.0.0.1") + embedded("127.0.0.1")
        places += [(f"{form}:{denied}", "in another form") for form in (forms if full else forms[::6])]
        places += [(form, "metadata") for form in [METADATA, *(numeric(METADATA) + embedded(METADATA))[:: 1 if full else 9]]]
        places += [(f"127.0.0.1:{port}", "Squall's own listener") for port in (daemon.api, daemon.proxy)]
        places += [("denied.example", "a denied name"), ("metadata.google.internal", "metadata by name")]
        tried, taken, told = 0, [], []
        for place, what in places:
            for field, suite in suites(own, f"http://{place}").items():
                tried += 1
                status, said = run(daemon, suite)
                # Forms that are no host to a client make no suite, or nothing that is dialled.
                if status == 201 and "could not be resolved" not in said:
                    taken.append((field, place, what))
                if status == 422 and "/suite/" not in said:
                    told.append((field, place, said))
        check(not taken, "no run begins whose suite names a denied destination", f"{len(taken)} of {tried}: {taken[:3]}")
        check(not told, "each is answered with 422 and the field", f"{told[:1]}")
        # A name is judged by its addresses, when it is dialled.
        said = [run(daemon, suite)[1] for suite in suites(own, f"http://localhost:{denied}").values()]
        check(not Denied.seen, "nothing denied is dialled, by name or by address", f"{len(Denied.seen)} requests")
        check(not any(SECRET in text for text in said[:2]), "no evidence holds what is denied")
        status, said = run(daemon, {"agent": {"endpoint": f"{own}/ask"}})
        check(status == 201 and Agent.seen, "what is not denied is asked")
    with Daemon({"proxy": {"allow": ["api.example"]}}) as daemon:
        status, said = run(daemon, {"agent": {"endpoint": f"{own}/ask"}})
        check(status == 422 and "proxy.allow" in said, "what `allow` does not cover is rejected", str(status))


if __name__ == "__main__":
    main(attack)
