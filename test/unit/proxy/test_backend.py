"""What a node that does not answer costs a request, and what its record says."""

from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.cluster.health import UNRESPONSIVE_S, NodeHealth, Probe
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import TransportError
from swift.http.request import Request
from swift.proxy.backend import Backends, backend_headers
from swift.proxy.settings import ProxySettings
from test.support.daemons import make_node
from test.support.object_servers import StubNode


class Slow(StubNode):
    """A node whose answer begins after ``after_s`` seconds."""

    def __init__(self, clock, after_s):
        super().__init__()
        self._clock = clock
        self._left_s = after_s

    def wait_response_start(self, within_s):
        step = min(within_s, self._left_s)
        self._clock.advance(step)
        self._left_s -= step
        return self._left_s <= 0


class World:
    def __init__(self):
        self.clock = ManualClock(1.0)
        self.health = NodeHealth(self.clock)
        self.talks = {}
        self.paths = []
        self.logged = []
        context = SimpleNamespace(
            clock=self.clock,
            health=self.health,
            transport=self,
            settings=ProxySettings(),
            policy_settings={},
            telemetry=SimpleNamespace(
                log=SimpleNamespace(error=lambda text, txid=None: self.logged.append(text))
            ),
        )
        self.backends = Backends(context)

    def stream(self, request):
        port, path = request.node.port, request.path
        self.paths.append(path)
        talk = self.talks[port]
        if isinstance(talk, Exception):
            raise talk
        return talk

    def small(self, to, nodes=None):
        request = self.backends.make_request(to, 7, "PUT", EntityPath("a", "c", "o"), {}, "x=y")
        return self.backends.request(request, nodes)

    def iterator(self):
        return NodeIterator([make_node(1), make_node(2)], iter([make_node(3)]), self.health, 3)


@pytest.fixture
def world():
    return World()


def test_credentials_of_container_sync_stay_in_the_proxy():
    sent = {"x-container-sync-key": "k", "x-container-sync-auth": "R n s", "x-object-meta-a": "b"}
    request = Request("PUT", "/v1/a/c/o", {**sent, "x-timestamp": "1.0"})
    headers = backend_headers(SimpleNamespace(agent="proxy-server"), request, transfer=True)
    assert headers["x-object-meta-a"] == "b"
    assert not {"x-container-sync-key", "x-container-sync-auth"} & headers.keys()


def test_a_node_that_is_late_but_answers_others_is_waited_for(world):
    nodes = world.iterator()
    first = next(nodes)
    world.talks[first.port] = Slow(world.clock, 3 * UNRESPONSIVE_S)
    responded = world.health.responded

    def answer_others(within_s):
        responded(first.key)
        return Slow.wait_response_start(world.talks[first.port], within_s)

    world.talks[first.port].wait_response_start = answer_others
    assert world.small(first, nodes).status == 201


def test_a_silent_node_is_given_up_for_the_next_and_waited_for_in_the_end(world):
    nodes = world.iterator()
    first = next(nodes)
    world.talks[first.port] = talk = Slow(world.clock, 3 * UNRESPONSIVE_S)
    assert world.small(first, nodes) is None
    assert talk.is_aborted and world.backends.is_unresponsive(first)
    assert [each.id for each in nodes] == [2, 3, 1]
    world.talks[first.port] = Slow(world.clock, 2 * UNRESPONSIVE_S)
    assert world.small(first, nodes).status == 201
    assert not world.backends.is_unresponsive(first)


def test_a_node_that_is_long_about_one_thing_but_answers_a_probe_is_waited_for(world):
    nodes = world.iterator()
    first = next(nodes)
    world.talks[first.port] = Slow(world.clock, 3 * UNRESPONSIVE_S)
    world.health.send_probe = lambda probe: world.health.responded(probe.node.key)
    assert world.small(first, nodes).status == 201


def test_who_has_no_other_node_to_ask_waits(world):
    world.talks[make_node(1).port] = Slow(world.clock, 3 * UNRESPONSIVE_S)
    assert world.small(make_node(1)).status == 201


def test_a_probe_is_to_ask_for_what_the_request_was_about(world):
    world.talks[make_node(1).port] = StubNode()
    probes = []
    world.health.send_probe = probes.append
    policy = {"x-backend-storage-policy-index": "2"}
    path = EntityPath("a", "c", "o")
    world.backends.stream(world.backends.make_request(make_node(1), 7, "GET", path, policy, "x=y"))
    world.clock.advance(UNRESPONSIVE_S)
    assert not world.health.may_use(make_node(1).key)
    target = f"/{make_node(1).device}/7/a/c/o"
    assert world.paths == [f"{target}?x=y"] and probes == [Probe(make_node(1), target, "2")]


def test_a_node_that_cannot_be_reached_is_remembered(world):
    world.talks[make_node(1).port] = TransportError("refused")
    assert world.small(make_node(1)) is None
    assert "refused" in world.logged[0]
