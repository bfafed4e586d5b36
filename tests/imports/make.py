"""Makes the files of this folder with the tools that people import from.

    python3 -m venv VENV && VENV/bin/pip install -r requirements.txt && VENV/bin/python make.py [NAME]

`chromium` and `firefox` need Debian's packages of these names, and `tests/node`.
"""

import json
import pathlib
import subprocess
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
    script = ["node", str(HERE / "chromium.mjs"), agent.serve() + "/", str(HERE / "chromium.har")]
    subprocess.run(script, check=True)


def firefox():
    """Firefox writes an archive of each page while its tools are open."""
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

def collector():
    """A server that keeps what is posted to it, and its URL. It is LangSmith, Langfuse and an OTLP collector."""
    import gzip
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    posted = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.reply(dict(version="0.13", instance_flags={}, batch_ingest_config=dict(use_multipart_endpoint=False)))

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            posted.append((self.path, body))
            self.reply({})

        do_PATCH = do_POST

        def reply(self, answer):
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return posted, f"http://127.0.0.1:{server.server_port}"


def otlp(name, instrument):
    """A trace in protobuf, as OpenTelemetry's SDK posts it, and in JSON."""
    import openai
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    posted, url = collector()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer = provider.get_tracer("agent")
    instrument(provider)
    client = openai.OpenAI(api_key=agent.SECRET, base_url=f"{agent.serve()}/v1")

    def model(messages):
        return client.chat.completions.create(model="gpt-test", messages=messages).choices[0].message

    def tool(city):
        with tracer.start_as_current_span("execute_tool get_weather") as span:
            result = dict(city=city, degrees=21)
            if name == "otlp-genai":
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", "get_weather")
                span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
            else:
                span.set_attribute("openinference.span.kind", "TOOL")
                span.set_attribute("tool.name", "get_weather")
                span.set_attribute("output.value", json.dumps(result))
            return result

    with tracer.start_as_current_span("invoke_agent weather"):
        agent.run(model, tool)
    provider.shutdown()
    _, body = posted[-1]
    (HERE / f"{name}.pb").write_bytes(body)
    request = MessageToDict(ExportTraceServiceRequest.FromString(body))
    # The JSON of OTLP has hexadecimal ids and numbers for enumerations, unlike protobuf's own JSON.
    import base64

    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for field in ("traceId", "spanId", "parentSpanId"):
                    if field in span:
                        span[field] = base64.b64decode(span[field]).hex()
    (HERE / f"{name}.json").write_text(json.dumps(request, indent=1))


def genai():
    import os

    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only"
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    otlp("otlp-genai", lambda provider: OpenAIInstrumentor().instrument(tracer_provider=provider))


def openinference():
    from openinference.instrumentation.openai import OpenAIInstrumentor

    otlp("otlp-openinference", lambda provider: OpenAIInstrumentor().instrument(tracer_provider=provider))


def langsmith():
    """The runs that LangSmith's SDK posts and patches, merged as its API returns them."""
    import openai
    from langsmith import Client, traceable
    from langsmith.run_helpers import tracing_context
    from langsmith.wrappers import wrap_openai

    posted, url = collector()
    client = Client(api_url=url, api_key="lsv2_pt_0123456789abcdef", auto_batch_tracing=False)
    model_client = wrap_openai(openai.OpenAI(api_key=agent.SECRET, base_url=f"{agent.serve()}/v1"))

    @traceable(run_type="tool", name="get_weather", client=client)
    def tool(city):
        return dict(city=city, degrees=21)

    def model(messages):
        return model_client.chat.completions.create(model="gpt-test", messages=messages).choices[0].message

    @traceable(name="weather agent", client=client)
    def ask(question):
        return agent.run(model, tool, question)

    with tracing_context(enabled=True, client=client):
        ask(agent.QUESTION)
    client.flush()
    runs = {}
    for path, body in posted:
        run = json.loads(body)
        runs.setdefault(run.get("id") or path.rsplit("/", 1)[1], {}).update(run)
    for run in runs.values():
        # Long, and about the machine.
        run.get("extra", {}).pop("runtime", None)
    (HERE / "langsmith.json").write_text(json.dumps(list(runs.values()), indent=1))


def langfuse():
    """What Langfuse's SDK sends is OTLP; its API returns observations, which this converts as the server does."""
    from langfuse import Langfuse
    from langfuse.openai import openai
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    posted, url = collector()
    tracer = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", base_url=url)
    client = openai.OpenAI(api_key=agent.SECRET, base_url=f"{agent.serve()}/v1")

    def model(messages):
        return client.chat.completions.create(model="gpt-test", messages=messages).choices[0].message

    def tool(city):
        with tracer.start_as_current_observation(as_type="tool", name="get_weather", input=dict(city=city)) as span:
            span.update(output=dict(city=city, degrees=21))
            return dict(city=city, degrees=21)

    with tracer.start_as_current_observation(as_type="agent", name="weather agent", input=agent.QUESTION) as span:
        span.update(output=agent.run(model, tool))
    tracer.flush()
    observations = []
    for _, body in posted:
        if not body:
            continue
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                observations += [observation(span) for span in scope.spans]
    root = next(one for one in observations if one["parentObservationId"] is None)
    trace = dict(
        id=root["traceId"], timestamp=root["startTime"], name=root["name"], input=root["input"], output=root["output"],
        observations=observations, scores=[],
    )
    (HERE / "langfuse.json").write_text(json.dumps(trace, indent=1))


def observation(span):
    from datetime import UTC, datetime

    def text(name):
        value = attributes.get(f"langfuse.observation.{name}")
        try:
            return json.loads(value)
        except (TypeError, ValueError):
            return value

    def at(nanoseconds):
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    attributes = {one.key: one.value.string_value for one in span.attributes}
    return dict(
        id=span.span_id.hex(),
        traceId=span.trace_id.hex(),
        parentObservationId=span.parent_span_id.hex() or None,
        type=(text("type") or "span").upper(),
        name=span.name,
        startTime=at(span.start_time_unix_nano),
        endTime=at(span.end_time_unix_nano),
        model=text("model.name"),
        input=text("input"),
        output=text("output"),
        level=text("level") or "DEFAULT",
        statusMessage=text("status_message"),
        metadata={},
    )


ALL = "vcrpy flakestorm chromium firefox genai openinference langsmith langfuse".split()
if len(sys.argv) == 2:
    globals()[sys.argv[1]]()
else:
    # Instrumentations change their process.
    for name in ALL:
        subprocess.run([sys.executable, __file__, name], check=True)
