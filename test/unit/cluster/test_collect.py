"""Hearing many nodes: as they arrive, until it is enough, a moment longer, and what becomes of the late."""

import time

import pytest

from swift import green
from swift.cluster.collect import ResultQueue, Until, collect
from swift.cluster.quorum import WriteQuorum

ALL_RESULTS = Until(lambda: False)


def after(seconds, value):
    green.sleep(seconds)
    return value


def asked(*answers):
    """Arrivals of values, each after its seconds."""
    arrivals = ResultQueue()
    for seconds, value in answers:
        arrivals.start(after, seconds, value, default=None)
    return arrivals


def test_everything_arrives_in_its_order():
    arrivals = asked((0.02, "late"), (0.0, "early"), (0.01, "between"))
    assert repr(arrivals) == "<Arrivals 3 awaited>"
    assert list(collect(arrivals, ALL_RESULTS)) == ["early", "between", "late"]
    assert arrivals.waiting == 0


def test_nothing_is_awaited_where_nobody_was_asked():
    assert list(collect(ResultQueue(), ALL_RESULTS)) == []


@pytest.mark.parametrize(
    ("grace_s", "received"), [(0.0, [201, 201]), (0.03, [201, 201, 404]), (5.0, [201, 201, 404, 500])]
)
def test_once_it_is_enough_the_rest_has_a_moment(grace_s, received):
    arrivals = asked((0.0, 201), (0.0, 201), (0.005, 404), (0.3, 500))
    decider = WriteQuorum(4, 2)
    found = []
    for status in collect(arrivals, decider, grace_s=grace_s):
        decider.add(status)
        found.append(status)
    assert found == received


def test_the_moment_begins_with_the_answer_that_was_enough():
    arrivals = asked((0.0, 1), (0.02, 2), (0.04, 3), (0.5, 4))
    found, began = [], time.monotonic()
    for value in collect(arrivals, Until(lambda: bool(found)), grace_s=0.06):
        found.append(value)
    assert found == [1, 2, 3]
    assert time.monotonic() - began < 0.3


def test_who_raises_is_heard_of_too():
    def fails():
        raise RuntimeError("broken")

    arrivals = asked((0.01, "well"))
    arrivals.start(fails, default="failed")
    assert list(collect(arrivals, ALL_RESULTS)) == ["failed", "well"]


def test_more_may_be_started_for_what_is_heard():
    arrivals = asked((0.0, 3))
    found = []
    for value in collect(arrivals, ALL_RESULTS):
        found.append(value)
        if value:
            arrivals.start(after, 0.0, value - 1, default=None)
    assert found == [3, 2, 1, 0]


def test_more_may_be_started_while_nobody_says_anything():
    arrivals = asked((0.6, "slow"))
    quick = iter(["first", "second"])

    def start():
        value = next(quick, None)
        if value is not None:
            arrivals.start(after, 0.0, value, default=None)
        return value is not None

    assert list(collect(arrivals, ALL_RESULTS, pause_s=0.01, on_quiet=start)) == ["first", "second", "slow"]


def test_who_has_nothing_to_start_is_asked_again_only_after_an_arrival():
    arrivals = asked((0.3, 1), (0.6, 2))
    calls = []

    def start():
        calls.append(arrivals.waiting)
        return False

    assert list(collect(arrivals, ALL_RESULTS, pause_s=0.005, on_quiet=start)) == [1, 2]
    assert calls == [2, 1]


def test_what_comes_too_late_is_released():
    arrivals = asked((0.0, "first"), (0.01, "late"), (0.02, "later"))
    first = next(collect(arrivals, ALL_RESULTS))
    released = []
    arrivals.abandon(released.append)
    assert (first, arrivals.waiting, released) == ("first", 0, [])
    deadline = time.monotonic() + 60
    while len(released) < 2 and time.monotonic() < deadline:
        green.sleep(0.005)
    assert released == ["late", "later"]
