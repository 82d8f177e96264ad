"""Delayed updates arrive: container rows and account counts after servers and updaters died."""

import json
import os
import signal
from urllib.parse import quote

import pytest

from swift.base.hashing import PathHasher
from swift.config.cluster import read_cluster_config
from swift.ring.ring import Ring
from test.support.peer import run

ACCOUNT = "AUTH_test"


def hasher(cluster) -> PathHasher:
    return read_cluster_config(str(cluster.plan.etc / "swift.conf")).hasher


def container_nodes(cluster, container):
    """Return the partition and (node number, ring node) of a container's replicas."""
    ring = Ring(str(cluster.plan.etc / "container.ring.gz"))
    part, nodes = ring.nodes(hasher(cluster).digest(ACCOUNT, container))
    return part, [(node.zone, node) for node in nodes]


def rows(cluster, container):
    """Return the object names that each replica lists, by node number."""
    part, nodes = container_nodes(cluster, container)
    listed = {}
    for number, node in nodes:
        path = f"/{node.device}/{part}/{ACCOUNT}/{quote(container)}?format=json"
        response = cluster.raw("GET", path, port=node.port)
        # 204 means an empty listing.
        listed[number] = sorted(row["name"] for row in response.json()) if response.status == 200 else []
    return listed


def pendings(cluster):
    return cluster.files("async_pending*/*/*")


def recon(cluster, node, server_type):
    path = cluster.plan.recon(node) / f"{server_type}.recon"
    return json.loads(path.read_text()) if path.exists() else {}


def run_once(cluster, name, node):
    """Run a daemon once, as an operator would; return its log."""
    kind = name.partition("-")[0]
    conf = cluster.plan.etc / f"{kind}-server" / f"{node}.conf"
    done = run(f"swift-{name}", conf, "once", "verbose")
    assert done.returncode == 0, done.stderr
    assert "Starting" in done.stderr
    assert "Exited" in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def stop_updaters(cluster, sig=signal.SIGKILL):
    for node in cluster.plan.node_numbers():
        cluster.kill(f"daemons-{node}", sig)


def leave_pendings(cluster, count, container="late"):
    """Put objects while two of the container's servers are down; return their names."""
    assert cluster.request("PUT", container).status == 201
    _, nodes = container_nodes(cluster, container)
    dead = [f"container-{number}" for number, _ in nodes[:2]]
    for name in dead:
        cluster.kill(name)
    names = [f"o{number:03d}" for number in range(count)]
    for name in names:
        assert cluster.request("PUT", f"{container}/{name}", body=b"12345").status == 201
    cluster.await_true(lambda: pendings(cluster), "updates are kept")
    for name in dead:
        cluster.restart(name)
    return names


@pytest.mark.long
def test_rows_reach_every_replica_after_container_servers_were_killed(own_cluster):
    stop_updaters(own_cluster)
    names = leave_pendings(own_cluster, 12)
    # Without an updater the rows would never arrive.
    assert pendings(own_cluster)
    assert any(listed != names for listed in rows(own_cluster, "late").values())
    for node in own_cluster.plan.node_numbers():
        run_once(own_cluster, "object-updater", node)
    assert pendings(own_cluster) == []
    assert set(map(tuple, rows(own_cluster, "late").values())) == {tuple(names)}
    facts = recon(own_cluster, 1, "object")
    assert facts["object_updater_stats"]["failures_account_container_count"] == 0
    assert facts["object_updater_last"] > 0
    assert (own_cluster.plan.recon(1) / "object-updater.prom").read_text().startswith("# HELP")


@pytest.mark.long
def test_a_killed_updater_loses_nothing_and_a_damaged_update_stops_nothing(own_cluster):
    stop_updaters(own_cluster, signal.SIGTERM)
    names = leave_pendings(own_cluster, 60)
    before = len(pendings(own_cluster))
    victim = pendings(own_cluster)[0]
    device = victim.parents[2]
    bad = victim.parent / f"{'0' * 29}{victim.parent.name}-1700000000.00000"
    bad.write_bytes(b"cut off")
    _slow_down(own_cluster)
    for node in own_cluster.plan.node_numbers():
        own_cluster.restart(f"daemons-{node}")
    own_cluster.await_true(lambda: len(pendings(own_cluster)) < before - 5, "some were delivered")
    stop_updaters(own_cluster)
    left = len(pendings(own_cluster))
    assert 0 < left < before
    for node in own_cluster.plan.node_numbers():
        own_cluster.restart(f"daemons-{node}")
    own_cluster.await_true(lambda: not pendings(own_cluster), "the rest was delivered", 60)
    assert set(map(tuple, rows(own_cluster, "late").values())) == {tuple(names)}
    assert (device / "quarantined" / "objects" / bad.name).read_bytes() == b"cut off"
    assert "Traceback" not in own_cluster.log_text()


def _slow_down(cluster):
    """Limit the updater to a few updates per second, without pauses between passes."""
    for node in cluster.plan.node_numbers():
        conf = cluster.plan.etc / "object-server" / f"{node}.conf"
        text = conf.read_text()
        head, section, tail = text.partition("[object-updater]\n")
        assert section
        conf.write_text(f"{head}{section}objects_per_second = 10\n{tail.replace('= 5', '= 1')}")


@pytest.mark.long
def test_account_counts_are_updated_soon_after_uploads(own_cluster):
    for container in ("one", "two"):
        assert own_cluster.request("PUT", container).status == 201
        for number in range(5):
            assert own_cluster.request("PUT", f"{container}/o{number}", body=b"x" * 100).status == 201

    def counts():
        headers = own_cluster.request("HEAD").headers
        return headers["x-account-object-count"], headers["x-account-bytes-used"]

    own_cluster.await_true(lambda: counts() == ("10", "1000"), "counts are right", 20)
    assert own_cluster.request("DELETE", "two/o1").status == 204
    own_cluster.await_true(lambda: counts() == ("9", "900"), "counts follow deletions", 20)
    own_cluster.await_true(
        lambda: "container_updater_sweep" in recon(own_cluster, 1, "container"), "recon is written"
    )
    assert "Traceback" not in own_cluster.log_text()


def test_daemons_survive_sighup_and_end_at_sigterm(own_cluster):
    log = own_cluster.plan.logs / "daemons-1.log"
    names = ("object-updater", "container-updater", "container-replicator", "account-replicator")
    for name in names:
        own_cluster.await_true(
            lambda name=name: f"{name}: Starting" in log.read_text(), f"{name} has started"
        )
    pid = own_cluster.pid("daemons-1")
    os.kill(pid, signal.SIGHUP)
    # A process that ends at the first signal would have logged it before the second signal.
    own_cluster.kill("daemons-1", signal.SIGTERM)
    for name in names:
        assert f"{name}: Exited {pid}" in log.read_text()
    assert "Traceback" not in log.read_text()
