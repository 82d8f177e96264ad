"""A container server on a temporary device, without sockets."""

import pytest

from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cluster.syncrealms import Realm, Realms
from swift.cluster.transport import BackendResponse, TransportError
from swift.container.broker import ContainerBroker
from swift.container.server import ContainerServer
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.policy.policy import Policies, Policy
from swift.runtime.backendapp import BackendContext


def stamp(seconds):
    """A timestamp text ``seconds`` after an arbitrary moment."""
    return f"{1_700_000_000 + seconds:016.5f}"


class Accounts:
    """A transport whose answers a test scripts by port; keeps every request."""

    def __init__(self):
        self.answers = {}
        self.requests = []

    def request(self, request):
        ip, port = request.node.ip, request.node.port
        method, path, headers = request.method, request.path, request.headers
        self.requests.append((ip, port, method, path, dict(headers), request.timeouts))
        answer = self.answers.get(port, 201)
        if isinstance(answer, TransportError):
            raise answer
        return BackendResponse(answer)


class Bench:
    """The server and short ways to talk to it."""

    path = "/sda/1/AUTH_a/c"

    def __init__(self, root):
        (root / "sda").mkdir()
        self.root = root
        self.accounts = Accounts()
        self.clock = ManualClock()
        self.context = BackendContext(
            devices=Devices(str(root), mount_check=False),
            hasher=PathHasher(b"p", b"s"),
            policies=Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")]),
            clock=self.clock,
            transport=self.accounts,
        )
        realms = Realms({"REALM1": Realm("key", clusters={"NAME1": "http://127.0.0.1:16080/v1/"})})
        self.server = ContainerServer(self.context, realms=realms)

    def __call__(self, method, path=None, *, at=None, query="", body=b"", **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if at is not None:
            sent["x-timestamp"] = stamp(at)
        return self.server.handle(Request(method, path or self.path, sent, body, query=query))

    def put_object(self, name, at, size=5, **headers):
        headers = {"x_size": str(size), "x_etag": "e", "x_content_type": "text/plain", **headers}
        return self("PUT", f"{self.path}/{name}", at=at, **headers)

    def listing(self, query="", **headers):
        response = self("GET", query=f"format=json&{query}" if query else "format=json", **headers)
        return response.read_body()


@pytest.fixture()
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.fixture()
def broker(tmp_path):
    """The database of the new container ``a/c``."""
    (tmp_path / "sda").mkdir()
    place = DatabasePath(str(tmp_path / "sda"), "containers", "1", "cd" * 16)
    broker = ContainerBroker(place, Engine(), "a", "c")
    broker.create(Timestamp(1), 0, created_at=Timestamp(1))
    return broker
