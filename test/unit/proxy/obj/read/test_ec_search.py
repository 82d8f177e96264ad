"""Enough archives of one upload are found among what nodes have, or it is known why not."""

from __future__ import annotations

import pytest

from swift import green
from swift.base.entity import EntityPath
from swift.cluster.transport import NodeTimeouts
from swift.http import fields
from swift.proxy.obj.read.ec_search import FragmentSearch
from swift.proxy.reading import ReadPlan
from swift.proxy.settings import ProxySettings
from test.support.object_servers import NEW, OLD, FragmentCluster, Nodes, archive, missing

PATH = EntityPath("a", "c", "o")
NEED = 2
TIMEOUTS = NodeTimeouts(1.0, 1.0)


def search(*answers, handoffs=0, newest=False, need=NEED, **settings):
    cluster = FragmentCluster(answers)
    looked = FragmentSearch(
        cluster,
        ProxySettings(**settings),
        ReadPlan("GET", PATH, 1, {}, "", newest, TIMEOUTS),
        Nodes(len(answers) - handoffs, handoffs),
        need,
        byte_range=None,
    )
    return looked, looked.find(), cluster


def found(*answers, **more):
    """The indexes that were found and the nodes that were asked; nothing else stays open."""
    looked, chosen, cluster = search(*answers, **more)
    for _ in answers:
        # Those that answer late are closed late.
        green.sleep()
    kept = [] if chosen is None else [holding.source for holding in chosen.members.values()]
    left_open = [
        response
        for response in cluster.every
        if not response.stream.is_closed and response.stream.remaining_bytes
    ]
    asked = [
        response
        for response in left_open
        if not any(response in responses for responses in cluster.responses)
    ]
    assert len(asked) == len(kept)
    return (None if chosen is None else sorted(chosen.members)), cluster.asked


def failure(*answers, **more):
    looked, chosen, _ = search(*answers, **more)
    assert chosen is None
    return looked.failure()


def test_as_many_nodes_are_asked_as_archives_are_needed():
    assert found(archive(0), archive(1), archive(2)) == ([0, 1], [0, 1])


def test_a_failing_node_is_replaced_by_one_more():
    assert found(None, archive(1), archive(2)) == ([1, 2], [0, 1, 2])
    assert found(missing(), missing(status=507), archive(2), archive(3)) == ([2, 3], [0, 1, 2, 3])


def test_two_of_the_same_archive_are_one():
    assert found(archive(0), archive(0), archive(2)) == ([0, 2], [0, 1, 2])


def test_another_node_is_asked_for_one_that_has_fallen_silent():
    cluster = FragmentCluster((archive(0), archive(1), archive(2), archive(3)))
    answers_late, response = green.Event(), cluster.response
    cluster.unresponsive = {0}

    def answer(to):
        if to.id in (0, 1):
            answers_late.wait(5)
        return response(to)

    cluster.response = answer
    looked = FragmentSearch(
        cluster,
        ProxySettings(),
        ReadPlan("GET", PATH, 1, {}, "", False, TIMEOUTS),
        Nodes(4, 0),
        NEED,
        byte_range=None,
        patience_s=0.01,
    )
    task = green.spawn(looked.find)
    while len(cluster.asked) < 3:
        green.sleep(0.01)
    green.sleep(0.3)
    assert cluster.asked == [0, 1, 2], "the one that is only busy is waited for"
    assert cluster.suspected >= {0, 1}
    cluster.unresponsive.add(1)
    chosen = task.wait()
    assert sorted(chosen.members) == [2, 3]
    answers_late.set()


def test_archives_of_different_uploads_do_not_make_an_object():
    assert found(archive(0, NEW), archive(1, OLD), archive(2, OLD)) == ([1, 2], [0, 1, 2])
    assert found(archive(0, etag="e"), archive(1, etag="other"), archive(2, etag="e")) == ([0, 2], [0, 1, 2])
    assert failure(archive(0, NEW), archive(1, OLD), need=2).status == 503


def test_what_was_never_committed_is_not_there():
    pending = [archive(n, durable=False) for n in range(3)]
    assert failure(*pending).status == 404


def test_one_committed_archive_speaks_for_the_others():
    assert found(archive(0, durable=False), archive(1)) == ([0, 1], [0, 1])


def test_a_node_with_several_archives_is_asked_again_for_the_one_that_is_missing():
    listed = {OLD.internal: [0, 1]}
    responses = ((archive(0, listed=listed), archive(1)), None, None)
    chosen, asked = found(*responses)
    assert chosen == [0, 1]
    assert asked.count(0) == 2


