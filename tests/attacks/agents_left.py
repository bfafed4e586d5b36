"""Agents leave children behind, Squall is killed while agents run, and agents look for the token of its API."""

import json
import os
import pathlib
import subprocess
import tempfile

from attack import BINARY, check, main, until

# Leaves a child and a grandchild, writes down who they are and what it was given, and answers.
LEAVES = """
sleep 600 & echo $! >> "$PIDS"
sh -c 'sleep 600 & echo $! >> "$PIDS"; wait' &
echo $! >> "$PIDS"; echo $$ >> "$PIDS"
echo "${SQUALL_TOKEN-none}" >> "$TOKENS"
while [ "$(wc -l < "$PIDS")" -lt 4 ]; do :; done
"""


def stat(pid):
    """State of a process, and what follows it."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def gone(pid):
    """Whether a process has ended, waited for or not."""
    try:
        return stat(pid)[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Left:
    """A folder with a suite of one `command` agent, and what its processes write down."""

    def __init__(self, folder, script, prompts=1):
        self.folder = pathlib.Path(folder)
        self.pids_file, self.tokens_file = self.folder / "pids", self.folder / "tokens"
        suite = {
            "agent": {"type": "command", "command": ["sh", "agent.sh"], "timeout": 60000},
            "golden_prompts": [f"prompt {number}" for number in range(prompts)],
            "contract": {
                "name": "answers",
                "invariants": [{"id": "completes", "type": "completes"}],
                "chaos_matrix": [{"name": "clean"}],
            },
        }
        (self.folder / "agent.sh").write_text(script)
        (self.folder / "suite.yaml").write_text(json.dumps(suite))

    def start(self, *command):
        """Starts Squall in the folder, with a token and places to write to."""
        surroundings = {name: value for name, value in os.environ.items() if not name.startswith("SQUALL_")}
        return subprocess.Popen(
            [BINARY, *command],
            cwd=self.folder,
            env={**surroundings, "SQUALL_HOME": str(self.folder / "home"), "SQUALL_TOKEN": "a-token-of-the-attack",
                 "PIDS": str(self.pids_file), "TOKENS": str(self.tokens_file)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def pids(self):
        """Everything that has run so far."""
        return self.pids_file.read_text().split() if self.pids_file.exists() else []

    def tokens(self):
        """What the agents found in `SQUALL_TOKEN`."""
        return set(self.tokens_file.read_text().split()) if self.tokens_file.exists() else set()


def leaving(agents):
    """Agents that answer and leave children: none is there after the run."""
    with tempfile.TemporaryDirectory() as folder:
        left = Left(folder, LEAVES.replace("-lt 4", "-lt 2"), agents)
        left.start("ci", "-c", "suite.yaml").wait()
        pids = left.pids()
        there = [pid for pid in pids if not gone(pid)]
        check(len(pids) >= agents * 2, "the agents ran and left children", f"{len(pids)} processes")
        check(not there, "no child of an agent outlives the run", f"{len(there)} of {len(pids)} left")
        check(left.tokens() == {"none"}, "no agent inherits SQUALL_TOKEN")
        for pid in there:
            os.kill(int(pid), 9)


def killed(rounds):
    """Squall is killed while an agent and its children run: all of them end."""
    for name, command, script in [("an agent of a run", ("ci", "-c", "suite.yaml"), LEAVES + "wait"),
                                  ("the program of `squall run`", ("run", "--", "sh", "agent.sh"), 'echo $$ >> "$PIDS"; '
                                   'echo "${SQUALL_TOKEN-none}" >> "$TOKENS"; read -r _ < "$PIDS.never"')]:
        there, seen, tokens = 0, 0, set()
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                left = Left(folder, script)
                os.mkfifo(f"{left.pids_file}.never")
                squall = left.start(*command)
                most = 4 if command[0] == "ci" else 1
                until(lambda: len(left.pids()) >= most and left.tokens(), f"{name} to run")
                # Preempted amid the start of a program it would be running, not sleeping.
                until(lambda: stat(squall.pid)[0] == "S", "Squall to wait for what it has started")
                squall.kill()
                squall.wait()
                pids = left.pids()
                seen += len(pids)
                tokens |= left.tokens()
                try:
                    until(lambda: all(gone(pid) for pid in pids), "the end of all")
                except TimeoutError:
                    for pid in pids:
                        if not gone(pid):
                            there += 1
                            os.kill(int(pid), 9)
        check(not there, f"{name} ends with a Squall that is killed", f"{there} of {seen} left")
        check(tokens == {"none"}, f"{name} does not inherit SQUALL_TOKEN")


def attack(full):
    leaving(400 if full else 20)
    killed(20 if full else 2)


if __name__ == "__main__":
    main(attack)
