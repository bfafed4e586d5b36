"""Explores the agents of this folder, and writes the heat maps into docs/heat-maps.md. `scripts/heat-maps` starts it."""

import argparse
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version

import world

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "heat-maps.md"
# The agents, by the packages that their maps name.
AGENTS = {
    "langgraph": ["langgraph", "langchain-openai"],
    "openai_agents": ["openai-agents", "openai"],
    "pydantic_ai": ["pydantic-ai-slim", "openai"],
}


def explore(agent, budget, directory):
    """The run as JSON, and its report in Markdown."""
    # Names instead of ports, so that the same seed draws the same.
    address = world.serve()
    config = {"proxy": {"connect_to": {"tools.test:80": address, "model.test:80": address}}}
    (directory / "squall.yaml").write_text(json.dumps(config))
    suite = directory / "suite.yaml"
    suite.write_text((HERE / "suite.yaml").read_text().replace("AGENT", f"agent_{agent}"))
    environment = os.environ | {
        "SQUALL_HOME": str(directory / "home"),
        "SQUALL_PYTHON": sys.executable,
        "PYTHONPATH": str(HERE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TOOLS_URL": "http://tools.test",
        "OPENAI_BASE_URL": "http://model.test/v1",
        "OPENAI_API_KEY": "test-key",
        "LANGSMITH_TRACING": "false",
    }
    command = [os.environ["SQUALL_BIN"], "explore", "-c", suite, "--budget", str(budget), "--json", "--output", directory]
    explored = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    if explored.returncode not in (0, 1):
        sys.exit(f"{agent}: squall explore exited with {explored.returncode}\n{explored.stderr}")
    run = json.loads(explored.stdout)
    failed = [cell["reason"] for cell in run["cells"] if cell["scenario"] == "clean" and cell["state"] != "passed"]
    if failed:
        sys.exit(f"{agent} fails without faults: {failed}")
    (report,) = directory.glob("*.md")
    return run, report.read_text()


def section(agent, run, report):
    """The figures and the map of the report."""
    packages = ", ".join(f"{package} {version(package)}" for package in AGENTS[agent])
    heat = re.search(r"^- \d+ points executed.*?(?=\n\n(?!Failed under)[^|\d\s-])", report, flags=re.S | re.M)
    heat = re.sub("</?code>", "`", html.unescape(heat[0].strip()))
    return f"<!-- {agent} -->\n{packages}; seed {run['seed']}.\n\n{heat}\n<!-- /{agent} -->"


def main():
    parser = argparse.ArgumentParser(prog="scripts/heat-maps")
    parser.add_argument("--agent", choices=AGENTS, help="print this agent's run as JSON, and write nothing")
    parser.add_argument("--budget", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if options.agent:
            run, _ = explore(options.agent, options.budget, pathlib.Path(directory))
            json.dump(run, sys.stdout)
            return
        text = PAGE.read_text()
        for agent in AGENTS:
            place = pathlib.Path(directory) / agent
            place.mkdir()
            block = section(agent, *explore(agent, options.budget, place))
            text, found = re.subn(rf"<!-- {agent} -->.*<!-- /{agent} -->", lambda _: block, text, flags=re.S)
            if not found:
                sys.exit(f"{PAGE} has no <!-- {agent} --> … <!-- /{agent} --> to write into")
        PAGE.write_text(text)


main()
