"""Waiting for a locked database delays neither the event loop nor other databases."""

import inspect
import sqlite3
from contextlib import closing

import pytest

from swift import green
from swift.account.broker import AccountBroker
from swift.account.rows import ContainerRow
from swift.base.calls import run_inline
from swift.base.errors import LockTimeout
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.container.shardtable import ShardQuery
from swift.db.broker import Broker, Engine
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from swift.green import ThreadPool

NOW = Timestamp(10)
#: Public methods that do not touch the database's content, or that need a connection of a call in this table.
ELSEWHERE = {
    "create",
    "make_file",
    "call",
    "relax",
    "close",
    "info_of",
    "is_root",
    "is_empty",
    "lists_shards",
}

ACCOUNT_ROW = ContainerRow("c", NOW.internal, "0", 0, 0)
CONTAINER_ROW = ObjectRow("o", NOW.internal, 1, "t/p", "e")

COMMON = {
    "refresh": lambda broker: broker.refresh(),
    "write": lambda broker: broker.write(lambda connection: None),
    "alone": lambda broker: broker.alone(
        lambda connection, _disk: connection.execute("SELECT 1 FROM sqlite_master")
    ),
    "read": lambda broker: broker.read(lambda connection: connection.execute("SELECT * FROM policy_stat")),
    "info": lambda broker: broker.info(),
    "delete": lambda broker: broker.delete(NOW),
    "update_metadata": lambda broker: broker.update_metadata(
        {"X": ("v", NOW.internal)}, lambda _merged: None
    ),
    "listing": lambda broker: broker.listing(ListingQuery(5), *broker.listing_policy),
}
ACCOUNT = {
    **COMMON,
    "put_rows": lambda broker: broker.put_rows([ACCOUNT_ROW]),
    "merge_pending": lambda broker: (broker.put_rows([ACCOUNT_ROW]), broker.merge_pending()),
    "policy_stats": lambda broker: broker.policy_stats(),
    "put": lambda broker: broker.put(NOW),
}
CONTAINER = {
    **COMMON,
    "put_rows": lambda broker: broker.put_rows([CONTAINER_ROW]),
    "merge_pending": lambda broker: (broker.put_rows([CONTAINER_ROW]), broker.merge_pending()),
    "put": lambda broker: broker.put(NOW, 0, 0),
    "touch": lambda broker: broker.touch(NOW),
    "merge_rows": lambda broker: broker.merge_rows([CONTAINER_ROW]),
    "shard_ranges": lambda broker: broker.shard_ranges(ShardQuery()),
    "merge_shard_ranges": lambda broker: broker.merge_shard_ranges([ShardRange(".shards_a/c", NOW.internal)]),
    "shard_for": lambda broker: broker.shard_for("o", frozenset((State.ACTIVE,))),
}
#: Putting rows appends to a file beside the database, which needs no lock of SQLite.
NEVER_WAITS = {"put_rows"}


def make_account(object_path, engine):
    broker = AccountBroker(object_path("accounts"), engine, "a")
    broker.listing_policy = ()
    broker.refresh()
    broker.create(Timestamp(1), created_at=Timestamp(1))
    return broker


def make_container(object_path, engine, name="1"):
    broker = ContainerBroker(object_path("containers", name), engine, "a", f"c{name}")
    broker.listing_policy = (0,)
    broker.refresh()
    broker.create(Timestamp(1), 0, created_at=Timestamp(1))
    return broker


MAKERS = {"account": make_account, "container": make_container}
CALLS = [
    *(("account", name, call) for name, call in ACCOUNT.items()),
    *(("container", name, call) for name, call in CONTAINER.items()),
]
RUNS = {"on the loop": lambda: run_inline, "in threads": lambda: ThreadPool(4).call}


@pytest.fixture
def object_path(tmp_path):
    (tmp_path / "sda").mkdir()

    def make(kind, name="1"):
        return DatabasePath(str(tmp_path / "sda"), kind, "7", name * 32)

    return make


class Locked:
    """Holds the exclusive lock of a broker's database, as another process would."""

    def __init__(self, broker):
        self._connection = sqlite3.connect(broker.newest.path, isolation_level=None)
        self._connection.execute("BEGIN EXCLUSIVE")

    def release(self):
        self._connection.execute("ROLLBACK")

    def close(self):
        self._connection.close()


@pytest.mark.parametrize(("kind", "methods"), [("account", ACCOUNT), ("container", CONTAINER)])
def test_every_public_method_of_a_broker_is_in_the_table(kind, methods):
    broker_class = {"account": AccountBroker, "container": ContainerBroker}[kind]
    public = {
        name
        for name, _ in inspect.getmembers(broker_class, inspect.isfunction)
        if not name.startswith("_") and name not in ELSEWHERE
    }
    assert public == set(methods)
    assert hasattr(Broker, "read")


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize(("kind", "name", "call"), CALLS, ids=[f"{kind}-{name}" for kind, name, _ in CALLS])
def test_a_call_to_a_locked_database_yields_and_succeeds_once_unlocked(object_path, kind, name, call, runs):
    engine = Engine(run=RUNS[runs]())
    broker = MAKERS[kind](object_path, engine)
    other = make_container(object_path, engine, "2")
    with closing(Locked(broker)) as lock:
        if name == "refresh":
            broker.close()
        # Several at once: they may not take all threads of the device.
        waiting = [green.spawn(call, broker) for _ in range(1 if name == "delete" else 6)]
        for _ in range(20):
            green.sleep(0.01)
            assert other.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
        if name not in NEVER_WAITS:
            assert not any(task.done for task in waiting)
        lock.release()
        for task in waiting:
            task.wait()


@pytest.mark.parametrize("runs", RUNS)
def test_a_database_that_stays_locked_raises_an_error(object_path, runs):
    broker = make_container(object_path, Engine(run=RUNS[runs](), wait_s=0.3))
    with closing(Locked(broker)), pytest.raises(LockTimeout):
        broker.info()


def test_queries_can_be_nested(object_path):
    """Also while it waits for a locked database: tools work so."""
    broker = make_container(object_path, Engine())

    def ask():
        return broker.read(lambda _connection: broker.info().object_count)

    assert ask() == 0
    with closing(Locked(broker)) as lock:
        asking = green.spawn(ask)
        green.sleep(0.2)
        lock.release()
        assert asking.wait() == 0
