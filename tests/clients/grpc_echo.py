"""A unary and a bidirectional gRPC call; messages are plain bytes, so no schema is needed."""

import os

import told

flags = told.arguments(channels=0)
# grpcio takes its proxy from the environment alone, and `no_proxy` must not hide loopback.
if flags.proxy:
    os.environ["http_proxy"] = os.environ["https_proxy"] = flags.proxy
    os.environ["no_proxy"] = os.environ["no_grpc_proxy"] = ""

import grpc  # noqa: E402 - reads the environment


def as_is(message):
    return message


def code_of_a_channel(target):
    """What the first call of a channel with a connection of its own comes to."""
    with grpc.insecure_channel(target, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            channel.unary_unary("/test.Echo/Say", as_is, as_is)(b"hello", timeout=flags.timeout)
        except grpc.RpcError as error:
            return error.code().name
        return "OK"


def ask_on_channels():
    target = flags.url.split("://", 1)[1]
    told.say(codes=[code_of_a_channel(target) for _ in range(flags.channels)])


def ask():
    scheme, target = flags.url.split("://", 1)
    if scheme == "https":
        with open(flags.ca, "rb") as file:
            channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(file.read()))
    else:
        channel = grpc.insecure_channel(target)
    with channel:
        unary = channel.unary_unary("/test.Echo/Say", as_is, as_is)
        answer, call = unary.with_call(b"hello", timeout=flags.timeout)
        both = channel.stream_stream("/test.Echo/Talk", as_is, as_is)
        echoes = list(both(iter([b"one", b"two", b"three"]), timeout=flags.timeout))
        told.say(
            ok=True,
            unary=answer.decode(),
            code=call.code().name,
            echoes=[echo.decode() for echo in echoes],
        )


def run():
    try:
        ask_on_channels() if flags.channels else ask()
    except grpc.RpcError as error:
        told.say(ok=False, error=error.code().name, text=error.details())


told.run(run)
