"""A part power increase under load: all clients read the last acknowledged version."""

import random
import threading
import time

import pytest

from swift.ring.ring import RELOAD_INTERVAL_S
from test.probe.test_relinker import relink_all
from test.support.cluster import LiveCluster
from test.support.peer import run

POLICIES = ("gold", "ec")
BUILDERS = ("object", "object-1")


class Client(threading.Thread):
    """Changes its own objects one after the other, and reads each back after its change."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.draw = random.Random(number)
        self.names = [f"{policy}/{number}-{n}" for policy in POLICIES for n in range(6)]
        #: Name → body and metadata, None when it was deleted.
        self.left = {}
        self.faults = []
        self.changes = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            name = self.draw.choice(self.names)
            change = self.draw.choices((self.put, self.post, self.delete), (6, 2, 2))[0]
            change(name)
            self.check(name)
            time.sleep(0.01)

    def expect(self, name, what, answer, *statuses):
        if answer.status not in statuses:
            self.faults.append((name, what, answer))
        self.changes += 1

    def put(self, name):
        body = f"{name} {self.changes} ".encode() * self.draw.choice((1, 2000))
        self.expect(name, "PUT", self.cluster.request("PUT", name, {"X-Object-Meta-A": "0"}, body), 201)
        self.left[name] = (body, "0")

    def post(self, name):
        kept, mark = self.left.get(name), str(self.changes)
        response = self.cluster.request("POST", name, {"X-Object-Meta-A": mark})
        self.expect(name, "POST", response, 404 if kept is None else 202)
        self.left[name] = None if kept is None else (kept[0], mark)

    def delete(self, name):
        kept = self.left.get(name)
        response = self.cluster.request("DELETE", name)
        self.expect(name, "DELETE", response, 404 if kept is None else 204)
        self.left[name] = None

    def check(self, name):
        kept, response = self.left.get(name), self.cluster.request("GET", name)
        found = (response.body, response.headers.get("x-object-meta-a")) if response.status == 200 else None
        if response.status not in (200, 404) or found != kept:
            self.faults.append((name, "GET", response, kept and kept[0][:40]))


@pytest.fixture
def cluster(tmp_path):
    cluster = LiveCluster(tmp_path / "aio", nodes=3, ec="2+1", proxy_workers=3)
    try:
        cluster.start()
        for policy in POLICIES:
            assert cluster.request("PUT", policy, {"X-Storage-Policy": policy}).status == 201
        yield cluster
    finally:
        cluster.stop()


def ring_step(cluster, step):
    for name in BUILDERS:
        for word in (step, "write_ring"):
            done = run("swift-ring-builder", str(cluster.plan.etc / f"{name}.builder"), word)
            assert done.returncode == 0, done.stdout + done.stderr


def misplaced(cluster, power):
    """Return the object files below wrong partitions."""
    files = cluster.files("objects*/*/*/*/*")
    return [path for path in files if int(path.parts[-4]) != int(path.parts[-2][:8], 16) >> (32 - power)]


@pytest.mark.long
def test_no_stale_object_is_read_during_a_part_power_increase(cluster):
    clients = [Client(cluster, number) for number in range(4)]
    for client in clients:
        client.start()
    try:
        time.sleep(1)
        ring_step(cluster, "prepare_increase_partition_power")
        # Servers with the old ring do not link; the guide says to wait.
        time.sleep(RELOAD_INTERVAL_S + 1)
        relink_all(cluster, "relink")
        ring_step(cluster, "increase_partition_power")
        time.sleep(2)
        relink_all(cluster, "cleanup")
        ring_step(cluster, "finish_increase_partition_power")
        time.sleep(2)
    finally:
        for client in clients:
            client.ended.set()
        for client in clients:
            client.join(60)
    assert [client.faults[:3] for client in clients] == [[]] * len(clients)
    for client in clients:
        for name in client.left:
            client.check(name)
        assert not client.faults
        assert client.changes > 50
    assert not misplaced(cluster, cluster.plan.part_power + 1)
    assert "Traceback" not in cluster.log_text()
