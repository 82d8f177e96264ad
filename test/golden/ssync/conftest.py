"""An object server on green threads that speaks to real sockets, with the recordings' devices."""

from __future__ import annotations

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.http.request import Request
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.platform import sockets
from swift.platform.devices import Devices
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.runtime.backendapp import BackendContext
from swift.runtime.httpd import HttpServer
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.stub_servers import HttpClient

GOLD = Policy(0, "gold", is_default=True)
EC42 = Policy(1, "ec42", ec=ErasureCode("liberasurecode_rs_vand", 4, 2, 65536))


class Receiver:
    """A server, short ways to put objects before a conversation, and connections to it."""

    def __init__(self, root, **options):
        for device in ("sdb", "ec7", "ec4", "ec6"):
            (root / device).mkdir()
        self.root = root
        telemetry = Telemetry(silent_log())
        self.context = BackendContext(
            devices=Devices(str(root), mount_check=False),
            hasher=PathHasher(b"goldenprefix", b"goldensuffix"),
            policies=Policies([GOLD, EC42]),
            telemetry=telemetry,
            clock=ManualClock(5_000_000_100.0),
        )
        self.settings = ObjectSettings(**{"replication_lock_timeout": 0, **options})
        self.stores = make_stores(self.context, self.settings)
        self.app = ObjectServer(self.context, self.settings, self.stores)
        self.server = HttpServer(self.app.handle, telemetry, client_timeout_s=5.0)
        self.listener = sockets.listen("127.0.0.1", 0, 64)
        self.task = green.spawn(self.server.serve, self.listener)

    def ask(self, method, path, at, body=b"", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named = {"x-timestamp": at, **named}
        if method == "PUT":
            named.setdefault("content-type", "text/plain")
            named["content-length"] = str(len(body))
        return self.app.handle(Request(method, path, named, body))

    def wire(self):
        return HttpClient(self.listener.getsockname()[1])

    def files(self):
        """Names in all hash directories, by device and partition."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob("*/objects*/*/*/*/*"))

    def close(self):
        self.server.stop(grace_s=1.0)
        self.task.kill()
        self.listener.close()


@pytest.fixture
def make_receiver(tmp_path):
    made = []

    def make(**options):
        made.append(Receiver(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def receiver(make_receiver):
    return make_receiver()


@pytest.fixture
def prepared(receiver):
    """The recording's receiver had one object already, and one with older metadata."""
    receiver.ask("PUT", "/sdb/8/AUTH_test/c/obj149", "5000000013.00000", b"same")
    receiver.ask("PUT", "/sdb/8/AUTH_test/c/obj118", "5000000010.00000", b"older meta")
    receiver.ask("POST", "/sdb/8/AUTH_test/c/obj118", "5000000011.00000", **{"x-object-meta-which": "older"})
    return receiver
