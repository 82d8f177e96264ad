"""Which nodes are asked in which order, and which are left alone."""

import random
from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.cluster.health import ErrorLimiter
from swift.cluster.placement import (
    NodeIterator,
    Sorting,
    Timings,
    local_first,
    parse_node_count,
    parse_read_affinity,
    parse_write_affinity,
)
from swift.cluster.pool import ConnectionPool


def node(number, region=1, zone=1):
    return SimpleNamespace(
        id=number, ip=f"10.0.0.{number}", region=region, zone=zone, key=f"10.0.0.{number}:6200/sda"
    )


def nodes(*numbers):
    return [node(n) for n in numbers]


def ids(found):
    return [n.id for n in found]


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def limiter(clock):
    return ErrorLimiter(clock, limit=3, interval_s=60)


# --- error limiting -----------------------------------------------------------------------------------


def test_a_node_is_limited_after_more_errors_than_allowed_and_for_the_interval(clock, limiter):
    bad = node(1)
    assert [limiter.failed(bad) for _ in range(4)] == [False, False, False, True]
    assert limiter.is_limited(bad)
    clock.advance(59)
    assert limiter.is_limited(bad)
    clock.advance(1)
    assert not limiter.is_limited(bad)
    assert not limiter.failed(bad), "everything before is forgotten"


def test_the_interval_runs_from_the_last_error(clock, limiter):
    bad = node(1)
    for _ in range(4):
        limiter.failed(bad)
        clock.advance(50)
    assert limiter.is_limited(bad)


def test_507_limits_at_once_and_only_that_device(limiter):
    limiter.limit(node(1))
    assert limiter.is_limited(node(1))
    assert not limiter.is_limited(node(2))


# --- iterating ----------------------------------------------------------------------------------------


def test_primaries_come_first_then_handoffs_up_to_the_count(limiter):
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6, 7)), limiter, 6)
    assert ids(found) == [1, 2, 3, 4, 5, 6]


def test_limited_nodes_are_skipped_and_do_not_count(limiter):
    for n in (2, 4):
        limiter.limit(node(n))
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6, 7)), limiter, 4)
    assert ids(found) == [1, 3, 5, 6]


def test_a_node_that_became_limited_while_it_was_used_does_not_count(limiter):
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6, 7)), limiter, 4)
    first = next(found)
    limiter.limit(first)
    assert [first.id, *ids(found)] == [1, 2, 3, 4, 5]


def test_handoffs_beyond_the_expected_are_reported_with_their_number(limiter):
    for n in (1, 2):
        limiter.limit(node(n))
    told = []
    assert ids(NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6)), limiter, 4, told.append)) == [3, 4, 5, 6]
    assert told == [1, 2]


def test_several_takers_never_get_the_same_node(limiter):
    shared = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6)), limiter, 6)
    takers = [iter(shared), iter(shared)]
    assert sorted(next(takers[i % 2]).id for i in range(6)) == [1, 2, 3, 4, 5, 6]


# --- sorting ------------------------------------------------------------------------------------------


def test_shuffling_spreads_the_first_choice():
    sort = Sorting(rng=random.Random(1))
    assert {sort(nodes(1, 2, 3))[0].id for _ in range(50)} == {1, 2, 3}


def test_timings_put_the_fast_and_the_unknown_first_and_expire(clock):
    timings = Timings(clock, expiry_s=300)
    timings.record(node(1), 0.5)
    timings.record(node(2), 0.1)
    sort = Sorting("timing", timings=timings)
    assert ids(sort(nodes(1, 2, 3))) == [3, 2, 1]
    clock.advance(301)
    timings.record(node(3), 0.1)
    assert sort(nodes(1, 2, 3))[-1].id == 3


def test_affinity_prefers_the_lowest_priority_number():
    sort = Sorting("affinity", read_affinity="r1z1=100, r1=200, r2=300")
    found = [node(1, 3, 1), node(2, 2, 5), node(3, 1, 2), node(4, 1, 1)]
    assert ids(sort(found)) == [4, 3, 2, 1]


def test_write_affinity_moves_the_first_local_nodes_to_the_front():
    view = SimpleNamespace(
        primaries=lambda part: [node(1, 1), node(2, 2), node(3, 2)],
        handoffs=lambda part: iter([node(4, 1), node(5, 2), node(6, 1)]),
    )
    assert ids(local_first(view, 0, parse_write_affinity("r1"), 2)) == [1, 4, 2, 3, 5, 6]
    assert parse_write_affinity("") is None


@pytest.mark.parametrize("text", ["r1z1", "r1=x", "z1=100", "100"])
def test_bad_read_affinities_are_refused_with_a_sentence(text):
    with pytest.raises(ConfigError):
        parse_read_affinity(text)


@pytest.mark.parametrize(
    ("text", "replicas", "count"), [("5", 3, 5), ("2 * replicas", 3, 6), ("3 * Replicas", 2, 6)]
)
def test_node_counts(text, replicas, count):
    assert parse_node_count(text)(replicas) == count


@pytest.mark.parametrize("text", ["", "x", "2 * nodes", "2*replicas", "-1"])
def test_bad_node_counts_are_refused(text):
    with pytest.raises(ConfigError):
        parse_node_count(text)


# --- the pool of connections --------------------------------------------------------------------------


def connection(address=("10.0.0.1", 1)):
    return SimpleNamespace(address=address, idle_since=0.0)


def test_the_freshest_connection_is_reused_and_old_ones_are_given_up():
    pool = ConnectionPool(per_address_max=2, idle_max_s=30)
    first, second = connection(), connection()
    assert pool.give(first, 0) is None
    assert pool.give(second, 1) is None
    assert pool.take(("10.0.0.1", 1), 2) == (second, [])
    assert pool.take(("10.0.0.2", 1), 2) == (None, [])
    assert pool.take(("10.0.0.1", 1), 31) == (None, [first])
    assert len(pool) == 0


def test_a_full_address_gives_up_its_oldest():
    pool = ConnectionPool(per_address_max=1)
    first, second = connection(), connection()
    pool.give(first, 0)
    assert pool.give(second, 1) is first
    assert pool.drop_all() == [second]
