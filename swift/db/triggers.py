"""Triggers that keep totals: their texts, and doing without them for a moment inside one transaction.

The triggers of a table keep totals and a checksum row by row, which costs several times what the rows
themselves cost. Who writes many rows at once can keep them for all of them together instead: the triggers
are taken out, and put back with the very same text before other connections can see the table. SQLite's
changes of schema are part of the transaction, so that a crash leaves all of it or nothing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

_TABLES = re.compile(r"\b(?:update|into|from)\s+(\w+)", re.IGNORECASE)
_COLUMNS = re.compile(r"\b(?:new|old)\.(\w+)", re.IGNORECASE)
#: Counts 1 for a live row, 0 for a tombstone, and a negative number for any other.
_OLD_COUNT = re.compile(r"1\s*-\s*(?:new|old)\.deleted", re.IGNORECASE)


@dataclass(frozen=True)
class CountingTriggers:
    """The triggers of a table that keep totals: name to statement, and what they may mention."""

    statements: Mapping[str, str]
    tables: frozenset[str]
    columns: frozenset[str]
    #: Statements that take rows of a ``deleted`` above 1 out of totals that older triggers kept.
    corrections: tuple[str, ...]

    def are_known(self, connection: sqlite3.Connection) -> bool:
        """Return True if the triggers of a database keep these totals and nothing else.

        Triggers of a newer release may count other things, which only they can.
        """
        return all(map(self._is_known, self._texts(connection).values()))

    def renew(self, connection: sqlite3.Connection) -> None:
        """Replace triggers that miscount rows of a ``deleted`` above 1, and put the totals right."""
        texts = self._texts(connection)
        if not all(map(self._is_known, texts.values())):
            return
        old = [name for name, text in texts.items() if _OLD_COUNT.search(text)]
        for name in old:
            connection.execute(f"DROP TRIGGER {name}")
            connection.execute(self.statements[name])
        for statement in self.corrections if old else ():
            connection.execute(statement)

    def _texts(self, connection: sqlite3.Connection) -> dict[str, str]:
        marks = ", ".join("?" * len(self.statements))
        found = connection.execute(
            f"SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name IN ({marks})",
            tuple(self.statements),
        )
        return dict(found.fetchall())

    def _is_known(self, text: str) -> bool:
        mentioned = {name.lower() for name in _COLUMNS.findall(text)}
        touched = {name.lower() for name in _TABLES.findall(text)}
        return mentioned <= self.columns and touched <= self.tables


@contextmanager
def without_triggers(connection: sqlite3.Connection, names: Sequence[str]) -> Iterator[None]:
    """Run the block without these triggers; the caller is in a transaction and rolls back on any error."""
    marks = ", ".join("?" * len(names))
    texts = connection.execute(
        f"SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name IN ({marks})", tuple(names)
    ).fetchall()
    for name in names:
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
    yield
    for (text,) in texts:
        connection.execute(text)
