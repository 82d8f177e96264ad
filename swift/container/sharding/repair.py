"""Repair of a root's shards: overlaps and gaps (spec: account-container.md §19). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import md5

from swift.base.namespace import upper_key
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp

#: States whose ranges have all their rows.
_WHOLE = frozenset((State.CLEAVED, State.ACTIVE))
_LEAVING = frozenset((State.SHRINKING, State.SHRUNK))


@dataclass(frozen=True, slots=True)
class Gap:
    """Names ``lower < name <= upper`` that no shard takes; an empty bound means that there is none."""

    lower: str
    upper: str


@dataclass(frozen=True, slots=True)
class _Chain:
    """Ranges that follow each other from the beginning on."""

    objects: int
    times: frozenset[str]
    last: ShardRange | None = None
    before: _Chain | None = None

    def with_next(self, item: ShardRange) -> _Chain:
        return _Chain(self.objects + item.object_count, self.times | {item.timestamp}, item, self)

    @property
    def merit(self) -> tuple[int, int, str, str]:
        """Most objects, then made at the fewest times, then the latest."""
        name = self.last.name if self.last else ""
        return (self.objects, -len(self.times), max(self.times, default=""), name)

    def ranges(self) -> list[ShardRange]:
        found: list[ShardRange] = []
        chain: _Chain | None = self
        while chain is not None and chain.last is not None:
            found.append(chain.last)
            chain = chain.before
        return found[::-1]


def best_sequence(ranges: Iterable[ShardRange], lower: str = "", upper: str = "") -> list[ShardRange]:
    """Return the ranges that cover everything once and are worth most; none when no sequence does.

    One of ranges that all have their rows is preferred to any other.
    """
    items = sorted(ranges, key=lambda item: item.sort_key)
    return _best([item for item in items if item.state in _WHOLE], lower, upper) or _best(items, lower, upper)


def _best(items: Sequence[ShardRange], lower: str, upper: str) -> list[ShardRange]:
    beginning = _Chain(0, frozenset())
    #: Upper bound → the best chain up to it. What ends at a bound comes before what begins there.
    ends: dict[str, _Chain] = {}
    for item in items:
        before = beginning if item.lower == lower else ends.get(item.lower) if item.lower else None
        if before is None:
            continue
        chain = before.with_next(item)
        if item.upper not in ends or chain.merit > ends[item.upper].merit:
            ends[item.upper] = chain
    return ends[upper].ranges() if upper in ends else []


def isolated_in(acceptors: Iterable[ShardRange], donors: Iterable[ShardRange]) -> str:
    """Return the part where ranges have rows although the sequence has gaps; empty if none."""
    states = {item.state for item in acceptors}
    if states <= _WHOLE:
        return ""
    if states & _WHOLE:
        return "acceptor path"
    return "donor ranges" if any(item.state in _WHOLE for item in donors) else ""


def are_related(one: ShardRange, other: ShardRange) -> bool:
    """Return True if one shard was split off the other."""
    return _is_child(one, other) or _is_child(other, one)


def _is_child(child: ShardRange, parent: ShardRange) -> bool:
    name = parent.name.partition("/")[2]
    digest = md5(name.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
    return child.name.rsplit("-", 3)[1:2] == [digest]


def is_younger(item: ShardRange, now: Timestamp, age_s: float) -> bool:
    """Return True if a range was created, or got its bounds, less than ``age_s`` ago."""
    return Timestamp(item.timestamp).seconds + age_s > now.seconds


def find_gaps(ranges: Iterable[ShardRange], lower: str = "", upper: str = "") -> list[Gap]:
    """Return the names that belong to no range but those that go."""
    gaps: list[Gap] = []
    end, is_open = lower, False
    for item in sorted(staying(ranges), key=lambda item: item.lower):
        if is_open:
            break
        if item.lower > end:
            gaps.append(Gap(end, item.lower))
        is_open = not item.upper
        end = max(end, item.upper)
    if not is_open and upper_key(end or "\0") < upper_key(upper):
        gaps.append(Gap(end, upper))
    return gaps


def find_overlaps(ranges: Iterable[ShardRange]) -> list[ShardRange]:
    """Ranges that begin before an earlier one ends, of those that stay."""
    found: list[ShardRange] = []
    last: ShardRange | None = None
    for item in sorted(staying(ranges), key=lambda item: (item.lower, upper_key(item.upper))):
        if last is not None and (not last.upper or item.lower < last.upper):
            found.append(item)
        if last is None or upper_key(item.upper) > upper_key(last.upper):
            last = item
    return found


def staying(ranges: Iterable[ShardRange]) -> list[ShardRange]:
    """Return the ranges that do not shrink."""
    return [item for item in ranges if item.state not in _LEAVING]


def filler_of(gap: Gap, ranges: Iterable[ShardRange]) -> ShardRange | None:
    """Return the active neighbour that can take a gap, the one above if possible."""
    active = [item for item in ranges if item.state == State.ACTIVE]
    above = [item for item in active if gap.upper and item.lower == gap.upper]
    below = [item for item in active if gap.lower and item.upper == gap.lower]
    return next(iter(above or below), None)


def expanded(item: ShardRange, gap: Gap, now: Timestamp) -> ShardRange:
    """Return the neighbour with the names of a gap."""
    lower = gap.lower if gap.upper and item.lower == gap.upper else item.lower
    upper = gap.upper if gap.lower and item.upper == gap.lower else item.upper
    return replace(item, lower=lower, upper=upper, timestamp=now.normal, reported=False)
