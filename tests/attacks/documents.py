"""Documents of at most 1 MiB that multiply: none may hold the daemon up, cost it much, or keep it from starting again."""

import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import tempfile
import threading
import time

from attack import PATIENCE, Daemon, Watch, check, main, until

LONGEST = 1 << 20
LATE = 100
COST = 64
SLOW = 10
# Longest that an exchange of 7 MiB may take, and what it costs beside.
HELD = 2
BODIES = 16


def profile(rule, many=1):
    """A profile of rules of tools."""
    return json.dumps({"tool_faults": [{"mode": "empty", **rule}] * many})


def filled(write, most=LONGEST):
    """What `write` makes of the greatest number, up to `most`, that keeps it within a document."""
    few, many = 1, most
    while few < many:
        half = (few + many + 1) // 2
        if len(write(half)) <= LONGEST:
            few = half
        else:
            many = half - 1
    return write(few)


def suite(invariants, template=None, **more):
    """A suite that demands these."""
    agent = {"type": "http", "endpoint": "http://127.0.0.1:9/", **({"request_template": template} if template else {})}
    return json.dumps({"agent": agent, "golden_prompts": ["hello"], "invariants": invariants, **more})


def matrix(invariants, scenarios, prompts=1):
    """A suite with a contract of so many of each."""
    contract = {"name": "c", "invariants": [{"id": f"i{i}", "type": "completes"} for i in range(invariants)],
                "chaos_matrix": [{"name": f"s{i}"} for i in range(scenarios)]}
    return suite([{"type": "completes"}], golden_prompts=[f"p{i}" for i in range(prompts)], contract=contract)


