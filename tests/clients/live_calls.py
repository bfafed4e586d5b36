"""A turn in each of several Gemini Live sessions, by the official Google client.

--calls is a JSON list of sessions: `model`, by which the results are printed, and optionally `timeout` in
seconds, after which a silent session is given up. The line printed has a member per model.
"""

import asyncio
import json
import os
import ssl

import told
from google import genai
from google.genai import errors, types

flags = told.arguments(calls="[]")
if flags.proxy:
    os.environ["HTTPS_PROXY"] = flags.proxy
trust = ssl.create_default_context(cafile=flags.ca)
options = types.HttpOptions(base_url=flags.url, async_client_args={"ssl": trust})
client = genai.Client(api_key="key-test", http_options=options)


async def make(call):
    facts = {"text": "", "heard": 0}
    try:
        async with client.aio.live.connect(model=call["model"], config={"response_modalities": ["AUDIO"]}) as session:
            await session.send_client_content(turns={"role": "user", "parts": [{"text": "Hello"}]})
            silence = call.get("timeout") or flags.timeout
            try:
                await asyncio.wait_for(turn(session, facts), silence)
            except TimeoutError:
                facts["waits"] = True
    except errors.APIError as error:
        facts.update(closed=error.code, reason=error.details)
    return call["model"], facts


async def turn(session, facts):
    async for message in session.receive():
        if message.go_away:
            facts["go_away"] = message.go_away.time_left
        if message.tool_call:
            calls = message.tool_call.function_calls
            facts["calls"] = [[call.name, call.args] for call in calls]
            facts["finish"] = "calls"
            return
        content = message.server_content
        if not content:
            continue
        facts["heard"] += len(message.data or b"") // 4
        if content.output_transcription:
            facts["text"] += content.output_transcription.text
        if message.text:
            facts["text"] += message.text
        if content.turn_complete:
            reason = content.turn_complete_reason
            facts["finish"] = reason.value if reason else "complete"


async def main():
    turns = [make(call) for call in json.loads(flags.calls)]
    told.say(**dict(await asyncio.gather(*turns)))


asyncio.run(main())
