"""What accounts, containers and objects share: whose answers count, and which headers are metadata."""

import itertools
import time

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import replication_address
from swift.http.request import Request
from swift.proxy.controller import Change, Controller, metadata_headers

PATH = EntityPath("a")
#: Recent, because older tombstones are reclaimed at once.
TIMES = itertools.count(time.time() - 1000)
PASSED = frozenset(("x-container-read",))


class Accounts(Controller):
    kind = "account"


@pytest.fixture
def controller(sim):
    return Accounts(sim.context)


def place(sim):
    view = sim.context.rings.account.view()
    return view, view.partition_of(sim.hasher.digest("a"))


def write(controller, sim, method, headers=(), **more):
    sent = {"x-timestamp": Timestamp(next(TIMES)).internal, **dict(headers)}
    view, part = place(sim)
    request = Request(method, "/v1/a", sent)
    return controller.write(request, Change(method, PATH, view, part, [dict(sent)] * 3, **more))


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (
            {"x-container-meta-a": "1", "x-object-meta-b": "2", "content-type": "t"},
            {"x-container-meta-a": "1"},
        ),
        ({"x-container-sysmeta-a": "1"}, {"x-container-sysmeta-a": "1"}),
        ({"x-remove-container-meta-a": "whatever"}, {"x-container-meta-a": ""}),
        ({"x-container-meta-a": "1", "x-remove-container-meta-a": "x"}, {"x-container-meta-a": "1"}),
        ({"x-remove-container-meta-a": "x", "x-container-meta-a": "1"}, {"x-container-meta-a": "1"}),
        ({"x-remove-container-read": "x"}, {"x-container-read": ""}),
        ({"x-container-read": ".r:*"}, {"x-container-read": ".r:*"}),
        ({"x-remove-container-sysmeta-a": "x"}, {}),
        ({"x-remove-container-write": "x"}, {}),
        ({"x-remove-account-meta-a": "x"}, {}),
        ({"x-remove-timestamp": "x", "x-remove-": "x"}, {}),
        ({"x-container-metaphor": "1"}, {}),
    ],
)
def test_which_headers_are_metadata(headers, kept):
    assert metadata_headers(headers, "container", PASSED) == kept


def test_a_write_is_done_when_a_majority_did_it(controller, sim):
    with sim.refusing("account", *range(1, 7)):
        assert write(controller, sim, "PUT").status == 503
    sim.clear_node_errors()
    assert write(controller, sim, "PUT").status in (201, 202)


def test_a_handoff_that_never_heard_of_it_does_not_say_that_it_is_not_there(controller, sim):
    away = sim.primaries("account", "a")[:2]
    with sim.refusing("account", *away):
        assert write(controller, sim, "POST", {"x-account-meta-a": "1"}).status == 503
    sim.clear_node_errors()
    assert write(controller, sim, "POST", {"x-account-meta-a": "1"}).status == 204


def test_a_caller_may_ask_for_fewer_answers(controller, sim):
    left, *_ = sim.primaries("account", "a")
    with sim.refusing("account", *(set(range(1, 7)) - {left})):
        assert write(controller, sim, "POST").status == 503
        assert write(controller, sim, "POST", quorum=1).status == 204


def test_a_read_goes_to_the_next_node_and_fails_when_none_is_left(controller, sim):
    view, part = place(sim)
    request = Request("HEAD", "/v1/a", {"x-timestamp": "1"})
    with sim.refusing("account", *sim.primaries("account", "a")[:2]):
        assert controller.read(request, PATH, view, part, "").status == 204
    sim.clear_node_errors()
    with sim.responding("account", 500, *range(1, 7)):
        assert controller.read(request, PATH, view, part, "").status == 503


def test_what_servers_ask_of_each_other_may_go_over_their_own_network(sim):
    requests = []

    class Watching(Accounts):
        def __init__(self, context):
            super().__init__(context)
            send = self.backends.request

            def watched(request, nodes):
                requests.append(request.node)
                return send(request, nodes)

            self.backends.request = watched

    write(Watching(sim.context), sim, "POST", {"x-backend-use-replication-network": "yes"})
    view, part = place(sim)
    assert sorted(requests) == sorted(replication_address(node) for node in view.primaries(part))
