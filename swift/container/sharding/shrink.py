"""Which shards are so small that they are to be put together (spec: account-container.md §19.4). Pure."""

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
    *,
    shrink_below: int,
    expand_to: int,
    max_shrinking: int = 1,
    max_expanding: int = -1,
) -> list[Merging]:
    """Sequences of neighbouring shards, the last of which takes in what the others have."""
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
    _close(run, found)
    return found if max_expanding < 0 else found[:max_expanding]


def _may_join(run: Sequence[ShardRange], item: ShardRange, expand_to: int, max_shrinking: int) -> bool:
    is_next = item.state == State.ACTIVE and item.lower == run[-1].upper and len(run) <= max_shrinking
    return is_next and sum(map(rows_of, run)) + rows_of(item) <= expand_to


def _close(run: list[ShardRange], found: list[Merging]) -> None:
    if len(run) > 1:
        found.append((run[:-1], run[-1]))


def apply(merging: Merging, now: Timestamp) -> Merging:
    """The ranges as they are from now on."""
    donors, acceptor = merging
    lower = min((donor.lower for donor in donors), default=acceptor.lower)
    expanded = replace(
        acceptor,
        lower=min(lower, acceptor.lower),
        timestamp=now.normal,
        state=State.ACTIVE,
        state_timestamp=now.normal,
        meta_timestamp=now.normal,
        object_count=acceptor.object_count + sum(donor.object_count for donor in donors),
        bytes_used=acceptor.bytes_used + sum(donor.bytes_used for donor in donors),
        reported=False,
    )
    return [in_state(donor, State.SHRINKING, now, epoch=True) for donor in donors], expanded
