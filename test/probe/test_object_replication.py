"""Object replicators as real processes: they restore lost copies, revert handoffs and keep deletions."""

import os
from collections import Counter

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
    """Return the number of bodies of policy 0 on every device, by node."""
    return {number: len(cluster.stored(policy=0, node=number)) for number in cluster.plan.node_numbers()}


def await_healed(cluster, check, what):
    cluster.await_true(check, what, AWAIT_S)


@pytest.mark.long
def test_a_wiped_device_is_refilled_and_deleted_objects_stay_deleted(cluster):
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
    cluster.wipe_objects(victim)
    cluster.restart(f"object-{victim}")
    await_healed(cluster, lambda: copies(cluster) == before, "the device has its copies again")
    for name, body in bodies.items():
        assert cluster.request("GET", name).body == body
    for name in gone:
        assert cluster.request("GET", name).status == 404
    assert "Traceback" not in cluster.log_text()


@pytest.mark.long
def test_handoffs_are_reverted_when_the_primary_is_back(cluster):
    assert cluster.request("PUT", "away").status == 201
    before = sum(copies(cluster).values())
    cluster.kill("object-2")
    for number in range(20):
        assert cluster.request("PUT", f"away/o{number}", body=b"x" * 3000).status == 201
    cluster.restart("object-2")

    def is_home():
        found = Counter(each.hash for each in cluster.stored(policy=0))
        return found.total() == before + 60 and set(found.values()) == {3}

    await_healed(cluster, is_home, "every object has three copies")
    await_healed(
        cluster, lambda: misplaced_partitions(cluster) == [], "no partition is where it does not belong"
    )
    assert "15 seconds" not in cluster.log_text(), "nobody waits for who waits for him"


def misplaced_partitions(cluster):
    """Return the partitions on devices to which the ring does not assign them."""
    ring = Ring(str(cluster.plan.etc / "object.ring.gz"))
    # Beside partitions there may be temporary files of running writes.
    partitions = {(each.device.name, each.partition) for each in cluster.stored(policy=0, suffix="")} | {
        (path.parent.parent.name, int(path.name))
        for path in cluster.files("objects/*")
        if path.name.isdigit()
    }
    return [
        (device, partition)
        for device, partition in partitions
        if device not in {node.device for node in ring.primaries(partition)}
    ]


@pytest.mark.long
def test_bit_rot_found_by_the_auditor_is_repaired_by_the_replicator(cluster):
    assert cluster.request("PUT", "rot").status == 201
    body = os.urandom(50_000)
    assert cluster.request("PUT", "rot/o", body=body).status == 201
    copies_of_it = [each for each in cluster.stored(policy=0) if each.body() == body]
    assert len(copies_of_it) == 3
    number = cluster.corrupt_and_audit(copies_of_it[0], 20_000)
    assert list(cluster.device_path(number).glob("quarantined/objects/*"))

    def is_whole():
        return [each.body() == body for each in cluster.stored(policy=0) if each == copies_of_it[0]] == [True]

    await_healed(cluster, is_whole, "the copy is whole again")
