"""Roots are asked by way of a pipeline; shards and roots are told at all their nodes, a majority hears."""

from __future__ import annotations

import json

import pytest

from swift.base.hashing import PathHasher
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.cluster.direct import DirectClient, NodeTimeouts
from swift.cluster.transport import TransportError
from swift.container.rows import ObjectRow
from swift.container.sharding.roots import Roots
from swift.gateway.internal_client import InternalClient
from swift.http.response import Response
from test.support.daemons import ScriptedNodes, make_node

STAMP = Timestamp(100).internal
ROOT = "AUTH_t/c ö"


def shard(number, lower="", upper=""):
    return ShardRange(f".shards_AUTH_t/c-{number}", STAMP, lower, upper, state=State.ACTIVE)


class ThreeNodes:
    """A ring in which everything is on the same three."""

    def nodes(self, _digest):
        return 7, (make_node(0), make_node(1), make_node(2))


class Bench:
    def __init__(self):
        self.nodes = ScriptedNodes()
        self.asked = []
        self.answer = Response(404)
        direct = DirectClient(self.nodes, "sharder", NodeTimeouts(1.0, 2.0))
        client = InternalClient(self._forward, "sharder", tries=1)
        self.roots = Roots(client, direct, ThreeNodes(), PathHasher(b"", b"suffix"))

    def _forward(self, request):
        self.asked.append(request)
        return self.answer

    def says(self, body, record_type="shard"):
        self.answer = Response(200, {"x-backend-record-type": record_type}, body)


@pytest.fixture
def bench():
    return Bench()


# --- asking


def test_the_root_is_asked_for_the_part_of_a_shard_with_deleted_ranges(bench):
    bench.says(json.dumps([shard(1, "a", "m").as_dict()]).encode())
    found = bench.roots.auditing_ranges(ROOT, shard(1, "a&b", "m/ö"))
    assert [(item.name, item.lower, item.upper) for item in found] == [(shard(1).name, "a", "m")]
    request = bench.asked[0]
    assert request.query == "format=json&states=auditing&marker=a%26b&end_marker=m%2F%C3%B6"
    assert request.headers["x-backend-include-deleted"] == "true"
    assert request.headers["x-newest"] == "true"


def test_shards_that_take_rows_are_those_that_meet_their_names(bench):
    found = [shard(1, "", "f"), shard(2, "f", "p"), shard(3, "p", "")]
    bench.says(json.dumps([item.as_dict() for item in found]).encode())
    assert [item.name for item in bench.roots.updating_ranges(ROOT, "g", "h")] == [
        shard(1).name,
        shard(2).name,
    ]


@pytest.mark.parametrize(
    "body", [b"", b"no JSON", b"[1]", b"5", b"null", b'{"a": 1}', b'[{"name": "x"}]', b"[" * 100_000]
)
def test_an_answer_that_is_no_list_of_ranges_is_none(bench, body):
    bench.says(body)
    assert bench.roots.auditing_ranges(ROOT, shard(1)) == []


def test_an_answer_of_objects_is_not_taken_for_ranges(bench):
    bench.says(json.dumps([shard(1).as_dict()]).encode(), record_type="object")
    assert bench.roots.auditing_ranges(ROOT, shard(1)) == []


def test_a_root_that_has_gone_has_no_ranges(bench):
    assert bench.roots.auditing_ranges(ROOT, shard(1)) == []


# --- telling


def test_a_shard_is_made_with_its_root_and_policy_on_all_its_nodes(bench):
    assert bench.roots.create_shard(shard(1), ROOT, 3)
    assert bench.nodes.asked == [0, 1, 2]
    _number, method, path, headers = bench.nodes.requests[0]
    assert (method, path) == ("PUT", "/d0/7/.shards_AUTH_t/c-1")
    assert headers["x-backend-storage-policy-index"] == "3"
    assert headers["x-container-sysmeta-shard-quoted-root"] == "AUTH_t/c%20%C3%B6"
    assert headers["x-backend-auto-create"] == "true"
    assert headers["x-backend-record-type"] == "shard"


@pytest.mark.parametrize(
    ("answers", "heard"),
    [
        ({}, True),
        ({0: 507}, True),
        ({0: 507, 1: TransportError("away")}, False),
        ({0: 404, 1: 404, 2: 404}, False),
    ],
)
def test_a_majority_must_hear(bench, answers, heard):
    bench.nodes.answers = answers
    assert bench.roots.tell_shard(shard(1), [shard(2)], ROOT) is heard
    assert bench.roots.tell_root(ROOT, [shard(2)], shard(1).name) is heard
    assert bench.roots.tell_replicas(ROOT, [shard(2)]) is heard


def test_who_tells_is_said(bench):
    bench.roots.tell_root(ROOT, [shard(1)], ".shards_AUTH_t/ü")
    assert bench.nodes.requests[0][3]["referer"] == ".shards_AUTH_t/%C3%BC"


def test_rows_are_counted_by_the_nodes_that_have_them_all(bench):
    bench.nodes.answers = {1: 404}
    rows = [ObjectRow("ö", STAMP, 1, "t", "e")]
    assert bench.roots.merge_rows(ROOT, rows, [shard(1)], Timestamp(200)) == 2
    sent = {number: [] for number in range(3)}
    for number, method, *_ in bench.nodes.requests:
        sent[number].append(method)
    # Who has not heard whose they are gets none.
    assert sent == {0: ["PUT", "UPDATE"], 1: ["PUT"], 2: ["PUT", "UPDATE"]}
