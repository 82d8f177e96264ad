"""The peer's replicator and reconstructor push objects to our object server by SSYNC.

Afterwards both sides give the same suffix hashes, which is how the daemons themselves find out that nothing
is left to do. Needs root, because the peer must see an /etc/swift of its own.
"""

import http.client
import itertools
import json
import os
import pickle
import pwd
import re
import shutil
import subprocess
import sys
import time
from array import array
from pathlib import Path

import pytest

from swift.aio.supervisor import accepts_connections
from swift.base.hashing import PathHasher
from swift.ring.builder import RingBuilder
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from test.support.checks import unpack
from test.support.peer import can_hide_etc, needs_peer, record, run_peer
from test.support.processes import free_ports
from test.support.tiers import PACKED_EVERYWHERE

GOLDEN = Path(__file__).parent.parent / "golden/data/objects"
SWIFT_CONF = """[swift-hash]
swift_hash_path_prefix = goldenprefix
swift_hash_path_suffix = goldensuffix

[storage-policy:0]
name = gold
default = yes

[storage-policy:1]
name = ec42
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 4
ec_num_parity_fragments = 2
ec_object_segment_size = 65536
"""

HASHER = PathHasher(b"goldenprefix", b"goldensuffix")

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]


def name_in(partition, stem):
    """Return an object name in ``/AUTH_a/c`` that begins with ``stem``, in a partition of rings of 16."""
    names = (f"{stem}-{number}" for number in itertools.count())
    return next(name for name in names if HASHER.digest("AUTH_a", "c", name)[0] >> 4 == partition)


def packed_nodes(*nodes):
    """Return the nodes if the run is about the packed engine, else none."""
    return nodes if PACKED_EVERYWHERE else ()


class Nodes:
    """Our object servers on directories of devices, and what tells the peer about them.

    The nodes of ``packed`` have the packed engine, and a directory of configuration of their own.
    """

    COUNT = 2

    def __init__(self, root, *, pipeline="object-server", packed=None):
        self.root = root
        # The peer's daemons run over the first node's files.
        self.packed = packed_nodes(1) if packed is None else packed
        self.pipeline = pipeline
        self.etc = root / "etc"
        self.etc.mkdir()
        (self.etc / "swift.conf").write_text(SWIFT_CONF)
        self.ports = free_ports(self.COUNT)
        self._children = []
        for number in range(self.COUNT):
            (root / f"node{number}").mkdir()

    def write_ring(self, name, replicas, devices):
        """``devices`` are (node, device) pairs; a partition's order is as the ring makes it."""
        builder = RingBuilder(4, replicas, 1)
        for node, device in devices:
            (self.root / f"node{node}" / device).mkdir(exist_ok=True)
            builder.add_device(
                region=1, zone=1, ip="127.0.0.1", port=self.ports[node], device=device, weight=100.0
            )
        builder.rebalance(seed=1)
        builder.write_ring(str(self.etc / f"{name}.ring.gz"))

    def write_rows(self, name, devices):
        """Write a ring that assigns every partition to ``devices``, in this order."""
        records = tuple(
            record(number, self.ports[node], device) for number, (node, device) in enumerate(devices)
        )
        rows = tuple(array("H", [number] * 16) for number in range(len(devices)))
        table = RingTable(records=records, rows=rows, part_shift=28)
        save_table(table, str(self.etc / f"{name}.ring.gz"))

    def swift_dir(self, node):
        """Return the directory of a node's rings and of its swift.conf."""
        if node not in self.packed:
            return self.etc
        own = self.root / f"etc{node}"
        own.mkdir(exist_ok=True)
        text = re.sub(
            r"(?m)^\[storage-policy:(.)\]\n(?=(.*\n)(policy_type = .*)?)",
            lambda match: (
                f"{match[0]}diskfile_module = egg:swift#"
                f"{'erasure_coding' if match[3] else 'replication'}.packed\n"
            ),
            (self.etc / "swift.conf").read_text(),
        )
        (own / "swift.conf").write_text(text)
        for ring in self.etc.glob("*.ring.gz"):
            if not (own / ring.name).exists():
                (own / ring.name).symlink_to(ring)
        return own

    def conf(self, node):
        path = self.etc / f"node{node}.conf"
        user = pwd.getpwuid(os.geteuid()).pw_name
        path.write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.ports[node]}\nworkers = 0\nuser = {user}\n"
            f"swift_dir = {self.swift_dir(node)}\ndevices = {self.root}/node{node}\nmount_check = false\n"
            f"recon_cache_path = {self.root}\nreclaim_age = 604800\n"
            f"[pipeline:main]\npipeline = {self.pipeline}\n"
            "[app:object-server]\nuse = egg:swift#object\n[filter:recon]\nuse = egg:swift#recon\n"
            f"[object-replicator]\nsync_method = ssync\ninterval = 1\nrecon_cache_path = {self.root}\n"
            f"[object-reconstructor]\ninterval = 1\nrecon_cache_path = {self.root}\n"
        )
        return path

    def start(self):
        for node in (0, 1):
            command = [sys.executable, "-m", "swift.cli.object_server", str(self.conf(node)), "-v"]
            with open(self.root / f"node{node}.log", "ab") as log:
                self._children.append(subprocess.Popen(command, stdout=log, stderr=log))
        deadline = time.monotonic() + 20
        while not all(accepts_connections("127.0.0.1", port) for port in self.ports):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def ask(self, node, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[node], timeout=20)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def hashes(self, node, device, partition, policy=0):
        headers = {"X-Backend-Storage-Policy-Index": str(policy)}
        return pickle.loads(self.ask(node, "REPLICATE", f"/{device}/{partition}", headers)[1])

    def logs(self):
        return "\n".join(path.read_text() for path in self.root.glob("node*.log"))

    def stop(self):
        for child in self._children:
            child.terminate()
        for child in self._children:
            child.wait(15)


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path)
    yield made
    made.stop()