def spelt(number):
    """A name for the prompt's place, like no other's."""
    letters = enumerate("prompt")
    return "{" + "".join(letter + "_" * (number // 6**place % 6) for place, letter in letters) + "}"


def patterns(pattern, many):
    """A suite of so many patterns."""
    return suite([{"type": "excludes_pattern", "patterns": [pattern] * many}])


def schema(schema):
    """A suite with a JSON Schema."""
    return suite([{"type": "json_schema", "schema": schema}])


def doubling(levels):
    """A schema that stands for 2^levels others."""
    twice = lambda name: {"allOf": [{"$ref": f"#/$defs/{name}"}] * 2}
    defs = {f"d{n}": twice(f"d{n + 1}") for n in range(levels)}
    return {"$defs": {**defs, f"d{levels}": {"minLength": 1}}, "$ref": "#/$defs/d0"}


def profiles():
    """Profiles, by what is much of in them."""
    wide = "{" + ",".join(["x" * 9] * 9999) + "}"
    yield "globs of bytes", lambda: profile({"match_url": "http://" + "y" * 800000 + wide[:100000].rpartition(",")[0] + "}"})
    yield "a list of globs", lambda: filled(lambda n: profile({"match_url": [wide + "z" * 80] * min(n, 10)}))
    yield "globs in names", lambda: filled(lambda n: profile({"tool": wide}, min(n, 10)))
    yield "braces", lambda: profile({"match_url": "{a}" * 250000})
    yield "open braces", lambda: profile({"match_url": "{" * 1000000})
    yield "nested braces", lambda: profile({"match_url": "{" * 400000 + "a" + "}" * 400000})
    yield "regular expressions", lambda: filled(lambda n: profile({"match_body": "\\w{40}"}, n), 9000)
    yield "one regular expression", lambda: profile({"match_body": "(" * 400000 + ")" * 400000})
    yield "repetitions", lambda: profile({"match_body": "a{1000}{1000}{1000}"})
    yield "JSONPath", lambda: profile({"json": {"$" + "..*" * 12: 1}})
    yield "JSONPath in filters", lambda: profile({"json": {"$..[?$..[?$..[?$..a]]]": 1}})
    yield "JSONPath of many selectors", lambda: profile({"json": {"$" + "[*,*,*,*]" * 12: 1}})
    yield "JSONPath with patterns", lambda: profile({"json": {"$..[?search(@, '(a{999}){999}')]": 1}})
    yield "many JSONPaths", lambda: filled(lambda n: profile({"json": {"$..a": 1}}, n), 9000)
    yield "JSONPaths with descents that fit", lambda: profile({"json": {"$..a": 1}}, 19)
    yield "plain JSONPaths that fit", lambda: profile({"json": {"$.a": 1}}, 90)
    yield "long JSONPath", lambda: profile({"json": {"$" + ".a" * 500000: 1}})
    yield "nested JSONPath", lambda: profile({"json": {"$[?" + "(" * 400000 + "@" + ")" * 400000 + "]": 1}})
    yield "rules", lambda: filled(lambda n: profile({}, n), 9999)
    yield "more rules", lambda: filled(lambda n: profile({}, n), 13000)
    yield "long rules", lambda: filled(lambda n: profile({"match_url": [f"http://h{i}.example/*" for i in range(12)]}, n), 3000)
    yield "short rules", lambda: filled(lambda n: "tool_faults: [" + "{mode: empty}," * n + "]", 9999)
    yield "empty rules", lambda: filled(lambda n: "tool_faults: [" + "{}," * n + "]", 90000)
    yield "named tools", lambda: filled(lambda n: json.dumps({"tool_faults": [
        {"mode": "empty", "tool": "t", "match_url": f"http://h/{i}"} for i in range(n)]}), 11000)
    yield "tools with one name", lambda: filled(lambda n: json.dumps({"tool_faults": [
        {"mode": "empty", "tool": "t", **({"match_url": f"http://h/{i}"} if i % 2 else {})} for i in range(n)]}), 11000)
    yield "tools with globs", lambda: filled(lambda n: json.dumps({"tool_faults": [
        {"mode": "empty", "tool": f"t{i}", "match_url": "*/{a,b,c,d,e,f,g,h}/{a,b,c,d,e,f,g,h}"} for i in range(n)]}), 9000)
    yield "headers", lambda: profile({"headers": {f"x-{i}": "{a,b}{a,b}{a,b}{a,b}{a,b}*" for i in range(20000)}})
    yield "methods", lambda: filled(lambda n: profile({"methods": ["GET"] * n}), 90000)
    yield "unknown fields", lambda: filled(lambda n: json.dumps({f"x{i}": 1 for i in range(n)}), 45000)
    yield "wrong rules", lambda: filled(lambda n: "tool_faults: [" + "{mode: sloww}," * n + "]", 30000)
    yield "wrong shapes", lambda: filled(lambda n: "tool_faults: [\n" + "1,\n" * n + "]", 90000)
    yield "missing variables", lambda: filled(lambda n: "tool_faults:\n" + "- {mode: '${A}'}\n" * n, 30000)
    yield "extends", lambda: filled(lambda n: json.dumps({"extends": [f"p{i}" for i in range(n)]}), 90000)
    yield "nesting", lambda: "[" * 500000 + "]" * 500000
    yield "flow maps", lambda: "{a: " * 200000 + "1" + "}" * 200000
    yield "aliases", lambda: "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi"))
    yield "empty lists", lambda: filled(lambda n: "[" + "[]," * n + "]", 90000)
    yield "one text", lambda: json.dumps({"description": "x" * 1000000})
    yield "one key", lambda: json.dumps({"x" * 1000000: 1})
    yield "comments", lambda: "#\n" * 500000
    yield "documents", lambda: "---\n" * 250000
    yield "anchors", lambda: filled(lambda n: "a: [" + ",".join(f"&a{i} x" for i in range(n)) + "]", 45000)


