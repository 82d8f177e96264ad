"""Merging of rows: those of several servers to one page, and pages to a listing. Without I/O.

Servers know different states of a name. ``merge`` says of each name which row is listed, and if that is
certain (decision 0017).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue
from swift.base.shardrange import ShardRange
from swift.base.timestamp import InvalidTimestamp, decode_timestamps
from swift.proxy.listing.plan import Finding

#: Characters of a timestamp that packs no others.
_PLAIN_TIME = 16


# --- pages to a listing ------------------------------------------------------------------------------------


class Page(NamedTuple):
    """Rows of a listing in its order, and the name to go on after; None at the listing's end."""

    rows: Sequence[JsonObject]
    end: str | None


class Source(Protocol):
    """A source of a listing's rows."""

    def page(self, after: str, limit: int) -> Page | Finding:
        """Return the next rows after a name, about ``limit``, or why they are not here.

        Raises ``HTTPError`` 503.
        """


def all_rows(source: Source, after: str, limit: int) -> list[JsonObject] | Finding:
    """Return up to ``limit`` rows; raises ``HTTPError`` 503."""
    rows: list[JsonObject] = []
    while len(rows) < limit:
        page = source.page(after, limit - len(rows))
        if isinstance(page, Finding):
            return page
        rows += page.rows
        if page.end is None:
            break
        after = page.end
    return rows[:limit]


def row_name(row: JsonObject) -> str:
    """Return the name of a row in the order of a listing."""
    return str(row["subdir"] if "subdir" in row else row["name"])


def parse_rows(body: bytes) -> list[JsonObject]:
    """Parse a listing of rows; raises ``InvalidValue``."""
    try:
        rows = json.loads(body or b"[]")
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"not a listing: {error}")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and ("name" in row or "subdir" in row) for row in rows
    ):
        raise InvalidValue("not a listing of names")
    return rows


# --- rows of servers to a page -----------------------------------------------------------------------------


class ReplicaRows(NamedTuple):
    """One server's response: rows up to ``end`` (empty: all of them), and the shards that it knows."""

    rows: Sequence[JsonObject]
    end: str
    ranges: Sequence[ShardRange] = ()


#: The responses of one container's servers to one request.
Responses = Sequence[ReplicaRows]


def parse_replica_rows(document: bytes) -> ReplicaRows:
    """Parse a server's response with the rows it holds; raises ``InvalidValue``."""
    try:
        value = json.loads(document)
        ranges = [ShardRange.from_mapping(item) for item in value["ranges"]]
        return ReplicaRows(list(value["rows"]), str(value["end"]), ranges)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidValue(f"not what a container server holds: {error}")


class MergedPage(NamedTuple):
    """The merged rows of several servers."""

    #: In the order of the listing, each with True if it certainly belongs there.
    rows: list[tuple[JsonObject, bool]]
    #: The name up to which all rows are known; empty at the end of the listing.
    end: str


#: A row of one server, after the number of the request that it came with.
SeenRow = tuple[int, JsonObject]


def merge(held: Sequence[Responses], end: str, *, reverse: bool) -> MergedPage:
    """Merge the names up to ``end``, each with True if it certainly belongs into the listing.

    A name certainly belongs when all servers of one container hold a row that is newer than every tombstone.
    It certainly does not when all of one hold a tombstone that is newer than every row. Common prefixes are
    never certain, because two servers may derive one from different names.
    """
    seen: dict[tuple[str, bool], list[SeenRow]] = {}
    for number, each in enumerate(held):
        for response in each:
            for row in response.rows:
                is_prefix = "subdir" in row
                name = row["subdir"] if is_prefix else row["name"]
                if not end or (name >= end if reverse else name <= end):
                    seen.setdefault((name, is_prefix), []).append((number, row))
    counts = [len(each) for each in held]
    verdicts = [_decide_row(seen[key], counts) for key in sorted(seen, reverse=reverse)]
    return MergedPage([verdict for verdict in verdicts if verdict is not None], end)


def _decide_row(seen: Sequence[SeenRow], counts: Sequence[int]) -> tuple[JsonObject, bool] | None:
    """Return the newest row of a name and True if it is certain; None if the name certainly is deleted."""
    numbers, rows = zip(*seen, strict=True)
    newest, deleted = rows[0], None
    if rows.count(newest) < len(rows) or "deleted" in newest:
        times = [_data_time(row) for row in rows]
        live = [n for n, row in enumerate(rows) if not row.get("deleted")]
        if not live:
            return None
        tombstones = [n for n, row in enumerate(rows) if row.get("deleted")]
        last = max(live, key=lambda n: (times[n], str(rows[n].get("last_modified", ""))))
        newest, deleted = rows[last], max((times[n] for n in tombstones), default=None)
        if deleted is not None and deleted >= times[last]:
            gone = [numbers[n] for n in tombstones if times[n] >= times[last]]
            return None if _is_unanimous(gone, counts) else (_listed(newest), False)
        numbers = tuple(numbers[n] for n in live if deleted is None or times[n] > deleted)
    return _listed(newest), "subdir" not in newest and _is_unanimous(numbers, counts)


def _listed(row: JsonObject) -> JsonObject:
    """Return a row as clients see it."""
    return (
        {name: value for name, value in row.items() if name != "created_at"} if "created_at" in row else row
    )


def _is_unanimous(requests: Sequence[int], counts: Sequence[int]) -> bool:
    """Return True if all servers that responded to one request are among these."""
    if len(counts) == 1:
        return len(requests) >= counts[0]
    return any(requests.count(number) >= counts[number] for number in set(requests))


def _data_time(row: JsonObject) -> str:
    """Return when the data was written, as text that sorts by time; empty for a common prefix."""
    text = str(row.get("created_at", ""))
    if not text or len(text) == _PLAIN_TIME:
        return text
    try:
        return decode_timestamps(text)[0].internal
    except InvalidTimestamp:
        return ""


def nearest_end(responses: Responses, end: str, *, reverse: bool) -> str:
    """Return the name up to which all responses, and a page up to ``end``, are complete."""
    ends = [response.end for response in responses if response.end]
    if end:
        ends.append(end)
    return (max if reverse else min)(ends, default="")
