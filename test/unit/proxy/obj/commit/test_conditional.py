"""What is known of a conditional change before its body is read, and who may judge it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.response import HTTPError
from swift.proxy.obj.commit.conditional import (
    NewerVersionKnown,
    TooFewNodes,
    VersionsDiffer,
    check_early,
    check_reserving,
    commit_conditionally,
    is_conditional,
)
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.proxy.obj.commit.targets import UploadTarget
from swift.wire import reservation
from test.support.daemons import make_node
from test.support.object_servers import StubCluster, StubNode

MAJORITY, NEED = 2, 2


def refusal(version, status=412, *, at=None):
    said = {} if version is None else reservation.version_headers(Timestamp(version))
    return BackendResponse(status, headers=said, node=at or make_node(1))


def newer(version):
    said = {} if version is None else {fields.BACKEND_TIMESTAMP: version}
    return BackendResponse(409, headers=said, node=make_node(2))


def sinks(*versions, index=0):
    return [
        SimpleNamespace(
            node=SimpleNamespace(index=index), predecessor=None if version is None else Timestamp(version)
        )
        for version in versions
    ]


def outcome(early, taking):
    try:
        check_early(early, taking, MAJORITY, NEED)
    except (HTTPError, NewerVersionKnown, VersionsDiffer) as error:
        return error.response.status if isinstance(error, HTTPError) else type(error)
    return None


@pytest.mark.parametrize(
    ("headers", "conditional"),
    [
        ({"if-match": "e"}, True),
        ({"if-none-match": "*"}, True),
        ({fields.BACKEND_IF_PREDECESSOR: "1"}, True),
        ({fields.BACKEND_OBJECT_LOCK: "check"}, True),
        ({"if-modified-since": "x"}, False),
        ({}, False),
    ],
)
def test_which_changes_have_conditions(headers, conditional):
    assert is_conditional(headers) is conditional


@pytest.mark.parametrize(
    ("headers", "promising", "weak", "refused"),
    [
        ({"if-none-match": "*"}, (True, True), False, False),
        ({"if-none-match": "*"}, (True, False), False, True),
        ({"if-none-match": "*"}, (True, False), True, False),
        ({"if-match": "e"}, (True, False), True, True),
        ({fields.BACKEND_IF_PREDECESSOR: "1"}, (True, False), True, True),
        ({fields.BACKEND_OBJECT_LOCK: "check"}, (False,), True, True),
    ],
)
def test_a_condition_that_a_node_cannot_keep_is_501(headers, promising, weak, refused):
    nodes = [SimpleNamespace(can_reserve=promises) for promises in promising]
    if not refused:
        check_reserving(headers, nodes, may_be_weak=weak)
        return
    with pytest.raises(HTTPError) as told:
        check_reserving(headers, nodes, may_be_weak=weak)
    assert told.value.response.status == 501


@pytest.mark.parametrize(
    ("early", "taking", "result"),
    [
        ([], sinks(1, 1, 1), None),
        ([BackendResponse(404, node=make_node(1))], sinks(1, 1), None),
        # A node of the peer decides alone.
        ([refusal(None)], sinks(1, 1), 412),
        ([refusal(None, 403), refusal(5)], sinks(1), 403),
        # A majority of the primaries judge by the same version.
        ([refusal(5), refusal(5)], sinks(5), 412),
        ([refusal(5), refusal(5, 403)], sinks(5), 403),
        # One of three refuses, the others may know better or not.
        ([refusal(5)], sinks(5, 5), None),
        ([refusal(5)], sinks(4, 4), VersionsDiffer),
        ([refusal(4)], sinks(5, 5), None),
        ([refusal(5)], sinks(5), VersionsDiffer),
        ([refusal(5), refusal(4)], sinks(3, 3), VersionsDiffer),
        # Somebody knows something newer.
        ([newer(Timestamp(9).internal)], sinks(1, 1), NewerVersionKnown),
        ([newer("nonsense")], sinks(1, 1), None),
        ([newer(None)], sinks(1, 1), None),
        # Handoffs prove nothing by what they lack.
        ([refusal(None, at=SimpleNamespace(index=None))], sinks(1, 1), None),
        ([refusal(5), refusal(5, at=SimpleNamespace(index=None))], sinks(4, 4), VersionsDiffer),
    ],
)
def test_what_is_known_before_the_body_is_read(early, taking, result):
    assert outcome(early, taking) == result


def test_what_handoffs_take_is_no_vote():
    assert outcome([refusal(5)], [*sinks(5), *sinks(5, index=None)]) is None
    assert outcome([refusal(5)], sinks(5, 5, index=None)) is VersionsDiffer


def test_an_outdated_writer_is_told_of_the_newest_version():
    early = [newer(Timestamp(9).internal), newer(Timestamp(7).internal), newer("nonsense")]
    with pytest.raises(NewerVersionKnown) as told:
        check_early(early, sinks(1, 1), MAJORITY, NEED)
    assert told.value.newer == Timestamp(9)


# --- the decision


YES = reservation.failure_headers(None, Timestamp(3))
TARGET = SimpleNamespace(majority=MAJORITY)


def decide(*talks, early=()):
    """Three nodes that say this; what came of it, and what each was told."""
    documents = MultipartFraming(commit=True, reserve=True, has_object=False)
    taking = []
    for number, talk in enumerate(talks):
        talk.continue_headers = {reservation.OFFER: "yes"}
        taking.append(UploadTarget(make_node(number), talk, {}, StubCluster()))
    try:
        made = commit_conditionally(
            TARGET, taking, documents, writer=Timestamp(10), early=early, need=NEED, grace_s=1.0
        )
        result = sorted(response.status for response in made)
    except HTTPError as error:
        result = error.response.status
    except (NewerVersionKnown, VersionsDiffer, TooFewNodes) as error:
        result = type(error)
    return result, [b"put commit" in b"".join(talk.sent) for talk in talks]


def test_what_a_majority_promised_is_carried_out_everywhere():
    result, committed = decide(StubNode(YES), StubNode(YES), StubNode(YES))
    assert result[:2] == [201, 201] and committed == [True, True, True]


def test_what_all_nodes_refuse_is_refused_and_nobody_commits():
    assert decide(StubNode(412), StubNode(412), StubNode(412)) == (412, [False] * 3)


def test_when_nodes_vanish_nobody_commits():
    gone = StubNode(fails=("wait",))
    assert decide(StubNode(YES), gone, StubNode(fails=("wait",))) == (TooFewNodes, [False] * 3)


def test_when_nodes_judged_by_different_versions_nobody_commits():
    other = reservation.failure_headers(None, Timestamp(4))
    assert decide(StubNode(other), StubNode(YES), StubNode(YES)) == (VersionsDiffer, [False] * 3)


def test_when_a_node_vanishes_after_the_order_nobody_knows():
    lost = [StubNode(YES, fails=("reply",)) for _ in range(3)]
    assert decide(*lost)[0] == 503


def test_one_refusal_of_another_make_decides():
    assert decide(StubNode(YES), StubNode(YES), early=[refusal(None, 403)]) == (403, [False] * 2)
