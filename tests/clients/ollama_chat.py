"""A chat, or with `--generate` a prompt, by the official `ollama` client. `--url` is its host."""

import httpx
import ollama

import told

flags = told.arguments(stream=False, tools=False, generate=False)
TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object"}}}
    for name in ("weather", "time")
]


def client():
    more = {"timeout": flags.timeout}
    if flags.proxy:
        import ssl

        more["proxy"] = flags.proxy
        more["verify"] = ssl.create_default_context(cafile=flags.ca)
    return ollama.Client(host=flags.url, **more)


def answers():
    if flags.generate:
        answer = client().generate(model="qwen3", prompt="Say something.", stream=flags.stream)
    else:
        messages = [{"role": "user", "content": "Say something."}]
        more = {"tools": TOOLS} if flags.tools else {}
        answer = client().chat(model="qwen3", messages=messages, stream=flags.stream, **more)
    return answer if flags.stream else [answer]


def ask():
    text, thinking, calls, lines, finish, counts = "", "", [], [], None, None
    try:
        for answer in answers():
            said = answer if flags.generate else answer.message
            words = (answer.response if flags.generate else said.content) or ""
            lines.append(words)
            text += words
            thinking += said.thinking or ""
            for call in getattr(said, "tool_calls", None) or []:
                calls.append([call.function.name, dict(call.function.arguments)])
            if answer.done:
                finish = answer.done_reason
                counts = [answer.prompt_eval_count, answer.eval_count]
    except ollama.ResponseError as error:
        told.say(ok=False, error=type(error).__name__, status=error.status_code, text=error.error, after=text)
        return
    except httpx.HTTPError as error:
        told.say(ok=False, error=type(error).__name__, after=text)
        return
    told.say(ok=True, text=text, thinking=thinking, calls=calls, lines=lines, finish=finish, counts=counts)


told.run(ask)
