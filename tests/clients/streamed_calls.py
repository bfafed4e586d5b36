"""Two streamed calls of a model by an official client: the first answers with a call of a tool, the second with a text.

    streamed_calls.py openai-chat|openai-responses|anthropic|gemini|gemini-list|ollama
"""

import json
import sys
import urllib.request

URL = "http://models.test"
MESSAGES = [{"role": "user", "content": "Rome?"}]


def openai_chat():
    import openai

    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="x")
    with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
        message = stream.get_final_completion().choices[0].message
    for call in message.tool_calls or []:
        return call.function.name, json.loads(call.function.arguments)
    return message.content


def openai_responses():
    import openai

    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="x")
    text = ""
    with client.responses.stream(model="m", input="Rome?") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.function_call_arguments.done":
                call = event.arguments
        response = stream.get_final_response()
    if response.output[0].type == "function_call":
        return response.output[0].name, json.loads(call)
    assert text == response.output_text, text
    return text


def anthropic():
    import anthropic

    client = anthropic.Anthropic(base_url=URL, api_key="x")
    with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        message = stream.get_final_message()
    [block] = message.content
    assert message.stop_reason == ("tool_use" if block.type == "tool_use" else "end_turn"), message
    return (block.name, block.input) if block.type == "tool_use" else block.text


def gemini():
    from google import genai

    client = genai.Client(api_key="x", http_options={"base_url": URL})
    chunks = list(client.models.generate_content_stream(model="m", contents="Rome?"))
    for call in chunks[0].function_calls or []:
        return call.name, call.args
    return "".join(chunk.text for chunk in chunks)


def gemini_list():
    """Without `alt=sse`, as curl does it; the official client never asks for a list."""
    url = f"{URL}/v1beta/models/m:streamGenerateContent"
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "Rome?"}]}]}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    [answer] = json.load(urllib.request.urlopen(request))
    [part] = answer["candidates"][0]["content"]["parts"]
    call = part.get("functionCall")
    return (call["name"], call["args"]) if call else part["text"]


def ollama():
    import ollama

    parts = list(ollama.Client(host=URL).chat(model="m", messages=MESSAGES, stream=True))
    assert parts[-1].done
    for call in parts[0].message.tool_calls or []:
        return call.function.name, dict(call.function.arguments)
    return "".join(part.message.content for part in parts)


ask = globals()[sys.argv[1].replace("-", "_")]
print(json.dumps([ask(), ask()]))
