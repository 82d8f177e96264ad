"""A container's database: what is known of the container, and every change to it (account-container.md).

The broker answers with values (``ContainerFacts``) and changes in single transactions. Which of two files is
asked while a container is being sharded is decided here (§19.2): writes go to the newest, listings and
counts come from the oldest. It knows nothing of HTTP.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue, NoSpace
from swift.base.shardrange import COUNTED_STATES, ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container import objecttable, shardtable
from swift.container.rows import ObjectRow, row_of_pending
from swift.container.schema import (
    DIRECTORY_INDEX,
    DIRECTORY_INDEX_NAME,
    IS_DIRECTORY,
    MIGRATIONS,
    create_tables,
)
from swift.container.shardtable import ShardQuery
from swift.db import metadata as meta
from swift.db import stat
from swift.db.broker import Broker
from swift.db.connection import DatabaseUnwritable
from swift.db.database import Dialect
from swift.db.listing import ListingQuery, PageRow, RowSource, page
from swift.db.metadata import Metadata
from swift.db.rowtable import LIVE
from swift.http import fields

TABLE = "container_info"
#: Metadata that a deletion leaves alone: a deleted shard must still know whose it is (§9).
KEPT_WHEN_DELETED = frozenset(
    (fields.SYSMETA_SHARD_QUOTED_ROOT, fields.SYSMETA_SHARD_ROOT, fields.SYSMETA_SHARDING)
)

#: Metadata keys of a shard's root; True for a quoted value.
_ROOT_NAMES = ((fields.SYSMETA_SHARD_QUOTED_ROOT.title(), True), (fields.SYSMETA_SHARD_ROOT.title(), False))

NOT_FOUND = "not_found"
UNSHARDED = "unsharded"
SHARDING = "sharding"
SHARDED = "sharded"
COLLAPSED = "collapsed"

DIALECT = Dialect(
    kind="container",
    required=(frozenset(("object",)), frozenset(("container_info", "container_stat"))),
    migrations=MIGRATIONS,
    names=f"SELECT account, container FROM {TABLE}",
    merge_rows=objecttable.merge_rows,
    row_of_pending=row_of_pending,
    pending_fields=9,
)

LISTED = ("name", "created_at", "size", "content_type", "etag")
_OWN_COUNTS = (
    "SELECT ci.*, COALESCE(ps.object_count, 0) AS object_count, COALESCE(ps.bytes_used, 0) AS bytes_used "
    "FROM container_info ci LEFT JOIN policy_stat ps ON ci.storage_policy_index = ps.storage_policy_index"
)


class WrongPolicy(InvalidValue):
    """A living container has another policy than the one asked for; ``own`` is its index."""

    def __init__(self, own: int):
        super().__init__(f"the container has storage policy {own}")
        self.own = own


class NotEmpty(InvalidValue):
    """A container that still holds objects cannot be deleted."""


class Superseded(InvalidValue):
    """A later change decides whether the container exists; ``newer`` is its time, an internal text.

    The time of the change that lost was recorded all the same.
    """

    def __init__(self, reason: str, newer: str):
        super().__init__(reason)
        self.newer = stat.as_timestamp(newer).internal


class StaysDeleted(Superseded):
    """The container was deleted after the time of the put."""


class StaysAlive(Superseded):
    """The container was put after the time of the deletion."""


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """The facts of ``container_info`` with the counts of §19.2; timestamps are column texts."""

    account: str
    container: str
    created_at: str
    put_timestamp: str
    delete_timestamp: str
    status_changed_at: str
    object_count: int
    bytes_used: int
    reported_put_timestamp: str
    reported_delete_timestamp: str
    reported_object_count: int
    reported_bytes_used: int
    hash: str
    id: str
    metadata: Metadata
    x_container_sync_point1: int
    x_container_sync_point2: int
    storage_policy_index: int
    db_state: str

    @property
    def is_deleted(self) -> bool:
        """Empty, and deleted after it was last put (§9)."""
        return not self.object_count and self.delete_is_newer

    @property
    def delete_is_newer(self) -> bool:
        """True if the last deletion is newer than the last put, regardless of the counts."""
        return stat.as_timestamp(self.delete_timestamp) > stat.as_timestamp(self.put_timestamp)


#: The facts that are columns.
_COLUMNS = tuple(name for name in ContainerFacts.__match_args__ if name != "db_state")


class ContainerBroker(Broker):
    """Call ``refresh`` first; then every method may raise the errors of ``db.connection``."""

    dialect = DIALECT

    @property
    def account(self) -> str:
        """The name of the container's account."""
        return self.names[0]

    @property
    def container(self) -> str:
        """The container's name without its account."""
        return self.names[1]

    @property
    def own_name(self) -> str:
        """``account/container``."""
        return "/".join(self.names)

    # --- creating and describing ------------------------------------------------------------------

    def create(self, timestamp: Timestamp, policy_index: int, *, created_at: Timestamp) -> bool:
        """Make the database; False when another process was faster. ``refresh`` is done."""

        def build(connection: sqlite3.Connection) -> None:
            create_tables(connection)
            connection.execute(
                "INSERT INTO container_info (account, container, created_at, id, put_timestamp, "
                "status_changed_at, storage_policy_index) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self.account,
                    self.container,
                    created_at.internal,
                    f"{uuid4()}-{self.place.device}",
                    timestamp.internal,
                    timestamp.internal,
                    policy_index,
                ),
            )
            connection.execute("INSERT INTO policy_stat (storage_policy_index) VALUES (?)", (policy_index,))

        return self.make_file(build)

    def info(self) -> ContainerFacts:
        """Return the container's current state; while it is split, the old file has the counts."""
        info = self.read(self.info_of)
        if len(self.databases) > 1:
            retiring = self.read(self.info_of, database=self.oldest)
            info = replace(info, object_count=retiring.object_count, bytes_used=retiring.bytes_used)
        return info

    def info_of(self, connection: sqlite3.Connection) -> ContainerFacts:
        """Return the same within a transaction on the newest file."""
        cursor = connection.execute(_OWN_COUNTS)
        row = dict(zip((c[0] for c in cursor.description), cursor.fetchone(), strict=True))
        metadata = meta.parse(row["metadata"])
        state = self._state(connection)
        count, size = row["object_count"], row["bytes_used"]
        if state == SHARDED and self._is_root(metadata, connection):
            inside = shardtable.counted(connection, self.own_name, COUNTED_STATES)
            if self._takes_shards_in(connection):
                # What came from shards that have gone already.
                count, size = count + inside[0], size + inside[1]
            else:
                count, size = inside
        known: JsonObject = {name: row[name] for name in _COLUMNS}
        known |= {"object_count": count, "bytes_used": size, "metadata": metadata, "db_state": state}
        return ContainerFacts(**known)

    def _state(self, connection: sqlite3.Connection) -> str:
        """Return the sharding state by files and ranges (§19.2)."""
        if not self.databases:
            return NOT_FOUND
        if len(self.databases) > 1:
            return SHARDING
        epoch = self.place.epoch_of(self.newest.path)
        if epoch is None:
            return UNSHARDED
        own = shardtable.own_range(connection, self.own_name)
        if own is None or own.epoch is None or Timestamp(own.epoch) != Timestamp(epoch):
            return UNSHARDED
        return SHARDED if shardtable.has_other_ranges(connection, self.own_name) else COLLAPSED

    def _is_root(self, metadata: Metadata, connection: sqlite3.Connection) -> bool:
        path = root_path(metadata)
        if path is not None:
            return path == self.own_name
        own = shardtable.own_range(connection, self.own_name)
        return own is None or not own.deleted

    def _takes_shards_in(self, connection: sqlite3.Connection) -> bool:
        """Return True if the shards of a sharded root are shrinking into it."""
        own = shardtable.own_range(connection, self.own_name)
        return own is not None and own.state == State.ACTIVE

    def lists_shards(self, info: ContainerFacts) -> bool:
        """Return True if a listing combines shards.

        A shard that shrinks lists what it has until all of it is in the shard that takes it in.
        """
        if info.db_state != SHARDING:
            return info.db_state == SHARDED
        own = self.read(lambda connection: shardtable.own_range(connection, self.own_name), merged=False)
        return own is None or own.state not in (State.SHRINKING, State.SHRUNK)

    def is_root(self, connection: sqlite3.Connection) -> bool:
        """Return True if the container is not a shard (§19.2)."""
        metadata = meta.parse(connection.execute(f"SELECT metadata FROM {TABLE}").fetchone()[0])
        return self._is_root(metadata, connection)

    # --- changing the container -------------------------------------------------------------------

    def put(self, timestamp: Timestamp, policy_index: int | None, default_policy_index: int) -> bool:
        """Record that the container was put; whether it had been deleted and lives again.

        A deleted one gets the policy asked for (or the default). Raises ``WrongPolicy`` when a living one
        has another than ``policy_index``, and ``StaysDeleted`` when it was deleted later than that.
        """

        def change(connection: sqlite3.Connection) -> bool:
            before = self.info_of(connection)
            own = before.storage_policy_index
            if not before.is_deleted and policy_index not in (None, own):
                raise WrongPolicy(own)
            stat.touch_put(connection, TABLE, timestamp)
            if not before.is_deleted or self.info_of(connection).is_deleted:
                return False
            set_policy(connection, default_policy_index if policy_index is None else policy_index, timestamp)
            stat.touch_status(connection, TABLE, timestamp)
            return True

        lives_again = self.write(change)
        if not lives_again and (info := self.info()).is_deleted:
            raise StaysDeleted("the container was deleted later", info.delete_timestamp)
        return lives_again

    def touch(self, timestamp: Timestamp) -> None:
        """Raise put_timestamp."""
        self.write(lambda connection: stat.touch_put(connection, TABLE, timestamp))

    def update_metadata(self, new: Metadata, check: Any = None) -> None:
        """Merge metadata; ``check`` may refuse the result by raising.

        A changed ``X-Container-Sync-To`` starts container sync anew (§12).
        """

        def change(connection: sqlite3.Connection) -> None:
            before = stat.update_metadata(connection, TABLE, lambda have: have)
            after = stat.update_metadata(connection, TABLE, lambda have: meta.merge(have, new))
            if check is not None:
                check(after)
            if _sync_to(before) != _sync_to(after):
                connection.execute(
                    f"UPDATE {TABLE} SET x_container_sync_point1 = -1, x_container_sync_point2 = -1"
                )

        self.write(change)

    def delete(self, timestamp: Timestamp) -> bool:
        """Delete an empty container; whether it existed.

        Raises ``NotEmpty``, or ``StaysAlive`` when it was put later than ``timestamp``. The time is recorded
        then too, because a replica that heard of the deletion first does the same.
        """

        def change(connection: sqlite3.Connection) -> bool:
            if not self.is_empty(connection):
                raise NotEmpty("the container holds objects")
            info = self.info_of(connection)
            existed = bool(stat.as_timestamp(info.put_timestamp)) and not info.is_deleted
            stat.mark_deleted(connection, TABLE, timestamp, KEPT_WHEN_DELETED)
            return existed

        if len(self.databases) > 1 and not self.read(self.is_empty, database=self.oldest):
            raise NotEmpty("the container holds objects")
        existed = self.write(change)
        info = self.info()
        if not info.is_deleted:
            raise StaysAlive("the container was put later", info.put_timestamp)
        return existed

    def is_empty(self, connection: sqlite3.Connection) -> bool:
        """Return True if no policy has an object and, for a root, no shard has one."""
        counts = connection.execute("SELECT COALESCE(SUM(object_count), 0) FROM policy_stat").fetchone()
        if counts[0] > 0:
            return False
        if not self.is_root(connection):
            return True
        return not shardtable.counted(connection, self.own_name, COUNTED_STATES)[0]

    # --- rows -------------------------------------------------------------------------------------

    def merge_rows(self, rows: Sequence[ObjectRow]) -> None:
        """Merge many rows at once; durable when this returns."""
        self.write(lambda connection: objecttable.merge_rows(connection, rows))

    def listing(
        self,
        query: ListingQuery,
        policy_index: int,
        columns: tuple[str, ...] = LISTED,
        *,
        only_directories: bool = False,
    ) -> list[PageRow]:
        """Return a page of rows: these columns, and last the sub-directory or None.

        With ``only_directories`` these are the rows of the type application/directory, at no cost for the
        others (decision 0022).
        """
        source = source_of(policy_index, columns)
        if only_directories:
            self._index_directories()
            source = replace(source, condition=f"{source.condition} AND t.{IS_DIRECTORY}")
        return self.read(lambda connection: page(connection, source, query), database=self.oldest)

    def _index_directories(self) -> None:
        """Make the index if it can be made: without it a listing reads all rows."""
        if self.read(_has_directory_index, merged=False):
            return
        try:
            self.write(lambda connection: connection.execute(DIRECTORY_INDEX))
        except (DatabaseUnwritable, NoSpace):
            # The listing is right without it.
            return

    # --- shard ranges -----------------------------------------------------------------------------

    def shard_ranges(self, query: ShardQuery, *, fill_gaps: bool = False) -> list[ShardRange]:
        """Return the ranges of a query.

        With ``fill_gaps`` copies of the own range for names of none (§12).
        """

        def ask(connection: sqlite3.Connection) -> list[ShardRange]:
            found = shardtable.select(connection, self.own_name, query)
            if fill_gaps:
                found = shardtable.filled(found, self._own_range(connection), query)
            if query.reverse:
                found.reverse()
            return found

        return self.read(ask, merged=False)

    def _own_range(self, connection: sqlite3.Connection) -> ShardRange:
        """Return the container's own range; the whole namespace, active since now, when none is stored."""
        stored = shardtable.own_range(connection, self.own_name)
        if stored is not None:
            return stored
        return ShardRange(self.own_name, Timestamp.now().internal, state=State.ACTIVE)

    def merge_shard_ranges(self, ranges: Sequence[ShardRange]) -> None:
        """Merge ranges by §19.1."""
        self.write(lambda connection: shardtable.merge_ranges(connection, ranges))

    def shard_for(self, name: str, states: frozenset[State]) -> ShardRange | None:
        """Return the range in one of ``states`` that an object name belongs to, None when there is none."""
        found = self.read(
            lambda connection: shardtable.select(
                connection, self.own_name, ShardQuery(includes=name, states=states)
            ),
            merged=False,
        )
        return found[0] if found else None


