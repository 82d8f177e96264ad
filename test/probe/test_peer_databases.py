"""Databases replicated between the installed peer and us, in both directions, end equal.

Two nodes with one device each: the peer's servers and replicators on node 1, ours on node 2. Needs root,
because the peer must see an /etc/swift of its own, and rsync, by which the peer moves whole databases.
"""

import http.client
import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest

from swift.aio.supervisor import accepts_connections
from swift.base.hashing import PathHasher
from swift.ring.builder import RingBuilder
from swift.runtime.workers import die_with_parent
from test.support import databases
from test.support.cluster import LiveCluster
from test.support.databases import shard
from test.support.peer import can_hide_etc, environment, needs_peer, peer_command, run_peer
from test.support.processes import free_ports

PEER, OURS = 1, 2
PART_POWER = 2
SWIFT_CONF = """[swift-hash]
swift_hash_path_suffix = mixed

[storage-policy:0]
name = gold
default = yes

[storage-policy:1]
name = silver
"""
HASHER = PathHasher(b"", b"mixed")
ROW = {"x-size": "5", "x-etag": "e", "x-content-type": "t/p"}

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
    pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync"),
]


#: The beginning of an hour that is past: tombstones of a fixed date would be reclaimed some day.
BASE_S = (int(time.time()) // 3600 - 1) * 3600


def stamp(tick):
    return f"{BASE_S + tick:010d}.00000"


class Mixed:
    """Both nodes; ``replicate(kind, node)`` runs one pass."""

    def __init__(self, root):
        self.root = root
        self.etc = root / "etc"
        self.etc.mkdir()
        (self.etc / "swift.conf").write_text(SWIFT_CONF)
        ports = free_ports(5)
        self.rsync_port = ports.pop()
        self.ports = {(kind, node): ports.pop() for kind in ("account", "container") for node in (PEER, OURS)}
        self._children = []
        for kind in ("account", "container"):
            self._write_ring(kind)
            for node in (PEER, OURS):
                self._write_conf(kind, node)
        for node in (PEER, OURS):
            self.device(node).mkdir(parents=True)

    def device(self, node):
        return self.root / f"n{node}" / f"sd{node}"

    def _write_ring(self, kind):
        builder = RingBuilder(PART_POWER, 2, 1)
        for node in (PEER, OURS):
            port = self.ports[kind, node]
            builder.add_device(region=1, zone=node, ip="127.0.0.1", port=port, device=f"sd{node}", weight=1.0)
        builder.rebalance(seed=1)
        builder.write_ring(str(self.etc / f"{kind}.ring.gz"))

    def _conf(self, kind, node):
        return self.etc / f"{kind}-{node}.conf"

    def _write_conf(self, kind, node):
        user = pwd.getpwuid(os.geteuid()).pw_name
        self._conf(kind, node).write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.ports[kind, node]}\nworkers = 0\n"
            f"user = {user}\nswift_dir = {self.etc}\ndevices = {self.root}/n{node}\nmount_check = false\n"
            f"recon_cache_path = {self.root}/n{node}\n"
            f"[pipeline:main]\npipeline = {kind}-server\n[app:{kind}-server]\nuse = egg:swift#{kind}\n"
            f"[{kind}-replicator]\nper_diff = 4\nrecon_cache_path = {self.root}/n{node}\n"
            f"rsync_module = rsync://{{replication_ip}}:{self.rsync_port}/{{device}}\n"
        )

    def start(self):
        modules = "".join(f"[sd{n}]\npath = {self.root}/n{n}\nread only = false\n" for n in (PEER, OURS))
        conf = self.root / "rsyncd.conf"
        user = pwd.getpwuid(os.geteuid()).pw_name
        conf.write_text(
            f"port = {self.rsync_port}\naddress = 127.0.0.1\nuse chroot = false\nuid = {user}\n"
            f"log file = {self.root}/rsyncd.log\n{modules}"
        )
        self._spawn(["rsync", "--daemon", "--no-detach", "--config", str(conf)], "rsyncd")
        for kind in ("account", "container"):
            command = peer_command(
                f"swift-{kind}-server", f"/etc/swift/{kind}-{PEER}.conf", "-v", swift_dir=self.etc
            )
            self._spawn(command, f"{kind}-peer")
            ours = [sys.executable, "-m", f"swift.cli.{kind}_server", str(self._conf(kind, OURS)), "-v"]
            self._spawn(ours, f"{kind}-ours", ours=True)
        for port in (*self.ports.values(), self.rsync_port):
            LiveCluster.await_true(
                lambda port=port: accepts_connections("127.0.0.1", port), f"{port} answers", 60
            )

    def _spawn(self, command, name, *, ours=False):
        with open(self.root / f"{name}.log", "ab") as log:
            self._children.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    env=None if ours else environment(),
                    preexec_fn=die_with_parent,
                )
            )

    def stop(self):
        for child in self._children:
            child.kill()
            child.wait()

    def replicate(self, kind, node, *, may_fail=False):
        """Run one pass of a node's replicator; return its statistics."""
        if node == PEER:
            words = (f"/etc/swift/{kind}-{PEER}.conf", "once", "-v")
            output = run_peer(f"swift-{kind}-replicator", *words, swift_dir=self.etc)
        else:
            command = [
                sys.executable,
                "-m",
                "swift.cli.daemon",
                f"{kind}-replicator",
                str(self._conf(kind, OURS)),
            ]
            done = subprocess.run(
                [*command, "once", "-v"], capture_output=True, text=True, timeout=60, check=False
            )
            output = done.stderr
            assert done.returncode == 0, output
            assert "Traceback" not in output
        facts = json.loads((self.root / f"n{node}" / f"{kind}.recon").read_text())
        assert may_fail or not facts["replication_stats"]["failure"], output[-2000:]
        return facts["replication_stats"]

    def ask(self, kind, node, method, names, headers=None, body=b""):
        part = HASHER.digest(*names[: 1 if kind == "account" else 2])[0] >> (8 - PART_POWER)
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[kind, node], timeout=30)
        try:
            path = f"/sd{node}/{part}/{'/'.join(names)}"
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            response.read()
            return response
        finally:
            connection.close()

    def put_container(self, node, name, tick=1, **headers):
        headers = {"x-timestamp": stamp(tick), "x-backend-storage-policy-index": "0", **headers}
        assert self.ask("container", node, "PUT", ("a", name), headers).status in (201, 202)

    def put_rows(self, node, name, ticks, method="PUT", *, later=0):
        for tick in ticks:
            headers = {"x-timestamp": stamp(tick + later), **ROW}
            assert self.ask("container", node, method, ("a", name, f"o{tick:03}"), headers).status < 300

    # what is on disk

    def folder(self, kind, node, *names):
        digest = HASHER.digest(*names)
        text = digest.hex()
        return self.device(node) / f"{kind}s" / str(digest[0] >> (8 - PART_POWER)) / text[-3:] / text

    def state(self, kind, node, *names):
        """Return the state that must be equal on both nodes: file name, rows, info, shard ranges."""
        (path,) = self.folder(kind, node, *names).glob("*.db")
        connection = sqlite3.connect(path)
        try:
            return [path.name, *(_select(connection, query) for query in QUERIES[kind])]
        finally:
            connection.close()

    def assert_equal(self, kind, *names):
        peers, ours = (self.state(kind, node, *names) for node in (PEER, OURS))
        assert peers == ours
        return ours


