"""A message by the official `anthropic` client, on its own HTTP stack.

`--url` is its `base_url`. Of a stream every event is told, as the client hands it out.
"""

import anthropic

import told

flags = told.arguments(stream=False, tools=False, retries=0, model="test-model")
TOOLS = [
    {
        "name": "weather",
        "description": "The weather in a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]


def client():
    return anthropic.Anthropic(
        api_key="sk-ant-test",
        base_url=flags.url,
        max_retries=flags.retries,
        timeout=flags.timeout,
    )


def ask(events):
    request = {
        "model": flags.model,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Say something."}],
    }
    if flags.tools:
        request["tools"] = TOOLS
    if flags.stream:
        # The helper puts the message together and hands every event on.
        with client().messages.stream(**request) as stream:
            for event in stream:
                events.append(event.model_dump(mode="json", warnings=False))
            answer = stream.get_final_message()
    else:
        answer = client().messages.create(**request)
    told.say(
        ok=True,
        text="".join(block.text for block in answer.content if block.type == "text"),
        thinking=[(block.thinking, block.signature) for block in answer.content if block.type == "thinking"],
        calls=[(block.name, block.input) for block in answer.content if block.type == "tool_use"],
        blocks=len(answer.content),
        finish=answer.stop_reason,
        usage=answer.usage.output_tokens,
        events=events,
    )


def run():
    events = []
    try:
        ask(events)
    except anthropic.APIStatusError as error:
        told.say(
            ok=False,
            error=type(error).__name__,
            status=error.status_code,
            type=error.type,
            request_id=error.request_id,
            headers=dict(error.response.headers),
            events=events,
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        told.say(ok=False, error=type(error).__name__, said=str(error)[:200], events=events)


told.run(run)
