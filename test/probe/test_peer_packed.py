"""One policy on a node of the peer, a node of ours with files and a packed one.

Objects are changed while each node in turn is down, and brought to it by the replicator of each other node,
by rsync and by SSYNC. Needs root, because the peer must see an /etc/swift of its own.
"""

import os
import pickle
import shutil
import signal
import subprocess

import pytest

from swift.base.hashing import PathHasher
from swift.ring.ring import Ring
from test.probe.test_peer_ec import Mixed
from test.support.peer import can_hide_etc, needs_peer, run, run_peer
from test.support.processes import free_ports

PEERS, FILES, PACKED = 1, 2, 3
#: The node that is down, and the one whose replicator runs first afterwards.
TURNS = [(PACKED, PEERS), (PEERS, PACKED), (FILES, PACKED), (PACKED, FILES), (FILES, PEERS), (PEERS, FILES)]
SIZES = (0, 10, 3000, 70_000, 1_200_000)

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
    pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed"),
]


class Trio(Mixed):
    """Three nodes of two devices; daemons run on request only."""

    def __init__(self, root, method):
        # The proxy is to write to a node as soon as it is back. One that it still avoids would get nothing,
        # and all copies could be on the node that is down next.
        defaults = f"error_suppression_limit = {10**6}"
        super().__init__(
            root,
            nodes=3,
            disks=2,
            packed=False,
            packed_nodes=(PACKED,),
            rest_s=self.AT_REST_S,
            defaults=defaults,
        )
        self.method = method
        self.bodies, self.metadata, self.deleted = {}, {}, set()

    def start(self):
        super().start()
        for node in self.plan.node_numbers():
            self.kill(f"daemons-{node}")
        self._start_rsync()
        self.peer = None
        self.down(PEERS)
        self.up(PEERS)
        self.ring = Ring(str(self.plan.etc / "object.ring.gz"))
        assert self.request("PUT", "c").status == 201
        for node in self.plan.node_numbers():
            # rsync needs a directory that a node's own replicator makes.
            self.replicate(node)

    def _start_rsync(self):
        [port] = free_ports(1)
        conf = self.plan.root / "rsyncd.conf"
        modules = "".join(
            f"[{name}]\npath = {self.plan.devices(node)}\nread only = no\n"
            for node in self.plan.node_numbers()
            for name in self.plan.device_names(node)
        )
        conf.write_text(f"uid = {os.getuid()}\ngid = {os.getgid()}\nuse chroot = no\n{modules}")
        words = ["rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={port}"]
        self._peers.append(subprocess.Popen(words, stdin=subprocess.DEVNULL))
        for conf in (self.plan.etc / "object-server").glob("*.conf"):
            module = f"rsync_module = rsync://{self.plan.storage_ip}:{port}/{{device}}"
            # The packed node has the option as well, but ignores it.
            text = conf.read_text().replace("sync_method = ssync", f"sync_method = {self.method}\n{module}")
            conf.write_text(text)

    def down(self, node):
        if node == PEERS and self.peer is not None:
            self.peer.send_signal(signal.SIGTERM)
            self.peer.wait(20)
        else:
            self.kill(f"object-{node}")

    def up(self, node):
        if node == PEERS:
            self.start_peer(node)
            self.peer = self._peers[-1]
        else:
            self.restart(f"object-{node}")

    def replicate(self, node):
        """Run one pass of the node's own replicator; return its output."""
        if node != PEERS:
            return self.run_once("object-replicator", node)
        conf = self.plan.etc / "object-server" / f"{node}.conf"
        said = run_peer("swift-object-replicator", conf, "once", "-v", swift_dir=self.plan.etc)
        assert "Traceback" not in said, said
        return said

    def change(self, turn):
        """Put, replace, post to and delete objects of all sizes."""
        for number in range(20):
            name = f"o{turn}-{number}" if number < 10 else f"o{number}"
            body = f"{turn} {name} ".encode().ljust(SIZES[number % 5], b".")[: SIZES[number % 5]]
            metadata = {"X-Object-Meta-Turn": str(turn), "Content-Type": "text/plain"}
            assert self.request("PUT", f"c/{name}", metadata, body).status == 201
            self.bodies[name], self.metadata[name] = body, metadata
            self.deleted.discard(name)
        names = sorted(self.bodies)
        for name in names[turn::7]:
            more = {"X-Object-Meta-Turn": f"post {turn}", "Content-Type": "image/png"}
            assert self.request("POST", f"c/{name}", more).status == 202
            self.metadata[name] = more
        for name in names[turn + 3 :: 9]:
            assert self.request("DELETE", f"c/{name}").status == 204
            del self.bodies[name], self.metadata[name]
            self.deleted.add(name)

    def ask(self, method, node, path):
        """Send a request to the object server of a ring's node."""
        response = self.raw(method, f"/{node.device}/{path}", port=node.port)
        assert response.status in (200, 404), (node, response)
        return response

    def hashes(self, node, part):
        return pickle.loads(self.ask("REPLICATE", node, part).body)

    def number(self, node):
        """Return the number of a ring's node in the plan."""
        return next(n for n in self.plan.node_numbers() if self.plan.port("object", n) == node.port)

    def differing(self, numbers):
        """Return the partitions whose primaries among these nodes have different objects."""
        parts = range(2**6)
        of = {part: [n for n in self.ring.primaries(part) if self.number(n) in numbers] for part in parts}
        found = {part: [self.hashes(node, part) for node in nodes] for part, nodes in of.items()}
        return [part for part, hashes in found.items() if any(each != hashes[0] for each in hashes)]

    def misplaced_partitions(self):
        """Return the partitions with objects on devices that are not their primaries."""
        nodes = [node for node in self.ring.view().devices if node]
        return [
            (node.device, part)
            for part in range(2**6)
            for node in nodes
            if node.device not in {each.device for each in self.ring.primaries(part)}
            and self.hashes(node, part)
        ]

    def compare(self):
        """Fail unless every primary has every object as it was acknowledged."""
        hasher = PathHasher(b"", b"test")
        for name in {*self.bodies, *self.deleted}:
            part = self.ring.partition_of(hasher.digest("AUTH_test", "c", name))
            for node in self.ring.primaries(part):
                response = self.ask("GET", node, f"{part}/AUTH_test/c/{name}")
                if name in self.deleted:
                    assert response.status == 404, (name, node)
                    continue
                assert (response.status, response.body) == (200, self.bodies[name]), (name, node)
                for header, value in self.metadata[name].items():
                    assert response.headers[header.lower()] == value, (name, node, header)


@pytest.mark.parametrize("method", ["rsync", "ssync"])
def test_three_kinds_of_nodes_replicate_missed_changes_to_each_other(tmp_path, method):
    live = Trio(tmp_path / "c", method)
    try:
        live.start()
        for turn, (down, pusher) in enumerate(TURNS):
            live.down(down)
            live.change(turn)
            live.up(down)
            said = live.replicate(pusher)
            assert live.differing((down, pusher)) == [], (down, pusher, said)
        for _ in range(3):
            for node in (PEERS, FILES, PACKED):
                live.replicate(node)
        assert live.differing((PEERS, FILES, PACKED)) == []
        assert live.misplaced_partitions() == []
        conf = live.plan.etc / "object-server"
        run_peer("swift-object-auditor", conf / f"{PEERS}.conf", "once", "-v", swift_dir=live.plan.etc)
        for node in (FILES, PACKED):
            live.run_once("object-auditor", node)
        assert live.files("quarantined/*/*") == []
        live.compare()
        verified = run("swift-object-volumes", "--conf", conf / f"{PACKED}.conf", "verify")
        assert verified.returncode == 0, verified
        assert "Traceback" not in live.log_text()
    finally:
        live.stop()
