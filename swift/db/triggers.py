"""Doing without triggers for a moment, inside one transaction.

The triggers of a table keep totals and a checksum row by row, which costs several times what the rows
themselves cost. Who writes many rows at once can keep them for all of them together instead: the triggers are
taken out, and put back with the very same text before anybody else can see the table. SQLite's changes of
schema are part of the transaction, so that a crash leaves all of it or nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


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
