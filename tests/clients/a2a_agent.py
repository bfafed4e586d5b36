"""An agent with an A2A server, by the official `a2a-sdk`, for both versions of the protocol. Its port is on a line of
its own.

    a2a_agent.py                                 a worker: it forecasts the weather of the city that it is asked for
    a2a_agent.py --worker URL [--name NAME] [--proxy URL] [--stream] [--drops]
                                                 a planner: it asks the worker and says what came of it

A planner hands its caller's `baggage` and `traceparent` on, unless it `--drops` them. With `--name` it names itself to
Squall. `--messages` lets a worker reply with a message in place of a task.
"""

import argparse
import asyncio
import logging
import socket

import httpx
import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from starlette.applications import Starlette

from a2a_asking import ask, card

parser = argparse.ArgumentParser()
parser.add_argument("--worker")
parser.add_argument("--name")
parser.add_argument("--proxy")
for flag in ("stream", "drops", "messages"):
    parser.add_argument(f"--{flag}", action="store_true")
flags = parser.parse_args()
logging.disable(logging.CRITICAL)


async def planned(context):
    """What a planner says, in pieces."""
    came = context.call_context.state["headers"]
    hands_on = ("baggage", "traceparent") if not flags.drops else ()
    headers = {name: came[name] for name in hands_on if name in came}
    if flags.name:
        headers["x-squall-agent"] = flags.name
    async with httpx.AsyncClient(timeout=20, trust_env=False, proxy=flags.proxy, headers=headers) as http:
        told = await ask(http, flags.worker, context.get_user_input(), flags.stream)
    failed = [state for state in told["states"] if state in ("TASK_STATE_FAILED", "TASK_STATE_REJECTED")]
    finished = not flags.stream or "message" in told["events"] or "TASK_STATE_COMPLETED" in told["states"]
    if not told["ok"] or failed or not finished:
        why = told.get("said") or " ".join(failed + told["text"]) or "it broke off"
        return [f"The worker failed: {why}"]
    return ["The forecast: " + ("".join(told["text"]) or "none")]


class Executor(AgentExecutor):
    async def execute(self, context, queue):
        city = context.get_user_input()
        said = await planned(context) if flags.worker else [f"{city}: ", "sunny, ", "21 degrees"]
        if flags.messages:
            await queue.enqueue_event(new_text_message("".join(said), context_id=context.context_id))
            return
        task = context.current_task or new_task_from_user_message(context.message)
        await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await updater.start_work()
        for number, piece in enumerate(said, 1):
            more = {"artifact_id": "answer", "append": number > 1, "last_chunk": number == len(said)}
            await updater.add_artifact([new_text_part(piece)], **more)
        await updater.complete()

    async def cancel(self, context, queue):
        raise NotImplementedError


async def main():
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    about = card(f"http://127.0.0.1:{port}/", name="planner" if flags.worker else "worker")
    handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=about)
    routes = create_agent_card_routes(about) + create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off"))
    print(port, flush=True)
    await server.serve(sockets=[listening])


asyncio.run(main())
