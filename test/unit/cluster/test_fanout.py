"""A request to many nodes at once: handoffs replace nodes that fail, and avoided ones come last."""

from types import SimpleNamespace

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.cluster.collect import fan_out
from swift.cluster.health import NodeHealth
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.cluster.transport import BackendResponse


def node(number):
    return SimpleNamespace(id=number, ip=f"10.0.0.{number}", key=f"10.0.0.{number}:6200/sda")


class Cluster:
    """Three primaries, any number of handoffs; each says what it is told to, after its seconds."""

    def __init__(self, says, *, avoided=(), handoffs=3):
        self.says = says
        self.asked = []
        health = NodeHealth(ManualClock(), limit=0, interval_s=60)
        for number in avoided:
            health.failed(node(number).key)
        spare = iter([node(number) for number in range(3, 3 + handoffs)])
        self.nodes = NodeIterator([node(number) for number in range(3)], spare, health, 3 + handoffs)

    def send(self, to, headers):
        self.asked.append(to.id)
        seconds, status = self.says.get(to.id, (0.0, 201))
        green.sleep(seconds)
        return None if status is None else BackendResponse(status)

    def write(self, quorum=2, grace_s=0.05):
        attempts = [{"x-number": str(number)} for number in range(3)]
        return fan_out(attempts, self.nodes, self.send, WriteQuorum(3, quorum), grace_s=grace_s)


def test_every_attempt_is_answered_by_a_node_of_its_own():
    cluster = Cluster({})
    responses = cluster.write()
    assert sorted(response.node.id for response in responses) == [0, 1, 2]
    assert sorted(response.attempt["x-number"] for response in responses) == ["0", "1", "2"]


def test_a_handoff_takes_the_place_of_a_node_that_fails():
    responses = Cluster({1: (0.0, None)}).write()
    assert sorted(response.node.id for response in responses) == [0, 2, 3]


def test_nobody_waits_for_the_slow_once_a_quorum_answered():
    responses = Cluster({2: (30.0, 201)}).write()
    assert sorted(response.node.id for response in responses) == [0, 1]


def test_without_a_quorum_the_slow_are_awaited():
    responses = Cluster({0: (0.0, 503), 1: (0.0, 404), 2: (0.1, 404)}).write()
    assert sorted(response.status for response in responses) == [404, 404, 503]


def test_nodes_that_are_avoided_are_not_asked_while_others_make_a_quorum():
    cluster = Cluster({}, avoided=[0], handoffs=0)
    assert sorted(response.node.id for response in cluster.write()) == [1, 2]
    assert 0 not in cluster.asked


def test_nodes_that_are_avoided_are_the_last_resort():
    cluster = Cluster({2: (0.0, 404)}, avoided=[0], handoffs=0)
    assert sorted(response.status for response in cluster.write()) == [201, 201, 404]


def test_when_nobody_answers_there_is_nothing_to_tell():
    assert Cluster(dict.fromkeys(range(6), (0.0, None))).write() == []


def test_an_error_of_one_attempt_does_not_keep_the_others_waiting():
    cluster = Cluster({})

    def send(to, headers):
        if to.id == 1:
            raise ConnectionError
        return cluster.send(to, headers)

    attempts = [{}, {}, {}]
    with green.Timeout(5):
        responses = fan_out(attempts, cluster.nodes, send, WriteQuorum(3, 2), grace_s=0.05)
    assert sorted(response.node.id for response in responses) == [0, 2]


@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_the_answers_hold_a_quorum(quorum):
    assert len(Cluster({}).write(quorum=quorum, grace_s=0)) >= quorum
