"""Many calls at once by one official client, as often as it asks by itself, on its own HTTP stack.

--client names it, --calls is a JSON list of calls: `model`, by which the answers are told, and
optionally `stream`, `tools`, `previous` and `timeout` in seconds. The line printed has a member per model.
"""

import concurrent.futures
import functools
import json
import time

import told

flags = told.arguments(client="openai", calls="[]")
PROMPT = "Say something."
MESSAGES = [{"role": "user", "content": PROMPT}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"name": "weather", "description": "The weather in a city.", "parameters": PARAMETERS}


class Heard:
    """What a call brought, as far as it came."""

    def __init__(self):
        self.begun = time.monotonic()
        self.first, self.finish, self.refusal = None, None, False
        self.pieces, self.names, self.inputs = [], {}, {}

    def piece(self, text, finish=None):
        """The text of one answer, or of one event."""
        if text and self.first is None:
            self.first = time.monotonic() - self.begun
        self.pieces.append(text or "")
        self.finish = finish or self.finish

    def call(self, at, name, arguments):
        """A call of a tool, or a piece of its arguments as text."""
        self.names[at] = name or self.names.get(at)
        if isinstance(arguments, str):
            self.inputs[at] = self.inputs.get(at, "") + arguments
        elif arguments is not None:
            self.inputs[at] = arguments

    def facts(self):
        return {
            "text": "".join(self.pieces),
            "pieces": self.pieces,
            "finish": self.finish,
            "refusal": self.refusal,
            "names": list(self.names.values()),
            "inputs": list(self.inputs.values()),
            "first": self.first,
            "took": time.monotonic() - self.begun,
        }


def chat(client, heard, call):
    """A chat completion by a client that was made as OpenAI's."""
    request = {"model": call["model"], "messages": MESSAGES, "stream": bool(call.get("stream"))}
    if call.get("tools"):
        request["tools"] = [{"type": "function", "function": WEATHER}]
    answer = client.chat.completions.create(**request)
    choices(answer if call.get("stream") else [answer], heard)


def choices(answers, heard):
    for answer in answers:
        for choice in answer.choices:
            said = getattr(choice, "delta", None) or choice.message
            heard.piece(said.content, choice.finish_reason)
            heard.refusal = heard.refusal or bool(getattr(said, "refusal", None))
            for at, one in enumerate(said.tool_calls or []):
                place = at if getattr(one, "index", None) is None else one.index
                heard.call(place, one.function.name, one.function.arguments)


@functools.cache
def openai_client(timeout):
    import openai

    return openai.OpenAI(base_url=flags.url, api_key="sk-test", timeout=timeout)


def openai(heard, call, timeout):
    chat(openai_client(timeout), heard, call)


@functools.cache
def groq_client(timeout):
    import groq

    return groq.Groq(base_url=flags.url, api_key="gsk_test", timeout=timeout)


def groq(heard, call, timeout):
    chat(groq_client(timeout), heard, call)


@functools.cache
def mistral_client(timeout):
    from mistralai.client import Mistral

    return Mistral(server_url=flags.url, api_key="test", timeout_ms=int(timeout * 1000))


def mistralai(heard, call, timeout):
    request = {"model": call["model"], "messages": MESSAGES}
    if call.get("tools"):
        request["tools"] = [{"type": "function", "function": WEATHER}]
    chats = mistral_client(timeout).chat
    if call.get("stream"):
        choices((event.data for event in chats.stream(**request)), heard)
    else:
        choices([chats.complete(**request)], heard)


def responses(heard, call, timeout):
    request = {"model": call["model"], "input": PROMPT}
    if call.get("tools"):
        request["tools"] = [{"type": "function", "strict": False, **WEATHER}]
    if call.get("previous"):
        request["previous_response_id"] = call["previous"]
    create = openai_client(timeout).responses.create
    answer = None
    if call.get("stream"):
        for event in create(stream=True, **request):
            heard.piece(event.delta if event.type == "response.output_text.delta" else "")
            answer = getattr(event, "response", answer)
    else:
        answer = create(**request)
        heard.piece(answer.output_text)
    heard.finish = answer.status if answer else None
    for item in answer.output if answer else []:
        if item.type == "function_call":
            heard.call(item.id, item.name, item.arguments)
        elif item.type == "message":
            heard.refusal = any(part.type == "refusal" for part in item.content)


@functools.cache
def anthropic_client(timeout):
    import anthropic

    return anthropic.Anthropic(base_url=flags.url, api_key="sk-ant-test", timeout=timeout)


