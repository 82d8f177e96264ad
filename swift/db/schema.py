"""Schema facts and ordered migrations (spec: account-container.md §3).

What a database looks like is asked from SQLite's own catalogue; a migration says by these facts whether it
is needed. All needed ones run in one transaction, so that a database is old or new and never between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from swift.db.connection import Transaction, Translating

#: Both tables of every database that remember how far replication came, with their triggers.
SYNC_TABLES = ("outgoing_sync", "incoming_sync")


@dataclass(frozen=True)
class SchemaFacts:
    """Names in a database's catalogue: tables (and views) with their columns, indexes, triggers."""

    tables: Mapping[str, tuple[str, ...]]
    views: frozenset[str] = field(default_factory=frozenset)
    indexes: frozenset[str] = field(default_factory=frozenset)
    triggers: frozenset[str] = field(default_factory=frozenset)

    def has_table(self, name: str) -> bool:
        """Return True if ``name`` is a table."""
        return name in self.tables

    def lacks_column(self, table: str, column: str) -> bool:
        """Return True if the table exists without the column."""
        return table in self.tables and column not in self.tables[table]


def facts_of(connection: sqlite3.Connection) -> SchemaFacts:
    """Read the catalogue."""
    names: dict[str, set[str]] = {"table": set(), "view": set(), "index": set(), "trigger": set()}
    for kind, name in connection.execute("SELECT type, name FROM sqlite_master"):
        names.setdefault(kind, set()).add(name)
    tables = {
        name: tuple(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,)))
        for name in names["table"]
    }
    return SchemaFacts(
        tables, frozenset(names["view"]), frozenset(names["index"]), frozenset(names["trigger"])
    )


@dataclass(frozen=True)
class Migration:
    """One step from an older schema: when it is needed and what it does."""

    name: str
    needed: Callable[[SchemaFacts], bool]
    apply: Callable[[sqlite3.Connection, SchemaFacts], None]


def migrate(connection: sqlite3.Connection, path: str, migrations: Iterable[Migration]) -> list[str]:
    """Run what is needed, in order and all or nothing; the names of the steps that ran."""
    steps = tuple(migrations)
    with Translating(path):
        facts = facts_of(connection)
        if not any(step.needed(facts) for step in steps):
            return []
    done = []
    with Transaction(connection, path):
        for step in steps:
            facts = facts_of(connection)
            if step.needed(facts):
                step.apply(connection, facts)
                done.append(step.name)
    return done


def run_statements(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    """Execute statements one by one inside the caller's transaction."""
    for statement in statements:
        connection.execute(statement)


def make_tables(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    """Create the tables of a kind of database, and the common sync tables."""
    run_statements(connection, statements)
    for table in SYNC_TABLES:
        run_statements(connection, sync_table_statements(table))


def sync_table_statements(table: str) -> tuple[str, ...]:
    """Return a sync table and the triggers that keep its ``updated_at``."""
    touch = (
        f"UPDATE {table} SET updated_at = STRFTIME('%s', 'NOW') "
        "WHERE ROWID = new.ROWID"
    )  # fmt: skip
    return (
        f"CREATE TABLE {table} (remote_id TEXT UNIQUE, sync_point INTEGER, updated_at TEXT DEFAULT 0)",
        f"CREATE TRIGGER {table}_insert AFTER INSERT ON {table} BEGIN {touch}; END",
        f"CREATE TRIGGER {table}_update AFTER UPDATE ON {table} BEGIN {touch}; END",
    )


#: The columns of such a table.
SYNC_COLUMNS = frozenset(("remote_id", "sync_point", "updated_at"))


def missing_sync_tables() -> Migration:
    """Return the migration that creates sync tables which a damaged or ancient database lacks."""

    def apply(connection: sqlite3.Connection, facts: SchemaFacts) -> None:
        for table in SYNC_TABLES:
            if not facts.has_table(table):
                run_statements(connection, sync_table_statements(table))

    return Migration("sync tables", lambda facts: any(t not in facts.tables for t in SYNC_TABLES), apply)


def missing_columns(table: str, declarations: Mapping[str, str]) -> Migration:
    """Return the migration that adds columns (name → type and default) which an older table lacks."""

    def apply(connection: sqlite3.Connection, facts: SchemaFacts) -> None:
        for column, declaration in declarations.items():
            if facts.lacks_column(table, column):
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {declaration}")

    def needed(facts: SchemaFacts) -> bool:
        return any(facts.lacks_column(table, column) for column in declarations)

    return Migration(f"columns of {table}", needed, apply)


def missing_index(name: str, statement: str) -> Migration:
    """Return the migration that creates an index which an older database lacks."""
    return Migration(
        f"index {name}",
        lambda facts: name not in facts.indexes,
        lambda connection, _facts: run_statements(connection, (statement,)),
    )


#: Rows are never updated, so that ROWID is a change sequence; this trigger body keeps it so.
UPDATE_REFUSED = "BEGIN SELECT RAISE(FAIL, 'UPDATE not allowed; DELETE and INSERT'); END"


def max_row(connection: sqlite3.Connection, table: str) -> int:
    """Return the last ROWID that ``table`` ever gave out, -1 when none."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return -1 if row is None or row[0] is None else int(row[0])
