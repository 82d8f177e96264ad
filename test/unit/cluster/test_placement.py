"""Which nodes are asked in which order, and which are left alone."""

import itertools
import random
from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.cluster.health import NodeHealth
from swift.cluster.placement import (
    ConnectTimings,
    NodeIterator,
    NodeSorter,
    OpenStreams,
    local_first,
    parse_node_count,
    parse_read_affinity,
    parse_write_affinity,
)


def node(number, region=1, zone=1):
    return SimpleNamespace(
        id=number,
        index=number,
        ip=f"10.0.0.{number}",
        region=region,
        zone=zone,
        key=f"10.0.0.{number}:6200/sda",
    )


def nodes(*numbers):
    return [node(n) for n in numbers]


def ids(found):
    return [n.id for n in found]


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def health(clock):
    return NodeHealth(clock, limit=3, interval_s=60)


# --- error limiting -----------------------------------------------------------------------------------


def wear_out(health, bad):
    """As many errors as make a node avoided."""
    return [health.failed(bad.key) for _ in range(4)]


def test_more_errors_than_allowed_make_a_node_avoided(health):
    bad = node(1)
    assert wear_out(health, bad) == [False, False, False, True]
    assert health.is_avoided(bad.key)
    assert not health.may_use(bad.key)
    assert health.may_use(node(2).key)


def test_errors_are_forgotten_when_none_follows_for_the_interval(clock, health):
    bad = node(1)
    for _ in range(4):
        health.failed(bad.key)
        clock.advance(50)
    assert health.is_avoided(bad.key)
    good = node(2)
    for _ in range(9):
        assert not health.failed(good.key)
        clock.advance(60)


@pytest.mark.parametrize(
    ("reached", "expected"),
    [(True, [1, 2, 4, 8, 16, 32, 60, 60, 60]), (False, [1, 2, 4, 8, 8, 8, 8, 8, 8])],
    ids=["responds with errors", "cannot be reached"],
)
def test_one_request_at_a_time_probes_an_avoided_node_and_waits_twice_as_long_each_time(
    clock, health, reached, expected
):
    bad = node(1)
    wear_out(health, bad)
    pauses = []
    for _ in range(9):
        pause = 0.0
        while not health.may_use(bad.key):
            clock.advance(0.5)
            pause += 0.5
        pauses.append(pause)
        assert not health.may_use(bad.key), "the others wait for the probe's outcome"
        assert not health.failed(bad.key, reached=reached)
    assert pauses == expected


def test_requests_that_come_to_an_avoided_node_as_their_last_resort_put_no_probe_off(clock, health):
    bad = node(1)
    wear_out(health, bad)
    for _ in range(20):
        health.failed(bad.key)
    clock.advance(1)
    assert health.may_use(bad.key)


def test_a_probe_that_nobody_hears_of_again_is_followed_by_another(clock, health):
    bad = node(1)
    wear_out(health, bad)
    clock.advance(1)
    assert health.may_use(bad.key)
    clock.advance(1)
    assert health.may_use(bad.key)


def test_one_success_ends_avoidance_and_forgets_the_errors(clock, health):
    bad = node(1)
    wear_out(health, bad)
    health.succeeded(bad.key)
    assert not health.is_avoided(bad.key)
    assert wear_out(health, bad) == [False, False, False, True]
    health.avoid(bad.key)
    health.succeeded(bad.key)
    assert health.may_use(bad.key)


def test_successes_between_errors_do_not_make_a_failing_node_a_good_one(health):
    bad = node(1)
    for _ in range(3):
        health.failed(bad.key)
        health.succeeded(bad.key)
    assert health.failed(bad.key)


def test_507_makes_a_device_avoided_at_once_and_for_the_whole_interval(clock, health):
    health.avoid(node(1).key)
    assert health.is_avoided(node(1).key)
    assert not health.is_avoided(node(2).key)
    clock.advance(59.9)
    assert not health.may_use(node(1).key)
    clock.advance(0.1)
    assert health.may_use(node(1).key)


def test_an_interval_of_nothing_avoids_nobody(clock):
    health = NodeHealth(clock, limit=0, interval_s=0)
    health.failed(node(1).key)
    health.avoid(node(2).key)
    assert health.may_use(node(1).key) and health.may_use(node(2).key)


# --- iterating ----------------------------------------------------------------------------------------


def test_primaries_come_first_then_handoffs_up_to_the_count(health):
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6, 7)), health, 6)
    assert ids(found) == [1, 2, 3, 4, 5, 6]


def test_primaries_that_are_left_can_be_asked_in_another_order(health):
    found = NodeIterator(nodes(1, 2, 3, 4), iter(nodes(5, 6)), health, 8)
    assert next(found).id == 1
    found.reorder(lambda left: sorted(left, key=lambda node: -node.id))
    assert ids(found.primaries_left) == [4, 3, 2]
    assert ids(found) == [4, 3, 2, 5, 6]
    assert found.primaries_left == ()
    found.reorder(list)
    assert ids(found) == []


def test_avoided_nodes_come_last_and_do_not_count(health):
    for n in (2, 4):
        health.avoid(node(n).key)
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6, 7)), health, 4)
    assert ids(found) == [1, 3, 5, 6, 2, 4]


def test_when_all_nodes_are_avoided_all_are_there(health):
    for n in range(1, 7):
        health.avoid(node(n).key)
    assert ids(NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6)), health, 6)) == [1, 2, 3, 4, 5, 6]


def test_of_avoided_handoffs_only_those_are_asked_that_would_have_been(health):
    for n in range(4, 100):
        health.avoid(node(n).key)
    assert ids(NodeIterator(nodes(1, 2, 3), iter(nodes(*range(4, 100))), health, 5)) == [1, 2, 3, 4, 5]


