"""Computes the dispersion of each partition's replicas from rows alone.

The graph counts, for every tier that holds anything, how many partitions have 0, 1, 2, ... replicas there.
Partitions whose replicas are all in different tiers are counted in bulk; only the others are looked at one
by one, which is what makes this quick on large rings. Only partitions present in every row take part.
spec: ring.md §10.14
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from swift.ring.device import DeviceRecord
from swift.ring.table import repeats
from swift.ring.tiers import Key, Tier, build_tree, fill_most, tier_keys

Graph = dict[Key, list[int]]
_DEPTHS = 4


class TierLevel:
    """The tiers of one depth, numbered, so that a million of them can be compared as small integers."""

    __slots__ = ("keys", "number_of")

    def __init__(self, records: Sequence[DeviceRecord | None], depth: int):
        numbers: dict[Key, int] = {}
        self.number_of: dict[int, int] = {}
        for record in records:
            if record is not None:
                key = tier_keys(record)[depth]
                self.number_of[record["id"]] = numbers.setdefault(key, len(numbers))
        self.keys: list[Key] = list(numbers)

    def columns(self, rows: Sequence[array[int]], parts: Sequence[int]) -> list[list[int]]:
        """For each row the tier numbers of ``parts``."""
        lookup = self.number_of.__getitem__
        if len(parts) == len(rows[0]):
            return [list(map(lookup, row)) for row in rows]
        return [[lookup(row[part]) for part in parts] for row in rows]


def levels_of(records: Sequence[DeviceRecord | None]) -> list[TierLevel]:
    """Return the levels region, zone, server, device."""
    return [TierLevel(records, depth) for depth in range(_DEPTHS)]


def most_replicas(records: Sequence[DeviceRecord | None], replicas: float) -> dict[Key, int]:
    """Tier key → replicas of one partition it should hold at most; weightless tiers are absent (0)."""
    if not any(record is not None and record["weight"] > 0 for record in records):
        return {}
    root: Tier = build_tree(records)
    fill_most(root, replicas)
    return {tier.key: tier.most for tier in root.walk()}


def repeating(
    level: TierLevel, rows: Sequence[array[int]], candidates: Sequence[int]
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return the candidates with two replicas in one tier of the level, and their tier numbers.

    A replica that repeats a zone repeats its region: pass what the level above returned.
    """
    full = len(rows)
    if full < 2 or not candidates:
        return [], []
    if len(level.keys) == 1:
        return list(candidates), [(0,) * full] * len(candidates)
    columns = level.columns(rows, candidates)
    places = repeats(columns)
    combos = list(zip(*([column[place] for place in places] for column in columns), strict=True))
    return [candidates[place] for place in places], combos


def heads_of(rows: Sequence[array[int]]) -> list[array[int]]:
    """Return the rows cut to the partitions that are present in all of them."""
    shared = min(len(row) for row in rows)
    return [row if len(row) == shared else row[:shared] for row in rows]


def measure(
    rows: Sequence[array[int]], records: Sequence[DeviceRecord | None], *, parts: int, replicas: float
) -> tuple[Graph, float]:
    """Return the dispersion graph and the dispersion in percent; (empty, 0) for a ring without rows."""
    graph: Graph = {}
    if not rows:
        return graph, 0.0
    heads = heads_of(rows)
    held: Counter[int] = Counter()
    for row in heads:
        held.update(row)
    most = most_replicas(records, replicas)
    worst: dict[int, int] = {}
    everyone = range(len(heads[0]))
    candidates: Sequence[int] = everyone
    for level in levels_of(records):
        candidates, combos = repeating(level, heads, candidates)
        level_graph = _level_graph(level, held, Counter(combos), parts=parts, replicas=len(heads))
        graph.update(level_graph)
        suspects: Sequence[int] = candidates
        if not all(most.get(key) for key in level_graph):
            # A tier without weight should hold nothing, so even one replica there is one too many.
            suspects = everyone
            combos = list(zip(*level.columns(heads, everyone), strict=True))
        for part, excess in _excesses(level, suspects, combos, most):
            worst[part] = max(worst.get(part, 0), excess)
    return graph, 100.0 * sum(worst.values()) / (parts * replicas)


def _level_graph(
    level: TierLevel,
    held: Mapping[int, int],
    tally: Mapping[tuple[int, ...], int],
    *,
    parts: int,
    replicas: int,
) -> Graph:
    """Return counts per tier of one level; ``tally`` counts the combinations that repeat a tier."""
    singles: Counter[int] = Counter()
    for dev_id, count in held.items():
        singles[level.number_of[dev_id]] += count
    counts = {number: [0] * (replicas + 1) for number in singles}
    for combo, times in tally.items():
        for number, present in Counter(combo).items():
            if present > 1:
                counts[number][present] += times
                singles[number] -= present * times
    for number, row in counts.items():
        row[1] += singles[number]
        row[0] = parts - sum(row)
    return {level.keys[number]: row for number, row in counts.items()}


def _excesses(
    level: TierLevel, parts: Sequence[int], combos: Sequence[tuple[int, ...]], most: Mapping[Key, int]
) -> Iterator[tuple[int, int]]:
    """(partition, replicas beyond the most its tiers should hold) where there are such."""
    judged: dict[tuple[int, ...], int] = {}
    for combo in set(combos):
        judged[combo] = sum(
            max(0, present - most.get(level.keys[number], 0)) for number, present in Counter(combo).items()
        )
    if not any(judged.values()):
        return
    for part, combo in zip(parts, combos, strict=True):
        if judged[combo]:
            yield part, judged[combo]