def anthropic(heard, call, timeout):
    request = {"model": call["model"], "max_tokens": 100, "messages": MESSAGES}
    if call.get("tools"):
        request["tools"] = [{"name": "weather", "description": "The weather.", "input_schema": PARAMETERS}]
    messages = anthropic_client(timeout).messages
    if call.get("stream"):
        for event in messages.create(stream=True, **request):
            kind = event.type
            delta = event.delta if kind in ("content_block_delta", "message_delta") else None
            heard.piece(getattr(delta, "text", ""), getattr(delta, "stop_reason", None))
            if kind == "content_block_start" and event.content_block.type == "tool_use":
                heard.call(event.index, event.content_block.name, None)
            elif getattr(delta, "partial_json", None):
                heard.call(event.index, None, delta.partial_json)
        return
    answer = messages.create(**request)
    heard.piece("".join(block.text for block in answer.content if block.type == "text"), answer.stop_reason)
    for block in answer.content:
        if block.type == "tool_use":
            heard.call(block.id, block.name, block.input)


@functools.cache
def google_client(timeout):
    from google import genai

    options = {"base_url": flags.url, "timeout": int(timeout * 1000)}
    return genai.Client(api_key="test-key", vertexai=False, http_options=options)


def google(heard, call, timeout):
    from google.genai import types

    request = {"model": call["model"], "contents": PROMPT}
    if call.get("tools"):
        weather = types.FunctionDeclaration(name="weather", description="The weather.")
        tools = [types.Tool(function_declarations=[weather])]
        request["config"] = types.GenerateContentConfig(tools=tools)
    models = google_client(timeout).models
    if call.get("stream"):
        answers = models.generate_content_stream(**request)
    else:
        answers = [models.generate_content(**request)]
    for answer in answers:
        for candidate in answer.candidates or []:
            parts = (candidate.content and candidate.content.parts) or []
            text = "".join(part.text or "" for part in parts if not part.thought)
            heard.piece(text, candidate.finish_reason and candidate.finish_reason.name)
            for part in parts:
                if part.function_call:
                    heard.call(len(heard.names), part.function_call.name, part.function_call.args)


@functools.cache
def ollama_client(timeout):
    import ollama

    return ollama.Client(host=flags.url, timeout=timeout)


def ollama(heard, call, timeout):
    more = {"tools": [{"type": "function", "function": WEATHER}]} if call.get("tools") else {}
    stream = bool(call.get("stream"))
    answer = ollama_client(timeout).chat(model=call["model"], messages=MESSAGES, stream=stream, **more)
    for one in answer if stream else [answer]:
        heard.piece(one.message.content, one.done_reason)
        for tool_call in one.message.tool_calls or []:
            heard.call(len(heard.names), tool_call.function.name, dict(tool_call.function.arguments))


@functools.cache
def bedrock_client(timeout):
    import boto3
    from botocore.config import Config

    return boto3.client(
        "bedrock-runtime",
        endpoint_url=flags.url,
        region_name="us-east-1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        config=Config(proxies={}, read_timeout=timeout, max_pool_connections=32),
    )


def bedrock(heard, call, timeout):
    request = {"modelId": call["model"], "messages": [{"role": "user", "content": [{"text": PROMPT}]}]}
    if call.get("tools"):
        weather = {"name": "weather", "inputSchema": {"json": PARAMETERS}}
        request["toolConfig"] = {"tools": [{"toolSpec": weather}]}
    client = bedrock_client(timeout)
    if call.get("stream"):
        for event in client.converse_stream(**request)["stream"]:
            text = event.get("contentBlockDelta", {}).get("delta", {}).get("text")
            heard.piece(text, event.get("messageStop", {}).get("stopReason"))
        return
    answer = client.converse(**request)
    blocks = answer["output"]["message"]["content"]
    heard.piece("".join(block.get("text", "") for block in blocks), answer["stopReason"])
    for block in blocks:
        if "toolUse" in block:
            heard.call(len(heard.names), block["toolUse"]["name"], block["toolUse"]["input"])


CLIENTS = {
    "openai": openai,
    "responses": responses,
    "anthropic": anthropic,
    "google": google,
    "ollama": ollama,
    "bedrock": bedrock,
    "mistralai": mistralai,
    "groq": groq,
}


def status(error):
    """The HTTP status that the client says it got, by whatever name."""
    metadata = getattr(error, "response", None)
    if isinstance(metadata, dict):
        return metadata.get("ResponseMetadata", {}).get("HTTPStatusCode")
    code = getattr(error, "status_code", None)
    return code if code is not None else getattr(error, "code", None)


def make(call):
    heard = Heard()
    try:
        CLIENTS[flags.client](heard, call, call.get("timeout", flags.timeout))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        facts = {"error": type(error).__name__, "status": status(error), "said": str(error)[:500]}
        return {"ok": False, **facts, **heard.facts()}
    return {"ok": True, **heard.facts()}


def run():
    calls = json.loads(flags.calls)
    # The first call imports the client and makes it, alone.
    first = make(calls[0])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        rest = list(pool.map(make, calls[1:]))
    told.say(**{call["model"]: heard for call, heard in zip(calls, [first, *rest])})


told.run(run)