def test_nodes_are_told_what_is_there_already():
    _, _, cluster = search(archive(0), None, archive(2))
    assert cluster.preferences[0] == cluster.preferences[1] != cluster.preferences[2]
    assert cluster.preferences[2][0]["exclude"] == [0]


def test_who_wants_the_newest_asks_all_primaries():
    responses = [archive(0), archive(1), archive(0, NEW), archive(1, NEW)]
    assert found(*responses, newest=True) == ([0, 1], [0, 1, 2, 3])
    _, chosen, _ = search(*[archive(0), archive(1), archive(0, NEW), archive(1, NEW)], newest=True)
    assert chosen.timestamp == NEW


def test_what_is_older_than_a_known_deletion_is_gone():
    response = failure(missing(NEW), archive(1, OLD), archive(2, OLD))
    assert response.status == 404
    assert response.headers[fields.BACKEND_TIMESTAMP] == NEW.internal
    assert found(missing(OLD), archive(1, NEW), archive(2, NEW))[0] == [1, 2]


@pytest.mark.parametrize("stamp", ["nonsense", "-1", "nan", "9" * 5000, ""])
def test_a_deletion_whose_time_nobody_can_read_deletes_nothing(stamp):
    assert found(missing(stamp), archive(1), archive(2))[0] == [1, 2]


def test_what_is_durable_but_not_complete_is_503_and_not_404():
    assert failure(archive(0), missing(), missing()).status == 503


def test_handoffs_that_never_heard_of_it_do_not_say_that_it_is_not_there():
    assert failure(None, None, None, missing(), missing(), missing(), handoffs=3).status == 503


@pytest.mark.parametrize(
    ("responses", "status"),
    [
        ([missing()] * 3, 404),
        ([None] * 3, 503),
        ([missing(), missing(), None], 404),
        ([missing(), None, None], 503),
        ([missing(status=500)] * 3, 503),
    ],
)
def test_what_most_nodes_say_is_the_answer(responses, status):
    assert failure(*responses).status == status


def test_after_a_rebalance_some_404s_prove_nothing():
    assert failure(missing(), missing(), None, rebalance_missing_suppression_count=0).status == 404
    assert failure(missing(), missing(), None, rebalance_missing_suppression_count=2).status == 503


@pytest.mark.parametrize(
    "odd",
    [
        {fields.SYSMETA_EC_FRAG_INDEX: ""},
        {fields.SYSMETA_EC_FRAG_INDEX: "-1"},
        {fields.SYSMETA_EC_FRAG_INDEX: "²"},
        {fields.SYSMETA_EC_FRAG_INDEX: "9" * 5000},
        {fields.SYSMETA_EC_ETAG: ""},
        {fields.BACKEND_DATA_TIMESTAMP: "nonsense"},
        {fields.BACKEND_DURABLE_TIMESTAMP: "nonsense"},
    ],
)
def test_an_answer_that_says_nonsense_of_its_archive_is_passed_over(odd):
    assert found(archive(0, **odd), archive(1), archive(2))[0] == [1, 2]


@pytest.mark.parametrize(
    "listed",
    [
        "nonsense",
        "[]",
        "null",
        "{}",
        '{"nonsense": [1]}',
        f'{{"{OLD.internal}": 5}}',
        f'{{"{OLD.internal}": null}}',
        f'{{"{OLD.internal}": [[1]]}}',
        f'{{"{OLD.internal}": ["x", 1, null, true]}}',
        f'{{"{OLD.internal}": "12"}}',
        f'{{"{OLD.internal}": [1.5, "1", {{}}]}}',
        f'{{"{OLD.internal}": [NaN, -1, 1e400]}}',
        "[" * 4000,
    ],
)
def test_a_node_that_lists_nonsense_is_believed_what_it_gave(listed):
    assert found(archive(0, listed=listed), None, archive(2))[0] == [0, 2]


def test_an_object_that_is_being_replaced_is_moving():
    looked, chosen, _ = search(archive(0, OLD), archive(1, NEW), None)
    assert chosen is None and looked.may_appear
    looked, _, _ = search(archive(0), None, None)
    assert not looked.may_appear


def test_an_archive_may_have_gone_home_after_its_primary_was_asked():
    looked, chosen, _ = search(missing(), archive(1), None, missing(), handoffs=1)
    assert chosen is None and looked.may_appear
    looked, _, _ = search(missing(), archive(1, durable=None), None, missing(), handoffs=1)
    assert not looked.may_appear
    looked, _, _ = search(None, archive(1), None, missing(), handoffs=1)
    assert not looked.may_appear, "handoffs are nobody's home"


def test_more_nodes_than_needed_may_be_asked_at_once():
    requests = found(*[archive(n) for n in range(5)], concurrent_gets=True, concurrent_ec_extra_requests=1)[1]
    assert requests == [0, 1, 2]