def suites():
    """Suites, by what is much of in them."""
    yield "patterns", lambda: filled(lambda n: patterns("\\w{40}", n), 90000)
    yield "short patterns", lambda: filled(lambda n: patterns("a", n), 90000)
    yield "look-arounds", lambda: filled(lambda n: patterns("(?=a)", n), 90000)
    yield "one pattern of look-arounds", lambda: patterns("(?=a)" * 150000, 1)
    yield "one pattern of back-references", lambda: patterns("(a)\\1" * 20000, 1)
    yield "nested groups", lambda: patterns("(?=" * 100000 + ")" * 100000, 1)
    yield "repeated patterns", lambda: patterns("(?=\\w{100}{100}{100})", 1)
    yield "schema patterns", lambda: schema({"properties": {f"p{i}": {"pattern": "\\w{40}"} for i in range(20000)}})
    yield "schema pattern properties", lambda: schema({"patternProperties": {f"\\w{{40}}{i}": True for i in range(20000)}})
    yield "schema look-arounds", lambda: schema({"properties": {f"p{i}": {"pattern": "(?=a)b"} for i in range(20000)}})
    yield "schema of doubling references", lambda: schema(doubling(40))
    yield "schema of itself", lambda: schema({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})
    yield "schema of many parts", lambda: filled(lambda n: schema({"anyOf": [{"type": "string"}] * n}), 30000)
    yield "schema of an enumeration", lambda: filled(lambda n: schema({"enum": list(range(n))}), 90000)
    yield "schema in a text", lambda: schema(json.dumps({"anyOf": [{"type": "string"}] * 30000}))
    yield "schema of nesting", lambda: schema(json.loads('{"not":' * 50 + "{}" + "}" * 50))
    yield "schema in a nested text", lambda: schema('{"not":' * 110 + "{}" + "}" * 110)
    yield "invariants", lambda: filled(lambda n: suite([{"type": "completes"}] * n), 30000)
    yield "wrong invariants", lambda: filled(lambda n: suite([{"type": "complete"}] * n), 30000)
    yield "wrong lines", lambda: filled(lambda n: "invariants:\n" + "- 1\n" * n, 90000)
    yield "prompts", lambda: filled(lambda n: suite([], golden_prompts=["a"] * n), 90000)
    yield "missing variables", lambda: filled(lambda n: suite([], golden_prompts=["${A}"] * n), 90000)
    yield "inline chaos", lambda: suite([{"type": "completes"}], chaos={"tool_faults": [
        {"mode": "slow", "match_url": "{a,b,c,d,e,f,g,h,i,j}" * 4 + "x" * 200}] * 300})
    yield "scenarios", lambda: filled(lambda n: suite([{"type": "completes"}], contract={"name": "c", "invariants": [
        {"id": "a", "type": "completes"}], "chaos_matrix": [{"name": f"s{i}", "tool_faults": [
            {"mode": "slow", "match_url": "*{a,b,c,d,e,f,g,h,i,j}{a,b,c,d,e,f,g,h,i,j}"}]} for i in range(n)]}), 9000)
    yield "scenarios of rules", lambda: filled(lambda n: suite([{"type": "completes"}], contract={"name": "c", "invariants": [
        {"id": "a", "type": "completes"}], "chaos_matrix": [{"name": f"s{i}", "tool_faults": [
            {"mode": "slow", "delay_ms": 1, "tool": "t"}]} for i in range(n)]}), 8000)
    yield "tools", lambda: filled(lambda n: suite([{"type": "completes"}], tools={
        f"t{i}": {"match_url": "{a,b,c,d,e,f,g,h,i,j}" * 4} for i in range(n)}))
    yield "prices", lambda: filled(lambda n: suite([{"type": "completes"}], prices={
        "{a,b,c,d,e,f,g,h,i,j}" * 4 + str(i): {"input": 1, "output": 1} for i in range(n)}))
    yield "prompt filters", lambda: filled(lambda n: suite([
        {"id": f"i{i}", "type": "completes", "prompt_filter": "\\w{40}(?=a)"} for i in range(n)]))
    yield "prompt filters of many states", lambda: suite(
        [{"id": f"i{i}", "type": "completes", "prompt_filter": f"[ab]*a[ab]{{2000}}c{i}"} for i in range(20)],
        golden_prompts=["ab" * 400000])
    yield "prompt filters that look around", lambda: suite(
        [{"id": f"i{i}", "type": "completes", "prompt_filter": f"(?=.*b{i})a+c"} for i in range(200)],
        golden_prompts=["a" * 16000] * 50)
    yield "group calls", lambda: patterns("(?<a0>(?=a).{0})" + "".join(
        f"(?<a{i + 1}>\\g<a{i}>\\g<a{i}>)" for i in range(40)), 1)
    yield "repeated groups", lambda: patterns("(?:" * 9 + "(?=a)b?" + "){1000}" * 9, 1)
    yield "a template of many places", lambda: suite([{"type": "completes"}], "{prompt}" * 60000,
                                                     golden_prompts=["a" * 400000])
    yield "places of many prompts", lambda: suite([{"type": "completes"}], "{prompt}" * 30000,
                                                  golden_prompts=[f"p{i}" for i in range(20000)])
    yield "places that are spelt in many ways", lambda: filled(lambda n: suite(
        [{"type": "completes"}], "".join(map(spelt, range(n))), golden_prompts=[f"p{i}" for i in range(20000)]), 9000)
    yield "a template of open braces", lambda: suite([{"type": "completes"}], "{" * 900000)
    yield "misspelt tools", lambda: suite(
        [{"id": f"i{i}", "type": "max_calls", "max": 1, "tool": "t" * 60 + f"x{i}"} for i in range(3000)],
        tools={"t" * 60 + str(i): {"match_url": "http://h/"} for i in range(3000)})
    yield "globs in invariants", lambda: filled(lambda n: suite([
        {"id": f"i{i}", "type": "max_calls", "max": 1, "hosts": ["{a,b,c,d,e,f,g,h,i,j}" * 4]} for i in range(n)]))


