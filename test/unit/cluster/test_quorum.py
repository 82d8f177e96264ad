"""Agreeing on one answer: the tables of proxy.md §8 and §9."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.cluster.quorum import (
    WriteQuorum,
    best_status,
    container_update_count,
    fill_missing,
    half,
    majority,
)
from test.support.checks import every


@pytest.mark.parametrize(
    ("count", "least", "most"),
    [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 3), (5, 3, 3), (6, 3, 4), (7, 4, 4), (8, 4, 5)],
)
def test_a_majority_is_more_than_half(count, least, most):
    assert (half(count), majority(count)) == (least, most)


def test_a_quorum_is_within_reach_as_long_as_enough_could_still_agree():
    quorum = WriteQuorum(3, 2)
    assert [quorum.is_reachable(waiting) for waiting in range(4)] == [False, False, True, True]
    quorum.add(201)
    assert [quorum.is_reachable(waiting) for waiting in range(3)] == [False, True, True]
    quorum.add(404)
    assert [quorum.is_reachable(waiting) for waiting in range(2)] == [False, True]
    quorum.add(201)
    assert quorum.is_reachable(0)


@pytest.mark.parametrize(
    ("statuses", "best"),
    [
        ([201, 201, 503], 201),
        ([201, 202, 503], 202),
        ([404, 409, 503], 409),
        ([201, 404, 503], None),
        ([404, 404, 204], 404),
        ([503, 503, 404], None),
        ([503, 503, 503], None),
        ([304, 304, 200], 304),
        ([], None),
    ],
)
def test_the_best_of_three(statuses, best):
    position = best_status(statuses, 2)
    assert (None if position is None else statuses[position]) == best


@pytest.mark.parametrize(
    ("statuses", "best"), [([204, 404, 503], 204), ([404, 404, 204], 404), ([404, 503, 503], None)]
)
def test_a_delete_counts_404_as_204_only_when_needed(statuses, best):
    position = best_status(statuses, 2, {404: 204})
    assert (None if position is None else statuses[position]) == best


@given(st.lists(st.sampled_from([200, 201, 204, 304, 404, 409, 412, 500, 503, 507]), max_size=7))
def test_the_best_answer_has_a_quorum_behind_it_and_does_not_depend_on_order(statuses):
    need = half(len(statuses))
    position = best_status(statuses, need)
    if position is not None:
        hundred = statuses[position] // 100
        assert hundred < 5
        assert sum(1 for s in statuses if s // 100 == hundred) >= need
    again = sorted(statuses, reverse=True)
    other = best_status(again, need)
    assert (position is None) == (other is None)
    assert position is None or statuses[position] == again[other]


def test_the_decider_stops_at_a_quorum_and_prints_why():
    decider = WriteQuorum(3, 2)
    assert str(decider) == "0/3 need 2: [] waiting"
    decider.add(201)
    assert not decider.reached
    decider.add(404)
    assert not decider.reached
    decider.add(202)
    assert decider.reached and decider.complete
    assert str(decider) == "3/3 need 2: [201 404 202] quorum"


def test_server_errors_never_make_a_quorum():
    decider = WriteQuorum(3, 2)
    for _ in range(3):
        decider.add(503)
    assert not decider.reached
    assert str(decider).endswith("complete")


def test_missing_answers_count_as_503():
    assert fill_missing([201], 3) == [201, 503, 503]


@pytest.mark.parametrize(
    ("containers", "objects", "quorum", "updates"),
    [(3, 3, 2, 3), (3, 4, 2, 4), (3, 14, 11, 5), (3, 6, 5, 3), (4, 3, 2, 4), (3, 2, 1, 3)],
)
def test_container_update_counts(containers, objects, quorum, updates):
    assert container_update_count(containers, half(containers), objects, quorum) == updates


@pytest.mark.parametrize("containers", [2, 3, 4, 5])
@pytest.mark.parametrize("objects", [2, 3, 4, 5, 14])
def test_enough_rows_are_sent_whichever_majority_of_the_objects_answers(containers, objects):
    need = majority(objects)
    sent = container_update_count(containers, majority(containers), objects, need)
    assert sent - (objects - need) >= majority(containers)
    assert sent >= containers


@every("status", [200, 299, 300, 399, 400, 499])
@every("other", [200, 299, 300, 399, 400, 499])
def test_hundreds_end_where_the_next_begin(status, other):
    same = status // 100 == other // 100
    best = best_status([status, other, 500], 2)
    assert best is None if not same else (status, other)[best] == max(status, other)
