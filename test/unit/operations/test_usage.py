"""Usage is counted once in a cluster, by policy and by container, and read without waiting for writers."""

import fcntl
import io
import json
import shutil
from types import SimpleNamespace

import pytest

from swift.account.broker import AccountBroker
from swift.account.rows import ContainerRow
from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.operations.usage import (
    FirstPrimaries,
    UsageQuery,
    UsageReader,
    UsageRow,
    own_device_ids,
    parse_away,
    write_csv,
    write_json,
)
from swift.platform.devices import Devices
from swift.policy.policy import Policies, Policy
from swift.ring.builder import RingBuilder
from swift.ring.ringfile import load_table
from swift.ring.view import RingView

HASHER = PathHasher(b"", b"s")
POLICIES = Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")])
#: Node → address; each has a device of its name.
NODES = {"sd1": "10.0.0.1", "sd2": "10.0.0.2", "sd3": "10.0.0.3"}
ACCOUNTS = [f"AUTH_{number}" for number in range(8)]


def container(name, index=0, objects=2, size=10):
    return ContainerRow(name, Timestamp(6).internal, "0", objects, size, storage_policy_index=index)


class Cluster:
    """Three account servers with two replicas; each has a directory of its own."""

    def __init__(self, folder):
        self.folder = folder
        builder = RingBuilder(4, 2, 1)
        for zone, (device, ip) in enumerate(NODES.items()):
            builder.add_device(region=1, zone=zone, ip=ip, port=6202, device=device, weight=100.0)
            (folder / device / device).mkdir(parents=True)
        builder.rebalance(seed=3)
        builder.write_ring(str(folder / "account.ring.gz"))
        self.view = RingView(load_table(str(folder / "account.ring.gz"), thorough=False))
        self.warnings = []

    def place(self, device, account):
        name_hash = HASHER.hexdigest(account)
        part = self.view.partition_of(bytes.fromhex(name_hash))
        return DatabasePath(str(self.folder / device / device), "accounts", str(part), name_hash)

    def primaries(self, account):
        part = int(self.place("sd1", account).partition)
        return [self.view.devices[dev_id].device for dev_id in self.view.primary_ids(part)]

    def make(self, account, *rows):
        """Store an account on all its primaries."""
        for device in self.primaries(account):
            broker = AccountBroker(self.place(device, account), Engine(), account)
            broker.create(Timestamp(5), created_at=Timestamp(5))
            if rows:
                broker.put_rows(rows)
            broker.close()

    def delete(self, account):
        for device in self.primaries(account):
            broker = AccountBroker(self.place(device, account), Engine(), account)
            broker.refresh()
            broker.delete(Timestamp(9))
            broker.close()

    def reader(self, device, away=(), **query):
        own = own_device_ids(self.view, NODES[device], 6202)
        return UsageReader(
            Devices(str(self.folder / device), mount_check=False),
            FirstPrimaries(self.view, own, parse_away(self.view, away)),
            HASHER,
            POLICIES,
            UsageQuery(**query),
            warn=self.warnings.append,
            wait_s=0.05,
            containers_at_once=2,
        )

    def rows(self, *devices, **options):
        return [row for device in devices or NODES for row in self.reader(device, **options).rows()]


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def test_the_nodes_together_count_each_account_once_by_policy(cluster):
    for account in ACCOUNTS:
        cluster.make(account, container("a"), container("b"), container("c", 1, 1, 7))
    rows = cluster.rows()
    assert sorted(row[:5] for row in rows) == sorted(
        row
        for account in ACCOUNTS
        for row in ((account, None, "gold", 4, 20), (account, None, "silver", 1, 7))
    )
    assert cluster.warnings == []
    counted = {device: {row.account for row in cluster.rows(device)} for device in NODES}
    assert all(account in counted[cluster.primaries(account)[0]] for account in ACCOUNTS)