def _select(connection, query):
    """Return the rows of a query; a table that an old database of the peer lacks counts as empty."""
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table: shard_range" in str(error):
            return []
        return connection.execute(query.replace("metadata", "'' AS metadata")).fetchall()


QUERIES = {
    "container": (
        "SELECT name, created_at, size, content_type, etag, deleted, storage_policy_index FROM object "
        "ORDER BY name, storage_policy_index",
        "SELECT account, container, created_at, put_timestamp, delete_timestamp, hash, metadata, "
        "storage_policy_index FROM container_info",
        "SELECT name, timestamp, lower, upper, object_count, bytes_used, deleted, state, epoch "
        "FROM shard_range ORDER BY name",
        "SELECT storage_policy_index, object_count, bytes_used FROM policy_stat ORDER BY 1",
    ),
    "account": (
        "SELECT name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted, "
        "storage_policy_index FROM container ORDER BY name",
        "SELECT account, created_at, put_timestamp, delete_timestamp, hash, metadata, container_count, "
        "object_count, bytes_used FROM account_stat",
    ),
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    nodes = Mixed(tmp_path_factory.mktemp("mixed"))
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop()


@pytest.fixture(autouse=True)
def empty_devices(mixed):
    """Every test begins with empty devices; servers notice that by themselves."""
    yield
    for node in (PEER, OURS):
        for path in mixed.device(node).iterdir():
            if path.is_file():
                # The fingerprint of the hash path stays.
                continue
            shutil.rmtree(path)


BOTH = pytest.mark.parametrize(
    ("source", "target"), [(PEER, OURS), (OURS, PEER)], ids=["from peer", "from us"]
)


@BOTH
def test_a_missing_container_is_replicated_completely(mixed, source, target):
    mixed.put_container(source, "c", **{"x-container-meta-color": "blue"})
    mixed.put_rows(source, "c", range(2, 12))
    mixed.put_rows(source, "c", (20,), "DELETE")
    assert mixed.replicate("container", source)["rsync"] == 1
    rows = mixed.assert_equal("container", "a", "c")[1]
    assert len(rows) == 11
    # Each replicator has recorded that the databases are in sync.
    for node in (source, target):
        mixed.replicate("container", node)
        assert mixed.replicate("container", node)["no_change"] == 1


@BOTH
def test_rows_and_metadata_of_both_sides_are_merged(mixed, source, target):
    for node in (source, target):
        mixed.put_container(node, "c")
    mixed.put_rows(source, "c", range(2, 12))
    mixed.put_rows(target, "c", range(12, 20))
    mixed.put_rows(target, "c", (3, 25), "DELETE", later=30)
    post = {"x-timestamp": stamp(30), "x-container-meta-color": "red", "x-container-read": ".r:*"}
    assert mixed.ask("container", target, "POST", ("a", "c"), post).status == 204
    assert mixed.replicate("container", source)["diff"] == 1
    assert mixed.replicate("container", target)["diff"] == 1
    mixed.replicate("container", source)
    _name, rows, facts, *_ = mixed.assert_equal("container", "a", "c")
    assert len(rows) == 19
    assert "red" in facts[0][6]


@BOTH
def test_a_replica_far_behind_is_replaced_and_keeps_its_rows(mixed, source, target):
    for node in (source, target):
        mixed.put_container(node, "c")
    mixed.put_rows(source, "c", range(2, 32))
    mixed.put_rows(target, "c", (50, 51))
    # The peer's timeout is 0.5 ms per row; a request that times out is completed all the same.
    assert mixed.replicate("container", source, may_fail=source == PEER)["remote_merge"] == 1
    mixed.replicate("container", target)
    mixed.replicate("container", source)
    assert len(mixed.assert_equal("container", "a", "c")[1]) == 32


@BOTH
def test_accounts_of_both_sides_are_merged(mixed, source, target):
    for node in (source, target):
        assert mixed.ask("account", node, "PUT", ("a",), {"x-timestamp": stamp(1)}).status == 201
    for node, names in ((source, ("c1", "c2")), (target, ("c3",))):
        for tick, name in enumerate(names, 2):
            headers = {
                "x-put-timestamp": stamp(tick),
                "x-object-count": str(tick),
                "x-bytes-used": "9",
                "x-delete-timestamp": "0",
            }
            assert mixed.ask("account", node, "PUT", ("a", name), headers).status == 201
    gone = {"x-put-timestamp": stamp(2), "x-delete-timestamp": stamp(40), "x-object-count": "0"}
    gone["x-bytes-used"] = "0"
    assert mixed.ask("account", target, "PUT", ("a", "c1"), gone).status == 204
    for node in (source, target, source, target):
        mixed.replicate("account", node)
    assert [row[0] for row in mixed.assert_equal("account", "a")[1]] == ["c1", "c2", "c3"]
    shutil.rmtree(mixed.folder("account", target, "a"))
    assert mixed.replicate("account", source)["rsync"] == 1
    mixed.assert_equal("account", "a")


@BOTH
def test_a_policy_conflict_is_resolved_alike_on_all_nodes(mixed, source, target):
    mixed.put_container(source, "c", 5, **{"x-backend-storage-policy-index": "1"})
    mixed.put_container(target, "c", 9, **{"x-backend-storage-policy-index": "0"})
    mixed.put_rows(target, "c", (12,))
    for node in (source, target, source):
        mixed.replicate("container", node)
    _name, rows, facts, *_ = mixed.assert_equal("container", "a", "c")
    assert facts[0][7] == 1
    assert len(rows) == 1
    # Both put the row on the reconciler's queue, each in its own copy of the same container.
    for node in (source, target, source, target):
        mixed.replicate("container", node)
    for node in (PEER, OURS):
        (item,) = mixed.state("container", node, ".misplaced_objects", str(BASE_S))[1]
        assert item[:5] == ("0:/a/c/o012", stamp(12), 0, "application/x-put", stamp(12))


@BOTH
def test_a_sharded_container_stays_sharded(mixed, source, target):
    mixed.put_container(source, "c")
    mixed.put_rows(source, "c", range(2, 6))
    mixed.replicate("container", source)
    for node in (source, target):
        # Merges what is pending before the files are changed behind the servers' backs.
        assert mixed.ask("container", node, "HEAD", ("a", "c")).status == 204
        shard(mixed.folder("container", node, "a", "c"), "a", "c", epoch=stamp(100))
    for node in (source, target):
        mixed.replicate("container", node)
    name, rows, _facts, ranges, _counts = mixed.assert_equal("container", "a", "c")
    assert name.endswith(f"_{stamp(100)}.db")
    assert (rows, len(ranges)) == ([], 3)
    shutil.rmtree(mixed.folder("container", target, "a", "c"))
    mixed.replicate("container", source)
    assert mixed.assert_equal("container", "a", "c")[0] == name
    for node in (source, target):
        response = mixed.ask("container", node, "HEAD", ("a", "c"))
        assert response.getheader("x-backend-sharding-state") == "sharded"


@BOTH
def test_shard_ranges_are_merged_before_the_split(mixed, source, target):
    for node in (source, target):
        mixed.put_container(node, "c")
    ranges = [
        {
            "name": f".shards_a/c-{n}",
            "timestamp": stamp(50),
            "lower": low,
            "upper": high,
            "state": 10,
            "meta_timestamp": stamp(50),
            "state_timestamp": stamp(50),
            "epoch": None,
            "deleted": 0,
            "object_count": 3,
            "bytes_used": 4,
            "reported": 0,
            "tombstones": 1,
        }
        for n, (low, high) in enumerate((("", "m"), ("m", "")))
    ]
    for node, item in zip((source, target), ranges, strict=True):
        headers = {"x-timestamp": stamp(60), "x-backend-record-type": "shard"}
        body = json.dumps([item]).encode()
        assert mixed.ask("container", node, "PUT", ("a", "c"), headers, body).status == 202
    mixed.replicate("container", source)
    assert len(mixed.assert_equal("container", "a", "c")[3]) == 2


@BOTH
@pytest.mark.parametrize("age", databases.OLD_CONTAINERS)
def test_container_databases_of_every_age(mixed, source, target, age):
    folder = mixed.folder("container", source, "a", "c")
    folder.mkdir(parents=True)
    databases.make_old_container(folder / f"{folder.name}.db", age)
    mixed.replicate("container", source)
    mixed.put_rows(target, "c", (7,))
    for node in (target, source, target):
        mixed.replicate("container", node)
    assert [row[0] for row in mixed.assert_equal("container", "a", "c")[1]] == ["o007", "o1", "o2"]


@BOTH
@pytest.mark.parametrize("age", databases.OLD_ACCOUNTS)
def test_account_databases_of_every_age(mixed, source, target, age):
    folder = mixed.folder("account", source, "a")
    folder.mkdir(parents=True)
    databases.make_old_account(folder / f"{folder.name}.db", age)
    mixed.replicate("account", source)
    row = {"x-put-timestamp": stamp(7), "x-object-count": "1", "x-bytes-used": "9", "x-delete-timestamp": "0"}
    assert mixed.ask("account", target, "PUT", ("a", "c7"), row).status == 201
    for node in (target, source, target):
        mixed.replicate("account", node)
    assert [row[0] for row in mixed.assert_equal("account", "a")[1]] == ["c1", "c2", "c7"]


@pytest.mark.parametrize("kind", ["account", "container"])
def test_a_server_of_the_peer_rejects_reports_of_missing_databases_harmlessly(mixed, kind):
    connection = http.client.HTTPConnection("127.0.0.1", mixed.ports[kind, PEER], timeout=30)
    headers = {"X-Backend-Lost-Partitions": "true", "Content-Type": "application/json"}
    try:
        connection.request("REPLICATE", f"/sd{PEER}/1", b"[1,2]", headers)
        assert connection.getresponse().status == 400
    finally:
        connection.close()
    mixed.replicate(kind, OURS)
