"""Is there an order of compare-and-set operations that explains what every client was told?

The search of Wing and Gong (1993) with the memory of Lowe (2017) over one register: an operation takes
effect at one moment between its call and its return. One whose outcome is unknown may do so at any time after
its call, or never.
"""

import math
from typing import NamedTuple


class Op(NamedTuple):
    """``set`` where the register holds ``expected`` (None: nothing); ``ok`` None when nobody knows."""

    expected: object
    new: object
    called: float
    returned: float
    ok: bool | None


def explains(history, initial=None):
    """Whether some order explains the history."""
    ops = tuple(sorted(history, key=lambda op: op.called))
    ends = [math.inf if op.ok is None else op.returned for op in ops]
    seen = set()
    stack = [(frozenset(range(len(ops))), initial)]
    while stack:
        left, value = stack.pop()
        if all(ops[i].ok is None for i in left):
            return True
        if (left, value) in seen:
            continue
        seen.add((left, value))
        # Whoever was called after another returned cannot come first.
        horizon = min(ends[i] for i in left)
        for i in left:
            op = ops[i]
            if op.called > horizon:
                continue
            holds = value == op.expected
            if holds if op.ok is None else op.ok == holds:
                stack.append((left - {i}, op.new if holds else value))
    return False
