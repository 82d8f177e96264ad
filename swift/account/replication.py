"""An account's database as replication sees it (spec: account-container.md §13)."""

from __future__ import annotations

import sqlite3

from swift.account import containertable
from swift.account.broker import TABLE, AccountBroker, info_of
from swift.account.rows import ContainerRow, row_of_mapping
from swift.account.schema import KNOWN_TABLES
from swift.base.timestamp import Timestamp
from swift.db import stat
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.db.schema import max_row
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
    rows = containertable.TABLE

    def is_reclaimable(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """Empty, deleted after its last put and before that time (§9), no rows of a newer release."""
        info = info_of(connection)
        deleted = stat.as_timestamp(info.delete_timestamp)
        if info.container_count or not before > deleted > stat.as_timestamp(info.put_timestamp):
            return False
        return not containertable.TABLE.has_unknown_states(connection)


class AccountReplica(Replica):
    """See ``dbsync.replica``."""

    kind = "account"
    stat_table = TABLE
    rows = containertable.TABLE
    tables = KNOWN_TABLES

    def info(self, connection: sqlite3.Connection) -> dict[str, object]:
        """See ``Replica.info``."""
        row = stat.stat_row(connection, TABLE)
        return {
            **{name: row[name] for name in _SHOWN},
            "count": row["container_count"],
            "metadata": row["metadata"] or "",
            "max_row": max_row(connection, self.rows.name),
        }

    def parse_rows(self, items: Items) -> list[ContainerRow]:
        """See ``Replica.parse_rows``."""
        return [row_of_mapping(item) for item in items]

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
    return replica_of(AccountBroker(place, engine))
