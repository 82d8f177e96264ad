"""A node that reads an upload slowly delays the others only within limits.

See doc/explanation/striping.md.
"""

import random
import time

import pytest

from swift import green
from swift.http.body import BytesBody, ClientDisconnected, RequestBody
from swift.proxy.obj.write.copies import READ_BYTES
from test.support.sim import node_port

BODY = random.Random(4).randbytes(12 * READ_BYTES)
MEMORY = 4 * READ_BYTES
#: Erasure coded in segments of a thousand bytes.
CODED = BODY[:100_077]
BODIES = {"c": BODY, "coded": CODED}


class Watched(RequestBody):
    """An upload that records how much of it was read when."""

    def __init__(self, data):
        self.length = len(data)
        self._data = data
        self.given = 0

    def read(self, size=-1):
        most = len(self._data) // 10
        piece = self._data[self.given : self.given + min(size if size >= 0 else most, most)]
        self.given += len(piece)
        green.sleep(0)
        return piece


class Breaking(Watched):
    """An upload that the client aborts half-way."""

    def read(self, size=-1):
        if self.given >= self.length // 2:
            raise ClientDisconnected("gone")
        return super().read(size)


@pytest.fixture
def make(make_sim):
    def make(container="c", **options):
        memory = {"c": MEMORY, "coded": 12_000}[container]
        cluster = make_sim(
            **{"upload_memory": memory, "upload_patience": 0.2, "node_timeout": 20.0, **options}
        )
        assert cluster("PUT", "/a/c").status == 201
        assert cluster("PUT", "/a/coded", {"x-storage-policy": "ec32"}).status == 201
        return cluster

    return make


PLACES = [("c", 0), ("coded", 1)]


def nodes_of(sim, container, policy):
    return sim.primaries("object", "a", container, "o", policy=policy)


def put(sim, container, body=None, headers=None):
    return sim("PUT", f"/a/{container}/o", headers, Watched(BODIES[container]) if body is None else body)


@pytest.mark.parametrize(("container", "policy"), PLACES)
def test_an_upload_with_send_queues_is_complete_on_every_node(make, container, policy):
    sim = make(container)
    assert put(sim, container).status == 201
    assert sim.holders(policy=policy) == sorted(nodes_of(sim, container, policy))
    assert sim("GET", f"/a/{container}/o").body == BODIES[container]


@pytest.mark.parametrize(("container", "policy"), PLACES)
def test_the_upload_continues_without_a_node_that_reads_nothing(make, container, policy):
    sim = make(container)
    nodes = nodes_of(sim, container, policy)
    sim.faults.stalls_taking_after[node_port("object", nodes[0])] = (1000, green.Event())
    began = time.monotonic()
    assert put(sim, container).status == 201
    assert 0.2 <= time.monotonic() - began < 9, "the patience, and not until the node gives up"
    assert nodes[0] not in sim.holders(policy=policy)
    assert set(nodes[1:]) <= set(sim.holders(policy=policy))
    assert sim("GET", f"/a/{container}/o").body == BODIES[container]


@pytest.mark.parametrize(("container", "policy"), PLACES)
def test_the_upload_waits_for_a_slow_node_that_the_quorum_needs(make, container, policy):
    sim = make(container)
    nodes = nodes_of(sim, container, policy)
    spare = len(nodes) - (2 if policy == 0 else 4)
    event = green.Event()
    for n in nodes[: spare + 1]:
        sim.faults.stalls_taking_after[node_port("object", n)] = (1000, event)
    green.spawn_after(0.6, event.set)
    assert put(sim, container).status == 201
    assert event.is_set, "three times the patience"
    assert sim("GET", f"/a/{container}/o").body == BODIES[container]