def test_the_peer_s_replicator_pushes_everything_to_our_node(nodes):
    nodes.write_ring("object", 2, [(0, "sda"), (1, "sdb")])
    nodes.start()
    # No timestamp is ahead of the servers' clocks.
    now = time.time() - 300
    for number in range(40):
        path = f"/sda/{number % 3}/AUTH_a/c/{name_in(number % 3, f'o{number}')}"
        stamp = {"X-Timestamp": f"{now + number:.5f}", "X-Object-Meta-N": str(number)}
        put = {**stamp, "Content-Type": "text/plain", "X-Object-Sysmeta-S": "s"}
        body = os.urandom(300_000) if number == 7 else f"body {number}".encode()
        assert nodes.ask(0, "PUT", path, put, body)[0] == 201
        if number % 4 == 1:
            post = {"X-Timestamp": f"{now + 100 + number:.5f}", "X-Object-Meta-New": "1"}
            if number % 8 == 1:
                post["Content-Type"] = "image/png"
            assert nodes.ask(0, "POST", path, post)[0] == 202
        if number % 5 == 3:
            assert nodes.ask(0, "DELETE", path, {"X-Timestamp": f"{now + 200 + number:.5f}"})[0] == 204
    output = run_peer("swift-object-replicator", "/etc/swift/node0.conf", "once", "-v", swift_dir=nodes.etc)
    for partition in range(3):
        ours = nodes.hashes(1, "sdb", partition)
        assert ours, output
        assert ours == nodes.hashes(0, "sda", partition), output
    for number in (2, 7):
        path = f"{number % 3}/AUTH_a/c/{name_in(number % 3, f'o{number}')}"
        assert nodes.ask(1, "GET", f"/sdb/{path}") == nodes.ask(0, "GET", f"/sda/{path}")
    assert "Traceback" not in nodes.logs()


def test_the_peer_s_reconstructor_rebuilds_a_lost_archive_on_our_device(nodes):
    tree = json.loads((GOLDEN / "tree-ec42.json").read_text())
    unpack(GOLDEN / "tree-ec42.tar.gz", nodes.root / "node1")
    for name, file in tree["files"].items():
        for attribute, value in file.get("xattrs_hex", {}).items():
            os.setxattr(nodes.root / "node1" / name, attribute, bytes.fromhex(value))
    devices = [primary["device"] for primary in tree["primaries"]]
    # The peer's daemon runs for one device; all others are ours.
    os.rename(nodes.root / "node1" / devices[0], nodes.root / "node0" / devices[0])
    nodes.write_rows("object-1", [(0, devices[0]), *((1, device) for device in devices[1:])])
    nodes.start()
    before = nodes.hashes(1, devices[3], 8, policy=1)
    shutil.rmtree(nodes.root / "node1" / devices[3])
    (nodes.root / "node1" / devices[3]).mkdir()
    output = run_peer(
        "swift-object-reconstructor", "/etc/swift/node0.conf", "once", "-v", swift_dir=nodes.etc
    )
    after = nodes.hashes(1, devices[3], 8, policy=1)
    # What is durable elsewhere is rebuilt; what never was is not offered.
    rebuilt = {suffix: found[3] for suffix, found in after.items() if 3 in found}
    uncommitted = {suffix for suffix in rebuilt if before[suffix].get(3) != rebuilt[suffix]}
    assert len(rebuilt) == 5, output
    assert len(uncommitted) == 1, output
    for suffix, found in after.items():
        assert found.get(None) == before[suffix].get(None), output
    assert "Traceback" not in nodes.logs()