def test_avoided_nodes_can_be_left_out_and_asked_after_all(health):
    health.avoid(node(2).key)
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4)), health, 6)
    found.uses_avoided = False
    assert ids(found) == [1, 3, 4]
    found.uses_avoided = True
    assert ids(found) == [2]


def test_a_node_that_was_handed_out_can_be_passed_over_once(health):
    found = NodeIterator(nodes(1, 2), iter(nodes(3, 4, 5)), health, 3)
    first = next(found)
    assert found.defer(first)
    assert ids(itertools.islice(found, 3)) == [2, 3, 4], "another takes its turn"
    assert next(found) is first
    assert not found.defer(first)
    assert ids(found) == []


def test_a_node_is_not_passed_over_when_no_other_is_left(health):
    found = NodeIterator(nodes(1, 2), iter(()), health, 4)
    first, second = found
    assert not found.defer(first) and not found.defer(second)
    assert ids(found) == []


def test_the_node_that_follows_a_deferred_one_can_still_be_reordered(health):
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4)), health, 4)
    assert found.defer(next(found))
    assert [node.id for node in found.primaries_left] == [2, 3]
    found.reorder(lambda left: left[::-1])
    assert ids(found) == [3, 2, 4, 1]


def test_avoided_nodes_that_may_cost_a_timeout_can_be_left_out(health):
    for _ in range(4):
        health.failed(node(1).key, slow=True)
    health.avoid(node(2).key)
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4)), health, 6)
    found.uses_slow = False
    assert ids(found) == [3, 4, 2]
    found.uses_slow = True
    assert ids(found) == [1]


def test_a_node_is_slow_as_long_as_its_last_error_was_a_timeout(health):
    health.failed(node(1).key, slow=True)
    assert health.is_slow(node(1).key)
    health.failed(node(1).key)
    assert not health.is_slow(node(1).key)
    health.failed(node(1).key, slow=True)
    health.avoid(node(1).key)
    assert not health.is_slow(node(1).key)
    assert not health.is_slow(node(2).key)


def test_a_node_whose_probe_is_due_is_in_its_place(clock, health):
    wear_out(health, node(1))
    clock.advance(1)
    assert ids(NodeIterator(nodes(1, 2, 3), iter(nodes(4)), health, 3)) == [1, 2, 3, 4]
    assert ids(NodeIterator(nodes(1, 2, 3), iter(nodes(4)), health, 3)) == [2, 3, 4, 1]


def test_a_node_that_became_limited_while_it_was_used_does_not_count(health):
    found = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6, 7)), health, 4)
    first = next(found)
    health.avoid(first.key)
    assert [first.id, *ids(found)] == [1, 2, 3, 4, 5]


def test_handoffs_beyond_the_expected_are_reported_with_their_number(health):
    for n in (1, 2):
        health.avoid(node(n).key)
    handoffs = []
    assert ids(NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6)), health, 4, handoffs.append))[:4] == [
        3,
        4,
        5,
        6,
    ]
    assert handoffs == [1, 2]


def test_several_takers_never_get_the_same_node(health):
    shared = NodeIterator(nodes(1, 2, 3), iter(nodes(4, 5, 6)), health, 6)
    takers = [iter(shared), iter(shared)]
    assert sorted(next(takers[i % 2]).id for i in range(6)) == [1, 2, 3, 4, 5, 6]


# --- sorting ------------------------------------------------------------------------------------------


def test_shuffling_spreads_the_first_choice():
    sort = NodeSorter(rng=random.Random(1))
    assert {sort(nodes(1, 2, 3))[0].id for _ in range(50)} == {1, 2, 3}


def test_devices_that_send_least_come_first_among_equals():
    streams = OpenStreams()
    shuffled = NodeSorter(streams=streams, rng=random.Random(1))
    for busy in (1, 1, 2):
        streams.begin(node(busy))
    assert ids(shuffled(nodes(1, 2, 3))) == [3, 2, 1]
    near = NodeSorter("affinity", read_affinity="r1=100", streams=streams)
    assert ids(near([node(1, 1), node(2, 1), node(3, 2)])) == [2, 1, 3]
    for done in (1, 1, 2):
        streams.end(node(done))
    assert not streams
    assert {shuffled(nodes(1, 2, 3))[0].id for _ in range(50)} == {1, 2, 3}


def test_nodes_of_this_machine_come_first_in_the_order_of_the_ring_and_the_others_in_any():
    sort = NodeSorter(is_own=lambda node: node.id > 2, rng=random.Random(1))
    orders = {tuple(ids(sort(nodes(1, 4, 2, 3)))) for _ in range(50)}
    assert orders == {(4, 3, 1, 2), (4, 3, 2, 1)}


def test_no_node_is_lost_when_the_addresses_of_this_machine_change_meanwhile():
    answers = iter([False, True] * 3)
    sort = NodeSorter(is_own=lambda _node: next(answers))
    assert sorted(ids(sort(nodes(1, 2, 3)))) == [1, 2, 3]


def test_timings_put_the_fast_and_the_unknown_first_and_expire(clock):
    timings = ConnectTimings(clock, expiry_s=300)
    timings.record(node(1), 0.5)
    timings.record(node(2), 0.1)
    sort = NodeSorter("timing", timings=timings)
    assert ids(sort(nodes(1, 2, 3))) == [3, 2, 1]
    clock.advance(301)
    timings.record(node(3), 0.1)
    assert sort(nodes(1, 2, 3))[-1].id == 3


def test_affinity_prefers_the_lowest_priority_number():
    sort = NodeSorter("affinity", read_affinity="r1z1=100, r1=200, r2=300")
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
