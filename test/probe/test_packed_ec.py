"""Erasure coding 4+2 on packed devices and on ones with files: a node dies, a device is lost.

Afterwards every primary device has its archive of every object, byte for byte as it was, and a tombstone of
every deleted one.
"""

from collections import Counter

import pytest

from swift.base.hashing import PathHasher
from swift.ring.ring import Ring
from test.support.cluster import LiveCluster
from test.support.peer import run

pytestmark = pytest.mark.process
#: Archives of the last two are files: an archive is about a fourth of its object.
SIZES = (0, 1, 3000, 70_000, 400_000, 5_000_000, 6_000_001)
HASHER = PathHasher(b"", b"test")
#: The node that dies, and the one that loses a device: archives go from packed nodes and from files to both.
PACKED_NODES = (1, 3)


class Coded(LiveCluster):
    """Four nodes of two devices each, two of them packed, whose daemons run on request."""

    def __init__(self, root):
        super().__init__(root, nodes=4, disks=2, ec="4+2", packed=False, packed_nodes=PACKED_NODES)
        self.bodies, self.deleted = {}, set()

    def start(self):
        super().start()
        for node in self.plan.node_numbers():
            self.kill(f"daemons-{node}")
        self.ring = Ring(str(self.plan.etc / "object-1.ring.gz"))
        assert self.request("PUT", "c", {"X-Storage-Policy": "ec"}).status == 201

    def put(self, name, version=0):
        size = SIZES[len(self.bodies) % len(SIZES)]
        body = (f"{name} {version} ".encode() * (size // 8 + 1))[:size]
        assert self.request("PUT", f"c/{name}", body=body).status == 201
        self.bodies[name] = body

    def delete(self, name):
        assert self.request("DELETE", f"c/{name}").status == 204
        del self.bodies[name]
        self.deleted.add(name)

    def archives(self):
        """Return (device, hash, index) → bytes of the durable archives."""
        return {
            (each.device.name, each.hash, int(each.name.split("#")[1])): each.body()
            for each in self.stored(policy=1)
            if each.name.endswith("#d.data")
        }

    def reconstruct(self):
        """Run passes of all nodes until nothing changes."""
        for _ in range(6):
            before = self.archives()
            for node in self.plan.node_numbers():
                self.run_once("object-reconstructor", node)
            if self.archives() == before:
                return
        raise AssertionError("it does not come to rest")

    def check(self):
        """Fail unless the primaries, and no other devices, have exactly the expected archives."""
        found, tombstones = {}, Counter()
        for device, object_hash, index in self.archives():
            found.setdefault(object_hash, {})[index] = device
        for each in self.stored(policy=1, suffix=".ts"):
            tombstones[each.hash, each.device.name] += 1
        expected, gone = {}, Counter()
        for name in {*self.bodies, *self.deleted}:
            digest = HASHER.digest("AUTH_test", "c", name)
            devices = [node.device for node in self.ring.primaries(self.ring.partition_of(digest))]
            if name in self.bodies:
                expected[digest.hex()] = dict(enumerate(devices))
            else:
                gone.update((digest.hex(), device) for device in devices)
        assert found == expected
        assert tombstones == gone
        for name, body in self.bodies.items():
            response = self.request("GET", f"c/{name}")
            assert (response.status, response.body) == (200, body), name
        assert {self.request("GET", f"c/{name}").status for name in self.deleted} <= {404}


@pytest.mark.long
def test_erasure_coded_objects_survive_the_loss_of_a_node_and_a_device(tmp_path):
    live = Coded(tmp_path / "c")
    try:
        live.start()
        for number in range(14):
            live.put(f"o{number}")
        live.check()
        before = live.archives()
        live.kill("object-1")
        for number in range(14, 21):
            live.put(f"o{number}")
        for name in ("o3", "o6"):
            live.put(name, 1)
        for name in ("o0", "o4", "o15"):
            live.delete(name)
        for name, body in live.bodies.items():
            assert live.request("GET", f"c/{name}").body == body
        live.restart("object-1")
        live.kill("object-3")
        live.wipe_objects(3, disk=1)
        live.restart("object-3")
        for name, body in live.bodies.items():
            assert live.request("GET", f"c/{name}").body == body
        live.reconstruct()
        live.check()
        after = live.archives()
        same = {key: after[key] for key in before if key in after}
        untouched = {
            HASHER.digest("AUTH_test", "c", f"o{n}").hex() for n in (1, 2, 5, 7, 8, 9, 10, 11, 12, 13)
        }
        assert same.keys() >= {key for key in before if key[1] in untouched}
        assert all(same[key] == before[key] for key in same if key[1] in untouched)
        # Any four archives are enough: each node with its two devices is down in turn.
        for node in live.plan.node_numbers():
            live.kill(f"object-{node}")
            for name, body in live.bodies.items():
                assert live.request("GET", f"c/{name}").body == body, (node, name)
            live.restart(f"object-{node}")
        for node in live.plan.node_numbers():
            live.run_once("object-auditor", node)
        assert live.files("quarantined/*/*") == []
        for node in PACKED_NODES:
            conf = live.plan.etc / "object-server" / f"{node}.conf"
            verified = run("swift-object-volumes", "-c", conf, "verify")
            assert verified.returncode == 0, verified
        assert "Traceback" not in live.log_text()
    finally:
        live.stop()
