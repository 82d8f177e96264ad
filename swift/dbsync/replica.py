"""A database as replication sees it, whatever its rows mean.

``Replica`` wraps a broker. Its methods that take a connection run inside the caller's transaction and serve
any file of the same kind, also one that has just arrived and has no broker yet. Account and container
subclass it with what only they know. Merging is by the rules of the tables, so whatever arrives in whatever
order and how often, replicas converge.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import uuid4

from swift.base.documents import JsonObject
from swift.base.timestamp import Timestamp
from swift.db import metadata as meta
from swift.db import stat
from swift.db.broker import Broker
from swift.db.rowtable import RowTable
from swift.db.schema import max_row
from swift.db.syncpoints import all_syncs, merge_syncs, set_sync
from swift.db.unknown import merge_single_row, merge_tables
from swift.dbsync.protocol import RemoteState, row_ids
from swift.dbsync.reclaim import ReclaimableRows

#: Unchecked rows or ranges of a message.
Items = Sequence[Any]


class Replica(ABC):
    """Subclasses name their tables and fill in the abstract methods."""

    #: ``account`` or ``container``.
    kind: ClassVar[str]
    stat_table: ClassVar[str]
    rows: ClassVar[RowTable]
    #: Table to columns that this release knows, lower-case.
    tables: ClassVar[Mapping[str, frozenset[str]]]

    def __init__(self, broker: Broker, old: ReclaimableRows):
        self.broker = broker
        #: Time before which tombstones are dropped.
        self.old = old

    # --- what subclasses know ----------------------------------------------------------------------

    @abstractmethod
    def info(self, connection: sqlite3.Connection) -> JsonObject:
        """Return the answer to ``sync`` but for ``point``, keys as the peer has them."""

    @abstractmethod
    def parse_rows(self, items: Items) -> Sequence[object]:
        """Return the rows of a message; raises ``InvalidValue``."""

    def sync_arguments(self, info: JsonObject, *, many_policies: bool) -> list[object]:
        """Return the arguments of ``sync`` for this database."""
        names = ("max_row", "hash", "id", "created_at", "put_timestamp", "delete_timestamp", "metadata")
        return [info[name] for name in names]

    def ranges(self, connection: sqlite3.Connection) -> list[JsonObject]:
        """Every shard range as messages carry them, deleted and own included."""
        return []

    def merge_ranges(self, connection: sqlite3.Connection, ranges: Items) -> None:
        """Merge shard ranges of a message; raises ``InvalidValue``."""
        return

    def is_being_split(self, connection: sqlite3.Connection) -> bool:
        """Return True if rows are on their way into shards, so that they must not be sent to replicas."""
        return False

    def holds_unsplit_rows(self, connection: sqlite3.Connection) -> bool:
        """Return True if a sharder must still work here before this copy may be removed."""
        return False

    def _forget_reports(self, connection: sqlite3.Connection) -> None:
        """Forget reports to the account: they were about another replica."""
        return

    # --- rows -------------------------------------------------------------------------------------

    def names(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Return the account, or account and container, that a file says it is of."""
        return tuple(connection.execute(self.broker.dialect.names).fetchone())

    def merge_items(self, connection: sqlite3.Connection, items: Items, source: str | None) -> None:
        """Merge rows of a message and remember how far ``source`` came; raises ``InvalidValue``."""
        self.broker.dialect.merge_rows(connection, self.parse_rows(items))
        if items and source is not None:
            set_sync(connection, source, max(row_ids(items)), incoming=True)

    # --- learning from a remote --------------------------------------------------------------------

    def lacks(self, connection: sqlite3.Connection, remote: RemoteState) -> bool:
        """Return True if ``adopt`` would change anything."""
        row = stat.stat_row(connection, self.stat_table)
        have = meta.parse(row["metadata"])
        return (
            remote.created_at < row["created_at"]
            or remote.put_timestamp > row["put_timestamp"]
            or remote.delete_timestamp > row["delete_timestamp"]
            or meta.merge(have, meta.parse(remote.metadata)) is not have
        )

    def adopt(self, connection: sqlite3.Connection, remote: RemoteState, now: Timestamp) -> None:
        """Take over the newer facts of a remote: metadata and times (and the policy, for containers)."""
        new = meta.parse(remote.metadata)
        stat.update_metadata(connection, self.stat_table, lambda have: meta.merge(have, new))
        stat.merge_timestamps(
            connection,
            self.stat_table,
            created_at=remote.created_at,
            put_timestamp=remote.put_timestamp,
            delete_timestamp=remote.delete_timestamp,
            now=now,
            is_deleted=self._is_deleted,
        )

    @abstractmethod
    def _is_deleted(self, connection: sqlite3.Connection) -> bool:
        """Return True if the account or container is deleted (§9)."""

    def absorb(self, connection: sqlite3.Connection, source: sqlite3.Connection, now: Timestamp) -> None:
        """Merge what another file of the same database knows beside its rows."""
        self.adopt(connection, self.state_of(source), now)
        merge_syncs(connection, all_syncs(source, incoming=True), incoming=True)
        self.merge_ranges(connection, self.ranges(source))
        merge_single_row(connection, source, self.stat_table, self.tables[self.stat_table])
        merge_tables(connection, source, self.tables)

    def state_of(self, connection: sqlite3.Connection) -> RemoteState:
        """Return a database file's state, as far as ``adopt`` needs it."""
        return RemoteState.of_mapping({"max_row": -1, **stat.stat_row(connection, self.stat_table)})

    # --- identity ----------------------------------------------------------------------------------

    def renew_identity(self, connection: sqlite3.Connection, old_id: str, device: str) -> None:
        """Make a copy of a remote's file a database of its own, which has all rows that were in it.

        ``old_id`` names the sender.
        """
        row = connection.execute(f"SELECT id FROM {self.stat_table}").fetchone()
        connection.execute(f"UPDATE {self.stat_table} SET id = ?", (f"{uuid4()}-{device}",))
        self._forget_reports(connection)
        last = max_row(connection, self.rows.name)
        for remote_id in {old_id, row[0]}:
            set_sync(connection, remote_id, last, incoming=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.broker!r}>"
