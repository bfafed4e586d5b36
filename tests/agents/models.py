"""Models, asked by their providers' official clients, streamed.

Each client has `ask(messages, tools, headers)`: the text, the tools that the model wishes called, and whether
the answer came to its end. Messages and wishes are in the form of OpenAI's chats, whoever is asked.
"""

import json

import anthropic
import httpx
import httpx2
import openai

TIMEOUT = 20
RETRIES = 2


def wish(name, identity, arguments):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}}


class OpenAI:
    """Chat completions, by `openai`."""

    def __init__(self):
        # Proxy and CA come from the variables, as `squall run` and `squall env` set them.
        self.client = openai.OpenAI(
            api_key="test-key",
            base_url="http://model.test/v1",
            max_retries=RETRIES,
            http_client=openai.DefaultHttpxClient(timeout=TIMEOUT),
        )

    def ask(self, messages, tools, headers):
        text, calls, finish = "", {}, None
        try:
            events = self.client.chat.completions.create(
                model="shop-1",
                messages=messages,
                stream=True,
                extra_headers=headers,
                **({"tools": [{"type": "function", "function": tool} for tool in tools]} if tools else {}),
            )
            for event in events:
                for choice in event.choices:
                    text += choice.delta.content or ""
                    finish = choice.finish_reason or finish
                    for part in choice.delta.tool_calls or []:
                        call = calls.setdefault(part.index, {"identity": "", "name": "", "arguments": ""})
                        call["identity"] = part.id or call["identity"]
                        call["name"] = part.function.name or call["name"]
                        call["arguments"] += part.function.arguments or ""
        except (httpx.HTTPError, openai.OpenAIError):
            return text, [], False
        return text, [wish(**call) for call in calls.values()], finish is not None


class Anthropic:
    """Messages, by `anthropic`."""

    def __init__(self):
        self.client = anthropic.Anthropic(
            api_key="test-key",
            base_url="http://model.test",
            max_retries=RETRIES,
            http_client=anthropic.DefaultHttpxClient(timeout=TIMEOUT),
        )

    def ask(self, messages, tools, headers):
        text, calls, finish = "", {}, None
        system = " ".join(one["content"] for one in messages if one["role"] == "system")
        try:
            events = self.client.messages.create(
                model="shop-1",
                max_tokens=1000,
                messages=turns(messages),
                stream=True,
                extra_headers=headers,
                **({"system": system} if system else {}),
                **({"tools": [offered(tool) for tool in tools]} if tools else {}),
            )
            for event in events:
                if event.type == "content_block_start" and event.content_block.type == "tool_use":
                    block = event.content_block
                    calls[event.index] = {"identity": block.id, "name": block.name, "arguments": ""}
                elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                    text += event.delta.text
                elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                    calls[event.index]["arguments"] += event.delta.partial_json
                elif event.type == "message_delta":
                    finish = event.delta.stop_reason or finish
        except (httpx2.HTTPError, anthropic.AnthropicError):  # Its own stack is `httpx2`.
            return text, [], False
        return text, [wish(**call) for call in calls.values()], finish is not None


def offered(tool):
    return {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}


def turns(messages):
    """The messages as turns of blocks; results of tools are the user's."""
    told = []
    for message in messages:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if not told or told[-1]["role"] != role:
            told.append({"role": role, "content": []})
        told[-1]["content"].extend(blocks(message))
    return told


def blocks(message):
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    said = [{"type": "text", "text": message["content"]}] if message["content"] else []
    calls = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls", [])
    ]
    return said + calls


BY_NAME = {"openai": OpenAI, "anthropic": Anthropic}
