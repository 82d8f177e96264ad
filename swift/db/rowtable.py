"""The table of a database's rows, as replication reads it and reclaiming empties it.

Accounts have rows of containers, containers rows of objects; both keep deleted ones as tombstones for a
while, and both send rows in the order of their ROWID. spec: account-container.md §12, §13

A ``deleted`` above 1 comes from a newer release. Such a row is no live one and no tombstone: it is not
listed, not counted, and never reclaimed.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from swift.base.documents import JsonObject
from swift.db.listing import PageRow
from swift.db.unknown import column_list, quoted, unknown_columns

#: The values of ``deleted`` that this release gives.
LIVE, TOMBSTONE = 0, 1


def state_of(deleted: int) -> int:
    """Return a message's ``deleted`` as it is stored: values above 1 as they are."""
    return deleted if deleted >= LIVE else TOMBSTONE


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


@dataclass(frozen=True)
class RowTable:
    """A table of rows with a ``name`` and a ``deleted`` flag."""

    name: str
    #: Columns of a row in messages, beside its ROWID, in order.
    columns: tuple[str, ...]
    #: The column that says since when a row is a tombstone.
    age_column: str

    @property
    def column_list(self) -> str:
        """The columns as SQL."""
        return ", ".join(self.columns)

    def unknown_columns(self, connection: sqlite3.Connection) -> list[str]:
        """Return the columns of the table that this release does not know."""
        return unknown_columns(connection, self.name, self.columns)

    def states(self, connection: sqlite3.Connection) -> list[int]:
        """Return the values that ``deleted`` may have here; each costs one step in the index."""
        found = [LIVE, TOMBSTONE]
        while True:
            (more,) = connection.execute(
                f"SELECT MIN(deleted) FROM {self.name} WHERE deleted > ?", (found[-1],)
            ).fetchone()
            if not isinstance(more, int):
                return found
            found.append(more)

    def state_list(self, connection: sqlite3.Connection) -> str:
        """Return the same as SQL, so that an index on (deleted, name) finds names in every state."""
        return ", ".join(map(str, self.states(connection)))

    def rows_since(self, connection: sqlite3.Connection, row_id: int, count: int) -> list[PageRow]:
        """Up to ``count`` rows after a ROWID: (ROWID, columns, unknown columns)."""
        page = self._page(self.unknown_columns(connection))
        return connection.execute(page, (row_id, count)).fetchall()

    def items_since(self, connection: sqlite3.Connection, row_id: int, count: int) -> list[JsonObject]:
        """Up to ``count`` rows after a ROWID, as ``merge_items`` messages carry them."""
        keys = ("ROWID", *self.columns, *self.unknown_columns(connection))
        return [dict(zip(keys, row, strict=True)) for row in self.rows_since(connection, row_id, count)]

    def message_since(self, connection: sqlite3.Connection, row_id: int, count: int) -> tuple[str, int]:
        """Return the same as JSON text of dictionaries, made by SQLite, and the last ROWID in it."""
        unknown = self.unknown_columns(connection)
        pairs = ", ".join(f"{_text(name)}, {quoted(name)}" for name in ("ROWID", *self.columns, *unknown))
        text, last = connection.execute(
            f"SELECT json_group_array(json_object({pairs})), max(ROWID) FROM ({self._page(unknown)})",
            (row_id, count),
        ).fetchone()
        return text, row_id if last is None else last

    def _page(self, unknown: list[str]) -> str:
        return (
            f"SELECT ROWID, {self.column_list}{column_list(unknown)} FROM {self.name} "
            "WHERE ROWID > ? ORDER BY ROWID LIMIT ?"
        )

    def has_unknown_states(self, connection: sqlite3.Connection) -> bool:
        """Return True if the table has rows that are neither live nor tombstones."""
        found = connection.execute(f"SELECT 1 FROM {self.name} WHERE deleted > 1 LIMIT 1")
        return found.fetchone() is not None

    def has_older(self, connection: sqlite3.Connection, before: str) -> bool:
        """Return True if there is a tombstone older than ``before``."""
        found = connection.execute(
            f"SELECT 1 FROM {self.name} WHERE deleted = 1 AND {self.age_column} < ? LIMIT 1", (before,)
        )
        return found.fetchone() is not None

    def reclaim(
        self, connection: sqlite3.Connection, before: str, *, after_name: str, count: int
    ) -> str | None:
        """Remove tombstones older than ``before`` among the next ``count`` of them by name.

        Returns the name to go on after, None when all were looked at.
        """
        names = connection.execute(
            f"SELECT name FROM {self.name} WHERE deleted = 1 AND name > ? ORDER BY name LIMIT 1 OFFSET ?",
            (after_name, count),
        ).fetchone()
        last = None if names is None else names[0]
        bound = "" if last is None else " AND name <= :last"
        connection.execute(
            f"DELETE FROM {self.name} WHERE deleted = 1 AND name > :after "
            f"AND {self.age_column} < :before{bound}",
            {"after": after_name, "before": before, "last": last},
        )
        return last
