"""An upstream sends interim responses (1xx) without end."""

import http.client
import socketserver
import threading

from attack import Daemon, Watch, check, main

MOST = 100


class Endless(socketserver.StreamRequestHandler):
    """Sends as many interim responses as the path says, without end for `/endless`, then the final one."""

    sent = 0

    def handle(self):
        path = self.rfile.readline().split()[1].decode()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
        try:
            if path == "/endless":
                while True:
                    self.wfile.write(interim * 100)
                    type(self).sent += 100
            self.wfile.write(interim * int(path[1:]) + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        except OSError:
            pass


class Upstream(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def get(daemon, upstream, path):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.proxy, timeout=10)
    try:
        connection.request("GET", f"http://127.0.0.1:{upstream}{path}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as error:
        return 0, repr(error)
    finally:
        connection.close()


def attack(full):
    with Upstream(("127.0.0.1", 0), Endless) as upstream, Daemon() as daemon:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        port = upstream.server_address[1]
        with Watch(daemon) as watch:
            for _ in range(50 if full else 3):
                status, said = get(daemon, port, "/endless")
                if not (status == 502 and "interim" in said):
                    break
            check(status == 502 and "interim" in said, "an endless row of 1xx ends in a 502 that says so", said[:200])
        check(not watch.failed, "/healthz answers meanwhile", f"{watch.longest:.0f} ms at most")
        for count, expected in ((0, 200), (MOST, 200), (MOST + 1, 502)):
            status, _ = get(daemon, port, f"/{count}")
            check(status == expected, f"{count} interim responses give a {expected}", status)
        upstream.shutdown()


if __name__ == "__main__":
    main(attack)
