"""Pairwise choices leave out no pair, and change from run to run in nothing."""

from itertools import combinations, product

from test.support.checks import pairwise

CASES = [case for case in product("abcde", range(7), "xy", range(9)) if case[:2] != ("a", 3)]


def pairs(cases):
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}


def test_every_pair_is_there_in_a_fraction_of_the_cases():
    some = pairwise(CASES)
    assert pairs(some) == pairs(CASES)
    assert len(some) < len(CASES) / 5
    assert some == pairwise(CASES) == [case for case in CASES if case in set(some)]


def test_nothing_is_chosen_of_nothing():
    assert pairwise([]) == []
