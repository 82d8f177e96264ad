"""A cluster for the tools of dispersion that answers whatever a test likes, proxy and nodes in one server."""

import contextlib
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from test.support.nodes import SWIFT_CONF, make_rings


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/auth":
            self.answer(200, b"", {"X-Auth-Token": "t", "X-Storage-Url": f"{self.server.url}/v1/AUTH_a"})
            return
        if self.command == "HEAD":
            self.server.sought.append(self.path)
            self.answer(self.server.has(self.path), b"")
            return
        self.server.asked.append((self.command, self.path, body))
        for start, answers in self.server.answers.items():
            if f"{self.command} {self.path}".startswith(start) and answers:
                self.answer(*answers.pop(0))
                return
        self.answer(200 if self.command == "GET" else 201, b"[]" if self.command == "GET" else b"")

    do_PUT = do_HEAD = do_GET

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Bench:
    """Runs a tool against such a cluster."""

    def __init__(self, root, server, tool):
        self.root, self.server, self.tool = root, server, tool

    def run(self, *words, answers=None, **options):
        self.server.answers = answers or {}
        self.server.asked, self.server.sought = [], []
        options = {"swift_dir": self.root, "auth_url": f"{self.server.url}/auth", "retries": 0, **options}
        lines = [f"{name} = {value}\n" for name, value in options.items()]
        (self.root / "d.conf").write_text("[dispersion]\ndispersion_coverage = 50\n" + "".join(lines))
        command = [
            sys.executable,
            "-m",
            f"swift.cli.dispersion_{self.tool}",
            str(self.root / "d.conf"),
            *words,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def put(self, start=""):
        return [path for method, path, _ in self.server.asked if method == "PUT" and path.startswith(start)]


@contextlib.contextmanager
def running(root, tool, devices=("sda",), replicas=None):
    """A ``Bench`` of a tool; the one server has all ``devices``, and all copies unless ``has`` says no."""
    (root / "swift.conf").write_text(SWIFT_CONF)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    port = server.server_address[1]
    server.url, server.has = f"http://127.0.0.1:{port}", lambda path: 200
    make_rings(root, [("127.0.0.1", port, device) for device in devices], replicas=replicas or len(devices))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Bench(root, server, tool)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
