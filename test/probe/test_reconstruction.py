"""Reconstructors as real processes: they rebuild wiped devices and damaged archives."""

import os

import pytest

from test.support.cluster import LiveCluster

AWAIT_S = 90


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    live = LiveCluster(tmp_path_factory.mktemp("rebuilding"), ec="2+1")
    live.start()
    assert live.request("PUT", "coded", {"X-Storage-Policy": "ec"}).status == 201
    yield live
    live.stop()


def archives(cluster):
    """Return (node, name of the object's directory, index) → bytes of every archive."""
    return {
        (cluster.node_of(each), each.hash, each.name.split("#")[1]): each.body()
        for each in cluster.stored(policy=1)
    }


@pytest.mark.long
def test_a_wiped_device_gets_the_same_archives_back(cluster):
    bodies = {f"coded/o{number}": os.urandom(700 * number) for number in range(25)}
    for name, body in bodies.items():
        assert cluster.request("PUT", name, body=body).status == 201
    before = archives(cluster)
    assert len(before) == 3 * len(bodies)
    victim = max(cluster.plan.node_numbers(), key=lambda n: sum(key[0] == n for key in before))
    cluster.kill(f"object-{victim}")
    cluster.wipe_objects(victim)
    cluster.restart(f"object-{victim}")
    cluster.await_true(lambda: archives(cluster) == before, "all archives are as they were", AWAIT_S)
    for name, body in bodies.items():
        assert cluster.request("GET", name).body == body
    assert "Traceback" not in cluster.log_text()


def test_a_damaged_archive_is_found_by_the_auditor_and_rebuilt(cluster):
    body = os.urandom(300_000)
    assert cluster.request("PUT", "coded/rot", body=body).status == 201
    before = archives(cluster)
    cluster.corrupt_and_audit(
        next(each for each in cluster.stored(policy=1) if len(each.body()) > 100_000), 100_000
    )
    cluster.await_true(lambda: archives(cluster) == before, "the archive is whole again", AWAIT_S)
    assert cluster.request("GET", "coded/rot").body == body
