"""Selection of small shards to merge (spec: account-container.md §19.4). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.sharding.scan import in_state

#: Donors, and the acceptor that gets what they have.
Merging = tuple[list[ShardRange], ShardRange]


def rows_of(item: ShardRange) -> int:
    """Rows of a shard, deleted ones included."""
    return item.object_count + max(item.tombstones, 0)


def find_mergings(
    ranges: Sequence[ShardRange],
    own: ShardRange,
    *,
    shrink_below: int,
    expand_to: int,
    max_shrinking: int = 1,
    max_expanding: int = -1,
) -> list[Merging]:
    """Sequences of neighbouring shards, the last of which takes in what the others have.

    When all shards are small and may shrink at once, the root takes in what they have: ``own`` is its range.
    """
    found: list[Merging] = []
    run: list[ShardRange] = []
    busy = any(item.state == State.SHRINKING for item in ranges)
    for item in ranges if not busy else ():
        if run and not _may_join(run, item, expand_to, max_shrinking):
            _close(run, found)
            run = []
        if run:
            run.append(item)
            if rows_of(item) >= shrink_below or len(run) > max_shrinking:
                _close(run, found)
                run = []
        elif item.state == State.ACTIVE and rows_of(item) < shrink_below:
            run = [item]
    if _are_all_of(run, own, expand_to):
        found.append((run, own))
    else:
        _close(run, found)
    return found if max_expanding < 0 else found[:max_expanding]


def _may_join(run: Sequence[ShardRange], item: ShardRange, expand_to: int, max_shrinking: int) -> bool:
    is_next = item.state == State.ACTIVE and item.lower == run[-1].upper and len(run) <= max_shrinking
    return is_next and sum(map(rows_of, run)) + rows_of(item) <= expand_to


def _are_all_of(run: Sequence[ShardRange], own: ShardRange, expand_to: int) -> bool:
    """Return True if a run has all names of a container, and fewer rows than the limit."""
    is_whole = bool(run) and (run[0].lower, run[-1].upper) == (own.lower, own.upper)
    return is_whole and sum(map(rows_of, run)) < expand_to


def _close(run: list[ShardRange], found: list[Merging]) -> None:
    if len(run) > 1:
        found.append((run[:-1], run[-1]))


def apply(merging: Merging, now: Timestamp) -> Merging:
    """Return the ranges as they are from now on; a root, which has all names, gets none that it has not."""
    donors, acceptor = merging
    shrinking = [in_state(donor, State.SHRINKING, now, epoch=True) for donor in donors]
    lower = min(acceptor.lower, *(donor.lower for donor in donors))
    if lower == acceptor.lower:
        return shrinking, in_state(acceptor, State.ACTIVE, now)
    expanded = replace(
        acceptor,
        lower=lower,
        timestamp=now.normal,
        state=State.ACTIVE,
        state_timestamp=now.normal,
        meta_timestamp=now.normal,
        object_count=acceptor.object_count + sum(donor.object_count for donor in donors),
        bytes_used=acceptor.bytes_used + sum(donor.bytes_used for donor in donors),
        reported=False,
    )
    return shrinking, expanded