def test_the_next_primary_counts_for_a_device_that_is_away(cluster):
    for account in ACCOUNTS:
        cluster.make(account, container("a"))
    away = [f"{NODES['sd2']}/sd2"]
    rows = cluster.rows("sd1", "sd3", away=away)
    assert sorted(row.account for row in rows) == ACCOUNTS
    assert cluster.rows("sd2", away=away) == []


def test_a_device_that_is_away_must_be_in_the_ring(cluster):
    with pytest.raises(ConfigError, match=r"no device 10\.0\.0\.9/sd2"):
        cluster.reader("sd1", away=["10.0.0.9/sd2"])


def test_all_replicas_are_counted_on_request(cluster):
    for account in ACCOUNTS:
        cluster.make(account, container("a"))
    assert sorted(row.account for row in cluster.rows(all_replicas=True)) == sorted(2 * ACCOUNTS)


def test_accounts_are_chosen_by_name_and_prefix(cluster):
    for account in ("AUTH_a", "AUTH_b", ".shards_AUTH_a"):
        cluster.make(account, container("a"))
    assert {row.account for row in cluster.rows(prefix="AUTH_")} == {"AUTH_a", "AUTH_b"}
    assert {row.account for row in cluster.rows(accounts=["AUTH_b", "AUTH_none"])} == {"AUTH_b"}


def test_deleted_accounts_are_counted_on_request(cluster):
    for account in ("AUTH_a", "AUTH_b"):
        cluster.make(account, container("a"))
    cluster.delete("AUTH_b")
    assert {row.account for row in cluster.rows()} == {"AUTH_a"}
    assert {row.account for row in cluster.rows(deleted=True)} == {"AUTH_a", "AUTH_b"}


def test_containers_are_read_page_by_page(cluster):
    names = ["\x00hidden", "a", "b", "c", "d"]
    gone = ContainerRow("gone", Timestamp(6).internal, Timestamp(7).internal, 0, 0, deleted=1)
    cluster.make("AUTH_a", *(container(name, objects=1) for name in names), gone)
    cluster.make("AUTH_b", *(container(name, 9, objects=1) for name in names[:2]))
    rows = cluster.rows(containers=True, accounts=["AUTH_a"])
    assert rows == [("AUTH_a", name, "gold", 1, 10) for name in names]
    # A policy that swift.conf does not have is named by its index.
    assert {row.policy for row in cluster.rows(containers=True, accounts=["AUTH_b"])} == {"9"}


