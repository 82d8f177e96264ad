"""Of all combinations as many as it takes to have every pair of values together once."""

import os
import random
from collections.abc import Sequence
from itertools import combinations


def pairwise(cases: Sequence[tuple]) -> list[tuple]:
    """The cases, in their order, that cover every pair of values at two positions; always the same ones."""
    wanted = {pair for case in cases for pair in _pairs(case)}
    order = list(range(len(cases)))
    random.Random(0).shuffle(order)
    chosen: set[int] = set()
    width = len(cases[0]) if cases else 0
    for least in range(width * (width - 1) // 2, 0, -1):
        for number in order:
            fresh = wanted.intersection(_pairs(cases[number]))
            if len(fresh) >= least:
                chosen.add(number)
                wanted -= fresh
    return [cases[number] for number in sorted(chosen)]


def _pairs(case: tuple) -> list[tuple]:
    return list(combinations(enumerate(case), 2))


def chosen(cases: Sequence[tuple]) -> list[tuple]:
    """All cases where ``SWIFT_INTERPLAY=whole`` asks for them, as CI does; else pairwise ones."""
    return list(cases) if os.environ.get("SWIFT_INTERPLAY") == "whole" else pairwise(cases)
