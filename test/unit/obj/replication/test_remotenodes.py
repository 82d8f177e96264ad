"""Other nodes are asked what they have; one that says nothing is left alone, and nonsense is no answer."""

from __future__ import annotations

import json
import pickle

import pytest

from swift.base.clock import ManualClock
from swift.cluster.direct import DirectClient, NodeTimeouts
from swift.cluster.health import ABSENT_S
from swift.cluster.transport import BackendResponse, TransportError
from swift.http import fields
from swift.obj.replication import digests
from swift.obj.replication.remotenodes import (
    NO_RESPONSE,
    UNMOUNTED,
    RemoteNodes,
    differing_archive_suffixes,
    differing_suffixes,
)
from swift.telemetry.log import silent_log
from test.support.daemons import ScriptedNodes, make_node
from test.support.object_servers import GOLD


class Bench:
    def __init__(self):
        self.nodes = ScriptedNodes()
        self.clock = ManualClock()
        direct = DirectClient(self.nodes, "object-replicator", NodeTimeouts(1.0, 2.0))
        self.remote_nodes = RemoteNodes(direct, response_s=5.0, clock=self.clock, log=silent_log())

    def state_of(self, *replies):
        """What node 1 answers, one after another; the last one again and again."""
        left = list(replies)
        self.nodes.answers[1] = lambda _method, _path: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def bench():
    return Bench()


def told(found):
    return BackendResponse(200, {fields.BACKEND_PARTITION_DIGESTS: "true"}, json.dumps(found).encode())


# --- who is silent


def test_a_node_without_an_answer_is_not_asked_again_for_a_while(bench):
    bench.nodes.answers[1] = TransportError("refused")
    assert bench.remote_nodes.hashes(make_node(1), GOLD, 7) == (NO_RESPONSE, {})
    assert bench.remote_nodes.hashes(make_node(1), GOLD, 8) == (NO_RESPONSE, {})
    assert len(bench.nodes.requests) == 1 and bench.remote_nodes.is_absent(make_node(1))
    assert not bench.remote_nodes.is_absent(make_node(2))
    bench.clock.advance(ABSENT_S)
    bench.nodes.answers[1] = BackendResponse(200, {}, pickle.dumps({"abc": "1"}, 2))
    assert bench.remote_nodes.hashes(make_node(1), GOLD, 7) == (200, {"abc": "1"})


def test_a_new_pass_asks_the_silent_again(bench):
    bench.nodes.answers[1] = TransportError("refused")
    bench.remote_nodes.hashes(make_node(1), GOLD, 7)
    bench.remote_nodes.start_pass()
    bench.remote_nodes.hashes(make_node(1), GOLD, 7)
    assert len(bench.nodes.requests) == 2


# --- hashes of a partition


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no pickle",
        pickle.dumps([1, 2], 2),
        b"cos\nsystem\n(S'true'\ntR.",
        pickle.dumps({"abc": "1"}, 2)[:-3],
    ],
)
def test_what_are_no_hashes_is_no_answer(bench, body):
    bench.state_of(BackendResponse(200, {}, body))
    assert bench.remote_nodes.hashes(make_node(1), GOLD, 7) == (NO_RESPONSE, {})


def test_only_suffixes_are_taken_from_an_answer(bench):
    response = {"abc": "1", "../": "2", "valid": True, 5: "3", "ABC": "4", "fff": None}
    bench.state_of(BackendResponse(200, {}, pickle.dumps(response, 2)))
    assert bench.remote_nodes.hashes(make_node(1), GOLD, 7) == (200, {"abc": "1", "fff": None})


@pytest.mark.parametrize("status", [UNMOUNTED, 404, 503])
def test_another_status_is_told_as_it_is(bench, status):
    bench.state_of(BackendResponse(status, {}, pickle.dumps({"abc": "1"}, 2)))
    assert bench.remote_nodes.hashes(make_node(1), GOLD, 7) == (status, {})


# --- digests of many


def test_many_partitions_are_asked_for_at_once_and_no_others_are_believed(bench):
    bench.state_of(told({"1": "a", "2": "b", "9": "c"}))
    assert bench.remote_nodes.digests(make_node(1), GOLD, {1: None, 2: None}) == (200, {1: "a", 2: "b"})
    assert len(bench.nodes.requests) == 1


def test_those_that_a_node_could_not_tell_in_time_are_asked_for_again(bench):
    bench.state_of(told({"1": "a"}), told({"2": "b"}))
    assert bench.remote_nodes.digests(make_node(1), GOLD, {1: None, 2: None}) == (200, {1: "a", 2: "b"})


def test_a_node_that_never_tells_some_of_them_does_not_hold_anybody_up(bench):
    bench.state_of(told({}))
    assert bench.remote_nodes.digests(make_node(1), GOLD, {1: None}) == (200, {})
    assert len(bench.nodes.requests) == 2


def test_more_than_a_question_takes_are_asked_in_several(bench):
    asked = dict.fromkeys(range(digests.PARTITIONS_MAX + 1))
    bench.state_of(
        told({str(part): "x" for part in range(digests.PARTITIONS_MAX)}),
        told({str(digests.PARTITIONS_MAX): "y"}),
    )
    status, found = bench.remote_nodes.digests(make_node(1), GOLD, asked)
    assert status == 200 and len(found) == len(asked) and len(bench.nodes.requests) == 2


def test_a_server_that_knows_no_digests_is_remembered(bench):
    bench.state_of(BackendResponse(200, {}, pickle.dumps({}, 2)))
    assert bench.remote_nodes.digests(make_node(1), GOLD, {1: None}) == (200, {})
    assert bench.remote_nodes.digests(make_node(1), GOLD, {2: None}) == (200, {})
    assert len(bench.nodes.requests) == 1


@pytest.mark.parametrize("body", [b"", b"[]", b"[" * 100_000, b'{"x": "1"}', b'{"1": 5}'])
def test_digests_that_nobody_understands_are_none(bench, body):
    bench.state_of(BackendResponse(200, {fields.BACKEND_PARTITION_DIGESTS: "true"}, body))
    assert bench.remote_nodes.digests(make_node(1), GOLD, {1: None}) == (200, {})


# --- telling


def test_suffixes_are_told_in_portions_that_a_request_line_takes(bench):
    suffixes = [f"{number:03x}" for number in range(1001)]
    assert bench.remote_nodes.invalidate(make_node(1), GOLD, 7, suffixes, durable=True)
    paths = [path for _number, _method, path, _headers in bench.nodes.requests]
    assert paths == [f"/d1/7/{'-'.join(suffixes[:1000])}", "/d1/7/3e8"]
    assert all(headers[fields.BACKEND_MAKE_DURABLE] == "true" for *_, headers in bench.nodes.requests)


@pytest.mark.parametrize("response", [507, TransportError("away")])
def test_a_node_that_took_no_note_is_told(bench, response):
    bench.nodes.answers[1] = response
    assert not bench.remote_nodes.invalidate(make_node(1), GOLD, 7, ["abc"], durable=False)


# --- comparing


def test_what_differs_is_what_the_other_lacks_or_has_otherwise():
    assert differing_suffixes({"a": "1", "b": "2", "c": None}, {"a": "1", "b": "3", "d": "4"}) == ["b", "c"]
    assert differing_archive_suffixes({"a": {None: "d", 0: "x"}}, 0, {"a": {None: "d", 1: "x"}}, 1) == []
    assert differing_archive_suffixes({"a": {None: "d", 0: "x"}}, 0, {"a": "nonsense"}, 1) == ["a"]
