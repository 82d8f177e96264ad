"""Which small shards are put together is what the peer's command says of the same sizes."""

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.sharding.shrink import apply, find_mergings

STAMP = "1795000000.00000"
NOW = Timestamp("1795000009.00000")
OWN = ShardRange("AUTH_test/c", STAMP, state=State.SHARDED, epoch=STAMP)
ROOT = "root"


def shards(*sizes, states=None):
    edges = ["", *(chr(97 + n) for n in range(len(sizes) - 1)), ""]
    return [
        ShardRange(
            f".shards_AUTH_test/c-{n}",
            STAMP,
            edges[n],
            edges[n + 1],
            size,
            state=(states or {}).get(n, State.ACTIVE),
            tombstones=0,
        )
        for n, size in enumerate(sizes)
    ]


def mergings(ranges, below, limit, shrinking, expanding=-1):
    found = find_mergings(
        ranges,
        OWN,
        shrink_below=below,
        expand_to=limit,
        max_shrinking=shrinking,
        max_expanding=expanding,
    )
    named = {OWN.name: ROOT} | {item.name: number for number, item in enumerate(ranges)}
    return [([named[donor.name] for donor in donors], named[acceptor.name]) for donors, acceptor in found]


#: Sizes, shrink threshold, expansion limit, donors at a time; what ``compact -n`` of the peer (2.38) says.
OF_THE_PEER = [
    ((4, 4, 4, 4), 10, 100, 1, [([0], 1), ([2], 3)]),
    ((4, 4, 4, 4), 10, 100, 3, [([0, 1, 2], 3)]),
    ((4, 4, 4, 4), 10, 100, 4, [([0, 1, 2, 3], ROOT)]),
    ((4, 4, 4, 4), 10, 16, 4, [([0, 1, 2], 3)]),
    ((4, 4, 4, 4), 10, 15, 9, [([0, 1], 2)]),
    ((4, 4, 4, 20), 10, 100, 4, [([0, 1, 2], 3)]),
    ((20, 4, 4, 4), 10, 100, 4, [([1, 2], 3)]),
    ((4, 4), 10, 100, 1, [([0], 1)]),
    ((4, 4), 10, 100, 2, [([0, 1], ROOT)]),
    ((0, 0), 10, 100, 2, [([0, 1], ROOT)]),
    ((20, 4), 10, 100, 2, []),
    ((4,), 10, 100, 1, [([0], ROOT)]),
    ((0,), 10, 100, 1, [([0], ROOT)]),
    ((20,), 10, 100, 1, []),
    ((20,), 30, 100, 1, [([0], ROOT)]),
    ((9,), 10, 8, 1, []),
    ((4, 4, 20, 4, 4), 10, 100, 5, [([0, 1], 2), ([3], 4)]),
    ((4, 4, 4, 4, 4, 4), 10, 8, 5, [([0], 1), ([2], 3), ([4], 5)]),
]


@pytest.mark.parametrize(("sizes", "below", "limit", "shrinking", "told"), OF_THE_PEER)
def test_small_shards_go_where_the_peer_has_them_go(sizes, below, limit, shrinking, told):
    assert mergings(shards(*sizes), below, limit, shrinking) == told


def test_as_many_shards_grow_as_may():
    assert mergings(shards(4, 4, 4, 4), 10, 100, 1, 1) == [([0], 1)]


@pytest.mark.parametrize("state", [State.SHRINKING, State.SHARDING, State.CLEAVED])
def test_nothing_goes_into_the_root_while_a_shard_is_busy(state):
    assert mergings(shards(4, 4, states={1: state}), 10, 100, 4) == []


def test_a_root_that_takes_shards_in_keeps_its_epoch_and_its_bounds():
    donors, root = apply((shards(4, 4), OWN), NOW)
    assert {(donor.state, donor.epoch) for donor in donors} == {(State.SHRINKING, NOW.normal)}
    assert (root.state, root.state_timestamp) == (State.ACTIVE, NOW.normal)
    assert (root.timestamp, root.epoch, root.object_count) == (OWN.timestamp, OWN.epoch, 0)


def test_a_neighbour_that_takes_shards_in_has_their_names_and_counts():
    first, second = shards(4, 5)
    _donors, acceptor = apply(([first], second), NOW)
    assert (acceptor.lower, acceptor.upper, acceptor.object_count) == ("", "", 9)
    assert acceptor.timestamp == NOW.normal
