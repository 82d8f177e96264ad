"""The table of a database's rows, as replication reads it and reclaiming empties it.

Accounts have rows of containers, containers rows of objects; both keep deleted ones as tombstones for a
while, and both send rows in the order of their ROWID. spec: account-container.md §12, §13
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from swift.db.listing import PageRow


@dataclass(frozen=True)
class RowTable:
    """A table of rows with a ``name`` and a ``deleted`` flag."""

    name: str
    #: What messages carry of a row, beside its ROWID, in order.
    columns: tuple[str, ...]
    #: The column that says since when a row is a tombstone.
    age_column: str

    @property
    def column_list(self) -> str:
        """The columns as SQL."""
        return ", ".join(self.columns)

    def rows_since(self, connection: sqlite3.Connection, row_id: int, count: int) -> list[PageRow]:
        """Up to ``count`` rows after a ROWID: (ROWID, columns)."""
        return connection.execute(self._page, (row_id, count)).fetchall()

    def message_since(self, connection: sqlite3.Connection, row_id: int, count: int) -> tuple[str, int]:
        """The same as JSON text of dictionaries, made by SQLite, and the last ROWID in it."""
        pairs = ", ".join(f"'{name}', {name}" for name in ("ROWID", *self.columns))
        text, last = connection.execute(
            f"SELECT json_group_array(json_object({pairs})), max(ROWID) FROM ({self._page})", (row_id, count)
        ).fetchone()
        return text, row_id if last is None else last

    @property
    def _page(self) -> str:
        return f"SELECT ROWID, {self.column_list} FROM {self.name} WHERE ROWID > ? ORDER BY ROWID LIMIT ?"

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
