"""A unary and a bidirectional gRPC call; messages are plain bytes, so no schema is needed."""

import os

import told

flags = told.arguments()
# grpcio takes its proxy from the environment alone, and `no_proxy` must not hide loopback.
if flags.proxy:
    os.environ["http_proxy"] = os.environ["https_proxy"] = flags.proxy
    os.environ["no_proxy"] = os.environ["no_grpc_proxy"] = ""

import grpc  # noqa: E402 - reads the environment


def as_is(message):
    return message


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
        ask()
    except grpc.RpcError as error:
        told.say(ok=False, error=error.code().name, text=error.details())


told.run(run)
