"""An account's database: what is known of the account, and every change to it (account-container.md).

It knows nothing of HTTP and of policies' names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from swift.account import containertable
from swift.account.rows import row_of_pending
from swift.account.schema import MIGRATIONS, create_tables
from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp
from swift.db import metadata as meta
from swift.db import stat
from swift.db.broker import Broker
from swift.db.database import Dialect
from swift.db.listing import ListingQuery, PageRow, RowSource, page
from swift.db.metadata import Metadata

TABLE = "account_stat"

DIALECT = Dialect(
    kind="account",
    required=(frozenset(("container",)), frozenset(("account_stat",))),
    migrations=MIGRATIONS,
    names=f"SELECT account FROM {TABLE}",
    merge_rows=containertable.merge_rows,
    row_of_pending=row_of_pending,
    pending_fields=7,
)

_LISTED = ("name", "object_count", "bytes_used", "put_timestamp", "storage_policy_index")


class RecentlyDeleted(InvalidValue):
    """A deleted account cannot be put again before it is reaped."""


@dataclass(frozen=True, slots=True)
class PolicyStat:
    """Totals of an account in one storage policy."""

    index: int
    container_count: int
    object_count: int
    bytes_used: int


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """The facts of ``account_stat``; timestamps are column texts."""

    account: str
    created_at: str
    put_timestamp: str
    delete_timestamp: str
    status_changed_at: str
    status: str
    container_count: int
    object_count: int
    bytes_used: int
    hash: str
    id: str
    metadata: Metadata

    @property
    def is_deleted(self) -> bool:
        """Marked so, or empty and deleted after it was last put (§9)."""
        return self.status == "DELETED" or (not self.container_count and self._delete_is_newer)

    @property
    def is_status_deleted(self) -> bool:
        """The tombstone state: marked deleted, or deleted after the last put, whatever it holds (§9)."""
        return self.status == "DELETED" or self._delete_is_newer

    @property
    def _delete_is_newer(self) -> bool:
        return stat.as_timestamp(self.delete_timestamp) > stat.as_timestamp(self.put_timestamp)


class AccountBroker(Broker):
    """Call ``refresh`` first; then every method may raise the errors of ``db.connection``."""

    dialect = DIALECT

    @property
    def account(self) -> str:
        """The account's name."""
        return self.names[0]

    def create(self, timestamp: Timestamp, *, created_at: Timestamp) -> bool:
        """Make the database; False when another process was faster. ``refresh`` is done."""

        def build(connection: sqlite3.Connection) -> None:
            create_tables(connection)
            connection.execute(
                "INSERT INTO account_stat (account, created_at, id, put_timestamp, status_changed_at, "
                "container_count) VALUES (?, ?, ?, ?, ?, 0)",
                (
                    self.account,
                    created_at.internal,
                    f"{uuid4()}-{self.place.device}",
                    timestamp.internal,
                    timestamp.internal,
                ),
            )

        return self.make_file(build)

    def info(self) -> AccountFacts:
        """Return the account's current state."""
        return self.read(info_of)

    def policy_stats(self) -> list[PolicyStat]:
        """Return counts by policy, in order of the index."""
        return self.read(
            lambda connection: [
                PolicyStat(*row)
                for row in connection.execute(
                    "SELECT storage_policy_index, container_count, object_count, bytes_used "
                    "FROM policy_stat ORDER BY storage_policy_index"
                )
            ]
        )

    def put(self, timestamp: Timestamp) -> None:
        """Record that the account was put; raises ``RecentlyDeleted``, as a deleted one never lives again."""

        def change(connection: sqlite3.Connection) -> None:
            if info_of(connection).is_status_deleted:
                raise RecentlyDeleted("the account was deleted")
            stat.touch_put(connection, TABLE, timestamp)

        self.write(change)

    def update_metadata(self, new: Metadata, check: Callable[[Metadata], None]) -> None:
        """Merge metadata; ``check`` may refuse the result by raising."""

        def change(connection: sqlite3.Connection) -> None:
            check(stat.update_metadata(connection, TABLE, lambda have: meta.merge(have, new)))

        self.write(change)

    def delete(self, timestamp: Timestamp) -> bool:
        """Mark the account deleted; False when it was already."""

        def change(connection: sqlite3.Connection) -> bool:
            if info_of(connection).is_status_deleted:
                return False
            stat.mark_deleted(connection, TABLE, timestamp)
            return True

        return self.write(change)

    def listing(self, query: ListingQuery) -> list[PageRow]:
        """Return a page of (name, objects, bytes, put, policy, sub-directory or None)."""
        source = RowSource("container", _LISTED)
        return self.read(lambda connection: page(connection, source, query))


def info_of(connection: sqlite3.Connection) -> AccountFacts:
    """Return the account's state from a connection, within a transaction or without."""
    row = stat.stat_row(connection, TABLE)
    known: JsonObject = {name: row[name] for name in AccountFacts.__match_args__}
    known |= {name: row[name] or 0 for name in ("container_count", "object_count", "bytes_used")}
    return AccountFacts(**(known | {"metadata": meta.parse(row["metadata"])}))
