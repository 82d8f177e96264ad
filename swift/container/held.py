"""All that a container server holds of some names, for strong listings of split containers (decision 0017).

A listing shows what one file of a container has of objects that are there. Who wants to know what became of
every name while rows wander to shards needs the rows of both files, tombstones, and the shards that rows may
have gone to, which are read last: what had left before the rows were read is in one of them by then.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from swift.container import objecttable
from swift.container.broker import ContainerBroker, source_of
from swift.container.listing import as_rows
from swift.container.shardtable import ShardQuery
from swift.db.listing import ListingQuery, PageRow, RowSource, page
from swift.db.rowtable import LIVE


class HeldPage(NamedTuple):
    """Rows of one file of a container."""

    rows: list[PageRow]
    are_tombstones: bool


def knows_shards(broker: ContainerBroker) -> bool:
    """Return True if other databases hold, or held, rows of the container."""
    return bool(broker.shard_ranges(ShardQuery(include_deleted=True)))


def held_document(broker: ContainerBroker, query: ListingQuery, policy_index: int) -> bytes:
    """Return the JSON document: ``rows``, ``end`` (the name they all reach; empty: the last) and ``ranges``.

    A row is that of a listing with its ``created_at``; a tombstone has only that, its name and ``deleted``.
    There are no more than ``query.limit`` of each kind and file.
    """
    pages = [
        HeldPage(
            broker.read(partial(_page, source_of(policy_index, deleted=state), query), database=database),
            state != LIVE,
        )
        for database in broker.databases
        for state in broker.read(objecttable.TABLE.states, database=database)
    ]
    end = end_of(pages, query.limit, reverse=query.reverse)
    rows: list[dict[str, object]] = []
    for each in pages:
        within = [row for row in each.rows if not end or not _is_behind(_name_of(row), end, query.reverse)]
        rows += _tombstones(within) if each.are_tombstones else _objects(within)
    wanted = ShardQuery(
        marker=query.marker, end_marker=query.end_marker, reverse=query.reverse, include_deleted=True
    )
    ranges = [item.as_dict() for item in broker.shard_ranges(wanted)]
    return json.dumps({"rows": rows, "end": end, "ranges": ranges}).encode("ascii")


def end_of(pages: Sequence[HeldPage], limit: int, *, reverse: bool) -> str:
    """Return the name up to which pages of at most ``limit`` rows say everything.

    Empty when they all end before.
    """
    ends = [_name_of(each.rows[-1]) for each in pages if each.rows and len(each.rows) >= limit]
    if not ends:
        return ""
    return max(ends) if reverse else min(ends)


def _page(source: RowSource, query: ListingQuery, connection: sqlite3.Connection) -> list[PageRow]:
    return page(connection, source, query)


def _objects(rows: Sequence[PageRow]) -> list[dict[str, object]]:
    shown = as_rows(rows)
    for row, item in zip(rows, shown, strict=True):
        if row[-1] is None:
            item["created_at"] = row[1]
    return shown


def _tombstones(rows: Sequence[PageRow]) -> list[dict[str, object]]:
    """Return the tombstones; those below a common prefix are omitted, because the prefix may hold objects."""
    return [{"name": row[0], "created_at": row[1], "deleted": True} for row in rows if row[-1] is None]


def _name_of(row: PageRow) -> str:
    """Return the name that positions a row in a listing."""
    return str(row[0] if row[-1] is None else row[-1])


def _is_behind(name: str, end: str, reverse: bool) -> bool:
    return name < end if reverse else name > end
