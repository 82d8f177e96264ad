"""The peer's replicator and ours over one tree in turn: each finds nothing to do after the other.

One node has our object server, the other the peer's. Replicators and reconstructors of both kinds bring
objects from either to the other. Needs root, because the peer must see an /etc/swift of its own.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from array import array

import pytest

from swift.aio.supervisor import accepts_connections
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from test.probe.test_peer_ssync import GOLDEN, Nodes, name_in, packed_nodes
from test.support.checks import unpack
from test.support.peer import can_hide_etc, environment, needs_peer, peer_command, record, run_peer
from test.support.processes import free_ports

OURS, PEERS = 0, 1

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
    pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed"),
]


class MixedNodes(Nodes):
    """Node 0 has our object server, node 1 the peer's; an rsync daemon serves both."""

    def __init__(self, root, method="rsync", **more):
        super().__init__(root, **{"packed": packed_nodes(OURS), **more})
        self.method = method
        #: Nodes whose devices rsync does not reach.
        self.without_rsync = ()
        [self.rsync_port] = free_ports(1)

    def conf(self, node):
        path = super().conf(node)
        module = f"rsync://127.0.0.1:{self.rsync_port}/{{device}}"
        recon = self.root / f"recon{node}"
        recon.mkdir(exist_ok=True)
        text = path.read_text().replace(f"recon_cache_path = {self.root}\n", f"recon_cache_path = {recon}\n")
        text = text.replace("sync_method = ssync", f"sync_method = {self.method}\nrsync_module = {module}")
        path.write_text(text)
        return path

    def start(self):
        self.conf(OURS), self.conf(PEERS)
        self._start_rsync()
        ours = [sys.executable, "-m", "swift.cli.object_server", str(self.etc / "node0.conf"), "-v"]
        with open(self.root / "node0.log", "ab") as log:
            self._children.append(subprocess.Popen(ours, stdout=log, stderr=log))
        words = peer_command("swift-object-server", "/etc/swift/node1.conf", "-v", swift_dir=self.etc)
        with open(self.root / "peer1.txt", "ab") as log:
            child = subprocess.Popen(words, stdout=log, stderr=log, env=environment(), start_new_session=True)
        self._children.append(child)
        deadline = time.monotonic() + 60
        while not all(accepts_connections("127.0.0.1", port) for port in (*self.ports, self.rsync_port)):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def _start_rsync(self):
        conf = self.root / "rsyncd.conf"
        modules = "".join(
            f"[{path.name}]\npath = {self.root}/node{node}\nread only = no\n"
            for node in {OURS, PEERS} - set(self.without_rsync)
            for path in sorted((self.root / f"node{node}").iterdir())
        )
        head = (
            f"uid = {os.getuid()}\ngid = {os.getgid()}\nuse chroot = no\nlog file = {self.root}/rsyncd.log\n"
        )
        conf.write_text(head + modules)
        words = ["rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={self.rsync_port}"]
        self._children.append(subprocess.Popen(words, stdin=subprocess.DEVNULL))

    def ours(self, node, daemon="object-replicator"):
        """Run one pass of our daemon for a node; return its output and recon data."""
        command = [
            sys.executable,
            "-m",
            "swift.cli.daemon",
            daemon,
            str(self.etc / f"node{node}.conf"),
            "-o",
            "-v",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert "Traceback" not in done.stderr + done.stdout
        return done.stdout + done.stderr, self.recon(node)

    def peer_s(self, node, daemon="swift-object-replicator"):
        """Run one pass of the peer's daemon for a node; return its output and recon data."""
        said = run_peer(daemon, f"/etc/swift/node{node}.conf", "once", "-v", swift_dir=self.etc)
        return said, self.recon(node)

    def recon(self, node):
        path = self.root / f"recon{node}/object.recon"
        return json.loads(path.read_text()) if path.exists() else {}


@pytest.fixture
def make(tmp_path):
    made = []

    def start(method, rings):
        nodes = MixedNodes(tmp_path, method)
        made.append(nodes)
        rings(nodes)
        nodes.start()
        return nodes

    yield start
    for nodes in made:
        nodes.stop()


def fill(nodes, node, device, offset=0):
    """Objects of every kind: plain, large, with metadata, with a newer content type, expiring, deleted."""
    now = time.time() - 5000 + offset
    for number in range(24):
        path = f"/{device}/{number % 4}/AUTH_a/c/{name_in(number % 4, f'o{offset}-{number}')}"
        put = {"X-Timestamp": f"{now + number:.5f}", "Content-Type": "text/plain", "X-Object-Meta-A": "1"}
        if number % 6 == 5:
            put["X-Delete-At"] = str(int(time.time()) + 10_000)
        body = os.urandom(200_000) if number == 7 else f"body {number}".encode()
        assert nodes.ask(node, "PUT", path, put, body)[0] == 201
        if number % 3 == 1:
            post = {"X-Timestamp": f"{now + 100 + number:.5f}", "X-Object-Meta-New": "1"}
            if number % 6 == 1:
                post["Content-Type"] = "image/png"
            assert nodes.ask(node, "POST", path, post)[0] == 202
        if number % 5 == 3:
            assert nodes.ask(node, "DELETE", path, {"X-Timestamp": f"{now + 200 + number:.5f}"})[0] == 204


def assert_equal(nodes, said):
    for partition in range(4):
        ours = nodes.hashes(OURS, "sda", partition)
        assert ours, said
        assert ours == nodes.hashes(PEERS, "sdb", partition), said


def two_replicas(nodes):
    nodes.write_ring("object", 2, [(0, "sda"), (1, "sdb")])


@pytest.mark.parametrize("method", ["rsync", "ssync"])
def test_each_replicator_finds_nothing_to_do_after_the_other(make, method):
    nodes = make(method, two_replicas)
    fill(nodes, OURS, "sda")
    said, facts = nodes.ours(OURS)
    assert facts["replication_stats"]["failure"] == 0, said
    assert_equal(nodes, said)
    # The peer's replicator runs for its node and for ours. It does not see packed records.
    for node in (PEERS,) if nodes.packed else (PEERS, OURS):
        said, facts = nodes.peer_s(node)
        stats = facts["replication_stats"]
        assert (stats["rsync"], stats["failure"], stats["suffix_sync"]) == (0, 0, 0), said
        assert stats["hashmatch"] == 4, said
    fill(nodes, PEERS, "sdb", 1000)
    said, facts = nodes.peer_s(PEERS)
    assert_equal(nodes, said)
    for node in (OURS, PEERS):
        said, facts = nodes.ours(node)
        stats = facts["replication_stats"]
        assert (stats["rsync"], stats["failure"], stats["suffix_sync"]) == (0, 0, 0), said
        assert stats["hashmatch"] == 4, said
    assert "Traceback" not in nodes.logs()


@pytest.mark.parametrize("method", ["rsync", "ssync"])
@pytest.mark.parametrize("by_us", [True, False], ids=["by us", "by the peer"])
def test_a_handoff_is_reverted_to_a_server_of_the_other_kind(make, method, by_us):
    def rings(nodes):
        nodes.write_rows("object", [(1, "sdb")] if by_us else [(0, "sda")])
        for node, device in ((0, "sda"), (1, "sdb")):
            (nodes.root / f"node{node}" / device).mkdir(exist_ok=True)
        table_of_both(nodes, home=PEERS if by_us else OURS)

    nodes = make(method, rings)
    source, target = (OURS, PEERS) if by_us else (PEERS, OURS)
    devices = {OURS: "sda", PEERS: "sdb"}
    fill(nodes, source, devices[source])
    before = {part: nodes.hashes(source, devices[source], part) for part in range(4)}
    # Its own replicator prepares the device.
    said, _facts = nodes.ours(target) if not by_us else nodes.peer_s(target)
    for _ in range(2):
        said, _facts = nodes.ours(source) if by_us else nodes.peer_s(source)
    assert not any(nodes.hashes(source, devices[source], part) for part in range(4)), said
    left = list((nodes.root / f"node{source}" / devices[source] / "objects").glob("[0-9]*"))
    assert left == [], said
    assert {part: nodes.hashes(target, devices[target], part) for part in range(4)} == before, said


@pytest.mark.parametrize("by_us", [True, False], ids=["by our replicator", "by the peer's"])
def test_a_handoff_stays_where_rsync_does_not_reach_a_packed_node(make, by_us):
    def rings(nodes):
        nodes.packed, nodes.without_rsync = (OURS,), (OURS,)
        for node, device in ((0, "sda"), (1, "sdb")):
            (nodes.root / f"node{node}" / device).mkdir()
        table_of_both(nodes, home=OURS)

    nodes = make("rsync", rings)
    fill(nodes, PEERS, "sdb")
    before = {part: nodes.hashes(PEERS, "sdb", part) for part in range(4)}
    said, _facts = nodes.ours(PEERS) if by_us else nodes.peer_s(PEERS)
    assert "Unknown module" in said
    assert {part: nodes.hashes(PEERS, "sdb", part) for part in range(4)} == before
    assert not any(nodes.hashes(OURS, "sda", part) for part in range(4))


def table_of_both(nodes, home):
    """Write a ring of one replica on the primary node that has the other device, too."""
    records = tuple(record(node, nodes.ports[node], device) for node, device in ((0, "sda"), (1, "sdb")))
    # The last partitions belong to the other device, so that the ring contains it.
    row = array("H", [home] * 12 + [1 - home] * 4)
    save_table(RingTable(records=records, rows=(row,), part_shift=28), str(nodes.etc / "object.ring.gz"))


def golden_archives(nodes):
    """Unpack the golden tree, its first device on our node; return the names by index."""
    tree = json.loads((GOLDEN / "tree-ec42.json").read_text())
    devices = [primary["device"] for primary in tree["primaries"]]
    unpack(GOLDEN / "tree-ec42.tar.gz", nodes.root / "node1")
    for name, file in tree["files"].items():
        for attribute, value in file.get("xattrs_hex", {}).items():
            os.setxattr(nodes.root / "node1" / name, attribute, bytes.fromhex(value))
    os.rename(nodes.root / "node1" / devices[0], nodes.root / "node0" / devices[0])
    nodes.write_rows("object-1", [(0, devices[0]), *((1, device) for device in devices[1:])])
    return devices


def test_misplaced_archives_are_reverted_to_the_peer_committed_or_not(make):
    devices = []
    nodes = make("rsync", lambda nodes: devices.extend(golden_archives(nodes)))
    own, home = nodes.root / "node0" / devices[0], nodes.root / "node1" / devices[3]
    before = {path.name for path in home.glob("objects-1/8/*/*/*#3*.data")}
    assert any(name.endswith("#3.data") for name in before)
    shutil.copytree(home / "objects-1/8", own / "objects-1/8", dirs_exist_ok=True)
    (own / "objects-1/8/hashes.pkl").unlink(missing_ok=True)
    shutil.rmtree(home / "objects-1")
    said, _facts = nodes.ours(OURS, "object-reconstructor")
    after = {path.name for path in home.glob("objects-1/8/*/*/*#3*.data")}
    assert {name.partition("#")[0] for name in after} == {name.partition("#")[0] for name in before}, said
    assert any(name.endswith("#3.data") for name in after), said
    # Of an object the newest archive goes first; what is older follows in the next pass. Where the receiver
    # wants it without what was posted to it, one more pass finds out that it has that.
    for _ in range(2):
        said, _facts = nodes.ours(OURS, "object-reconstructor")
    assert list(own.glob("objects-1/8/*/*/*#3#d.data")) == [], said


def test_our_reconstructor_rebuilds_an_archive_from_and_on_devices_of_the_peer(make):
    devices = []
    nodes = make("rsync", lambda nodes: devices.extend(golden_archives(nodes)))
    before = nodes.hashes(PEERS, devices[3], 8, policy=1)
    folder = nodes.root / "node1" / devices[3] / "objects-1/8"
    files = {path.name: path.read_bytes() for path in folder.glob("*/*/*#3*.data")}
    shutil.rmtree(nodes.root / "node1" / devices[3])
    (nodes.root / "node1" / devices[3]).mkdir()
    said, facts = nodes.ours(OURS, "object-reconstructor")
    after = nodes.hashes(PEERS, devices[3], 8, policy=1)
    rebuilt = {path.name: path.read_bytes() for path in folder.glob("*/*/*.data")}
    # What was durable here is, and what was committed elsewhere only is durable now; the rest never was.
    assert {name for name in files if name.endswith("#d.data")} <= set(rebuilt), said
    for name, body in rebuilt.items():
        assert name.endswith("#3#d.data"), said
        assert body == files.get(name, files.get(name.replace("#d", ""))), said
    for suffix, found in after.items():
        assert found.get(None) == before[suffix].get(None), said
    assert facts["object_reconstruction_last"] > 0
    # The peer's reconstructor has nothing left to do for this device.
    said, _facts = nodes.peer_s(OURS, "swift-object-reconstructor")
    assert nodes.hashes(PEERS, devices[3], 8, policy=1) == after, said
