"""Object replicators among real processes: lost copies return, handoffs go home, deleted stays deleted."""

import os
from pathlib import Path

import pytest

from swift.ring.ring import Ring
from test.support.cluster import LiveCluster

AWAIT_S = 90


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    live = LiveCluster(tmp_path_factory.mktemp("healing"))
    live.start()
    yield live
    live.stop()


def copies(cluster):
    """How many bodies of policy 0 there are on every device, by node."""
    found = {}
    for number in cluster.plan.node_numbers():
        found[number] = len(list(cluster.device_path(number).glob("objects/*/*/*/*.data")))
    return found


def await_healed(cluster, check, what):
    cluster.await_true(check, what, AWAIT_S)


def test_a_wiped_device_is_refilled_and_what_was_deleted_stays_deleted(cluster):
    assert cluster.request("PUT", "wiped").status == 201
    bodies = {f"wiped/o{number}": os.urandom(2000 + number) for number in range(60)}
    for name, body in bodies.items():
        assert cluster.request("PUT", name, body=body).status == 201
    gone = [f"wiped/o{number}" for number in range(0, 60, 6)]
    for name in gone:
        assert cluster.request("DELETE", name).status == 204
        del bodies[name]
    before = copies(cluster)
    assert sum(before.values()) == 3 * len(bodies)
    victim = max(before, key=before.get)
    cluster.kill(f"object-{victim}")
    for name in ("objects", "tmp"):
        cluster.wipe(cluster.device_path(victim) / name)
    cluster.restart(f"object-{victim}")
    await_healed(cluster, lambda: copies(cluster) == before, "the device has its copies again")
    for name, body in bodies.items():
        assert cluster.request("GET", name).body == body
    for name in gone:
        assert cluster.request("GET", name).status == 404
    assert "Traceback" not in cluster.log_text()


def test_handoffs_go_home_when_their_node_is_back(cluster):
    assert cluster.request("PUT", "away").status == 201
    before = sum(copies(cluster).values())
    cluster.kill("object-2")
    for number in range(20):
        assert cluster.request("PUT", f"away/o{number}", body=b"x" * 3000).status == 201
    cluster.restart("object-2")

    def is_home():
        files = cluster.files("objects/*/*/*/*.data")
        parts = {}
        for path in files:
            parts.setdefault(path.parent.name, set()).add(str(path))
        return len(files) == before + 60 and all(len(paths) == 3 for paths in parts.values())

    await_healed(cluster, is_home, "every object has three copies")
    await_healed(cluster, lambda: strangers(cluster) == [], "no partition is where it does not belong")
    assert "15 seconds" not in cluster.log_text(), "nobody waits for who waits for him"


def strangers(cluster):
    """The partitions that are on a device that the ring does not give them."""
    ring = Ring(str(cluster.plan.etc / "object.ring.gz"))
    found = []
    for number in cluster.plan.node_numbers():
        device = cluster.plan.device(number)
        for path in cluster.device_path(number).glob("objects/[0-9]*"):
            # Beside partitions there may be files that are just being written.
            if path.name.isdigit() and device not in {node.device for node in ring.primaries(int(path.name))}:
                found.append(path)
    return found


def test_rot_that_the_auditor_finds_is_repaired_by_the_replicator(cluster):
    assert cluster.request("PUT", "rot").status == 201
    body = os.urandom(50_000)
    assert cluster.request("PUT", "rot/o", body=body).status == 201
    paths = [path for path in cluster.files("objects/*/*/*/*.data") if path.stat().st_size == 50_000]
    assert len(paths) == 3
    victim = Path(paths[0])
    number = cluster.rot(victim, 20_000)
    assert list(cluster.device_path(number).glob("quarantined/objects/*"))
    await_healed(cluster, lambda: victim.exists() and victim.read_bytes() == body, "the copy is whole again")
