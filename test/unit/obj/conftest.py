"""An object server on a temporary device, without sockets."""

from __future__ import annotations

import itertools

import pytest

from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.cluster.transport import BackendResponse
from swift.http.headers import lower_name
from swift.http.request import Request
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.runtime.backendapp import BackendContext, RingPartitions
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry

NOW_S = 5_000_000_000.0


class Containers:
    """A transport whose answers a test scripts by port; keeps every request."""

    def __init__(self):
        self.answers = {}
        self.requests = []

    def request(self, request):
        ip, port = request.node.ip, request.node.port
        method, path, headers = request.method, request.path, request.headers
        self.requests.append((ip, port, method, path, dict(headers)))
        response = self.answers.get(port, 201)
        if isinstance(response, Exception):
            raise response
        if callable(response):
            response = response()
        return response if isinstance(response, BackendResponse) else BackendResponse(response)


class Bench:
    """The server and short ways to talk to it."""

    def __init__(self, root, *, swift_dir="", clock=None, log=None, **options):
        (root / "sda").mkdir(exist_ok=True)
        self.root = root
        self.containers = Containers()
        self.clock = clock or ManualClock(NOW_S)
        policies = Policies(
            [
                Policy(0, "gold", is_default=True),
                Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", 4, 2)),
            ]
        )
        self.context = BackendContext(
            devices=Devices(str(root), mount_check=False),
            hasher=PathHasher(b"p", b"s"),
            policies=policies,
            telemetry=Telemetry(log or silent_log()),
            clock=self.clock,
            transport=self.containers,
            partitions=RingPartitions(str(swift_dir), clock=self.clock),
        )
        self.settings = ObjectSettings(**options)
        self.app = ObjectServer(self.context, self.settings, make_stores(self.context, self.settings))
        self._ticks = itertools.count(1)

    def tick(self):
        """A new X-Timestamp, later than all before."""
        return f"{NOW_S + next(self._ticks):.5f}"

    def ask(self, method, path="/sda/1/AUTH_a/c/o", headers=None, body=b"", **more):
        headers = {lower_name(name): value for name, value in (headers or {}).items()}
        if method in ("PUT", "POST", "DELETE"):
            headers.setdefault("x-timestamp", self.tick())
        if method == "PUT":
            headers.setdefault("content-type", "text/plain")
            if "transfer-encoding" not in headers:
                headers.setdefault("content-length", str(len(body)))
        request = Request(method, path, headers, more.pop("stream", body))
        for name, value in more.items():
            setattr(request, name, value)
        return self.app.handle(request)

    def files(self):
        found = (path for path in self.root.rglob("*") if path.is_file())
        return sorted(path.name for path in found if path.name not in (".lock", "hashes.invalid"))

    def pendings(self):
        return sorted(path.name for path in self.root.glob("*/async_pending*/*/*"))


@pytest.fixture
def make_bench(tmp_path):
    return lambda **options: Bench(tmp_path, **options)


@pytest.fixture
def bench(make_bench):
    return make_bench()
