"""An agent behind `upstream_proxy` asks for metadata and for Squall's own API, in every form of an address."""

import http.client
import http.server
import ipaddress
import json
import socket
import threading

from attack import Daemon, check, main

METADATA = "169.254.169.254"
OTHERS = ["100.100.100.200", "192.0.0.192", "168.63.129.16"]
BESIDE = ["[fd00:ec2::254]", "[fd20:ce::254]", "[fe80::1]", "metadata.google.internal", "METADATA.google.internal.",
          "metadata.goog", "instance-data", "instance-data.ec2.internal", "425.510.425.510", "7147006462", "0x1A9FEA9FE"]


def numeric(address):
    """An IPv4 address as `inet_aton` reads it: one to four parts, decimal, octal, hexadecimal and mixed."""
    number = int(ipaddress.IPv4Address(address))
    a, b, c, d = number.to_bytes(4, "big")
    forms = []
    for parts in ([number], [a, number & 0xFFFFFF], [a, b, number & 0xFFFF], [a, b, c, d]):
        for write in ("{}", "0x{:x}", "0X{:X}", "0{:o}", "00000{:o}"):
            forms.append(".".join(write.format(part) for part in parts))
    forms += [f"0x{a:x}.0{b:o}.{c}.{d}", f"{a}.0x{b:x}.0{number & 0xFFFF:o}"]
    return list(dict.fromkeys(forms)) + [f"{address}.", f"{number}."]


def embedded(address):
    """An IPv4 address inside IPv6."""
    high, low = divmod(int(ipaddress.IPv4Address(address)), 1 << 16)
    prefixes = ("::ffff:", "::", "::ffff:0:", "64:ff9b::", "64:ff9b:1::")
    return [f"[{prefix}{high:x}:{low:x}]" for prefix in prefixes] + [f"[::ffff:{address}]", f"[2002:{high:x}:{low:x}::1]"]


class Chained(http.server.BaseHTTPRequestHandler):
    """The other proxy: answers for any place, and knows one name more than this machine does."""

    places = {}
    seen = []
    via = "1.1 corp"

    def do_CONNECT(self):
        self.seen.append(self.path)
        self.send_response(502)
        self.end_headers()

    def do_POST(self):
        self.seen.append(self.path)
        host, _, path = self.path.removeprefix("http://").partition("/")
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        port = self.places.get(host)
        if port is None:
            self.send_response(200)
            self.end_headers()
            return
        onward = http.client.HTTPConnection("127.0.0.1", port)
        headers = {"content-type": "application/json", "via": self.via}
        onward.request("POST", f"/{path}", body=body, headers=headers)
        answer = onward.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass


def through(daemon, method, target, body=None):
    """The status that the proxy answers."""
    with socket.create_connection(("127.0.0.1", daemon.proxy)) as connection:
        connection.settimeout(10)
        authority = target.removeprefix("http://").partition("/")[0]
        body = json.dumps(body).encode() if body else b""
        head = f"{method} {target} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return int(connection.makefile("rb").readline().split()[1])


def attack(full):
    chained = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chained)
    threading.Thread(target=chained.serve_forever, daemon=True).start()
    with Daemon({"proxy": {"upstream_proxy": f"http://127.0.0.1:{chained.server_port}"}}) as daemon:
        forms = numeric(METADATA) + embedded(METADATA) + OTHERS + BESIDE
        forms += [form for address in OTHERS for form in numeric(address) + embedded(address)] if full else []
        passed = []
        for form in forms:
            for method, target in (("GET", f"http://{form}/latest/meta-data/"), ("CONNECT", f"{form}:80")):
                if through(daemon, method, target) not in (400, 403):
                    passed.append(f"{method} {form}")
        check(not passed and not Chained.seen, f"no form of a metadata address is chained {passed}", f"{len(forms)} forms")

        token = {"name": "mine", "role": "admin"}
        own = numeric("127.0.0.1") + embedded("127.0.0.1") + ["0", "0.0.0.0", "localhost", "LOCALHOST.", "api.localhost"]
        passed = []
        for form in own:
            for place in (daemon.api, daemon.proxy):
                status = through(daemon, "POST", f"http://{form}:{place}/v1/tokens", token)
                if status not in (403, 508):
                    passed.append(f"{form}:{place} {status}")
        check(not passed and not Chained.seen, f"no form of an own listener is chained {passed}", f"{len(own)} forms")

        Chained.places["only-there.example"] = daemon.api
        status = through(daemon, "POST", "http://only-there.example/v1/tokens", token)
        check(status == 403, "the API rejects what comes through a proxy that says so", status)
        status, _ = daemon.call("POST", "/v1/tokens", token)
        check(status == 201, "and makes a token for this machine", status)
    chained.shutdown()


if __name__ == "__main__":
    main(attack)
