"""The ``shard_range`` table: which part of a container lives where (account-container.md §12, §19).

Reading, filtering and merging rows; sharding decisions are made elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from swift.base.shardrange import ShardRange, State, merge
from swift.container.schema import SHARD_COLUMNS
from swift.db.unknown import Unknown, column_list, quoted, unknown_columns, values_of

_NAMES = tuple(SHARD_COLUMNS)
_SELECT = f"SELECT {', '.join(_NAMES)} FROM shard_range"
_INSERT = f"INSERT INTO shard_range ({', '.join(_NAMES)}) VALUES ({', '.join('?' * len(_NAMES))})"


@dataclass(frozen=True, slots=True)
class ShardQuery:
    """Filter of shard ranges (§12); empty text means not given."""

    marker: str = ""
    end_marker: str = ""
    includes: str | None = None
    reverse: bool = False
    states: frozenset[State] = frozenset()
    include_deleted: bool = False
    include_own: bool = False

    @property
    def bounds(self) -> tuple[str, str]:
        """Lower and upper bound in ascending order."""
        return (self.end_marker, self.marker) if self.reverse else (self.marker, self.end_marker)

    @property
    def is_empty(self) -> bool:
        """True if the markers leave no range between them."""
        low, high = self.bounds
        return bool(low and high and low >= high)


def _range_of(row: Sequence[object]) -> ShardRange:
    return ShardRange.from_mapping(dict(zip(_NAMES, row, strict=True)))


def own_range(connection: sqlite3.Connection, own_name: str) -> ShardRange | None:
    """Return the stored range of the container itself, None when it has none."""
    row = connection.execute(f"{_SELECT} WHERE name = ?", (own_name,)).fetchone()
    return None if row is None else _range_of(row)


def has_other_ranges(connection: sqlite3.Connection, own_name: str) -> bool:
    """Return True if an undeleted range other than the container's own exists."""
    found = connection.execute(
        "SELECT 1 FROM shard_range WHERE deleted = 0 AND name != ? LIMIT 1", (own_name,)
    )
    return found.fetchone() is not None


def counted(connection: sqlite3.Connection, own_name: str, states: Iterable[State]) -> tuple[int, int]:
    """Objects and bytes over the other ranges in these states."""
    marks = ", ".join(str(int(state)) for state in states)
    row = connection.execute(
        "SELECT COALESCE(SUM(object_count), 0), COALESCE(SUM(bytes_used), 0) FROM shard_range "
        f"WHERE deleted = 0 AND state IN ({marks}) AND name != ?",
        (own_name,),
    ).fetchone()
    return int(row[0]), int(row[1])


def select(connection: sqlite3.Connection, own_name: str, query: ShardQuery) -> list[ShardRange]:
    """Return the ranges of a query in listing order (before ``reverse``); ``includes`` gives at most one."""
    where, values = [], []
    if not query.include_deleted:
        where.append("deleted = 0")
    if query.states:
        where.append(f"state IN ({', '.join(str(int(state)) for state in sorted(query.states))})")
    if not query.include_own:
        where.append("name != ?")
        values.append(own_name)
    if query.is_empty:
        return []
    if query.includes is not None:
        where.append("lower < ? AND (upper = '' OR upper >= ?)")
        values += [query.includes, query.includes]
    else:
        low, high = query.bounds
        if low:
            where.append("(upper = '' OR upper > ?)")
            values.append(low)
        if high:
            where.append("lower < ?")
            values.append(high)
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    found = [_range_of(row) for row in connection.execute(_SELECT + condition, values)]
    found.sort(key=lambda item: item.sort_key)
    return found if query.includes is None else found[:1]


def filled(ranges: Sequence[ShardRange], own: ShardRange, query: ShardQuery) -> list[ShardRange]:
    """Ranges, and copies of the own one for what they leave open at the end (§12).

    An own range that is active takes its shards in: what they leave open elsewhere is its own as well. A
    query for the range of one name is never filled.
    """
    if query.includes is not None or query.is_empty:
        return list(ranges)
    low, high = query.bounds
    end = high if high and (not own.upper or high < own.upper) else own.upper
    start = max(low, own.lower)
    found: list[ShardRange] = []
    for item in ranges:
        if own.state == State.ACTIVE and item.lower > start:
            found.append(replace(own, lower=start, upper=item.lower))
        found.append(item)
        if not item.upper:
            return found
        start = item.upper
    if not end or start < end:
        found.append(replace(own, lower=start, upper=end))
    return found


def merge_ranges(connection: sqlite3.Connection, ranges: Iterable[ShardRange]) -> bool:
    """Merge rows by the rule of §19.1 inside the caller's transaction; whether anything changed."""
    changed = False
    for new in ranges:
        have = connection.execute(f"{_SELECT} WHERE name = ?", (new.name,)).fetchone()
        existing = None if have is None else _range_of(have)
        merged = merge(existing, new)
        if merged is existing:
            continue
        changed = True
        unknown = _unknown_of(connection, new.name) if have is not None else ()
        connection.execute("DELETE FROM shard_range WHERE name = ?", (new.name,))
        if not unknown:
            connection.execute(_INSERT, _values(merged))
            continue
        names = [name for name, _ in unknown]
        marks = ", ".join("?" * (len(_NAMES) + len(names)))
        connection.execute(
            f"INSERT INTO shard_range ({', '.join(_NAMES)}{column_list(names)}) VALUES ({marks})",
            [*_values(merged), *(value for _, value in unknown)],
        )
    return changed


def _unknown_of(connection: sqlite3.Connection, name: str) -> Unknown:
    """Return what columns of a newer release hold of a stored range."""
    names = unknown_columns(connection, "shard_range", _NAMES)
    if not names:
        return ()
    row = connection.execute(
        f"SELECT {', '.join(map(quoted, names))} FROM shard_range WHERE name = ?", (name,)
    ).fetchone()
    return values_of(names, row)


def has_old(connection: sqlite3.Connection, own_name: str, before: str) -> bool:
    """Return True if a deleted range, not the own one, is older than a timestamp text."""
    found = connection.execute(
        "SELECT 1 FROM shard_range WHERE deleted = 1 AND name != ? AND timestamp < ? LIMIT 1",
        (own_name, before),
    )
    return found.fetchone() is not None


def reclaim(connection: sqlite3.Connection, own_name: str, before: str) -> None:
    """Remove those (§13)."""
    connection.execute(
        "DELETE FROM shard_range WHERE deleted = 1 AND name != ? AND timestamp < ?", (own_name, before)
    )


def _values(item: ShardRange) -> list[object]:
    values = []
    for name in _NAMES:
        value = getattr(item, name)
        values.append(int(value) if isinstance(value, (bool, State)) else value)
    return values
