"""An account's database as replication sees it (spec: account-container.md §13)."""

from __future__ import annotations

import sqlite3

from swift.account import containertable
from swift.account.broker import TABLE, AccountBroker, info_of
from swift.account.rows import row_of_mapping
from swift.account.schema import KNOWN_TABLES
from swift.base.timestamp import Timestamp
from swift.db import stat
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.db.schema import max_row
from swift.dbsync.protocol import row_ids
from swift.dbsync.reclaim import ReclaimableRows
from swift.dbsync.replica import Items, Replica

#: The keys of an answer to ``sync``, in the peer's order.
_SHOWN = (
    *("account", "created_at", "put_timestamp", "delete_timestamp", "status_changed_at"),
    *("object_count", "bytes_used", "hash", "id"),
)


class ReclaimableAccountRows(ReclaimableRows):
    """See ``dbsync.reclaim``."""

    stat_table = TABLE

    def is_reclaimable(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """Empty, deleted after its last put and before that time (§9), no rows of a newer release."""
        info = info_of(connection)
        deleted = stat.as_timestamp(info.delete_timestamp)
        if info.container_count or not before > deleted > stat.as_timestamp(info.put_timestamp):
            return False
        return not containertable.TABLE.has_unknown_states(connection)

    def has_old_rows(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """See ``ReclaimableRows.has_old_rows``."""
        found = connection.execute(
            "SELECT 1 FROM container WHERE deleted = 1 AND delete_timestamp < ? LIMIT 1", (before.internal,)
        )
        return found.fetchone() is not None

    def reclaim_rows(
        self, connection: sqlite3.Connection, before: Timestamp, after_name: str, count: int
    ) -> str | None:
        """See ``ReclaimableRows.reclaim_rows``."""
        return containertable.TABLE.reclaim(connection, before.internal, after_name=after_name, count=count)


class AccountReplica(Replica):
    """See ``dbsync.replica``."""

    kind = "account"
    stat_table = TABLE
    row_table = "container"
    tables = KNOWN_TABLES

    def names(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Return the account."""
        return (connection.execute(f"SELECT account FROM {TABLE}").fetchone()[0],)

    def info(self, connection: sqlite3.Connection) -> dict[str, object]:
        """See ``Replica.info``."""
        row = stat.stat_row(connection, TABLE)
        return {
            **{name: row[name] for name in _SHOWN},
            "count": row["container_count"],
            "metadata": row["metadata"] or "",
            "max_row": max_row(connection, self.row_table),
        }

    def items_since(self, connection: sqlite3.Connection, row_id: int, count: int) -> list[dict[str, object]]:
        """See ``Replica.items_since``."""
        return containertable.items_since(connection, row_id, count)

    def message_since(self, connection: sqlite3.Connection, row_id: int, count: int) -> tuple[str, int]:
        """See ``Replica.message_since``."""
        return containertable.TABLE.message_since(connection, row_id, count)

    def merge_items(self, connection: sqlite3.Connection, items: Items, source: str | None) -> None:
        """See ``Replica.merge_items``."""
        rows = [row_of_mapping(item) for item in items]
        if source is None:
            containertable.merge_rows(connection, rows)
        else:
            containertable.merge_items(connection, list(zip(row_ids(items), rows, strict=True)), source)

    def _is_deleted(self, connection: sqlite3.Connection) -> bool:
        """See ``Replica``."""
        return info_of(connection).is_deleted


def replica_of(broker: AccountBroker) -> AccountReplica:
    """Return the replica of a broker."""
    return AccountReplica(broker, ReclaimableAccountRows())


def replica_at(place: DatabasePath, engine: Engine) -> AccountReplica:
    """Return the replica of a hash directory whose account is not known yet.

    Call ``broker.refresh`` first.
    """
    return replica_of(AccountBroker(place, engine, ""))


def identify(replica: Replica, names: tuple[str, ...]) -> None:
    """Tell the broker what the database said it is of."""
    assert isinstance(replica.broker, AccountBroker)
    (replica.broker.account,) = names