def runs():
    """Suites that are run, by what is much of in them."""
    yield "invariants and scenarios", lambda: matrix(9000, 9000)
    yield "3,000 of each", lambda: matrix(3000, 3000)
    yield "prompts and scenarios", lambda: matrix(1, 5000, 30000)
    yield "verdicts that are just allowed", lambda: matrix(140, 100)


def chaos():
    """Rules that are put in force, by what is much of in them."""
    yield "places of a long secret", lambda: json.dumps({"secrets": {"A": "x" * 500000}, "chaos": {
        "tool_faults": [{"mode": "error", "message": "${A}" * 100000}]}})
    yield "texts of a long secret", lambda: json.dumps({"secrets": {"A": "x" * 500000}, "chaos": {
        "tool_faults": [{"mode": "error", "message": "${A}"}] * 9000}})


ALL = {"profiles": profiles, "suites": suites, "runs": runs, "chaos": chaos}
CORPUS = [(kind, *one) for kind, all_of in ALL.items() for one in all_of()]


def sends(daemon, body):
    """Sends an exchange through the proxy to an upstream that answers; gives the seconds that it takes."""
    upstream = socket.create_server(("127.0.0.1", 0))

    def answer():
        with upstream:
            taken, _ = upstream.accept()
            with taken, taken.makefile("rb") as request:
                while request.readline() != b"\r\n":
                    pass
                request.read(len(body))
                taken.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")

    threading.Thread(target=answer, daemon=True).start()
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", daemon.proxy, timeout=SLOW)
    try:
        host = f"127.0.0.1:{upstream.getsockname()[1]}"
        connection.request("POST", f"http://{host}/", body=body, headers={"content-type": "application/json"})
        connection.getresponse().read()
    except OSError:
        return SLOW
    finally:
        connection.close()
    return time.monotonic() - began


def cost(daemon, do):
    """What `do` gives, the longest answer of `/healthz` beside it, ms, and the memory it took, MiB."""
    before = daemon.rss()
    pathlib.Path(f"/proc/{daemon.child.pid}/clear_refs").write_text("5")
    with Watch(daemon) as watch:
        given = do()
    return given, (SLOW * 1000 if watch.failed else watch.longest), daemon.peak() - before


