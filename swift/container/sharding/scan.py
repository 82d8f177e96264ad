"""Scan for cut points of a container by its rows (spec: account-container.md §19.3)."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from hashlib import md5

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp

SHARDS_PREFIX = ".shards_"


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of the names with so many objects; an empty bound means that there is none."""

    lower: str
    upper: str
    object_count: int


def find_cuts(
    connection: sqlite3.Connection,
    own: ShardRange,
    policy_index: int,
    *,
    rows: int,
    minimum: int,
    after: str = "",
    limit: int = -1,
) -> tuple[list[Cut], bool]:
    """Up to ``limit`` parts of ``rows`` objects behind ``after``, and whether the last one was found.

    A part is not cut off when less than ``minimum`` would be left; nothing is found where all is one part.
    """
    where = "deleted = 0 AND storage_policy_index = :policy AND name > :low AND (:high = '' OR name <= :high)"
    bounds = {"policy": policy_index, "low": own.lower, "high": own.upper}
    total = connection.execute(f"SELECT COUNT(*) FROM object WHERE {where}", bounds).fetchone()[0]
    lower = after or own.lower
    bounds["low"] = lower
    left = connection.execute(f"SELECT COUNT(*) FROM object WHERE {where}", bounds).fetchone()[0]
    progress = total - left
    cuts: list[Cut] = []
    while limit < 0 or len(cuts) < limit:
        if progress + rows + minimum > total:
            if cuts or after:
                cuts.append(Cut(lower, own.upper, total - progress))
            return cuts, bool(cuts)
        bounds["low"] = lower
        row = connection.execute(
            f"SELECT name FROM object WHERE {where} ORDER BY name LIMIT 1 OFFSET :skip",
            {**bounds, "skip": rows - 1},
        ).fetchone()
        if row is None:
            # Rows went while we counted.
            return cuts, False
        cuts.append(Cut(lower, row[0], rows))
        lower, progress = row[0], progress + rows
    return cuts, False


def shard_name(root_account: str, root: str, parent: str, timestamp: Timestamp, index: int) -> str:
    """Return the ``account/container`` of a shard of the container ``parent``."""
    digest = md5(parent.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
    return f"{SHARDS_PREFIX}{root_account}/{root}-{digest}-{timestamp.normal}-{index}"


def ranges_of_cuts(
    cuts: list[Cut], root_account: str, root: str, parent: str, timestamp: Timestamp, first_index: int = 0
) -> list[ShardRange]:
    """Return new shard ranges, in state found."""
    return [
        ShardRange(
            shard_name(root_account, root, parent, timestamp, index),
            timestamp.normal,
            cut.lower,
            cut.upper,
            cut.object_count,
            state=State.FOUND,
        )
        for index, cut in enumerate(cuts, first_index)
    ]


def in_state(item: ShardRange, state: State, now: Timestamp, *, epoch: bool = False) -> ShardRange:
    """Return the range in another state since now; with ``epoch`` a new one begins."""
    return replace(
        item,
        state=state,
        state_timestamp=now.normal,
        epoch=now.normal if epoch else item.epoch,
        reported=False,
    )
