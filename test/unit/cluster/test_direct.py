"""Asking nodes directly: one, one that a request names, all of an entity; what their answers say together."""

import os

import pytest

from swift.base.entity import EntityPath
from swift.cluster.direct import Answers, DirectClient
from swift.cluster.transport import Reply, TransportError
from test.support.daemons import ScriptedNodes, node

PATH = EntityPath("a", "c d", "ö")


class Bench:
    def __init__(self):
        self.nodes = ScriptedNodes()
        self.missed = []
        self.client = DirectClient(
            self.nodes,
            "some-daemon",
            conn_timeout_s=1.0,
            node_timeout_s=2.0,
            missed=lambda who, error: self.missed.append((who, str(error))),
        )


@pytest.fixture
def bench():
    return Bench()


def test_a_node_is_asked_over_the_replication_network_with_a_quoted_path(bench):
    reply = bench.client.ask(node(2), 7, "DELETE", PATH, {"x-timestamp": "1"}, "a=b")
    assert reply.status == 202
    number, method, path, headers = bench.nodes.requests[0]
    assert (number, method, path) == (2, "DELETE", "/d2/7/a/c%20d/%C3%B6?a=b")
    assert headers["user-agent"] == f"some-daemon {os.getpid()}"
    assert (headers["x-timestamp"], headers["content-length"]) == ("1", "0")


def test_a_node_without_an_answer_is_told_and_is_none(bench):
    bench.nodes.answers[1] = TransportError("refused")
    assert bench.client.ask(node(1), 7, "HEAD", PATH, {}) is None
    assert bench.missed == [(node(1).replication_key, "refused")]


def test_a_node_may_be_named_by_its_address(bench):
    reply = bench.client.ask_address(("127.0.0.1", 6203), "sd b", "9", "PUT", EntityPath("a"), {})
    assert reply.status == 202
    assert bench.nodes.requests[0][:3] == (3, "PUT", "/sd%20b/9/a")


def test_all_nodes_are_asked_and_answer_in_their_order(bench):
    bench.nodes.answers = {0: 404, 1: TransportError("slow"), 2: 507}
    answers = bench.client.ask_all([node(n) for n in range(4)], 7, "DELETE", PATH, {"x-a": "1"})
    assert answers.statuses == [404, None, 507, 202]
    assert len(bench.missed) == 1


def test_every_node_may_get_headers_of_its_own(bench):
    bench.client.ask_all([node(0), node(1)], 7, "PUT", PATH, [{"x-a": "0"}, {"x-a": "1"}])
    assert sorted((number, headers["x-a"]) for number, _m, _p, headers in bench.nodes.requests) == [
        (0, "0"),
        (1, "1"),
    ]


@pytest.mark.parametrize(
    ("statuses", "majority", "with_404", "all_404"),
    [
        ([], False, False, False),
        ([201], True, True, False),
        ([201, 503], False, False, False),
        ([201, 202, None], True, True, False),
        ([404, 404, 404], False, True, True),
        ([404, 204, None], False, True, False),
        ([404, None], False, False, False),
    ],
)
def test_verdicts(statuses, majority, with_404, all_404):
    answers = Answers(tuple(None if status is None else Reply(status) for status in statuses))
    assert answers.has_majority() is majority
    assert answers.has_majority(404) is with_404
    assert answers.are_all(404) is all_404