@pytest.mark.parametrize(("container", "policy"), PLACES)
def test_a_node_that_catches_up_is_kept(make, container, policy):
    sim = make(container, upload_patience=5.0)
    nodes = nodes_of(sim, container, policy)
    event = green.Event()
    sim.faults.stalls_taking_after[node_port("object", nodes[0])] = (1000, event)
    green.spawn_after(0.3, event.set)
    assert put(sim, container).status == 201
    assert sim.holders(policy=policy) == sorted(nodes)


def test_the_client_is_read_until_the_memory_limit(make):
    sim = make(upload_patience=5.0)
    node, event, body = nodes_of(sim, "c", 0)[0], green.Event(), Watched(BODY)
    sim.faults.stalls_taking_after[node_port("object", node)] = (0, event)
    upload = green.spawn(put, sim, "c", body)
    green.sleep(0.3)
    assert MEMORY - READ_BYTES <= body.given <= MEMORY
    event.set()
    assert upload.wait().status == 201


def test_without_the_option_the_others_wait_for_a_slow_node(make):
    sim = make(upload_memory=0)
    node, event, body = nodes_of(sim, "c", 0)[0], green.Event(), Watched(BODY)
    sim.faults.stalls_taking_after[node_port("object", node)] = (0, event)
    upload = green.spawn(put, sim, "c", body)
    green.sleep(0.2)
    assert body.given <= READ_BYTES
    event.set()
    assert upload.wait().status == 201


@pytest.mark.parametrize(("container", "policy"), PLACES)
def test_the_client_gets_its_response_before_a_late_node_is_done(make, container, policy):
    sim = make(container, upload_memory=1 << 30)
    nodes = nodes_of(sim, container, policy)
    event = green.Event()
    sim.faults.stalls_taking_after[node_port("object", nodes[0])] = (1000, event)
    assert put(sim, container).status == 201
    assert not event.is_set and nodes[0] not in sim.holders(policy=policy)
    event.set()
    for _ in range(100):
        if nodes[0] in sim.holders(policy=policy):
            break
        green.sleep(0.05)
    assert sim.holders(policy=policy) == sorted(nodes), "it goes on"


@pytest.mark.long
@pytest.mark.parametrize(("container", "policy"), PLACES)
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_nodes_that_fail_during_the_upload_are_dropped(make, container, policy, lost):
    sim = make(container)
    nodes = nodes_of(sim, container, policy)
    for n in nodes[:lost]:
        sim.faults.stops_taking_after[node_port("object", n)] = 10_000
    is_enough = lost <= 1
    assert put(sim, container).status == (201 if is_enough else 503)
    assert bool(sim.holders(policy=policy)) is is_enough


@pytest.mark.parametrize(("container", "policy"), PLACES)
def test_an_aborted_upload_leaves_nothing(make, container, policy):
    sim = make(container)
    nodes = nodes_of(sim, container, policy)
    sim.faults.stalls_taking_after[node_port("object", nodes[0])] = (1000, green.Event())
    assert put(sim, container, Breaking(BODIES[container])).status == 499
    assert sim.holders(policy=policy) == []


@pytest.mark.parametrize(("container", "policy"), PLACES)
def test_conditions_hold_with_send_queues(make, container, policy):
    sim = make(container)
    assert put(sim, container, headers={"if-none-match": "*"}).status == 201
    assert put(sim, container, headers={"if-none-match": "*"}).status == 412
    etag = sim("HEAD", f"/a/{container}/o").headers["etag"]
    other = bytes(reversed(BODIES[container]))
    assert put(sim, container, BytesBody(other), {"if-match": etag}).status == 201
    assert sim("GET", f"/a/{container}/o").body == other


@pytest.mark.parametrize("memory", [1, READ_BYTES])
def test_without_enough_memory_the_upload_continues_without_send_queues(make, memory):
    sim = make(upload_memory=memory, upload_patience=5.0)
    sim.faults.takes_s[node_port("object", nodes_of(sim, "c", 0)[0])] = 0.005
    assert put(sim, "c").status == 201
    assert sim("GET", "/a/c/o").body == BODY
