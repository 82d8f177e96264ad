"""The first assignment of a ring: every partition at once, exactly as planned.

Lay the devices of a plan side by side, each as wide as its quota, and let partition p take the positions
p, p + parts, p + 2 x parts, ...: systematic sampling. A failure domain is one contiguous stretch, so every
partition gets the floor or the ceiling of its share there, at every level of the tree, and every device gets
exactly its quota. To keep the disks from forming fixed groups (which would make rebuilding one of them slow)
the partitions are cut into chunks, the order of the tiers changes from chunk to chunk and the order of
partitions from tier to tier. Existing assignments are not known here: see ``reassign``.
spec: ring.md §10.9, §10.10 (the result, not the way)
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable

from swift.ring.plan import Plan
from swift.ring.tiers import Tier

_CHUNK_PARTITIONS = 64
_CHUNKS_MAX = 64
Place = Callable[[int, list[int]], None]


class _Node:
    """A tier while chunks are cut from it: ``rest`` is the part of its quota that no chunk has yet."""

    __slots__ = ("dev_id", "children", "rest", "amount")

    def __init__(self, tier: Tier, plan: Plan):
        self.dev_id = tier.key[3] if len(tier.key) == 4 else None
        self.children = [_Node(child, plan) for child in tier.children]
        self.rest = plan.quota[tier.key]
        self.amount = 0


def spread(
    plan: Plan,
    lengths: list[int],
    *,
    typecode: str,
    rng: random.Random,
    progress: Callable[[int, int], None] | None = None,
) -> list[array[int]]:
    """Return new rows of the given lengths that fulfil the plan exactly; ``progress`` gets (done, total)."""
    parts = plan.parts
    rows = [array(typecode, bytes(array(typecode).itemsize * length)) for length in lengths]
    filled = bytearray(parts)

    def place(dev_id: int, members: list[int]) -> None:
        for part in members:
            row = filled[part]
            rows[row][part] = dev_id
            filled[part] = row + 1

    root = _Node(plan.root, plan)
    short = lengths[-1] if lengths[-1] < parts else 0
    full = len(lengths) - (1 if short else 0)
    longer = rng.sample(range(short), short)
    usual = rng.sample(range(short, parts), parts - short)
    chunks = max(1, min(_CHUNKS_MAX, parts // _CHUNK_PARTITIONS))
    for number in range(chunks):
        chunk_parts = parts * (number + 1) // chunks - parts * number // chunks
        rest_parts = parts - parts * number // chunks
        longer_count = len(longer) * chunk_parts // rest_parts
        first, longer = longer[:longer_count], longer[longer_count:]
        second, usual = usual[: chunk_parts - longer_count], usual[chunk_parts - longer_count :]
        root.amount = longer_count + full * chunk_parts
        _cut(root, chunk_parts, rest_parts, rng)
        _place_below(root, first, second, full, place, rng)
        if progress is not None:
            progress(rest_parts and parts * (number + 1) // chunks, parts)
    return rows


def _cut(node: _Node, chunk_parts: int, rest_parts: int, rng: random.Random) -> None:
    """Divide the ``amount`` of one chunk over the children: floor or ceiling of their proportional share.

    Taking the share of the whole rest (not of the parent's rounded amount) keeps what is left dividable:
    a tier that may hold m replicas per partition never has more than m per partition left.
    """
    floors = 0
    order = []
    for child in node.children:
        child.amount, remainder = divmod(child.rest * chunk_parts, rest_parts)
        floors += child.amount
        if remainder:
            order.append((-remainder, rng.random(), child))
    order.sort(key=lambda entry: entry[:2])
    for _, _, child in order[: node.amount - floors]:
        child.amount += 1
    node.rest -= node.amount
    for child in node.children:
        if child.children:
            _cut(child, chunk_parts, rest_parts, rng)
        else:
            child.rest -= child.amount


def _place_below(
    node: _Node, more: list[int], usual: list[int], times: int, place: Place, rng: random.Random
) -> None:
    """Partitions in ``more`` have ``times`` + 1 replicas in this tier, those in ``usual`` have ``times``."""
    if node.dev_id is not None:
        place(node.dev_id, more + usual if times else more)
        return
    # Orders inherited from a tier with several replicas of a partition are correlated; break that up.
    rng.shuffle(more)
    if times:
        rng.shuffle(usual)
    cycle = more + usual if times else more
    length = len(cycle)
    cycle = cycle + cycle
    start = 0
    for child in rng.sample(node.children, len(node.children)):
        if not child.amount:
            continue
        child_times, extra = divmod(child.amount, length)
        child_more = cycle[start : start + extra]
        child_usual = cycle[start + extra : start + length] if child_times else []
        _place_below(child, child_more, child_usual, child_times, place, rng)
        start = (start + extra) % length
