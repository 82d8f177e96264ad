"""swift-future: names that a fast clock blocked are listed, and free again."""

import json
import os
import pwd
import time

import pytest

from swift.account.broker import AccountBroker
from swift.account.containertable import merge_rows
from swift.account.rows import ContainerRow
from swift.base.clock import SystemClock
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp, encode_timestamps
from swift.cli.future import main
from swift.compose import cluster_of
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.platform.devices import Devices
from swift.store.api import ObjectKey
from swift.store.packed.settings import PackedSettings
from swift.store.registry import EngineParts, file_store, packed_store
from test.contract.test_store import post, put
from test.support.peer import SWIFT_CONF, make_rings

YEARS_S = 10 * 365 * 86400
PAST, FUTURE = Timestamp(time.time() - 1000), Timestamp(time.time() + YEARS_S)
LATER = Timestamp(FUTURE.seconds + 1)


class Node:
    """One device, whose objects are files, and the command."""

    def __init__(self, root, capsys):
        self._capsys, self.etc, self.srv = capsys, root / "etc", root / "srv"
        self.etc.mkdir()
        (self.srv / "sda").mkdir(parents=True)
        (self.etc / "swift.conf").write_text(SWIFT_CONF)
        make_rings(
            self.etc, [("10.0.0.1", 6200, "sda")], replicas=1, names=("account", "container", "object")
        )
        cluster = cluster_of({"swift_dir": str(self.etc)})
        self.hasher, self.policy = cluster.config.hasher, cluster.policies.get(0)
        devices = Devices(str(self.srv), mount_check=False)
        self.store = file_store(EngineParts(devices, self.hasher, SystemClock(), reclaim_age_s=1e9))

    def __call__(self, *words):
        options = ["--devices", str(self.srv), "-d", str(self.etc), "--format", "json"]
        code = main([*options, *words])
        out = self._capsys.readouterr()
        # The packed engine tells what it quarantines.
        assert all(line.startswith("swift-future: Quarantined ") for line in out.err.splitlines())
        return code, json.loads(out.out)

    def key(self, name):
        path = EntityPath("AUTH_a", "c", name)
        return ObjectKey("sda", "3", self.policy, path, self.hasher.hexdigest(*path))

    def files(self, name):
        """The names of an object's files on the device."""
        key = self.key(name)
        directory = self.srv / "sda/objects/3" / key.hash[-3:] / key.hash
        return sorted(os.listdir(directory)) if directory.exists() else []

    def place(self, kind, *names):
        return DatabasePath(str(self.srv / "sda"), kind, "3", self.hasher.hexdigest(*names))

    def container(self):
        broker = ContainerBroker(self.place("containers", "AUTH_a", "c"), Engine(), "AUTH_a", "c")
        broker.refresh()
        return broker

    def account(self):
        broker = AccountBroker(self.place("accounts", "AUTH_a"), Engine(), "AUTH_a")
        broker.refresh()
        return broker


class PackedNode(Node):
    """The same, whose objects are records."""

    def __init__(self, root, capsys):
        super().__init__(root, capsys)
        conf, self.conf = self.etc / "swift.conf", self.etc / "object-server.conf"
        option = "[storage-policy:0]\ndiskfile_module = egg:swift#replication.packed\n"
        conf.write_text(conf.read_text().replace("[storage-policy:0]\n", option))
        settings = PackedSettings(state_path=str(root / "state"))
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.conf.write_text(f"[DEFAULT]\nuser = {user}\n[packed]\nstate_path = {settings.state_path}\n")
        devices = Devices(str(self.srv), mount_check=False)
        parts = EngineParts(devices, self.hasher, SystemClock(), reclaim_age_s=1e9, packed=settings)
        self.store = packed_store(parts)

    def __call__(self, *words):
        # A process opens an index once.
        self.store.close()
        return super().__call__("--config", str(self.conf), *words)

    def files(self, name):
        return sorted(entry.name for entry in self.store.devices.place(self.key(name)).entries())


@pytest.fixture
def node(tmp_path, capsys):
    return Node(tmp_path, capsys)


@pytest.fixture(params=[Node, PackedNode])
def each(request, tmp_path, capsys):
    """A node of either engine."""
    return request.param(tmp_path, capsys)


def _row(name, created_at, deleted=0):
    return ObjectRow(name, created_at, 4, "text/plain", "e", deleted, 0)


def test_nothing_is_found_where_all_is_of_the_past(node):
    put(node.store, node.key("o"), PAST)
    broker = node.container()
    broker.create(PAST, 0, created_at=PAST)
    broker.merge_rows([_row("o", PAST.internal), _row("p", encode_timestamps(PAST, PAST, PAST))])
    broker.close()
    assert node("--yes") == (0, [])


