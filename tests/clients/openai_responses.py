"""A response by the official `openai` client, on its own HTTP stack.

`--url` is its `base_url`. Of a stream every event is told, as the client hands it out.
"""

import openai

import told

flags = told.arguments(stream=False, tools=False, retries=0, model="test-model")
TOOLS = [
    {
        "type": "function",
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": False,
    },
    {"type": "custom", "name": "shell", "description": "A command line."},
]


def client():
    return openai.OpenAI(
        api_key="sk-test",
        base_url=flags.url,
        max_retries=flags.retries,
        timeout=flags.timeout,
    )


def ask(events):
    request = {"model": flags.model, "input": "Say something."}
    if flags.tools:
        request["tools"] = TOOLS
    answer = None
    if flags.stream:
        for event in client().responses.create(stream=True, **request):
            events.append(event.model_dump(mode="json", warnings=False))
            answer = getattr(event, "response", answer)
    else:
        answer = client().responses.create(**request)
    items = [item.model_dump(mode="json", warnings=False) for item in answer.output]
    told.say(
        ok=True,
        text=answer.output_text,
        heard="".join(one["delta"] for one in events if one["type"] == "response.output_text.delta"),
        refusals=[
            part["refusal"]
            for item in items
            if item["type"] == "message"
            for part in item["content"]
            if part["type"] == "refusal"
        ],
        calls=[(item["name"], item.get("arguments") or item.get("input")) for item in items if "call_id" in item],
        finish=answer.status,
        reason=answer.incomplete_details.reason if answer.incomplete_details else None,
        failed=answer.error.code if answer.error else None,
        usage=answer.usage.output_tokens if answer.usage else None,
        last=events[-1]["type"] if events else None,
        events=events,
    )


def run():
    events = []
    try:
        ask(events)
    except openai.APIStatusError as error:
        told.say(
            ok=False,
            error=type(error).__name__,
            status=error.status_code,
            code=error.code,
            type=error.type,
            events=events,
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        told.say(
            ok=False,
            error=type(error).__name__,
            code=getattr(error, "code", None),
            said=str(error)[:200],
            events=events,
        )


told.run(run)
