"""One workspace takes all that it can: runs that wait, recordings, tapes, chaos, profiles and versions; others go on."""

import collections
import concurrent.futures
import json
import tempfile
import time

from attack import Daemon, check, main, until

AT_ONCE = 17
MEMORY = 200
SUITE = {
    "name": "waiting",
    "agent": {"endpoint": "http://127.0.0.1:9/"},
    "golden_prompts": ["hello"],
    "invariants": [{"type": "completes"}],
    "chaos": {"network_faults": [{"mode": "latency", "delay_ms": 1}]},
}
CHAOS = {"tool_faults": [{"mode": "error", "tool": "search"}]}


def config(home, **store):
    """A daemon with an operator for each of two workspaces; every run waits for approval."""
    tokens = [
        {"name": name, "role": "operator", "workspace": name, "token": f"${{{name.upper()}}}"} for name in ("blue", "red")
    ]
    tokens.append({"name": "boss", "role": "admin", "token": "${BOSS}"})
    return {"api": {"tokens": tokens}, "approval": ["*"], "store": {"url": f"sqlite:{home}/store.db", **store}}


SECRETS = {name: f"{name.lower()}-0123456789-0123456789-0123456789" for name in ("BLUE", "RED", "BOSS")}


def ask(daemon, whose, method, path, body=None, text=None):
    """One request of a workspace's operator, again where the token is asked with too fast."""
    headers = {"authorization": f"Bearer {SECRETS[whose]}"}
    if text is not None:
        headers["content-type"] = "application/yaml"
    while True:
        status, said = daemon.call(method, path, text if text is not None else body, headers)
        if status == 429 and "not over" not in said:
            time.sleep(0.1)
        elif status != 503 or "in progress" not in said:
            return status, json.loads(said) if said.startswith("{") else said


def fill(daemon, what, number, requests):
    """Sends more than a quota at once; those that were taken."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda request: ask(daemon, "BLUE", *request), requests))
    taken = [said for status, said in answers if status < 300]
    refused = [(status, said) for status, said in answers if status >= 300]
    counted = collections.Counter(status for status, _ in answers)
    check(len(taken) == number, f"{number} {what} are taken of one workspace", f"{dict(counted)}")
    told = [said["detail"] for status, said in refused if status in (409, 429)]
    tells = all("`blue`" in detail and str(number) in detail for detail in told)
    check(told and len(told) == len(refused) and tells, "the others are told the limit, its number and the way out", told[0] if told else refused[:1])
    return taken


def others(daemon, what, method, path, body):
    """Whether another workspace and the default one still get theirs."""
    red = ask(daemon, "RED", method, path.format(scope="red.job"), body)
    boss = ask(daemon, "BOSS", method, path.format(scope="job"), body)
    check(red[0] < 300 and boss[0] < 300, f"the other workspaces still get {what}", f"{red[0]}, {boss[0]}")


def versions(daemon, full):
    """A profile and a suite that change all the time."""
    body = "x" * (1_000_000 if full else 10)
    number = 130
    for n in range(number):
        ask(daemon, "RED", "PUT", "/v1/suites/s", {**SUITE, "description": f"{n} {body}"})
    statuses = [ask(daemon, "RED", "GET", f"/v1/suites/s?version={n}")[0] for n in (1, number - 100, number - 99, number)]
    check(statuses == [404, 404, 200, 200], "the newest 100 versions of a document are kept", f"{statuses}")


def attack(full):
    with tempfile.TemporaryDirectory(prefix="squall-attack-") as home:
        with Daemon(config(home), home=home, environment=SECRETS) as daemon:
            before = daemon.rss()
            fill(daemon, "recordings", 16, [("POST", "/v1/recordings", {})] * AT_ONCE)
            others(daemon, "recordings", "POST", "/v1/recordings", {})
            run = {"kind": "chaos", "suite": SUITE}
            waiting = fill(daemon, "runs", 100, [("POST", "/v1/runs", run)] * (100 + AT_ONCE))
            check(all(one["state"] == "awaiting_approval" for one in waiting), "all of them wait")
            others(daemon, "runs", "POST", "/v1/runs", run)
            tape = {"session": {"id": "s", "exchanges": [{"match": {"url": "http://h/*"}, "body": "x" * (500_000 if full else 10)}]}}
            paths = [f"/v1/scopes/blue.{n}/tape" for n in range(64 + AT_ONCE)]
            fill(daemon, "tapes", 64, [("PUT", path, tape) for path in paths])
            others(daemon, "tapes", "PUT", "/v1/scopes/{scope}/tape", tape)
            if full:
                chaos = {"chaos": CHAOS}
                paths = [f"/v1/scopes/blue.{n}/chaos" for n in range(256 + AT_ONCE)]
                fill(daemon, "scopes with chaos", 256, [("PUT", path, chaos) for path in paths])
                others(daemon, "chaos", "PUT", "/v1/scopes/{scope}/chaos", chaos)
                fill(daemon, "profiles", 250, [("PUT", f"/v1/profiles/p{n}", {"chaos": CHAOS}) for n in range(250 + AT_ONCE)])
                others(daemon, "profiles", "PUT", "/v1/profiles/mine", {"chaos": CHAOS})
                # Chaos that is over is not held: a thousand scopes are remembered, without what was in force.
                big = {"chaos": {"tool_faults": [{"mode": "error", "message": "x" * 900_000}]}}
                for n in range(1200):
                    ask(daemon, "RED", "PUT", f"/v1/scopes/red.{n}/chaos", big)
                    ask(daemon, "RED", "DELETE", f"/v1/scopes/red.{n}/chaos")
            versions(daemon, full)
            check(daemon.rss() - before < MEMORY, "memory stays within bounds", f"{daemon.rss() - before:.0f} MiB")
            for one in waiting[:20]:
                ask(daemon, "BLUE", "POST", f"/v1/runs/{one['id']}/cancel")
            listed = ask(daemon, "BLUE", "GET", "/v1/runs?state=cancelled")[1]["items"]
            check(len(listed) == 20, "runs make room once they are cancelled", f"{len(listed)}")
            status, said = ask(daemon, "BLUE", "POST", "/v1/runs", run)
            check(status == 201, "and another is taken", f"{status}")
            check(daemon.ends(), "the daemon ends in good order")
        # All that waited are over now; the newest few stay.
        with Daemon(config(home, retain={"runs": 5}), home=home, environment=SECRETS) as daemon:
            left = lambda: ask(daemon, "BLUE", "GET", "/v1/runs")[1]["items"]
            until(lambda: len(left()) == 5, "old runs to be deleted")
            kept = left()
            check(kept[0]["id"] == said["id"], "the newest runs are kept, the others deleted", f"{len(kept)} left")
            gone = ask(daemon, "BLUE", "GET", f"/v1/runs/{waiting[0]['id']}/events")[0]
            check(gone == 404, "the events of a deleted run are gone too", f"{gone}")


if __name__ == "__main__":
    main(attack)
