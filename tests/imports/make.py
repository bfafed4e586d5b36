"""Makes the files of this folder with the tools that people import from.

    python3 -m venv VENV && VENV/bin/pip install -r requirements.txt && VENV/bin/python make.py [NAME…]

`chromium` and `firefox` need Debian's packages of these names, and `tests/node`.
"""

import json
import pathlib
import sys

import agent

HERE = pathlib.Path(__file__).parent


def vcrpy():
    import httpx
    import openai
    import requests
    import vcr

    url = agent.serve()
    for name in ("vcrpy.yaml", "vcrpy.json"):
        (HERE / name).unlink(missing_ok=True)
        with vcr.use_cassette(str(HERE / name), serializer=name.split(".")[1], record_mode="all"):
            client = openai.OpenAI(api_key=agent.SECRET, base_url=f"{url}/v1")
            model = lambda messages: client.chat.completions.create(model="gpt-test", messages=messages).choices[0].message
            tool = lambda city: requests.get(f"{url}/weather", dict(city=city)).json()
            agent.run(model, tool)
            if name.endswith("yaml"):
                # JSON cassettes cannot hold these.
                httpx.get(f"{url}/weather?city=Oslo")
                httpx.get(f"{url}/binary")


def flakestorm():
    from datetime import UTC, datetime
    from types import SimpleNamespace

    from flakestorm.mutations.types import Mutation, MutationType
    from flakestorm.reports.models import CheckResult, MutationResult, TestResults, TestStatistics

    def result(passed, text):
        mutation = Mutation(original=agent.QUESTION, mutated=text, type=MutationType.TONE_SHIFT, weight=1.0)
        checks = [CheckResult("contains", passed, "the answer has no number"), CheckResult("latency", True, "fast")]
        return MutationResult(agent.QUESTION, mutation, "I do not know.", 12.5, passed, checks)

    now = datetime.now(UTC)
    numbers = [2, 1, 1, 0.5, 12.5, 12.5, 12.5, 12.5]
    results = TestResults(
        SimpleNamespace(golden_prompts=[agent.QUESTION]),
        now,
        now,
        [result(True, "Weather in Rome?"), result(False, f"Weather! In Rome! NOW! {agent.SECRET}")],
        TestStatistics(*numbers),
    )
    (HERE / "flakestorm.json").write_text(json.dumps(results.to_dict(), indent=1))


def chromium():
    import subprocess

    script = ["node", str(HERE / "chromium.mjs"), agent.serve() + "/", str(HERE / "chromium.har")]
    subprocess.run(script, check=True)


def firefox():
    """Firefox writes an archive of each page while its tools are open."""
    import subprocess
    import tempfile
    import time

    with tempfile.TemporaryDirectory() as home:
        preferences = {
            "devtools.netmonitor.har.enableAutoExportToFile": True,
            "devtools.netmonitor.har.defaultLogDir": home,
            "devtools.netmonitor.har.forceExport": True,
            "devtools.netmonitor.har.includeResponseBodies": True,
            "devtools.netmonitor.har.pageLoadedTimeout": 4000,
            "devtools.toolbox.selectedTool": "netmonitor",
            "browser.shell.checkDefaultBrowser": False,
        }
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items()]
        (pathlib.Path(home) / "user.js").write_text("\n".join(lines))
        program = ["firefox-esr", "--headless", "--no-remote", "--profile", home, "--devtools", agent.serve() + "/later"]
        browser = subprocess.Popen(program)
        try:
            while not (found := list(pathlib.Path(home).glob("**/*.har"))):
                time.sleep(1)
            time.sleep(1)
            (HERE / "firefox.har").write_text(found[0].read_text())
        finally:
            browser.kill()


for name in sys.argv[1:] or ["vcrpy", "flakestorm", "chromium", "firefox"]:
    globals()[name]()
