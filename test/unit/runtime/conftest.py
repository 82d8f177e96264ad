"""An HTTP server in the test's own process, on green threads."""

import pytest

from swift import green
from swift.http.response import Response
from swift.platform import sockets
from swift.runtime.httpd import HttpServer
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.stub_servers import HttpClient


class Errors:
    """A log that keeps what went wrong."""

    def __init__(self):
        self.lines = []

    def exception(self, message, error, *, txid=None):
        self.lines.append(f"{message}: {type(error).__name__} {error}")

    def error(self, message, *, txid=None):
        self.lines.append(message)


class Bench:
    """A server over a handler that the test sets, and everything that it was asked."""

    def __init__(self, **options):
        self.requests = []
        self.ended = []
        self.answer = lambda request: Response(200, {"content-type": "text/plain"}, b"hello")
        self.telemetry = Telemetry(silent_log())
        self.log = self.telemetry.log = Errors()
        self.server = HttpServer(self._handle, self.telemetry, **options)
        self.listener = sockets.listen("127.0.0.1", 0, 64)
        self.port = self.listener.getsockname()[1]
        self.task = green.spawn(self.server.serve, self.listener)
        self.wires = []

    def _handle(self, request):
        self.requests.append(request)
        response = self.answer(request)
        response.on_response_end(lambda sent, complete: self.ended.append((sent, complete)))
        return response

    def wire(self, **options):
        wire = HttpClient(self.port, **options)
        self.wires.append(wire)
        return wire

    def close(self):
        for wire in self.wires:
            wire.close()
        self.server.stop(grace_s=2.0)
        self.task.kill()
        self.listener.close()


@pytest.fixture
def make_bench():
    benches = []

    def make(**options):
        benches.append(Bench(**options))
        return benches[-1]

    yield make
    for bench in benches:
        bench.close()


@pytest.fixture
def bench(make_bench):
    return make_bench(client_timeout_s=5.0, keepalive_timeout_s=5.0)
