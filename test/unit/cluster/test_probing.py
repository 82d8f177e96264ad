"""A silent node is asked by the proxy itself; whatever it says speaks for it."""

from types import SimpleNamespace

import pytest

from swift import green
from swift.cluster.health import Probe
from swift.cluster.probing import Prober
from swift.cluster.transport import BackendResponse, NodeTimeouts, TimedOut, TransportError
from test.support.daemons import make_node

PROBE = Probe(make_node(2), "/d/7/a/c/o", "3")


class World:
    """A node that answers as told, and what the health and the log heard."""

    def __init__(self, answer):
        self.answer = answer
        self.requests, self.heard, self.logged = [], [], []
        health = SimpleNamespace(
            responded=lambda key: self.heard.append(("responded", key)),
            failed=lambda key, reached: self.heard.append(("failed", key, reached)),
        )
        errors = SimpleNamespace(error=self.logged.append)
        self.prober = Prober(health, self, errors, NodeTimeouts(0.5, 9))

    def request(self, request):
        ip, port = request.node.ip, request.node.port
        method, path, headers = request.method, request.path, request.headers
        self.requests.append(
            (ip, port, method, path, headers["x-backend-storage-policy-index"], request.timeouts)
        )
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def probe(self):
        self.prober.send(PROBE)
        assert self.requests == [], "whoever wants the node does not wait"
        green.sleep()
        return self.heard


@pytest.mark.parametrize("status", [200, 404, 507])
def test_any_answer_is_a_sign_of_life(status):
    world = World(BackendResponse(status))
    assert world.probe() == [("responded", PROBE.node.key)]
    (request,) = world.requests
    two = make_node(2)
    assert request == (two.ip, two.port, "HEAD", "/d/7/a/c/o", "3", (0.5, 9))
    assert world.logged == []


def test_a_node_that_answers_nothing_stays_silent():
    world = World(TimedOut("late"))
    assert world.probe() == []
    assert make_node(2).key in world.logged[0]


def test_a_node_that_refuses_is_not_silent_but_failing():
    assert World(TransportError("refused")).probe() == [("failed", PROBE.node.key, False)]
