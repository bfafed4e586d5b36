"""Asks an agent that is a Python object: a JSON line in for each question, one out for each answer.

It runs in the user's own interpreter (3.8 or later) and needs nothing but the standard library. The
first line says what to load; what comes before an answer to it is a failure of the agent's module.
What the agent prints goes to stderr, and stdin gives it nothing: both pipes are the worker's own.
"""

import asyncio
import importlib
import inspect
import json
import math
import os
import sys
import traceback

CONVERSATION_NAMES = ("conversation_id", "session_id", "thread_id")


def pipes():
    """Takes stdin and stdout away from the agent, and from all that it starts."""
    questions = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    return questions, answers


def loaded(target):
    """The object that `module:attribute` names."""
    module, _, path = target.partition(":")
    found = importlib.import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found


def made(target, is_declared):
    """An agent from what the suite names: a class and a factory without parameters give one."""
    if inspect.isclass(target):
        return target()
    is_factory = inspect.isfunction(target) and not inspect.signature(target).parameters
    return target() if is_declared and is_factory else target


def is_runnable(agent):
    return callable(getattr(agent, "ainvoke", None)) and hasattr(agent, "get_input_schema")


def schema_of(agent):
    for name in ("get_input_jsonschema", "get_input_schema"):
        try:
            schema = getattr(agent, name)()
            return resolved(schema if isinstance(schema, dict) else schema.model_json_schema())
        except Exception:
            continue
    return {}


def resolved(schema):
    """The schema that a reference of a whole one leads to: `#/$defs/NAME`."""
    whole = schema
    for _ in range(8):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = whole
        for step in reference[2:].split("/"):
            schema = schema[step.replace("~1", "/").replace("~0", "~")]
    return {}


def wanted(agent, prompt):
    """The prompt in the form that a Runnable asks for; a map with `input` where it does not say."""
    schema = schema_of(agent)
    names = list(schema.get("properties") or {})
    if "messages" in names:
        return {"messages": [{"role": "user", "content": prompt}]}
    forms = [schema] + list(schema.get("anyOf") or [])
    if not names and any(form.get("type") == "string" for form in forms):
        return prompt
    if len(names) == 1:
        return {names[0]: prompt}
    return {"input": prompt}


def asked(agent, is_declared, question):
    """What the agent gives back: a value, or what is yet to be awaited."""
    prompt, conversation = question["prompt"], question["conversation"]
    if is_runnable(agent):
        config = {"configurable": {"thread_id": conversation, "session_id": conversation}}
        return agent.ainvoke(wanted(agent, prompt), config=config)
    if is_declared:
        for name, given in (
            ("ainvoke", {"input": prompt}),
            ("invoke", {"input": prompt}),
            ("arun", prompt),
            ("run", prompt),
        ):
            if callable(getattr(agent, name, None)):
                return getattr(agent, name)(given)
    elif callable(getattr(agent, "invoke", None)):
        agent = agent.invoke
    return agent(prompt, **known(agent, conversation))


def known(function, conversation):
    """The conversation's id, for functions that have a parameter for it."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    named = [name for name in CONVERSATION_NAMES if name in parameters]
    return {named[0]: conversation} if named else {}


def finished(result, loop):
    """Waits for what is to be awaited, and puts pieces together."""
    if inspect.isawaitable(result):
        result = loop.run_until_complete(awaited(result))
    if hasattr(result, "__aiter__"):
        return "".join(loop.run_until_complete(collected(result)))
    if inspect.isgenerator(result):
        return "".join(piece(part) for part in result)
    return plain(result)


async def awaited(result):
    return await result


async def collected(parts):
    return [piece(part) async for part in parts]


def piece(part):
    said = plain(part)
    return said if isinstance(said, str) else json.dumps(said)


def plain(value, depth=8):
    """What was returned, as JSON has it: of messages what they say, of a conversation its end."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bool, int, float)):
        return value
    if depth == 0:
        return plain(str(value))
    if isinstance(value, dict):
        messages = value.get("messages")
        if isinstance(messages, (list, tuple)) and messages:
            return plain(messages[-1], depth - 1)
        return {plain(str(name)): plain(member, depth - 1) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member, depth - 1) for member in value]
    if hasattr(value, "content"):
        return content(value.content, depth - 1)
    for name in ("model_dump", "_asdict"):
        if callable(getattr(value, name, None)):
            return plain(getattr(value, name)(), depth - 1)
    return plain(str(value))


def content(said, depth):
    """The text of a message whose content may be a list of blocks."""
    if not isinstance(said, list):
        return plain(said, depth)
    texts = [part if isinstance(part, str) else part.get("text", "") for part in said]
    return plain("".join(text for text in texts if isinstance(text, str)))


def told(error, folders):
    """An exception in one line, and which line of the agent's own it came through last."""
    what = "".join(traceback.format_exception_only(type(error), error)).strip()
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(tuple(folders)) and "site-packages" not in frame.filename
    ]
    where = " ({}:{})".format(os.path.basename(own[-1].filename), own[-1].lineno) if own else ""
    return plain(what)[:2000] + where


def main():
    questions, answers = pipes()

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    begin = json.loads(questions.readline())
    folders = begin["folders"]
    sys.path[:0] = folders
    is_declared = begin["langchain"]
    # One loop for all questions: what an agent keeps, clients and pools, belongs to a loop.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    functions = {}
    try:
        agent = made(loaded(begin["target"]), is_declared) if begin["target"] else None
        say({"ready": "{}.{}.{}".format(*sys.version_info[:3])})
    except BaseException as error:
        say({"failed": told(error, folders)})
        return
    for line in questions:
        question = json.loads(line)
        try:
            if "call" in question:
                name = question["call"]
                if name not in functions:
                    functions[name] = loaded(name)
                result = functions[name]()
                if inspect.isawaitable(result):
                    result = loop.run_until_complete(awaited(result))
                say({"failed": "it returned False"} if result is False else {"answer": ""})
            else:
                os.environ.update(question["environment"])
                say({"answer": finished(asked(agent, is_declared, question), loop)})
        except BaseException as error:
            say({"failed": told(error, folders)})


main()
