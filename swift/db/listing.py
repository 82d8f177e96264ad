"""Listings: one indexed query a page, for all parameters (account-container.md §10).

A listing without delimiter is one range scan of the ``(deleted, name)`` index. With a delimiter (or ``path``)
a recursive query seeks from entry to entry: a sub-directory costs one seek, however many names it hides.
Names are cut as blobs, because SQLite's text functions stop at the NUL of reserved names.

It knows names only; the callers say which columns they want and render them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class ListingQuery:
    """The parameters of public-api.md §7.3; empty text means not given, except ``path`` (None)."""

    limit: int
    marker: str = ""
    end_marker: str = ""
    prefix: str = ""
    delimiter: str = ""
    path: str | None = None
    reverse: bool = False
    #: True if names that begin with NUL are shown.
    reserved: bool = False


@dataclass(frozen=True, slots=True)
class RowSource:
    """Source of rows: a table, the columns of a row (``name`` first) and a condition on ``t``.

    The condition begins with ``AND`` and names its parameters with ``:name``.
    """

    table: str
    columns: tuple[str, ...]
    condition: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    #: 0 for what is there, 1 for the tombstones, more for what a newer release has.
    deleted: int = 0

    @property
    def selected(self) -> str:
        """The columns for SELECT."""
        return ", ".join(f"t.{column}" for column in self.columns)


#: A row of the page: the columns, and last the sub-directory it stands for (None: the row itself).
PageRow = tuple[Any, ...]


def successor(text: str) -> str | None:
    """Return the least text greater than everything that begins with ``text``; None when there is none."""
    while text:
        code = ord(text[-1])
        if code < _LAST:
            code += 1
            return text[:-1] + chr(_SURROGATES.stop if code in _SURROGATES else code)
        text = text[:-1]
    return None


@dataclass(slots=True)
class _Bounds:
    """``low <(=) name <(=) high``; None is no bound."""

    low: str | None = None
    low_inclusive: bool = True
    high: str | None = None
    high_inclusive: bool = False

    @property
    def low_condition(self) -> str:
        """SQL on ``t.name`` for the lower bound."""
        return "" if self.low is None else f" AND t.name {'>=' if self.low_inclusive else '>'} :low"

    @property
    def high_condition(self) -> str:
        """SQL on ``t.name`` for the upper bound."""
        return "" if self.high is None else f" AND t.name {'<=' if self.high_inclusive else '<'} :high"

    @property
    def parameters(self) -> dict[str, object]:
        """Parameters of the conditions."""
        return {"low": self.low, "high": self.high}


def page(connection: sqlite3.Connection, source: RowSource, query: ListingQuery) -> list[PageRow]:
    """Return the rows of one page in order; each is the source's columns plus the sub-directory or None."""
    if query.limit <= 0:
        return []
    prefix, delimiter = query.prefix, query.delimiter
    if query.path is not None:
        stripped = query.path.rstrip("/")
        prefix, delimiter = (f"{stripped}/" if query.path else ""), "/"
    bounds = _bounds(query, prefix)
    if bounds is None:
        return []
    if not delimiter:
        return _scan(connection, source, query, bounds)
    marker = query.end_marker if query.reverse else query.marker
    _skip_marked_directory(bounds, marker, prefix, delimiter)
    walk = _Walk(connection, source, query.reverse, prefix, delimiter)
    if query.path is None:
        return walk.rows(bounds, query.limit)
    return _level(walk, bounds, query.limit, prefix)


def _bounds(query: ListingQuery, prefix: str) -> _Bounds | None:
    """Return the range of names; None when nothing can match."""
    marker, end_marker = query.marker, query.end_marker
    if query.reverse:
        marker, end_marker = end_marker, marker
    bounds = _Bounds()
    if not query.reserved:
        bounds.low = "\x01"
    if prefix and (bounds.low is None or prefix >= bounds.low):
        bounds.low = prefix
    if marker and (bounds.low is None or marker >= bounds.low):
        bounds.low, bounds.low_inclusive = marker, False
    after = successor(prefix) if prefix else None
    if prefix and not query.reserved and prefix < "\x01":
        return None
    bounds.high = end_marker or None
    if after is not None and (bounds.high is None or bounds.high >= after):
        bounds.high = after
    return bounds


def _scan(
    connection: sqlite3.Connection, source: RowSource, query: ListingQuery, bounds: _Bounds
) -> list[PageRow]:
    order = "DESC" if query.reverse else "ASC"
    return connection.execute(
        f"SELECT {source.selected}, NULL FROM {source.table} t WHERE t.deleted = {source.deleted} "
        f"{source.condition}{bounds.low_condition}{bounds.high_condition} "
        f"ORDER BY t.name {order} LIMIT :limit",
        {**source.parameters, **bounds.parameters, "limit": query.limit},
    ).fetchall()


