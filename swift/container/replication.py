"""A container's database as replication sees it (spec: account-container.md §13, §18, §19).

Beside its rows a container has a policy, on which replicas may disagree, and shard ranges, which travel
whole. Once a container is being split up, its rows travel with the shards and are kept back here.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container import objecttable, shardtable
from swift.container.broker import TABLE, ContainerBroker, ContainerFacts, set_policy
from swift.container.policyconflict import PolicyClaim, wins
from swift.container.rows import ObjectRow, rows_of_mappings
from swift.container.schema import KNOWN_TABLES
from swift.container.shardtable import ShardQuery
from swift.db import stat
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.db.schema import max_row
from swift.dbsync.protocol import RemoteState
from swift.dbsync.reclaim import ReclaimableRows
from swift.dbsync.replica import Items, Replica

#: The keys of an answer to ``sync`` that stand in the table, in the peer's order.
_FIRST = (
    *("account", "container", "created_at", "put_timestamp", "delete_timestamp"),
    *("status", "status_changed_at"),
)
_REPORTED = (
    *("reported_put_timestamp", "reported_delete_timestamp"),
    *("reported_object_count", "reported_bytes_used"),
)
_LAST = ("hash", "id", "x_container_sync_point1", "x_container_sync_point2", "storage_policy_index")
_EVERYTHING = ShardQuery(include_deleted=True, include_own=True)
#: States of the own range in which the container gives its rows to others.
_SPLITTING = frozenset((State.SHARDING, State.SHARDED, State.SHRINKING, State.SHRUNK))


class ReclaimableContainerRows(ReclaimableRows):
    """See ``dbsync.reclaim``."""

    stat_table = TABLE
    rows = objecttable.TABLE

    def __init__(self, broker: ContainerBroker):
        self._broker = broker

    def is_reclaimable(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """Empty in all its shards, deleted before that time, and its account knows (§9).

        Rows that only a newer release understands keep the database.
        """
        broker = self._broker
        info = broker.info_of(connection)
        deleted, put = stat.as_timestamp(info.delete_timestamp), stat.as_timestamp(info.put_timestamp)
        if len(broker.databases) > 1 or not before > deleted > put or not broker.is_empty(connection):
            return False
        if broker.is_root(connection) and shardtable.has_other_ranges(connection, broker.own_name):
            return False
        return _is_reported(info) and not objecttable.TABLE.has_unknown_states(connection)

    def has_old_ranges(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """See ``ReclaimableRows.has_old_ranges``."""
        return shardtable.has_old(connection, self._broker.own_name, before.internal)

    def reclaim_ranges(self, connection: sqlite3.Connection, before: Timestamp) -> None:
        """See ``ReclaimableRows.reclaim_ranges``."""
        shardtable.reclaim(connection, self._broker.own_name, before.internal)


class ContainerReplica(Replica):
    """See ``dbsync.replica``."""

    kind = "container"
    stat_table = TABLE
    rows = objecttable.TABLE
    tables = KNOWN_TABLES

    def __init__(self, broker: ContainerBroker):
        super().__init__(broker, ReclaimableContainerRows(broker))
        self._container = broker

    def _own_name(self, connection: sqlite3.Connection) -> str:
        return "/".join(self.names(connection))

    def info(self, connection: sqlite3.Connection) -> dict[str, object]:
        """See ``Replica.info``."""
        row = stat.stat_row(connection, TABLE)
        info = self._container.info_of(connection)
        return {
            **{name: row[name] for name in _FIRST},
            "bytes_used": info.bytes_used,
            **{name: row[name] for name in (*_REPORTED, *_LAST)},
            "db_state": info.db_state,
            "count": info.object_count,
            "metadata": row["metadata"] or "",
            "max_row": max_row(connection, self.rows.name),
            "shard_max_row": max_row(connection, "shard_range"),
        }

    def sync_arguments(self, info: dict[str, object], *, many_policies: bool) -> list[object]:
        """With more than one policy in the cluster a container says which one it has."""
        arguments = super().sync_arguments(info, many_policies=many_policies)
        if many_policies:
            arguments += [info["status_changed_at"], info["count"], info["storage_policy_index"]]
        return arguments

    # --- rows --------------------------------------------------------------------------------------

    def parse_rows(self, items: Items) -> list[ObjectRow]:
        """See ``Replica.parse_rows``."""
        return rows_of_mappings(items)

    # --- facts -------------------------------------------------------------------------------------

    def state_of(self, connection: sqlite3.Connection) -> RemoteState:
        """With the counts by which policies are compared."""
        counts = connection.execute("SELECT COALESCE(SUM(object_count), 0) FROM policy_stat").fetchone()
        return replace(super().state_of(connection), count=counts[0])

    def lacks(self, connection: sqlite3.Connection, remote: RemoteState) -> bool:
        """See ``Replica.lacks``."""
        return super().lacks(connection, remote) or self._is_overruled(connection, remote)

    def adopt(self, connection: sqlite3.Connection, remote: RemoteState, now: Timestamp) -> None:
        """See ``Replica.adopt``; the policy first, because times decide about it."""
        if self._is_overruled(connection, remote):
            assert remote.storage_policy_index is not None
            set_policy(connection, remote.storage_policy_index, now)
        super().adopt(connection, remote, now)

    def _is_overruled(self, connection: sqlite3.Connection, remote: RemoteState) -> bool:
        if remote.storage_policy_index is None or remote.status_changed_at is None:
            return False
        info = self._container.info_of(connection)
        theirs = PolicyClaim(
            remote.storage_policy_index,
            remote.count or 0,
            stat.as_timestamp(remote.put_timestamp),
            stat.as_timestamp(remote.delete_timestamp),
            stat.as_timestamp(remote.status_changed_at),
        )
        return wins(theirs, _claim_of(info))

    def _is_deleted(self, connection: sqlite3.Connection) -> bool:
        """See ``Replica``."""
        return self._container.info_of(connection).is_deleted

    def _forget_reports(self, connection: sqlite3.Connection) -> None:
        """See ``Replica``."""
        connection.execute(
            f"UPDATE {TABLE} SET reported_put_timestamp = '0', reported_delete_timestamp = '0', "
            "reported_object_count = 0, reported_bytes_used = 0"
        )

    # --- shard ranges ------------------------------------------------------------------------------

    def ranges(self, connection: sqlite3.Connection) -> list[dict[str, object]]:
        """See ``Replica.ranges``."""
        found = [item.as_dict() for item in shardtable.select(connection, "", _EVERYTHING)]
        for item in found:
            del item["last_modified"]
        return found

    def merge_ranges(self, connection: sqlite3.Connection, ranges: Items) -> None:
        """See ``Replica.merge_ranges``.

        An own range without epoch is ignored where there is one with: it comes from a replica that does not
        know yet that the container was split, and must not undo it.
        """
        new = [ShardRange.from_mapping(item) for item in ranges]
        own_name = self._own_name(connection)
        own = shardtable.own_range(connection, own_name)
        if own is not None and own.epoch is not None:
            new = [item for item in new if item.name != own_name or item.epoch is not None]
        shardtable.merge_ranges(connection, new)

    def is_being_split(self, connection: sqlite3.Connection) -> bool:
        """Return True if the own range says so and shards for the rows exist."""
        own_name = self._own_name(connection)
        own = shardtable.own_range(connection, own_name)
        return (
            own is not None and own.state in _SPLITTING and shardtable.has_other_ranges(connection, own_name)
        )

    def holds_unsplit_rows(self, connection: sqlite3.Connection) -> bool:
        """See ``Replica.holds_unsplit_rows``."""
        if len(self._container.databases) > 1:
            return True
        has_rows = connection.execute("SELECT 1 FROM object LIMIT 1").fetchone() is not None
        return has_rows and self.is_being_split(connection)


def _claim_of(info: ContainerFacts) -> PolicyClaim:
    return PolicyClaim(
        info.storage_policy_index,
        info.object_count,
        stat.as_timestamp(info.put_timestamp),
        stat.as_timestamp(info.delete_timestamp),
        stat.as_timestamp(info.status_changed_at),
    )


def _is_reported(info: ContainerFacts) -> bool:
    """Return True if the account has the final report of this container."""
    return (
        stat.as_timestamp(info.reported_put_timestamp) >= stat.as_timestamp(info.put_timestamp)
        and stat.as_timestamp(info.reported_delete_timestamp) >= stat.as_timestamp(info.delete_timestamp)
        and info.reported_object_count == info.object_count
        and info.reported_bytes_used == info.bytes_used
    )


def replica_at(place: DatabasePath, engine: Engine) -> ContainerReplica:
    """Return the replica of a hash directory whose container is not known yet.

    Call ``broker.refresh`` first.
    """
    return ContainerReplica(ContainerBroker(place, engine))
