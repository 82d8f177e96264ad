"""A container or an account on a temporary device, as tests of what happens to one database need it."""

from swift.account.broker import AccountBroker
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.db.broker import Engine
from swift.db.files import DatabasePlace

#: The hash that its directory is named by.
HASH = "0" * 29 + "abc"


def make_container(root, account="a", container="c"):
    """The broker of a new container on ``root``/sda; close it."""
    (root / "sda").mkdir()
    place = DatabasePlace(str(root / "sda"), "containers", "7", HASH)
    broker = ContainerBroker(place, Engine(), account, container)
    broker.create(Timestamp(5), 0, created_at=Timestamp(5))
    return broker


def make_account(root, name_hash=HASH):
    """The broker of a new account ``a`` on ``root``/sda; close it."""
    (root / "sda").mkdir(exist_ok=True)
    broker = AccountBroker(DatabasePlace(str(root / "sda"), "accounts", "7", name_hash), Engine(), "a")
    broker.create(Timestamp(5), created_at=Timestamp(5))
    return broker


def rows_of(sim, number, container="c"):
    """Names in one container replica, asked of its server."""
    ring = sim.context.rings.container.view()
    part = ring.partition_of(sim.hasher.digest("a", container))
    port = next(p for p, (kind, n, _) in sim.transport.apps.items() if (kind, n) == ("container", number))
    path = f"/sdb{number}/{part}/a/{container}"
    reply = sim.transport.request("10.0.0.1", port, "GET", path, {}, connect_timeout_s=1, timeout_s=1)
    return reply.body.decode().split()
