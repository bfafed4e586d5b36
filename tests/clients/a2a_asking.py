"""How the official A2A client asks an agent, for a client and for an agent that calls another one."""

import uuid

from a2a.client.client import ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.helpers import get_message_text, get_stream_response_text
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskState,
)

VERSIONS = {"1.0": "1.0", "0.3": "0.3.0"}


def card(url, version="1.0", name="agent"):
    """A card of an agent at `url` that speaks `version`."""
    interface = AgentInterface(protocol_binding="JSONRPC", url=url, protocol_version=VERSIONS[version])
    capabilities = AgentCapabilities(streaming=True)
    return AgentCard(
        name=name,
        description=f"The {name} of a crew",
        version="1",
        supported_interfaces=[interface],
        capabilities=capabilities,
        default_input_modes=["text"],
        default_output_modes=["text"],
    )


def message(text):
    return Message(role=Role.ROLE_USER, parts=[Part(text=text)], message_id=str(uuid.uuid4()))


async def ask(http, agent, text, stream=True):
    """What comes of one message to `agent`, a card or the URL of one: its texts, states and kinds of events."""
    factory = ClientFactory(ClientConfig(streaming=stream, httpx_client=http))
    told = {"ok": True, "text": [], "states": [], "events": []}
    try:
        client = await factory.create_from_url(agent) if isinstance(agent, str) else factory.create(agent)
        async for event in client.send_message(SendMessageRequest(message=message(text))):
            kind = event.WhichOneof("payload")
            told["events"].append(kind)
            held = getattr(event, kind)
            texts = [get_stream_response_text(event)]
            if kind in ("task", "status_update"):
                told["states"].append(TaskState.Name(held.status.state))
                if kind == "task" and held.status.HasField("message"):
                    texts.append(get_message_text(held.status.message))
            told["text"] += [text for text in texts if text]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        told.update(ok=False, error=type(error).__name__, said=str(error)[:300])
    return told
