"""Replicas that exchange what they know end equal, whatever was lost, repeated or late.

``SWIFT_HISTORIES=10000`` runs the full number of random histories.
"""

import itertools
import os
import random

import pytest

from swift.base.shardrange import ShardRange
from swift.base.shardrange import merge as merge_range
from swift.base.timestamp import Timestamp
from swift.container.policyconflict import PolicyClaim, wins
from swift.container.rows import merge, row_of_mapping
from test.unit.dbsync.histories import (
    AccountNode,
    ContainerNode,
    Network,
    _object_row,
    _range,
    account_event,
    container_event,
    exchange,
)

HISTORIES = int(os.environ.get("SWIFT_HISTORIES", "400"))
NODES = 3
ROUNDS_MAX = 6


def live_through(seed, make, event):
    """A history, and then peace; the states of the replicas and how many rounds of peace it took."""
    rng = random.Random(seed)
    nodes = [make(number) for number in range(NODES)]
    network = Network(rng, trouble=0.4)
    tick, memory = 10, []
    try:
        for _ in range(rng.randint(3, 14)):
            tick += rng.randint(1, 3)
            if rng.random() < 0.6:
                event(rng, nodes, tick, memory)
            else:
                sender, receiver = rng.sample(nodes, 2)
                exchange(network, sender, receiver, Timestamp(1_700_000_000 + tick))
            if rng.random() < 0.2:
                network.deliver_late()
        network.deliver_late()
        network.trouble = 0.0
        for rounds in range(ROUNDS_MAX):
            states = [node.state() for node in nodes]
            if all(state == states[0] for state in states):
                return states, rounds
            for sender, receiver in itertools.permutations(nodes, 2):
                tick += 1
                assert exchange(network, sender, receiver, Timestamp(1_700_000_000 + tick))
        return [node.state() for node in nodes], ROUNDS_MAX
    finally:
        for node in nodes:
            node.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "event"),
    [(ContainerNode, container_event), (AccountNode, account_event)],
    ids=["container", "account"],
)
def test_random_histories_converge(make, event):
    for seed in range(HISTORIES):
        states, _rounds = live_through(seed, make, event)
        assert all(state == states[0] for state in states), f"seed {seed}: {states}"


def test_merging_rows_is_commutative_associative_and_idempotent():
    rng = random.Random(1)
    for _ in range(HISTORIES):
        memory = []
        rows = [row_of_mapping(_object_row(rng, 20 + 2 * n, memory)) for n in range(4)]
        rows = [row._replace(name="o", storage_policy_index=0) for row in rows]
        merged = {fold(merge, order) for order in itertools.permutations(rows)}
        merged |= {fold(merge, [*order, *order[:2]]) for order in itertools.permutations(rows)}
        assert len(merged) == 1, rows
        a, b, c, d = (row.packed() for row in rows)
        assert merge(merge(a, b), merge(c, d)) == merge(a, merge(merge(b, c), d))
        assert merge(a, a) is a


def test_merging_shard_ranges_is_commutative_associative_and_idempotent():
    rng = random.Random(2)
    for _ in range(HISTORIES):
        ranges = [ShardRange.from_mapping(_range(rng, 8, 0)) for _ in range(4)]
        merged = {fold(merge_range, order) for order in itertools.permutations(ranges)}
        assert len(merged) == 1, ranges
        a, b, c, d = ranges
        assert merge_range(merge_range(a, b), merge_range(c, d)) == merge_range(
            a, merge_range(b, merge_range(c, d))
        )
        assert merge_range(a, a) is a


def fold(merge_two, items):
    result = None
    for item in items:
        result = merge_two(result, item)
    return result


def test_of_two_policy_claims_exactly_one_wins():
    rng = random.Random(3)

    def claim(index):
        times = (Timestamp(rng.randint(0, 4)) for _ in range(3))
        return PolicyClaim(index, rng.choice((0, 0, 5)), *times)

    for _ in range(HISTORIES):
        a, b = claim(0), claim(1)
        assert wins(a, b) != wins(b, a), (a, b)
        assert not wins(a, claim(0))
