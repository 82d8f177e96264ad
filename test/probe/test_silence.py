"""Unresponsive servers: they accept connections but do not respond (cluster/health.py)."""

import concurrent.futures
import os
import sqlite3
import time

import pytest

from swift.aio.make import make_cluster
from test.support.cluster import LiveCluster

LARGE = os.urandom(256 << 10)
#: Longer than the client's timeout in this test: a request that waits for a node's timeout fails.
NODE_TIMEOUT_S = 120
#: One server of each kind.
STOPPED = ("object-1", "container-2", "account-3", "cache")


def make_patient(live, node_timeout_s):
    """Give the proxy of a cluster, which is not started, a node timeout."""
    make_cluster(live.plan)
    conf = live.plan.etc / "proxy-server.conf"
    mark = "use = egg:swift#proxy\n"
    conf.write_text(conf.read_text().replace(mark, f"{mark}node_timeout = {node_timeout_s}\n"))


@pytest.fixture
def cluster(tmp_path):
    """A cluster whose proxy, a single process, has a long node timeout."""
    live = LiveCluster(tmp_path / "data", ec="2+1", proxy_workers=0)
    make_patient(live, NODE_TIMEOUT_S)
    live.start()
    yield live
    live.stop()


@pytest.mark.long
def test_requests_fail_over_from_an_unresponsive_server_before_the_timeout(cluster):
    names = [f"{box}/o{number}" for box in ("gold", "ec") for number in range(12)]
    for box in ("gold", "ec"):
        assert cluster.request("PUT", box, {"X-Storage-Policy": box}).status == 201

    def at_once(method, **more):
        requests = [pool.submit(cluster.request, method, name, **more) for name in names]
        return {(done.result().status, done.result().body) for done in requests}

    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        with cluster.stopped(*STOPPED):
            for body in (LARGE, b"small"):
                assert {status for status, _ in at_once("PUT", body=body)} == {201}
                assert at_once("GET") == {(200, body)}
            assert {status for status, _ in at_once("HEAD")} == {200}
            assert {status for status, _ in at_once("POST", headers={"X-Object-Meta-A": "b"})} == {202}
            for box in ("gold", "ec"):
                listed = cluster.request("GET", box).body.decode().split()
                assert listed == sorted(name.split("/")[1] for name in names if name.startswith(f"{box}/"))
            assert {status for status, _ in at_once("DELETE")} == {204}
        assert {status for status, _ in at_once("PUT", body=b"again")} == {201}
        assert at_once("GET") == {(200, b"again")}
    assert "Traceback" not in cluster.log_text()


@pytest.mark.long
def test_an_unresponsive_server_is_used_again_when_it_responds(cluster):
    assert cluster.request("PUT", "gold").status == 201
    with cluster.stopped(*STOPPED):
        for number in range(8):
            assert cluster.request("PUT", f"gold/away{number}", body=b"x").status == 201

    def is_back():
        number = len(cluster.stored(policy=0, node=1))
        cluster.request("PUT", f"gold/o{os.urandom(4).hex()}", body=b"x")
        return len(cluster.stored(policy=0, node=1)) > number

    cluster.await_true(is_back, "the node gets new objects")


#: OpenStack Swift's own tests allow so much more than the node timeout.
MARGIN_S = 5


@pytest.mark.long
def test_replicas_with_locked_databases_are_waited_for_at_the_same_time(tmp_path):
    live = LiveCluster(tmp_path / "data", nodes=3, proxy_workers=0)
    make_patient(live, node_timeout_s := 3)
    live.start()

    def status_of(method, name, locked_count):
        """Return the status of a request for a new container with locked databases."""
        pattern = "containers/*/*/*/*.db"
        before = set(live.files(pattern))
        assert live.request("PUT", name).status == 201
        live.await_true(lambda: len(live.files(pattern)) == len(before) + 3, "all replicas are there")
        databases = set(live.files(pattern)) - before
        locks = [sqlite3.connect(path, isolation_level=None) for path in databases]
        for lock in locks[:locked_count]:
            lock.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        status = live.request(method, name).status
        took_s = time.monotonic() - began
        for lock in locks:
            lock.close()
        assert took_s < node_timeout_s + MARGIN_S, f"{method} with {locked_count} locked: {took_s:.1f} s"
        return status

    try:
        assert [status_of("DELETE", f"deleted-{count}", count) for count in (1, 2, 3)] == [204, 503, 503]
        assert [status_of("GET", f"listed-{count}", count) for count in (2, 3)] == [204, 503]
    finally:
        live.stop()
