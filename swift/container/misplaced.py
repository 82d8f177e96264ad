"""Rows of another policy than their container's are put on the reconciler's queue (account-container.md §18).

When replicas disagreed on the policy, one side lost, and its objects lie in the wrong place. Each such row
becomes an entry of a queue container ``.misplaced_objects/<hour>``, whose database is made on this device and
brought home by the replicator like any other. The point up to which rows were queued moves on only when a
majority of the container's replicas has them all; queuing an entry twice changes nothing. A row that cannot
be read is told of and met again in the next pass; the rows behind it are queued.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

from swift.base.hashing import PathHasher
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.container import objecttable
from swift.container.broker import TABLE, ContainerBroker, root_path
from swift.container.rows import ObjectRow
from swift.db import metadata as meta
from swift.db.files import DatabasePath
from swift.dbsync.replica import Replica
from swift.ring.view import RingView

QUEUE_ACCOUNT = ".misplaced_objects"
HOUR_S = 3600
_BATCH = 1000


def queue_misplaced(replica: Replica, view: RingView, hasher: PathHasher, answers: Sequence[bool]) -> int:
    """Queue what is new; how many entries. ``answers`` tell which replicas have the container now.

    Raises the errors of ``db.connection`` and OSError.
    """
    broker = replica.broker
    assert isinstance(broker, ContainerBroker)
    policy_index, start, root = broker.read(_facts)
    point, count, first_bad = start, 0, None
    while rows := broker.read(_after(point, policy_index)):
        entries, bad = _entries(broker, root, rows)
        _enqueue(broker, view, hasher, entries)
        if first_bad is None and bad:
            first_bad = bad[0]
        point = rows[-1][0]
        count += len(entries)
    if first_bad is not None:
        point = first_bad - 1
    if point > start and sum(answers) >= len(answers) // 2 + 1:
        last = point
        broker.write(
            lambda connection: (
                connection.execute(
                    f"UPDATE {TABLE} SET reconciler_sync_point = MAX(reconciler_sync_point, ?)", (last,)
                ).rowcount
            )
        )
    return count


def _entries(
    broker: ContainerBroker, root: str | None, rows: Sequence[tuple[int, ObjectRow]]
) -> tuple[list[tuple[str, ObjectRow]], list[int]]:
    """Return the entries of rows, and the ROWIDs of those that cannot be read."""
    entries: list[tuple[str, ObjectRow]] = []
    bad: list[int] = []
    for row_id, row in rows:
        if row.deleted > 1:
            # The queue has words for objects and deletions only.
            continue
        try:
            entries.append(entry(row, root or broker.own_name))
        except InvalidTimestamp as error:
            bad.append(row_id)
            broker.engine.warn(f"row {row_id} of {broker.own_name} cannot be queued: {error}")
    return entries, bad


def entry(row: ObjectRow, path: str) -> tuple[str, ObjectRow]:
    """Return the queue container of a misplaced row of the (root) container ``path``, and the entry in it."""
    hour = int(row.times()[2].seconds) // HOUR_S * HOUR_S
    verb = "delete" if row.deleted else "put"
    name = f"{row.storage_policy_index}:/{path}/{row.name}"
    return str(hour), ObjectRow(name, row.created_at, 0, f"application/x-{verb}", row.created_at)


def _facts(connection: sqlite3.Connection) -> tuple[int, int, str | None]:
    policy_index, point, metadata = connection.execute(
        f"SELECT storage_policy_index, reconciler_sync_point, metadata FROM {TABLE}"
    ).fetchone()
    return policy_index, -1 if point is None else point, root_path(meta.parse(metadata))


def _after(point: int, policy_index: int):  # type: ignore[no-untyped-def]
    def ask(connection: sqlite3.Connection) -> list[tuple[int, ObjectRow]]:
        other = connection.execute(
            "SELECT 1 FROM policy_stat WHERE storage_policy_index != ? LIMIT 1", (policy_index,)
        ).fetchone()
        if other is None:
            # Nearly all containers have rows of one policy only.
            return []
        return objecttable.read_rows(
            connection,
            "WHERE ROWID > ? AND storage_policy_index != ? ORDER BY ROWID LIMIT ?",
            (point, policy_index, _BATCH),
        )

    return ask


def _enqueue(
    source: ContainerBroker, view: RingView, hasher: PathHasher, entries: Sequence[tuple[str, ObjectRow]]
) -> None:
    by_hour: dict[str, list[ObjectRow]] = defaultdict(list)
    for hour, row in entries:
        by_hour[hour].append(row)
    for hour, rows in by_hour.items():
        digest = hasher.digest(QUEUE_ACCOUNT, hour)
        place = DatabasePath(
            source.place.device_path, source.place.kind, str(view.partition_of(digest)), digest.hex()
        )
        queue = ContainerBroker(place, source.engine, QUEUE_ACCOUNT, hour)
        try:
            if not queue.refresh():
                # The hour is the time of the container, so that all nodes make the same one.
                time = Timestamp(hour)
                queue.create(time, 0, created_at=time)
            queue.write(_merging(rows))
        finally:
            queue.close()


def _merging(rows: Sequence[ObjectRow]):  # type: ignore[no-untyped-def]
    return lambda connection: objecttable.merge_rows(connection, rows)
