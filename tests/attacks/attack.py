"""What the attacks share: a daemon of the real binary, a watch over its liveness, and a verdict.

An attack is a file beside this one with a function `attack(full)`: it starts a daemon, does to it what an
attacker would, and calls `check` for each sentence that must hold. `full` is true under `scripts/attack`;
in the short form an attack ends within ten seconds. Only Python's standard library is used.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("SQUALL_BIN", str(ROOT / "target/debug/squall"))
PATIENCE = 30

failures = []


def check(holds, sentence, figure=""):
    """Says whether a sentence holds; one that does not fails the attack."""
    if not holds:
        failures.append(sentence)
    print(f"  {'holds' if holds else 'BROKEN'}  {sentence}{f' ({figure})' if figure else ''}", flush=True)
    return holds


def until(condition, what):
    """Waits for a condition, in the order of things and not for a while."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise TimeoutError(f"waited {PATIENCE} s for {what}")


class Daemon:
    """A `squall serve` with ports and a home of its own; killed at the end of the `with`."""

    def __init__(self, config=None, home=None, files=None, arguments=(), environment=None, path="squall.yaml"):
        """`files` is the limit of open descriptors; `config` is laid over free ports."""
        self._dir = tempfile.TemporaryDirectory(prefix="squall-attack-")
        self.dir = pathlib.Path(self._dir.name)
        self.home = pathlib.Path(home or self.dir / "home")
        self.config = {"proxy": {"listen": "127.0.0.1:0"}, "api": {"listen": "127.0.0.1:0"}}
        for section, value in (config or {}).items():
            if isinstance(value, dict) and isinstance(self.config.get(section), dict):
                self.config[section] = {**self.config[section], **value}
            else:
                self.config[section] = value
        (self.dir / path).write_text(json.dumps(self.config))
        surroundings = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().endswith("_PROXY") and not name.startswith("SQUALL_")
        }
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))) if files else None
        self.log_file = self.dir / "log"
        with self.log_file.open("wb") as log:
            self.child = subprocess.Popen(
                [BINARY, "serve", "-c", str(self.dir / path), *arguments],
                env={**surroundings, "SQUALL_HOME": str(self.home), **(environment or {})},
                stdout=log,
                stderr=log,
                preexec_fn=limit,
            )
        self.proxy, self.api = self._addresses()

    def _addresses(self):
        def found():
            said = self.log()
            ports = [re.search(rf"{name} on http://127\.0\.0\.1:(\d+)", said) for name in ("proxy", "api")]
            if all(ports):
                return [int(port[1]) for port in ports]
            if not self.alive():
                raise RuntimeError(f"the daemon ended with {self.child.returncode}:\n{said}")
            return None

        return until(found, "the daemon's addresses")

    def log(self):
        """Everything it has printed."""
        return self.log_file.read_text(errors="replace")

    def call(self, method, path, body=None, headers=None, timeout=PATIENCE):
        """One request of the API's: status and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api, timeout=timeout)
        try:
            if body is not None and not isinstance(body, (str, bytes)):
                body = json.dumps(body)
                headers = {"content-type": "application/json", **(headers or {})}
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        finally:
            connection.close()

    def rss(self):
        """Resident memory, MiB."""
        return self._status("VmRSS")

    def peak(self):
        """The most resident memory it ever had, MiB."""
        return self._status("VmHWM")

    def _status(self, field):
        for line in pathlib.Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
        return 0

    def alive(self):
        """Whether the process is there."""
        return self.child.poll() is None

    def ends(self):
        """Whether SIGTERM ends it."""
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.alive():
            self.child.kill()
        self.child.wait()
        self._dir.cleanup()


class Watch:
    """Asks `/healthz` all the time in the body of a `with`, and keeps the longest answer, ms."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.longest = 0.0
        self.asked = 0
        self.failed = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                status, _ = self.daemon.call("GET", "/healthz", timeout=PATIENCE)
                if status != 200:
                    self.failed.append(status)
            except OSError as error:
                self.failed.append(repr(error))
            self.asked += 1
            self.longest = max(self.longest, (time.monotonic() - began) * 1000)
            self._stop.wait(0.005)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(PATIENCE * 2)


def main(attack):
    """Runs one attack as a program: `--full` for its full form."""
    with contextlib.suppress(KeyboardInterrupt):
        attack("--full" in sys.argv)
    if failures:
        print(f"  {len(failures)} broken")
    sys.exit(1 if failures else 0)