def source_of(policy_index: int, columns: tuple[str, ...] = LISTED, *, deleted: int = LIVE) -> RowSource:
    """Return the objects of a policy as listings have them, or rows of another ``deleted``."""
    condition = "AND t.storage_policy_index = :policy_index"
    return RowSource("object", columns, condition, {"policy_index": policy_index}, deleted)


def _has_directory_index(connection: sqlite3.Connection) -> bool:
    found = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", (DIRECTORY_INDEX_NAME,)
    )
    return found.fetchone() is not None


def set_policy(connection: sqlite3.Connection, policy_index: int, timestamp: Timestamp) -> None:
    """Give the container a policy; a change of it is a change of status (§9)."""
    connection.execute(
        f"UPDATE {TABLE} SET storage_policy_index = ?, status_changed_at = MAX(status_changed_at, ?) "
        "WHERE storage_policy_index != ?",
        (policy_index, timestamp.internal, policy_index),
    )
    connection.execute("INSERT OR IGNORE INTO policy_stat (storage_policy_index) VALUES (?)", (policy_index,))


def _sync_to(metadata: Metadata) -> str:
    return metadata.get("X-Container-Sync-To", ("", ""))[0]


def root_path(metadata: Metadata) -> str | None:
    """``account/container`` of the root that sysmeta names, None when it names none."""
    for name, is_quoted in _ROOT_NAMES:
        value = metadata.get(name, ("", ""))[0]
        if value:
            return (unquote(value) if is_quoted else value).lstrip("/")
    return None