def test_a_locked_database_is_reported_and_its_pending_rows_are_counted_later(cluster):
    cluster.make("AUTH_a", container("a"))
    assert len(cluster.rows()) == 1
    first = cluster.primaries("AUTH_a")[0]
    place = cluster.place(first, "AUTH_a")
    broker = AccountBroker(place, Engine(), "AUTH_a")
    broker.refresh()
    broker.put_rows([container("b")])
    broker.close()
    with open(f"{place.directory}/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reader = cluster.reader(first)
        assert list(reader.rows()) == [] and reader.problems == 1
    assert place.directory in cluster.warnings[0]
    assert [row.objects for row in cluster.rows(first)] == [4]


def test_writers_go_on_while_rows_are_read(cluster):
    cluster.make("AUTH_a", *(container(name) for name in "abcdef"))
    first = cluster.primaries("AUTH_a")[0]
    rows = cluster.reader(first, containers=True).rows()
    assert next(rows).container == "a"
    broker = AccountBroker(cluster.place(first, "AUTH_a"), Engine(wait_s=0.0), "AUTH_a")
    broker.refresh()
    broker.put_rows([container("z")])
    broker.merge_pending()
    broker.close()
    assert [row.container for row in rows] == [*"bcdefz"]


def test_partitions_that_the_ring_does_not_have_are_left_out(cluster):
    cluster.make("AUTH_a", container("a"))
    for device in NODES:
        for partition in ("16", "99", "tmp"):
            (cluster.folder / device / device / "accounts" / partition).mkdir(parents=True)
    assert [row.account for row in cluster.rows()] == ["AUTH_a"]
    assert cluster.warnings == []


def test_a_database_in_the_wrong_partition_is_no_account(cluster):
    cluster.make("AUTH_a", container("a"))
    for device in cluster.primaries("AUTH_a"):
        place = cluster.place(device, "AUTH_a")
        for partition in range(16):
            moved = place._replace(partition=str(partition))
            if moved != place:
                shutil.copytree(place.directory, moved.directory)
    assert len(cluster.rows()) == 1


def test_a_broken_database_is_reported_and_the_others_counted(cluster):
    for account in ACCOUNTS:
        cluster.make(account, container("a"))
    first = cluster.primaries(ACCOUNTS[0])[0]
    with open(cluster.place(first, ACCOUNTS[0]).file(), "r+b") as file:
        file.write(b"x" * 4096)
    reader = cluster.reader(first)
    counted = {row.account for row in reader.rows()}
    assert reader.problems == 1 and cluster.place(first, ACCOUNTS[0]).directory in cluster.warnings[0]
    assert counted == {name for name in ACCOUNTS[1:] if cluster.primaries(name)[0] == first}


def test_a_device_that_is_missing_is_reported(cluster):
    (cluster.folder / "sd1" / "sd1").rmdir()
    reader = cluster.reader("sd1")
    assert list(reader.rows()) == [] and reader.problems == 1
    assert "sd1" in cluster.warnings[0]


def test_own_devices_are_found_by_either_address_and_port():
    def device(number, ip, port, replication_ip, replication_port):
        return SimpleNamespace(
            id=number, ip=ip, port=port, replication_ip=replication_ip, replication_port=replication_port
        )

    view = SimpleNamespace(
        devices=(
            device(0, "10.0.0.1", 6202, "10.1.0.1", 6302),
            None,
            device(2, "10.0.0.2", 6202, "10.1.0.2", 6302),
            device(3, "10.0.0.1", 7202, "10.1.0.1", 7302),
        )
    )
    assert own_device_ids(view, "10.0.0.1", 6202) == {0}
    assert own_device_ids(view, "10.1.0.1", 6302) == {0}
    assert own_device_ids(view, "10.0.0.1", 0) == {0, 3}


ROWS = [
    UsageRow("AUTH_a", "a,b", "gold", 1, 10),
    UsageRow("AUTH_a", 'c"\r', "silver", 2, 20),
]


def test_csv_has_stable_columns_and_quotes_names():
    out = io.StringIO()
    write_csv(ROWS, UsageQuery(containers=True), "2026-01-01T00:00:00Z", out)
    assert out.getvalue() == (
        "time,account,container,policy,objects,bytes\n"
        '2026-01-01T00:00:00Z,AUTH_a,"a,b",gold,1,10\n'
        '2026-01-01T00:00:00Z,AUTH_a,"c""\r",silver,2,20\n'
    )
    out = io.StringIO()
    write_csv([], UsageQuery(), "2026-01-01T00:00:00Z", out)
    assert out.getvalue() == "time,account,policy,objects,bytes\n"


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []])
def test_json_is_one_document_with_a_row_a_line(rows):
    out = io.StringIO()
    write_json(rows, UsageQuery(containers=True), "2026-01-01T00:00:00Z", out)
    found = json.loads(out.getvalue())
    assert [(row["account"], row["container"], row["bytes"]) for row in found] == [
        (row.account, row.container, row.bytes) for row in rows
    ]
    assert all(list(row) == ["time", "account", "container", "policy", "objects", "bytes"] for row in found)


def test_rows_are_written_while_databases_are_read():
    out = io.StringIO()

    def rows():
        yield ROWS[0]
        assert "AUTH_a" in out.getvalue()
        yield ROWS[1]

    write_json(rows(), UsageQuery(containers=True), "t", out)
