"""A chat completion by the official `openai` client.

Without `--proxy` proxy and CA come from variables, as `squall run` sets them.
"""

import openai

import told

flags = told.arguments(stream=False, tools=False, retries=0)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


def client():
    more = {}
    if flags.proxy:
        import ssl

        # The client is built on httpx; which one, its own default client says.
        trust = ssl.create_default_context(cafile=flags.ca)
        more["http_client"] = openai.DefaultHttpxClient(proxy=flags.proxy, verify=trust)
    return openai.OpenAI(
        base_url=flags.url, api_key="sk-test", max_retries=flags.retries, timeout=flags.timeout, **more
    )


def ask():
    request = {"model": "test-model", "messages": [{"role": "user", "content": "Say something."}]}
    if flags.tools:
        request["tools"] = TOOLS
    if not flags.stream:
        answer = client().chat.completions.create(**request)
        choice = answer.choices[0]
        usage = answer.usage.completion_tokens if answer.usage else None
        calls = choice.message.tool_calls or []
        text = choice.message.content or ""
        tell(text, choice.finish_reason, [(c.function.name, c.function.arguments) for c in calls], 1, usage)
        return
    text, finish, names, parts, events = "", None, {}, {}, 0
    try:
        for event in client().chat.completions.create(stream=True, **request):
            events += 1
            if not event.choices:
                continue
            delta = event.choices[0].delta
            text += delta.content or ""
            finish = event.choices[0].finish_reason or finish
            for call in delta.tool_calls or []:
                names[call.index] = names.get(call.index) or call.function.name
                parts[call.index] = parts.get(call.index, "") + (call.function.arguments or "")
    except Exception as error:
        told.say(ok=False, error=type(error).__name__, after=text, events=events)
        return
    tell(text, finish, [(names[at], parts[at]) for at in sorted(names)], events, None)


def tell(text, finish, calls, events, usage):
    told.say(ok=True, text=text, finish=finish, calls=calls, events=events, usage=usage)


def run():
    try:
        ask()
    except openai.APIStatusError as error:
        told.say(
            ok=False,
            error=type(error).__name__,
            status=error.status_code,
            code=error.code,
            type=error.type,
            retry_after=error.response.headers.get("retry-after"),
            text=str(error)[:500],
        )


told.run(run)