class Agent(http.server.BaseHTTPRequestHandler):
    """Answers all that it is asked."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def run(daemon, text):
    """Runs a suite, and waits for its end, or for a while."""
    suite = json.loads(text)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agent) as agent:
        threading.Thread(target=agent.serve_forever, daemon=True).start()
        suite["agent"]["endpoint"] = f"http://127.0.0.1:{agent.server_port}/"
        status, said = daemon.call("POST", "/v1/runs", {"kind": "contract", "suite": suite})
        if status == 201:
            # The stream ends with the run; nothing is asked for its cells.
            daemon.call("GET", f"/v1/runs/{json.loads(said)['id']}/events", timeout=2 * PATIENCE)
        agent.shutdown()
    return status, said


def put(daemon, kind, text):
    """Puts a document; one that is a profile is put in force too, and traffic sent; a suite may be run instead."""
    try:
        if kind == "runs":
            return *run(daemon, text), 0.0
        if kind == "chaos":
            return *daemon.call("PUT", "/v1/chaos", text, {"content-type": "application/json"}), 0.0
        status, said = daemon.call("PUT", f"/v1/{kind}/a", text, {"content-type": "application/yaml"})
    except OSError as error:
        return 0, repr(error), 0.0
    slowest = 0.0
    if kind == "profiles" and status < 300:
        in_force, told = daemon.call("PUT", "/v1/chaos", {"profile": "a"})
        said = f"in force: {in_force} {told[:200]}"
        if in_force < 300:
            bodies = [b"[" * 100 + b"]" * 100, json.dumps([{"b": [1] * 20}] * 800).encode(),
                      b"[" + b",".join([b"[[[[[[[[1]]]]]]]]"] * 400000) + b"]",
                      json.dumps({"a": "x" * (7 << 20), "b": [1] * 90000}).encode()]
            slowest = max(sends(daemon, body) for body in bodies)
            daemon.call("DELETE", "/v1/chaos")
    return status, said, slowest


def tries(home, kind, name, text):
    """One document against one daemon, then another daemon on what was stored."""
    with Daemon(home=home, config={"store": {"url": f"sqlite:{home}/store.db"}}) as daemon:
        (status, said, slowest), late, memory = cost(daemon, lambda: put(daemon, kind, text))
        alive = daemon.alive()
    began = time.monotonic()
    try:
        with Daemon(home=home, config={"store": {"url": f"sqlite:{home}/store.db"}}) as daemon:
            again, kept = time.monotonic() - began, daemon.peak()
    except (RuntimeError, TimeoutError):
        again, kept = SLOW * 10, 0
    figure = f"{status}, /healthz {late:.0f} ms, {memory:.0f} MiB, traffic {slowest:.1f} s, start {again:.1f} s at {kept:.0f} MiB"
    holds = alive and status and late <= LATE and memory <= COST + BODIES * (slowest > 0) and slowest < HELD and again < SLOW
    if status >= 400 and status not in (400, 413, 422):
        holds = False
    check(holds, f"{kind} of {name}, {len(text)} bytes", figure)
    if not holds:
        print(f"    {said[:300]}")


def endless_configuration():
    """The configuration and a profile file become a pipe and a device while the daemon runs."""
    with tempfile.TemporaryDirectory(prefix="squall-attack-") as home:
        profiles = pathlib.Path(home) / "profiles"
        profiles.mkdir()
        with Daemon(home=home, config={"profiles": str(profiles)}) as daemon:
            os.symlink("/dev/zero", profiles / "zero.yaml")
            os.mkfifo(profiles / "pipe.yaml")
            for what, make in (("pipe", os.mkfifo), ("device", lambda path: os.symlink("/dev/zero", path))):
                file = daemon.dir / "squall.yaml"
                file.unlink()
                make(file)

                def reload():
                    daemon.child.send_signal(signal.SIGHUP)
                    return until(lambda: "no regular file" in daemon.call("GET", "/readyz")[1], "a complaint")

                _, late, memory = cost(daemon, reload)
                figure = f"/healthz {late:.0f} ms, {memory:.0f} MiB"
                check(late <= LATE and memory <= COST, f"a configuration that is a {what}", figure)


SHORT = {"globs of bytes", "braces", "JSONPath", "look-arounds", "schema of doubling references", "group calls",
         "a template of many places", "invariants and scenarios", "places of a long secret"}


def attack(full):
    endless_configuration()
    for kind, name, write in CORPUS:
        if full or name in SHORT:
            text = write()
            assert len(text) <= LONGEST, name
            with tempfile.TemporaryDirectory(prefix="squall-attack-") as home:
                tries(home, kind, name, text)


if __name__ == "__main__":
    main(attack)
