"""Reclaim of rows so old that no replica needs them (spec: account-container.md §13 "Reclaim").

``ReclaimableRows`` describes the tables of account and container; ``reclaim`` removes old rows. Every check
is a read: a database in which nothing is old is not written.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from typing import ClassVar

from swift.base.timestamp import Timestamp
from swift.db import metadata as meta
from swift.db import stat
from swift.db.broker import Broker
from swift.db.rowtable import RowTable
from swift.db.syncpoints import reclaim_syncs, stale_syncs
from swift.platform.disk import Disk

#: Tombstones are looked at in pages of this many.
PAGE = 10_000


class ReclaimableRows(ABC):
    """Subclasses name their tables; every method runs inside the caller's transaction."""

    stat_table: ClassVar[str]
    rows: ClassVar[RowTable]

    @abstractmethod
    def is_reclaimable(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """Return True if the whole database was deleted before that time and is not needed."""

    def has_old_rows(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """Return True if there is a tombstone older than that."""
        return self.rows.has_older(connection, before.internal)

    def reclaim_rows(
        self, connection: sqlite3.Connection, before: Timestamp, after_name: str, count: int
    ) -> str | None:
        """Remove tombstones older than ``before``, a page of names; where to go on, None at the end."""
        return self.rows.reclaim(connection, before.internal, after_name=after_name, count=count)

    def has_old_ranges(self, connection: sqlite3.Connection, before: Timestamp) -> bool:
        """Return True if there is a deleted shard range older than that."""
        return False

    def reclaim_ranges(self, connection: sqlite3.Connection, before: Timestamp) -> None:
        """Remove deleted shard ranges older than that."""
        return

    def has_old_facts(
        self, connection: sqlite3.Connection, before: Timestamp, long_before: Timestamp
    ) -> bool:
        """Return True if ``reclaim_facts`` would remove anything."""
        row = connection.execute(f"SELECT metadata FROM {self.stat_table}").fetchone()
        have = meta.parse(row[0])
        return (
            meta.reclaimed(have, before) is not have
            or stale_syncs(connection, int(long_before.seconds))
            or self.has_old_ranges(connection, long_before)
        )

    def reclaim_facts(
        self, connection: sqlite3.Connection, before: Timestamp, long_before: Timestamp
    ) -> None:
        """Remove deleted headers, remotes not heard of and deleted shard ranges."""
        stat.update_metadata(connection, self.stat_table, lambda have: meta.reclaimed(have, before))
        reclaim_syncs(connection, int(long_before.seconds))
        self.reclaim_ranges(connection, long_before)


def reclaim(broker: Broker, old: ReclaimableRows, now: Timestamp, reclaim_age_s: float) -> None:
    """Remove what is older than ``reclaim_age_s``; raises the errors of ``db.connection``."""
    before = age(now, reclaim_age_s)
    long_before = age(now, 2 * reclaim_age_s)
    if broker.read(lambda connection: old.has_old_facts(connection, before, long_before)):
        broker.write(lambda connection: old.reclaim_facts(connection, before, long_before))
    if not broker.read(lambda connection: old.has_old_rows(connection, before)):
        return
    after: str | None = ""
    while after is not None:
        after = broker.write(_page(old, before, after))


def _page(old: ReclaimableRows, before: Timestamp, after: str):  # type: ignore[no-untyped-def]
    return lambda connection: old.reclaim_rows(connection, before, after, PAGE)


def age(now: Timestamp, seconds: float) -> Timestamp:
    """Return the moment so long ago."""
    return Timestamp(max(0.0, now.seconds - seconds))


def remove_temporary(disk: Disk, directory: str, suffix: str, before_s: float) -> None:
    """Remove stale files ``*suffix`` of ``directory`` that are older than Unix ``before_s``."""
    try:
        names = disk.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        path = f"{directory}/{name}"
        try:
            if name.endswith(suffix) and disk.stat(path).st_mtime < before_s:
                disk.unlink(path)
        except (FileNotFoundError, IsADirectoryError):
            continue
