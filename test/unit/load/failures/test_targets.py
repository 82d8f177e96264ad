"""What fails is chosen by seed, as many as the share says, spread as it is wanted."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.load.failures.targets import WAYS, BadFailure, Failure, Target, choose_targets


def chosen(failure, nodes=8, disks=4, proxies=4, seed=1):
    return choose_targets(failure, nodes, disks, proxies, random.Random(seed))


@pytest.mark.parametrize(("share", "count"), [(10, 1), (20, 2), (30, 2), (40, 3), (1, 1), (99, 7)])
def test_a_share_of_the_nodes_fails_at_least_one_and_never_all(share, count):
    found = chosen(Failure("nodes", "kill", share))
    assert len(set(found)) == count
    assert all(1 <= target.node <= 8 and target.disk is None for target in found)


def test_uniform_disks_are_of_as_many_nodes_as_can_be():
    found = chosen(Failure("disks", "unmount", 25))
    assert Counter(Counter(target.node for target in found).values()) == {1: 8}


def test_skewed_disks_are_of_as_few_nodes_as_can_be():
    found = chosen(Failure("disks", "unmount", 25, "skewed"))
    assert Counter(Counter(target.node for target in found).values()) == {4: 2}


def test_the_seed_says_which():
    failure = Failure("nodes", "stop", 40)
    assert chosen(failure, seed=3) == chosen(failure, seed=3)
    assert len({tuple(chosen(failure, seed=seed)) for seed in range(20)}) > 5


@given(
    share=st.floats(0.1, 99.9),
    nodes=st.integers(2, 20),
    disks=st.integers(1, 6),
    spread=st.sampled_from(["uniform", "skewed"]),
)
def test_disks_that_fail_are_there_and_some_go_on(share, nodes, disks, spread):
    found = chosen(Failure("disks", "wipe", share, spread), nodes, disks)
    every = {Target(node, disk) for node in range(1, nodes + 1) for disk in range(disks)}
    assert set(found) < every and len(set(found)) == len(found) > 0


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (Failure("racks", "kill", 10), "nodes, disks, proxies can fail, not 'racks'"),
        (Failure("nodes", "wipe", 10), "nodes fail by kill, stop, partition, not by 'wipe'"),
        (Failure("nodes", "kill", 100), "below 100 percent, not 100"),
        (Failure("nodes", "kill", 0), "above 0"),
        (Failure("disks", "wipe", 10, "odd"), "uniform or skewed, not 'odd'"),
    ],
)
def test_what_cannot_fail_is_said(failure, message):
    with pytest.raises(BadFailure, match=message):
        chosen(failure)


def test_the_only_one_cannot_fail():
    with pytest.raises(BadFailure, match="make a larger cluster"):
        chosen(Failure("proxies", "kill", 50), proxies=1)


def test_every_way_is_of_a_unit():
    assert {unit: len(ways) for unit, ways in WAYS.items()} == {"nodes": 3, "disks": 5, "proxies": 2}
