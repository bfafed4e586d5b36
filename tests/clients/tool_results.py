"""A model call that brings the results of two tools which ran inside the agent.

`--client` is the official client that makes it. The first tool says JSON, the second a few words;
what the model answers is told as `text`.
"""

import json

import told

flags = told.arguments(client="openai", stream=False)
FORECAST = json.dumps({"city": "Kiel", "celsius": 7, "summary": "Rain until the evening, then clear."})
CLOCK = "It is half past noon."
SYSTEM = "You plan trips."
QUESTION = "Shall I take the ferry?"


def openai_chat():
    import openai

    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for id, name in (("call_1", "weather"), ("call_2", "clock"))
    ]
    client = openai.OpenAI(api_key="sk-test", base_url=flags.url + "/v1", max_retries=0, timeout=flags.timeout)
    answer = client.chat.completions.create(
        model="gpt-5-mini",
        messages=[
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": FORECAST},
            {"role": "tool", "tool_call_id": "call_2", "content": CLOCK},
        ],
    )
    return answer.choices[0].message.content


def openai_responses():
    import openai

    client = openai.OpenAI(api_key="sk-test", base_url=flags.url + "/v1", max_retries=0, timeout=flags.timeout)
    answer = client.responses.create(
        model="gpt-5-mini",
        instructions=SYSTEM,
        input=[
            {"role": "user", "content": QUESTION},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
            {"type": "function_call", "call_id": "call_2", "name": "clock", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": FORECAST},
            {"type": "function_call_output", "call_id": "call_2", "output": CLOCK},
        ],
    )
    return answer.output_text


def anthropic_messages():
    import anthropic

    client = anthropic.Anthropic(api_key="sk-ant-test", base_url=flags.url, max_retries=0, timeout=flags.timeout)
    answer = client.messages.create(
        model="claude-sonnet-4-6",
        max_tokens=100,
        system=SYSTEM,
        messages=[
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}},
                    {"type": "tool_use", "id": "call_2", "name": "clock", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": FORECAST},
                    {"type": "tool_result", "tool_use_id": "call_2", "content": CLOCK},
                ],
            },
        ],
    )
    return "".join(block.text for block in answer.content if block.type == "text")


def gemini():
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=flags.url, timeout=int(flags.timeout * 1000))
    client = genai.Client(api_key="test-key", vertexai=False, http_options=options)
    said = {"weather": json.loads(FORECAST), "clock": {"output": CLOCK}}
    answer = client.models.generate_content(
        model="gemini-3-flash-preview",
        config=types.GenerateContentConfig(system_instruction=SYSTEM),
        contents=[
            types.Content(role="user", parts=[types.Part(text=QUESTION)]),
            types.Content(
                role="model",
                parts=[types.Part(function_call=types.FunctionCall(name=name, args={})) for name in said],
            ),
            types.Content(
                role="user",
                parts=[
                    types.Part(function_response=types.FunctionResponse(name=name, response=response))
                    for name, response in said.items()
                ],
            ),
        ],
    )
    return answer.text


def ollama_chat():
    import ollama

    client = ollama.Client(host=flags.url, timeout=flags.timeout)
    calls = [{"function": {"name": name, "arguments": {}}} for name in ("weather", "clock")]
    answer = client.chat(
        model="qwen3",
        stream=False,
        messages=[
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_name": "weather", "content": FORECAST},
            {"role": "tool", "tool_name": "clock", "content": CLOCK},
        ],
    )
    return answer.message.content


def bedrock():
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=flags.url,
        region_name="us-east-1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        config=Config(read_timeout=flags.timeout, retries={"total_max_attempts": 1}),
    )
    answer = client.converse(
        modelId="eu.test.model-v1:0",
        system=[{"text": SYSTEM}],
        messages=[
            {"role": "user", "content": [{"text": QUESTION}]},
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": "call_1", "name": "weather", "input": {}}},
                    {"toolUse": {"toolUseId": "call_2", "name": "clock", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "call_1", "content": [{"text": FORECAST}]}},
                    {"toolResult": {"toolUseId": "call_2", "content": [{"text": CLOCK}]}},
                ],
            },
        ],
    )
    return "".join(block.get("text", "") for block in answer["output"]["message"]["content"])


CLIENTS = {
    "openai": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic_messages,
    "gemini": gemini,
    "ollama": ollama_chat,
    "boto3": bedrock,
}


def run():
    told.say(ok=True, text=CLIENTS[flags.client]())


told.run(run)
