"""Brings the rows of a ring towards those of another one, in steps of single copies; pure.

A step changes at most one copy of a partition, so that the others still are where every ring of the last
steps has them. ``next_step`` chooses which: copies on dead devices first, since they are away in any case;
then any, spread evenly over the partitions. Of the copies of a partition one moves first that crowds no
failure domain more than before or afterwards, if there is such a one; none moves to a device that is full, or
sooner than ``min_part_hours``.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from swift.ring.device import DeviceRecord
from swift.ring.tiers import tier_keys

Rows = Sequence["array[int]"]
#: Why a copy is not moved now.
HELD, FULL = "min_part_hours", "full"
#: The source of a copy that is new.
NO_DEVICE = -1


class Move(NamedTuple):
    """A copy of a partition that changes its device; ``row`` is its index."""

    part: int
    row: int
    source: int
    target: int


@dataclass(frozen=True)
class Limits:
    """Bounds of a step."""

    #: Copies that move at most.
    copies_max: int
    #: For each partition 1 if it may move already.
    movable: bytes | bytearray
    #: Devices that are away; their copies move first, and only they do while any has some.
    dead: Collection[int] = ()
    #: Devices that take nothing more.
    full: Collection[int] = ()
    #: True if the index of a copy means nothing (replicated policies, accounts, containers).
    any_order: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Step:
    """The rows after a step, and what is left to do afterwards."""

    rows: list[array[int]]
    moves: Sequence[Move]
    #: Copies that still have to move.
    left: int
    #: Reason → copies that cannot be moved now.
    waiting: Counter[str] = field(default_factory=Counter)
    #: The moves are of copies on dead devices.
    is_from_dead: bool = False


class Domains:
    """The failure domains of devices: regions, zones, servers, devices."""

    def __init__(self, records: Sequence[DeviceRecord | None]):
        self._keys = {dev["id"]: tier_keys(dev) for dev in records if dev is not None}

    def crowding(self, devices: Collection[int]) -> tuple[int, ...]:
        """Return for each level the most copies that one domain has."""
        columns = zip(*(self._keys[device] for device in devices), strict=True)
        return tuple(max(Counter(column).values()) for column in columns)

    def nearness(self, one: int, other: int) -> int:
        """Return how many levels two devices share."""
        return sum(a == b for a, b in zip(self._keys[one], self._keys[other], strict=True))


def align(current: Sequence[int], target: Sequence[int], domains: Domains) -> list[int]:
    """Return the devices of ``target`` in the order that changes least of ``current``.

    Devices that stay keep their index; others replace those that are nearest to them.
    """
    wanted = set(target)
    coming = [device for device in target if device not in current]
    aligned = list(current)
    leaving = [index for index, device in enumerate(current) if device not in wanted]
    pairs = sorted(
        (-domains.nearness(current[index], device), index, device) for index in leaving for device in coming
    )
    placed: set[int] = set()
    filled: set[int] = set()
    for _, index, device in pairs:
        if index not in filled and device not in placed:
            aligned[index] = device
            filled.add(index)
            placed.add(device)
    return aligned


def moves_of(current: Rows, target: Rows, domains: Domains, *, any_order: bool) -> list[list[Move]]:
    """Return for each partition that differs the moves of its copies. The rows have equal shapes."""
    found = []
    for part in _different_parts(current, target):
        now = [row[part] for row in current if part < len(row)]
        wanted = [row[part] for row in target if part < len(row)]
        if any_order:
            wanted = align(now, wanted, domains)
        pairs = enumerate(zip(now, wanted, strict=True))
        moves = [Move(part, index, old, new) for index, (old, new) in pairs if old != new]
        if moves:
            found.append(moves)
    return found


def _different_parts(current: Rows, target: Rows) -> list[int]:
    parts: set[int] = set()
    for old, new in zip(current, target, strict=True):
        if old != new:
            parts.update(part for part, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
    return sorted(parts)


def next_step(current: Rows, target: Rows, records: Sequence[DeviceRecord | None], limits: Limits) -> Step:
    """Return the next step from ``current`` to ``target``; ``records`` has the devices of both.

    If nothing can be moved, the step is empty, and ``waiting`` has the reasons.
    """
    domains = Domains(records)
    pending = moves_of(current, target, domains, any_order=limits.any_order)
    total = sum(map(len, pending))
    random.Random(limits.seed).shuffle(pending)
    urgent = [moves for moves in pending if any(move.source in limits.dead for move in moves)]
    rows = [row[:] for row in current]
    waiting: Counter[str] = Counter()
    chosen: list[Move] = []
    for moves in urgent or pending:
        if len(chosen) >= limits.copies_max:
            break
        picked = _pick(rows, moves, domains, limits, waiting)
        for move in picked:
            rows[move.row][move.part] = move.target
        chosen += picked
    return Step(rows, chosen, total - len(chosen), waiting, bool(urgent))


def _pick(
    rows: Rows, moves: Sequence[Move], domains: Domains, limits: Limits, waiting: Counter[str]
) -> Sequence[Move]:
    """Return the move of a partition that is made now, or why none is, in ``waiting``.

    Copies that only exchange their places (erasure coded policies) do so at once.
    """
    part = moves[0].part
    present = [row[part] for row in rows if part < len(row)]
    candidates = [move for move in moves if move.source in limits.dead] or moves
    if not any(move.source in limits.dead for move in moves) and not limits.movable[part]:
        waiting[HELD] += len(moves)
        return ()
    free = [move for move in candidates if move.target not in present]
    if not free:
        return moves
    open_moves = [move for move in free if move.target not in limits.full]
    if not open_moves:
        waiting[FULL] += len(moves)
        return ()
    return (min(open_moves, key=lambda move: _excess(present, move, moves, domains)),)


def _excess(present: Sequence[int], move: Move, moves: Sequence[Move], domains: Domains) -> int:
    """Return by how many copies a move crowds domains more than they are before and after all moves."""
    final, after = list(present), list(present)
    for each in moves:
        final[each.row] = each.target
    after[move.row] = move.target
    bounds = map(max, domains.crowding(present), domains.crowding(final))
    return sum(max(0, crowd - bound) for crowd, bound in zip(domains.crowding(after), bounds, strict=True))


def reshape(current: Rows, target: Rows, copies_max: int) -> Step | None:
    """Return the step that brings the number of copies nearer to that of ``target``; None if it is equal.

    Copies that are too many go at once; of those that are too few at most ``copies_max`` are added. Only the
    copies of erasure coded policies have an order, and their number never changes.
    """
    have, want = sum(map(len, current)), sum(map(len, target))
    if have == want:
        return None
    rows = [row[:] for row in current]
    if have > want:
        _put_wanted_first(rows, target)
        lengths = [len(row) for row in target]
        return Step([row[:length] for row, length in zip(rows, lengths, strict=False)], (), 0)
    added: list[Move] = []
    for index, row in enumerate(target):
        if index == len(rows):
            rows.append(array(row.typecode))
        for part in range(len(rows[index]), len(row)):
            if len(added) >= copies_max:
                break
            present = [other[part] for other in rows if part < len(other)]
            wanted = [other[part] for other in target if part < len(other)]
            device = next(each for each in (row[part], *wanted) if each not in present)
            rows[index].append(device)
            added.append(Move(part, index, NO_DEVICE, device))
    return Step([row for row in rows if len(row)], added, want - have - len(added))


def _put_wanted_first(rows: Sequence[array[int]], target: Rows) -> None:
    """Order the copies of each partition so that those which stay come first."""
    for part in range(len(rows[0])):
        present = [row[part] for row in rows if part < len(row)]
        wanted = {row[part] for row in target if part < len(row)}
        ordered = sorted(present, key=lambda device: device not in wanted)
        for row, device in zip(rows, ordered, strict=False):
            row[part] = device