def test_without_yes_states_are_listed_with_their_names_and_stay(each):
    put(each.store, each.key("o"), FUTURE)
    for _ in range(2):
        code, found = each()
        assert code == 0
        assert [(state["name"], state["timestamp"]) for state in found] == [("/AUTH_a/c/o", FUTURE.internal)]
    assert each.files("o") == [f"{FUTURE.internal}.data"]
    assert each("--ahead", str(2 * YEARS_S)) == (0, [])


def test_an_object_goes_to_the_quarantine_whole_and_its_name_is_free(each):
    put(each.store, each.key("o"), FUTURE)
    each("--yes")
    assert each.files("o") == []
    moved = each.srv / "sda/quarantined/objects" / each.key("o").hash
    assert os.listdir(moved) == [f"{FUTURE.internal}.data"]
    put(each.store, each.key("o"), PAST)
    assert each() == (0, [])


def test_only_files_of_the_future_go(each):
    put(each.store, each.key("o"), PAST)
    post(each.store, each.key("o"), FUTURE)
    assert len(each.files("o")) == 2
    each("--yes")
    assert each.files("o") == [f"{PAST.internal}.data"]
    assert each() == (0, [])


def test_the_suffix_of_files_that_went_is_hashed_again(node):
    put(node.store, node.key("o"), PAST)
    post(node.store, node.key("o"), FUTURE)
    node("--yes")
    assert (node.srv / "sda/objects/3/hashes.invalid").read_text().endswith(f"{node.key('o').hash[-3:]}\n")


def test_a_container_forgets_rows_of_the_future_and_is_dated_back(node):
    broker = node.container()
    broker.create(FUTURE, 0, created_at=PAST)
    broker.update_metadata({"X-Container-Meta-A": ("b", FUTURE.internal)})
    broker.merge_rows(
        [
            _row("old", PAST.internal),
            _row("new", FUTURE.internal),
            _row("gone", FUTURE.internal, 1),
            _row("posted", encode_timestamps(PAST, FUTURE, FUTURE)),
        ]
    )
    broker.close()
    # Three rows, one header, and two times of the container.
    assert [(each["name"], each["count"]) for each in node("--yes")[1]] == [("/AUTH_a/c", 6)]
    assert node() == (0, [])
    broker = node.container()
    info = broker.info()
    now = Timestamp(time.time())
    assert PAST < Timestamp(info.put_timestamp) <= now
    assert dict(info.metadata)["X-Container-Meta-A"][0] == "b"
    rows = broker.read(lambda c: c.execute("SELECT name, created_at FROM object ORDER BY name").fetchall())
    assert rows == [("old", PAST.internal), ("posted", PAST.internal)]
    assert info.object_count == 2
    broker.merge_rows([_row("new", now.internal)])
    assert broker.info().object_count == 3


def test_what_was_deleted_in_the_future_stays_deleted(node):
    broker = node.container()
    broker.create(FUTURE, 0, created_at=PAST)
    broker.delete(LATER)
    broker.close()
    account = node.account()
    account.create(PAST, created_at=PAST)
    account.write(
        lambda c: merge_rows(
            c,
            [
                ContainerRow("c", FUTURE.internal, LATER.internal, 0, 0, 1, 0),
                ContainerRow("d", FUTURE.internal, "0", 2, 8, 0, 0),
            ],
        )
    )
    account.close()
    assert {each["name"] for each in node("--yes")[1]} == {"/AUTH_a/c", "/AUTH_a"}
    assert node() == (0, [])
    assert node.container().info().is_deleted
    info = node.account().info()
    assert (info.container_count, info.object_count, info.bytes_used) == (1, 2, 8)


def test_updates_of_the_future_are_not_sent(node):
    directory = node.srv / "sda/async_pending/abc"
    directory.mkdir(parents=True)
    for stamp in (PAST, FUTURE):
        (directory / f"{'a' * 32}-{stamp.internal}").write_bytes(b"update")
    assert len(node("--yes")[1]) == 1
    assert os.listdir(directory) == [f"{'a' * 32}-{PAST.internal}"]


def test_a_damaged_database_is_reported_and_the_others_are_dated_back(node, capsys):
    broker = node.container()
    broker.create(FUTURE, 0, created_at=PAST)
    broker.close()
    damaged = node.place("containers", "AUTH_a", "damaged")
    os.makedirs(damaged.directory)
    with open(damaged.file(), "wb") as file:
        file.write(b"rubbish" * 1000)
    assert main(["--devices", str(node.srv), "-d", str(node.etc), "--yes"]) == 1
    out = capsys.readouterr()
    assert "/AUTH_a/c" in out.out and damaged.directory in out.err and "Traceback" not in out.err
