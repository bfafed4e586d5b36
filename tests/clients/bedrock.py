"""A call to a model by the official `boto3` client, retrying as it does by itself."""

import json

import boto3
import botocore.exceptions
from botocore.config import Config

import told

flags = told.arguments(stream=False, invoke=False, model="eu.test.model-v1:0")
MESSAGES = [{"role": "user", "content": [{"text": "Say something."}]}]


def client():
    proxies = {"http": flags.proxy, "https": flags.proxy} if flags.proxy else {}
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=flags.url,
        region_name="us-east-1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        verify=flags.ca,
        config=Config(proxies=proxies, read_timeout=flags.timeout),
    )


def ask():
    if flags.invoke:
        body = json.dumps({"messages": [{"role": "user", "content": "Say something."}]})
        if flags.stream:
            answer = client().invoke_model_with_response_stream(modelId=flags.model, body=body)
            listen(answer["body"], chunk_text)
        else:
            answer = client().invoke_model(modelId=flags.model, body=body)
            said = json.loads(answer["body"].read())
            choice = said["choices"][0]
            tell(choice["message"]["content"], choice["finish_reason"], [said])
    elif flags.stream:
        answer = client().converse_stream(modelId=flags.model, messages=MESSAGES)
        listen(answer["stream"], event_text)
    else:
        answer = client().converse(modelId=flags.model, messages=MESSAGES)
        text = "".join(block.get("text", "") for block in answer["output"]["message"]["content"])
        said = {key: answer[key] for key in ("output", "stopReason", "usage", "metrics")}
        tell(text, answer["stopReason"], [said])


def listen(stream, read):
    """Every event of a stream, and what came until it broke, if it did."""
    text, finish, events = "", None, []
    try:
        for event in stream:
            piece, reason, event = read(event)
            text, finish = text + piece, reason or finish
            events.append(event)
    except Exception as error:
        told.say(ok=False, error=type(error).__name__, after=text, finish=finish)
        return
    tell(text, finish, events)


def event_text(event):
    delta = event.get("contentBlockDelta", {}).get("delta", {})
    return delta.get("text", ""), event.get("messageStop", {}).get("stopReason"), event


def chunk_text(event):
    said = json.loads(event["chunk"]["bytes"])
    choice = said["choices"][0]
    return choice["delta"].get("content") or "", choice["finish_reason"], said


def tell(text, finish, events):
    told.say(ok=True, text=text, finish=finish, events=events)


def run():
    try:
        ask()
    except botocore.exceptions.ClientError as error:
        told.say(
            ok=False,
            error=type(error).__name__,
            status=error.response["ResponseMetadata"]["HTTPStatusCode"],
            code=error.response["Error"]["Code"],
            message=error.response["Error"]["Message"],
            request=error.response["ResponseMetadata"].get("RequestId", ""),
            retries=error.response["ResponseMetadata"]["RetryAttempts"],
        )


told.run(run)
