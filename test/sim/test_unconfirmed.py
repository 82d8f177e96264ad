"""Reads in a cluster with a packed node that lost its newest records.

The node serves what is left of them: older states, and objects that were deleted since. Clients get them only
if no other node has the object, until a replicator found the partitions equal.
"""

import time

import pytest

from swift.http.request import Request
from swift.store.packed.lost import LostRanges
from test.support.sim import node_port
from test.support.tiers import on_node

NOW = time.time() - 1000


class LossyCluster:
    """Objects on packed nodes, each with an older state; node ``lossy`` is damaged."""

    def __init__(self, sim):
        self.sim = sim
        self.lossy = self.primaries("o0")[0]
        self.names = [name for name in (f"o{n}" for n in range(40)) if self.lossy in self.primaries(name)][:9]

    def prepare(self):
        for name in self.names:
            assert self.put(name, b"old", NOW).status == 201
        for number, name in enumerate(self.names):
            self.change(number, name)

    def primaries(self, name):
        return self.sim.primaries("object", "a", "c", name)

    def put(self, name, body, at, **headers):
        headers = {"content-type": "text/plain", "x-timestamp": f"{at:.5f}", **headers}
        return self.sim("PUT", f"/a/c/{name}", headers, body)

    def change(self, number, name, second=10):
        at = {"x-timestamp": f"{NOW + second:.5f}"}
        kind = number % 3
        if kind == 0:
            assert self.put(name, b"new", NOW + second).status == 201
        elif kind == 1:
            assert self.sim("DELETE", f"/a/c/{name}", at).status == 204
        else:
            assert self.sim("POST", f"/a/c/{name}", {**at, "x-object-meta-colour": "red"}).status == 202

    def device(self):
        stores = self.sim.packed_stores[self.lossy]
        policy = on_node(self.sim.policies, True).get(0)
        return stores.engine(policy), stores.engine(policy).devices.device(f"sdb{self.lossy}")

    def damage(self, *, is_restarted):
        """Damage the headers of all changes, and lose the index."""
        engine, device = self.device()
        since = f"{NOW + 5:.5f}"
        for number in device.volumes.numbers():
            volume = device.volumes.open(number)
            found = list(device.volumes.scan(volume, 0, LostRanges().add))
            for position, header in found:
                if header.timestamp.internal > since:
                    device.disk.pwrite(volume.fd, b"damage", position.unit * 64 + 40)
        if is_restarted:
            engine.close()
        for path in self.sim.root.rglob(f"sdb{self.lossy}/packed/index/*.mdb"):
            path.unlink()

    def direct_statuses(self):
        """Return the statuses that the node itself gives."""
        _kind, _number, app = self.sim.transport.apps[node_port("object", self.lossy)]
        view, found = self.sim.context.rings.object(self.sim.policies.get(0)).view(), set()
        for name in self.names:
            part = view.partition_of(self.sim.hasher.digest("a", "c", name))
            found.add(app.handle(Request("HEAD", f"/sdb{self.lossy}/{part}/a/c/{name}")).status)
        return found

    def answers(self, name):
        """Return the different answers to several GETs and HEADs."""
        found = set()
        for method in ("GET", "HEAD") * 12:
            response = self.sim(method, f"/a/c/{name}")
            body = response.body if method == "GET" else b""
            found.add((method, response.status, body, response.headers.get("x-object-meta-colour")))
        return found

    def expected(self, number):
        kind = number % 3
        if kind == 1:
            return {("GET", 404), ("HEAD", 404)}
        body, colour = (b"new", None) if kind == 0 else (b"old", "red")
        return {("GET", 200, body, colour), ("HEAD", 200, b"", colour)}

    def check(self):
        for number, name in enumerate(self.names):
            responses = self.answers(name)
            if number % 3 == 1:
                responses = {response[:2] for response in responses}
            assert responses == self.expected(number), name


@pytest.fixture
def cluster(make_sim):
    sim = make_sim(packed=lambda _number: True)
    assert sim("PUT", "/a/c").status == 201
    made = LossyCluster(sim)
    made.prepare()
    return made


@pytest.mark.parametrize("is_restarted", (False, True))
def test_no_client_gets_an_old_state_while_another_node_knows_better(cluster, is_restarted):
    cluster.damage(is_restarted=is_restarted)
    cluster.check()
    assert cluster.device()[0].space.use(f"sdb{cluster.lossy}").lost_bytes > 0
    assert not cluster.sim.avoided("object")


def test_what_no_other_node_has_is_read_there(cluster):
    cluster.damage(is_restarted=True)
    others = set(range(1, 7)) - {cluster.lossy}
    with cluster.sim.refusing("object", *others):
        for name in cluster.names:
            assert cluster.answers(name) == {("GET", 200, b"old", None), ("HEAD", 200, b"", None)}


def test_after_replication_the_node_is_read_like_others(cluster):
    cluster.damage(is_restarted=True)
    for number, name in enumerate(cluster.names):
        # The lossy node gets what it lacks.
        assert cluster.put(name, b"old", NOW + 20).status == 201
        cluster.change(number, name, 30)
    engine, _device = cluster.device()
    device, policy = f"sdb{cluster.lossy}", on_node(cluster.sim.policies, True).get(0)
    assert cluster.direct_statuses() == {529, 404}
    engine.maintenance.confirm(device, engine.partitions(device, policy), policy)
    assert cluster.direct_statuses() == {200, 404}
    cluster.check()
