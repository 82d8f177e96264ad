"""One node that takes an upload: a failure takes it out, and only it; others stand in at the opening."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import ZERO, Timestamp
from swift.http import fields
from swift.proxy.obj.commit.targets import (
    TargetOpener,
    UploadTarget,
    final_responses,
    open_targets,
    without_version_conditions,
)
from swift.wire import etagtrailer, reservation
from test.support.daemons import make_node
from test.support.object_servers import StubCluster, StubNode


class Nodes:
    """The nodes in their order; ``avoided`` come only when they are asked for."""

    def __init__(self, *numbers, avoided=()):
        self.uses_avoided = False
        self._left = list(numbers)
        self._avoided = list(avoided)
        self._given = list(numbers)

    def defer(self, which):
        if which.id not in self._given:
            return False
        self._given.remove(which.id)
        self._avoided.append(which.id)
        return True

    def __iter__(self):
        return self

    def __next__(self):
        if self._left:
            return make_node(self._left.pop(0))
        if self.uses_avoided and self._avoided:
            return make_node(self._avoided.pop(0))
        raise StopIteration


TARGET = SimpleNamespace(part=7, path=EntityPath("a", "c", "o"))


def sink(talk, **more):
    cluster = StubCluster()
    made = UploadTarget(make_node(1), talk, {}, cluster, **more)
    return made, cluster


def opening(cluster, nodes, **more):
    return TargetOpener(cluster, TARGET, nodes, None, **more)


# --- one of them


def test_bytes_go_out_in_order_and_empty_ones_do_not():
    talk = StubNode()
    made, _ = sink(talk)
    made.send(b"ab", b"", b"cd")
    made.finish(b"e")
    assert talk.sent == [b"ab", b"cd", b"e"]
    assert made.final_response().status == 201


@pytest.mark.parametrize("what", ["send", "finish", "wait", "reply"])
def test_a_failure_takes_it_out_and_nothing_is_sent_any_more(what):
    talk = StubNode(fails=(what,))
    made, cluster = sink(talk)
    made.send(b"ab")
    made.finish()
    made.await_stored()
    assert made.final_response() is None
    made.send(b"late")
    assert b"late" not in talk.sent or what == "reply"
    assert [number for number, _ in cluster.failures] == [1]


def test_trailers_go_only_to_who_believes_our_md5():
    for headers, trailers in (({}, None), ({etagtrailer.OFFER: etagtrailer.CRC32}, {"x-a": "1"})):
        talk = StubNode()
        talk.continue_headers = headers
        made, _ = sink(talk)
        made.finish(trailers={"x-a": "1"})
        assert talk.trailers == trailers


def test_a_node_that_has_everything_says_whom_it_promised_the_object_to():
    offered = {reservation.OFFER: "yes"}
    for said, held, holder in (
        ({reservation.HELD: "yes"}, True, ZERO),
        ({reservation.HELD: Timestamp(9).internal}, False, Timestamp(9)),
        ({reservation.HELD: "nonsense"}, False, ZERO),
    ):
        talk = StubNode(said)
        talk.continue_headers = offered
        made, _ = sink(talk)
        made.await_stored()
        assert (made.is_stored, made.is_reserved, made.reserved_for) == (True, held, holder)


def test_a_node_of_another_make_holds_what_it_stored():
    made, _ = sink(StubNode({}))
    made.await_stored()
    assert made.is_stored and made.is_reserved and made.predecessor is None


def test_a_refusal_instead_of_waiting_is_kept_as_the_answer():
    made, cluster = sink(StubNode(412))
    made.await_stored()
    assert not made.alive and (made.refusal.status, made.refusal.body) == (412, b"text")
    assert cluster.judged == [(1, 412)]


def test_a_promise_is_given_back_only_where_there_is_one():
    for headers, expected in (({}, []), ({reservation.OFFER: "yes"}, [b"release"])):
        talk = StubNode({reservation.HELD: "yes"})
        talk.continue_headers = headers
        made, _ = sink(talk)
        made.await_stored()
        made.release(b"release")
        assert talk.sent == expected


def test_who_is_left_is_not_waited_for_unless_its_answer_is_being_read():
    talk = StubNode()
    made, _ = sink(talk)
    made.awaited = True
    made.abandon()
    assert not talk.is_aborted
    made.awaited = False
    made.exclude()
    assert talk.is_aborted and not made.alive


# --- opening


def test_a_node_for_every_attempt_and_others_for_those_that_fail():
    cluster = StubCluster(
        n1=StubNode(), n2=StubNode(fails=("wait",)), n3=StubNode(503), n4=StubNode(), n5=StubNode()
    )
    sinks, responses = open_targets(opening(cluster, Nodes(1, 2, 3, 4, 5)), [{}, {}, {}], 2)
    assert sorted(each.node.id for each in sinks) == [1, 4, 5] and responses == []
    assert [number for number, _ in cluster.failures] == [2] and (3, 503) in cluster.judged


def test_silent_nodes_are_waited_for_only_when_the_others_are_too_few():
    cluster = StubCluster(**{f"n{number}": StubNode() for number in range(1, 5)})
    cluster.unresponsive = {1, 4}
    sinks, _ = open_targets(opening(cluster, Nodes(1, 2, 3, 4)), [{}, {}, {}], 2)
    assert sorted(each.node.id for each in sinks) == [2, 3]
    cluster.unresponsive.add(3)
    sinks, _ = open_targets(opening(cluster, Nodes(1, 2, 3, 4)), [{}, {}, {}], 3)
    assert sorted(each.node.id for each in sinks) == [1, 2, 3]


def test_an_answer_below_500_is_an_answer_and_507_means_no_room():
    cluster = StubCluster(n1=StubNode(412), n2=StubNode(507), n3=StubNode())
    asked = opening(cluster, Nodes(1, 2, 3))
    sinks, responses = open_targets(asked, [{}, {}], 1)
    assert [response.status for response in responses] == [412]
    assert [each.node.id for each in sinks] == [3] and [full.id for full in asked.full_nodes] == [2]
    assert cluster.talks[1].is_aborted


def test_avoided_nodes_are_asked_when_the_others_are_too_few():
    cluster = StubCluster(n1=StubNode(), n8=StubNode(), n9=StubNode())
    sinks, _ = open_targets(opening(cluster, Nodes(1, avoided=(8, 9))), [{}, {}, {}], 2)
    assert sorted(each.node.id for each in sinks) == [1, 8, 9]
    cluster = StubCluster(n1=StubNode(), n2=StubNode(), n9=StubNode())
    sinks, _ = open_targets(opening(cluster, Nodes(1, 2, avoided=(9,))), [{}, {}, {}], 2)
    assert sorted(each.node.id for each in sinks) == [1, 2], "two are enough"


def test_a_handoff_is_not_asked_for_a_version_that_it_never_heard_of():
    asked = {"if-match": "e", fields.BACKEND_IF_PREDECESSOR: "1", "if-none-match": "*"}
    assert without_version_conditions(asked) == {"if-none-match": "*"}


# --- the end


def test_so_many_final_answers_as_agree_are_enough():
    sinks = [UploadTarget(make_node(n), StubNode(final=201), {}, StubCluster()) for n in (1, 2)]
    sinks.append(UploadTarget(make_node(3), StubNode(fails=("reply",)), {}, StubCluster()))
    sinks.append(UploadTarget(make_node(4), StubNode(), {}, StubCluster()))
    sinks[3].alive = False
    responses = final_responses(sinks, 2, 0.1)
    assert [response.status for response in responses] == [201, 201]
