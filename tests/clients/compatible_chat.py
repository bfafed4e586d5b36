"""A chat completion by an official client of a provider that speaks OpenAI's format.

--client is `groq` or `mistralai`; each retries as it does by itself.
"""

import ssl

import told

flags = told.arguments(stream=False, tools=False, client="groq")
REQUEST = {"model": "test-model", "messages": [{"role": "user", "content": "Say something."}]}
if flags.tools:
    weather = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    REQUEST["tools"] = [{"type": "function", "function": weather}]


def surroundings():
    """What an httpx client is told of proxy and CA."""
    if not flags.proxy:
        return {}
    return {"proxy": flags.proxy, "verify": ssl.create_default_context(cafile=flags.ca)}


def groq():
    import groq

    more = {}
    if flags.proxy:
        more["http_client"] = groq.DefaultHttpxClient(**surroundings())
    client = groq.Groq(api_key="gsk_test", base_url=flags.url, timeout=flags.timeout, **more)
    return client.chat.completions.create(stream=flags.stream, **REQUEST)


def mistralai():
    import httpx2
    from mistralai.client import Mistral

    http = httpx2.Client(timeout=flags.timeout, **surroundings())
    client = Mistral(api_key="test", server_url=flags.url, client=http)
    if flags.stream:
        return (event.data for event in client.chat.stream(**REQUEST))
    return client.chat.complete(**REQUEST)


def run():
    try:
        answer = {"groq": groq, "mistralai": mistralai}[flags.client]()
        if not flags.stream:
            choice = answer.choices[0]
            tell(choice.message.content, choice.finish_reason, [answer])
            return
    except Exception as error:
        body = getattr(error, "body", None)
        told.say(
            ok=False,
            error=type(error).__name__,
            status=getattr(error, "status_code", None),
            body=body,
        )
        return
    text, finish, events = "", None, []
    try:
        for event in answer:
            events.append(event)
            if event.choices:
                text += event.choices[0].delta.content or ""
                finish = event.choices[0].finish_reason or finish
    except Exception as error:
        told.say(ok=False, error=type(error).__name__, after=text, finish=finish)
        return
    tell(text, finish, events)


def tell(text, finish, events):
    events = [event.model_dump(mode="json") for event in events]
    refuses = any(words in (text or "") for words in ("can't", "cannot", "isn't", "not able", "won't be able"))
    told.say(ok=True, text=text, refuses=refuses, finish=finish, events=events)


told.run(run)
