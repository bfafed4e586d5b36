"""An agent of a run that nobody has approved asks for a host that needs approval, in every form of its address."""

import http.client
import http.server
import json
import sys
import threading

from attack import ROOT, Daemon, check, main, until
from chained import embedded, numeric

AGENT = ROOT / "tests/clients/reach_hosts.py"
NAMES = ["localhost", "LocalHost", "localhost.", "db.localhost", "0.0.0.0", "0", "[::]", "[::1]", "%6c%6f%63alhost"]


class Listed(http.server.BaseHTTPRequestHandler):
    """What needs approval."""

    seen = []

    def do_GET(self):
        self.seen.append(self.headers.get("host"))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Dual(http.server.ThreadingHTTPServer):
    """Listens on IPv4 and IPv6."""

    address_family = http.server.socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(http.server.socket.IPPROTO_IPV6, http.server.socket.IPV6_V6ONLY, 0)
        super().server_bind()


def suite(urls, name="asks", **more):
    """A suite whose agent asks for `urls`."""
    return {
        "name": name,
        "agent": {"type": "command", "command": [sys.executable, str(AGENT), *urls], "timeout": 120000},
        "golden_prompts": ["go"],
        "contract": {
            "name": "answers",
            "invariants": [{"id": "completes", "type": "completes"}],
            "chaos_matrix": [{"name": "clean"}],
        },
        **more,
    }


def post(daemon, wanted):
    """Asks for a run: what it is at first."""
    status, text = daemon.call("POST", "/v1/runs", {"kind": "contract", "suite": wanted})
    if status != 201:
        raise RuntimeError(f"{status}: {text}")
    return json.loads(text)


def answers(daemon, run):
    """What the agent of a run was answered."""
    path = f"/v1/runs/{run['id']}"
    done = until(lambda: (run := json.loads(daemon.call("GET", path)[1])).get("finished_at") and run, "the end of a run")
    return json.loads(done["cells"][0]["evidence"][0]["answer"])


def reached(found):
    """The requests that were answered by the upstream."""
    return [f"{way} {url}" for url, way, status in found if status == 200]


def attack(full):
    server = Dual(("::", 0), Listed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    forms = numeric("127.0.0.1") + embedded("127.0.0.1")
    forms = (forms if full else forms[::4]) + NAMES
    urls = [f"http://{form}:{port}/" for form in forms]
    urls += ["http://shop.prod.example:80/", "http://SHOP.Prod.example.:80/", "http://detour.example:80/"]
    fronted = "http://shop.prod.example@alias.example:80/"
    connect_to = {
        "shop.prod.example:80": f"127.0.0.1:{port}",
        "detour.example:80": "shop.prod.example:80",
        "alias.example:80": f"127.0.0.2:{port}",
    }
    entries = [f"127.0.0.1:{port}", f"localhost:{port}", f"2130706433:{port}", f"[::ffff:127.0.0.1]:{port}",
               "127.0.0.0/8", f"*:{port}"]
    tried, passed, unheld = 0, [], []
    for entry in entries if full else entries[:2]:
        config = {
            "proxy": {"connect_to": connect_to},
            "approval": [entry, "*.prod.example"],
            "safety": {"commands": True},
        }
        with Daemon(config) as daemon:
            # Connections of other scopes are in the pool before the agent comes.
            for _ in range(4):
                wire = http.client.HTTPConnection("127.0.0.1", daemon.proxy)
                wire.request("GET", f"http://127.0.0.1:{port}/")
                wire.getresponse().read()
            Listed.seen.clear()
            # `::1` is another address than 127.0.0.1, unless the entry is a name for both.
            names = [form for form in forms if entry[0] in "l*" or form not in ("[::]", "[::1]")]
            asked = [url for url in urls if entry[0] in "l*" or not url.startswith(("http://[::]", "http://[::1]"))]
            found = answers(daemon, post(daemon, suite(asked)))
            tried += len(found)
            passed += [f"{entry}: {one}" for one in reached(found)]
            passed += [f"{entry}: {host}" for host in Listed.seen]
            found = answers(daemon, post(daemon, suite([fronted])))
            passed += [f"{entry}: {one}" for one in reached(found) if one.startswith("connect")]
            tried += 1
            # Afterwards: the scope of a run that is over, and one that waits.
            late = post(daemon, suite([]))
            answers(daemon, late)
            # Only a gateway leads to an address inside IPv6, and nothing to the others.
            able = [url for url in asked if not any(sign in url for sign in ("[", "%", ".example"))]
            waiting = post(daemon, suite(able, tools={"shop": {"match_url": [f"http://127.1:{port}/*"]}}))
            Listed.seen.clear()
            for run, scope in ((late, "1"), (late, "slot-1"), (late, "999"), (waiting, "1")):
                wire = http.client.HTTPConnection("127.0.0.1", daemon.proxy)
                wire.request("GET", f"http://127.0.0.1:{port}/", headers={"x-squall-scope": f"run-{run['id']}-{scope}"})
                tried += 1
                if wire.getresponse().status != 403:
                    passed.append(f"{entry}: run-…-{scope}")
            passed += [f"{entry}: {host} late" for host in Listed.seen]
            # A host in percent encoding is none to a suite.
            for form in (form for form in names if not form.startswith("%")):
                fine = {"agent": {"endpoint": f"http://{form}:{port}/"}}
                tools = {"tools": {"shop": {"match_url": [f"http://{form}:{port}/*"]}}}
                unheld += [f"{entry}: {where} {form}" for where, more in (("endpoint", fine), ("tools", tools))
                           if post(daemon, {**suite([]), **more})["state"] != "awaiting_approval"]
            if entry == entries[0]:
                state = waiting["state"]
                status, _ = daemon.call("POST", f"/v1/runs/{waiting['id']}/approve", {})
                found = answers(daemon, waiting)
                got = reached(found)
                check(state == "awaiting_approval" and status == 200 and len(got) == len(found),
                      "the agent reaches the host once its run is approved", f"{len(got)} of {len(found)} requests")
    check(not passed, "no request of an unapproved run reaches a listed host", f"{len(passed)} of {tried} passed {passed[:3]}")
    check(not unheld, "every suite that names a listed host awaits approval", f"{len(unheld)} did not {unheld[:3]}")


if __name__ == "__main__":
    main(attack)
