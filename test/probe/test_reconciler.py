"""A container created on both sides of a partition with different policies: one wins, objects follow."""

import time

import pytest

from test.support.cluster import LiveCluster
from test.support.databases import rows_of

NODES = range(1, 5)


@pytest.fixture
def cluster(tmp_path):
    cluster = LiveCluster(tmp_path, proxy_workers=1, ec="2+1")
    cluster.start()
    yield cluster
    cluster.stop()


def only(cluster, *alive):
    """Run the container servers of these nodes only, with a proxy that has no recorded errors.

    Daemons rest until all servers answer, because those of one side would reach the other.
    """
    is_whole = len(alive) == len(NODES)
    expected = {f"container-{node}": node in alive for node in NODES}
    expected |= {f"daemons-{node}": is_whole for node in NODES}
    for name, is_wanted in expected.items():
        running = cluster._supervisor._children[name].poll() is None
        if is_wanted and not running:
            cluster.restart(name)
        elif running and not is_wanted:
            cluster.kill(name)
    cluster.kill("proxy")
    cluster.restart("proxy")


def put(cluster, name, body):
    assert cluster.request("PUT", f"c/{name}", body=body).status == 201


def rows(cluster, account):
    """Return name → policy of the rows that are not deleted, for each container database of an account."""
    found = []
    for path in cluster.files("containers/*/*/*/*.db"):
        if rows_of(path, "SELECT account FROM container_info") == [(account,)]:
            select = "SELECT name, storage_policy_index FROM object WHERE deleted = 0"
            found.append(dict(rows_of(path, select)))
    return found


@pytest.mark.long
def test_objects_of_both_sides_end_in_one_policy(cluster):
    only(cluster, 1, 2)
    assert cluster.request("PUT", "c", headers={"X-Storage-Policy": "gold"}).status == 201
    for name in ("a1", "a2", "a3", "gone-a", "both"):
        put(cluster, name, f"of side a: {name}".encode())
    assert cluster.request("DELETE", "c/gone-a").status == 204
    only(cluster, 3, 4)
    assert cluster.request("PUT", "c", headers={"X-Storage-Policy": "ec"}).status == 201
    for name in ("b1", "b2", "b3", "gone-b", "both"):
        put(cluster, name, f"of side b: {name}".encode() * 1000)
    assert cluster.request("DELETE", "c/gone-b").status == 204
    assert cluster.stored(policy=1), "both policies were written to"
    only(cluster, *NODES)
    started_s = time.monotonic()
    expected = {"a1", "a2", "a3", "b1", "b2", "b3", "both"}

    def is_at_rest():
        return rows(cluster, "AUTH_test") == [dict.fromkeys(expected, 0)] * 3 and not any(
            rows(cluster, ".misplaced_objects")
        )

    cluster.await_true(is_at_rest, "every row is in one policy and the queue is empty", 120)
    print(f"at rest {time.monotonic() - started_s:.1f} s after the partition")
    listing = cluster.request("GET", "c?format=json").json()
    assert {row["name"] for row in listing} == expected
    for name in expected - {"both"}:
        body = f"of side {name[0]}: {name}".encode() * (1 if name[0] == "a" else 1000)
        assert cluster.request("GET", f"c/{name}").body == body
    assert cluster.request("GET", "c/both").body == b"of side b: both" * 1000
    for name in ("gone-a", "gone-b"):
        assert cluster.request("GET", f"c/{name}").status == 404
    assert cluster.stored(policy=1) == []
    assert "Traceback" not in cluster.log_text()