def _skip_marked_directory(bounds: _Bounds, marker: str, prefix: str, delimiter: str) -> None:
    """Begin behind all names of a sub-directory that is itself the lower marker, which excludes it."""
    if not marker.startswith(prefix) or not marker.endswith(delimiter):
        return
    if marker.find(delimiter, len(prefix)) + len(delimiter) != len(marker):
        return
    after = successor(marker)
    # Hidden names stay below the bound, whatever marker the client sends.
    if after is not None and (bounds.low is None or after > bounds.low):
        bounds.low, bounds.low_inclusive = after, True


def _level(walk: _Walk, bounds: _Bounds, limit: int, prefix: str) -> list[PageRow]:
    """``path``: the names directly below the prefix, and those that only add one delimiter."""
    found: list[PageRow] = []
    while len(found) < limit:
        rows = walk.rows(bounds, limit, own_names=True)
        found += [row for row in rows if row[0] != prefix and row[-1] in (None, row[0])]
        if len(rows) < limit:
            break
        last = rows[-1]
        walk.move_behind(bounds, last[0], last[-1])
    return [(*row[:-1], None) for row in found[:limit]]


#: Position at which the delimiter begins in ``name`` behind the prefix (1-based), 0 when it does not occur.
_POSITION = "instr(substr(CAST({name} AS BLOB), :skip), :delimiter)"
#: Bytes of the name's sub-directory; means nothing without delimiter.
_LENGTH = f"(:skip + {_POSITION} - 2 + :size)"
_DIRECTORY = f"CAST(substr(CAST({{name}} AS BLOB), 1, {_LENGTH}) AS TEXT)"
_BEHIND = f"CAST(substr(CAST({{name}} AS BLOB), 1, {_LENGTH} - :size) || :after AS TEXT)"


def _of(expression: str, alias: str) -> str:
    return expression.format(name=f"{alias}.name")


class _Walk:
    """The seeking query of one listing."""

    def __init__(
        self, connection: sqlite3.Connection, source: RowSource, reverse: bool, prefix: str, delimiter: str
    ):
        self._connection = connection
        self._source = source
        self._reverse = reverse
        # A delimiter of only the last code point has no successor; nothing but such names is behind it.
        after = successor(delimiter) or delimiter + chr(_LAST)
        self._parameters = {
            "skip": len(prefix.encode("utf-8")) + 1,
            "delimiter": delimiter.encode("utf-8"),
            "size": len(delimiter.encode("utf-8")),
            "after": after.encode("utf-8"),
        }

    def rows(self, bounds: _Bounds, limit: int, *, own_names: bool = False) -> list[PageRow]:
        """Up to ``limit`` entries within the bounds.

        With ``own_names`` a name that equals its sub-directory is an entry beside the deeper names.
        """
        source = self._source
        seek = f"SELECT t.ROWID FROM {source.table} t WHERE t.deleted = {source.deleted} {source.condition}"
        order = f"ORDER BY t.name {'DESC' if self._reverse else 'ASC'} LIMIT 1"
        far_bound = bounds.low_condition if self._reverse else bounds.high_condition
        sql = (
            "WITH RECURSIVE walk(id) AS ("
            f"SELECT ({seek}{bounds.low_condition}{bounds.high_condition} {order}) "
            f"UNION ALL SELECT ({seek} AND {self._next_bound(own_names)}{far_bound} {order}) "
            f"FROM walk JOIN {source.table} f ON f.ROWID = walk.id LIMIT :limit) "
            f"SELECT {source.selected}, "
            f"CASE WHEN {_of(_POSITION, 't')} > 0 THEN {_of(_DIRECTORY, 't')} END "
            f"FROM walk JOIN {source.table} t ON t.ROWID = walk.id"
        )
        parameters = {**source.parameters, **bounds.parameters, **self._parameters, "limit": limit}
        return self._connection.execute(sql, parameters).fetchall()

    def _next_bound(self, own_names: bool) -> str:
        """Return the condition on ``t`` that seeks past the entry of ``f``.

        ``name || char(0)`` is the least text behind a name: with it every bound is one comparison, which
        the index can seek.
        """
        plain = f"{_of(_POSITION, 'f')} = 0"
        directory = _of(_DIRECTORY, "f")
        if own_names:
            plain += f" OR f.name = {directory}"
        if self._reverse:
            back = f"{directory} || char(0)" if own_names else directory
            return f"t.name < CASE WHEN {plain} THEN f.name ELSE {back} END"
        return f"t.name >= CASE WHEN {plain} THEN f.name || char(0) ELSE {_of(_BEHIND, 'f')} END"

    def move_behind(self, bounds: _Bounds, name: str, directory: str | None) -> None:
        """Move the near bound behind an entry, sub-directories shown beside their own names."""
        is_plain = directory is None or directory == name
        if self._reverse:
            bounds.high, bounds.high_inclusive = (name, False) if is_plain else (directory, True)
        elif is_plain:
            bounds.low, bounds.low_inclusive = name, False
        else:
            bounds.low, bounds.low_inclusive = successor(str(directory)) or name, True
