"""A container on a temporary device, as tests of what happens to one database need it."""

from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.db.broker import Engine
from swift.db.files import Place

#: The hash that its directory is named by.
HASH = "0" * 29 + "abc"


def make_container(root):
    """The broker of a new container ``a/c`` on ``root``/sda; close it."""
    (root / "sda").mkdir()
    broker = ContainerBroker(Place(str(root / "sda"), "containers", "7", HASH), Engine(), "a", "c")
    broker.create(Timestamp(5), 0, created_at=Timestamp(5))
    return broker


def rows_of(sim, number, container="c"):
    """Names in one container replica, asked of its server."""
    ring = sim.context.rings.container.view()
    part = ring.partition_of(sim.hasher.digest("a", container))
    port = next(p for p, (kind, n, _) in sim.transport.apps.items() if (kind, n) == ("container", number))
    path = f"/sdb{number}/{part}/a/{container}"
    reply = sim.transport.request("10.0.0.1", port, "GET", path, {}, connect_timeout_s=1, timeout_s=1)
    return reply.body.decode().split()
