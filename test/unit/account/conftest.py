"""An account server on a temporary device, without sockets."""

import pytest

from swift.account.server import AccountServer
from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.policy.policy import Policies, Policy
from swift.runtime.backendapp import BackendContext


def stamp(seconds):
    """A timestamp text ``seconds`` after an arbitrary moment."""
    return f"{1_700_000_000 + seconds:016.5f}"


class Bench:
    """The server and short ways to talk to it."""

    path = "/sda/1/AUTH_a"

    def __init__(self, root):
        (root / "sda").mkdir()
        self.root = root
        context = BackendContext(
            devices=Devices(str(root), mount_check=False),
            hasher=PathHasher(b"p", b"s"),
            policies=Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")]),
            clock=ManualClock(),
        )
        self.server = AccountServer(context)

    def __call__(self, method, path=None, *, at=None, query="", **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if at is not None:
            sent["x-timestamp"] = stamp(at)
        return self.server.handle(Request(method, path or self.path, sent, query=query))

    def put_container(self, name, at, *, deleted_at=None, objects=0, size=0, **headers):
        return self(
            "PUT",
            f"{self.path}/{name}",
            x_put_timestamp=stamp(at),
            x_delete_timestamp="0" if deleted_at is None else stamp(deleted_at),
            x_object_count=str(objects),
            x_bytes_used=str(size),
            **headers,
        )


@pytest.fixture()
def bench(tmp_path):
    return Bench(tmp_path)
