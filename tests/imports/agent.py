"""An agent that calls a model and a tool, and the server that is both. Makes the files of `make.py`."""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

QUESTION = "What is the weather in Rome?"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz012345"


def answer(request):
    """A chat completion: the call of the tool, then the text."""
    asked = any(message["role"] == "tool" for message in request["messages"])
    call = dict(id="call_1", type="function", function=dict(name="get_weather", arguments='{"city": "Rome"}'))
    message = dict(role="assistant", content="It is 21 degrees in Rome.") if asked else dict(
        role="assistant", content=None, tool_calls=[call]
    )
    return dict(
        id="chatcmpl-1",
        object="chat.completion",
        created=1700000000,
        model="gpt-test",
        choices=[dict(index=0, message=message, finish_reason="stop" if asked else "tool_calls")],
        usage=dict(prompt_tokens=9, completion_tokens=5, total_tokens=14),
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply()

    def do_POST(self):
        self.reply()

    def reply(self):
        length = int(self.headers.get("content-length") or 0)
        request = self.rfile.read(length)
        kind, body = "application/json", json.dumps(dict(city="Rome", degrees=21))
        if self.path.endswith("/chat/completions"):
            body = json.dumps(answer(json.loads(request)))
        elif self.path == "/":
            kind, body = "text/html", PAGE
        elif self.path == "/later":
            # Firefox's tools open after the first page.
            kind, body = "text/html", "<script>setTimeout(() => { location = '/' }, 8000)</script>"
        body = body.encode()
        if self.path == "/binary":
            kind, body = "application/octet-stream", b"\xff\x00\x01"
        self.send_response(200)
        if self.path.startswith("/weather") and "gzip" in self.headers.get("accept-encoding", ""):
            body = gzip.compress(body)
            self.send_header("content-encoding", "gzip")
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# A browser that calls the model and the tool, and an aborted call.
PAGE = """<script>
(async () => {
  const say = messages => fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer %s' },
    body: JSON.stringify({ model: 'gpt-test', messages })
  }).then(response => response.json())
  const user = { role: 'user', content: '%s' }
  const { choices: [{ message }] } = await say([user])
  const weather = await (await fetch('/weather?city=Rome')).text()
  await say([user, message, { role: 'tool', tool_call_id: 'call_1', content: weather }])
  await (await fetch('/binary')).arrayBuffer()
  await fetch('http://127.0.0.1:2/closed').catch(() => {})
  document.title = 'done'
})()
</script>""" % (SECRET, QUESTION)


def serve():
    """The server's URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def run(model, tool, question=QUESTION):
    """Asks the model, then the tool, then the model. `model` takes messages, `tool` a city."""
    messages = [dict(role="user", content=question)]
    message = model(messages)
    call = message.tool_calls[0]
    messages.append(message.model_dump(exclude_none=True))
    result = tool(**json.loads(call.function.arguments))
    messages.append(dict(role="tool", tool_call_id=call.id, content=json.dumps(result)))
    return model(messages).content
