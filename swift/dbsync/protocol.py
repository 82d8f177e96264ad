"""Protocol between replicas of a database (spec: account-container.md §13).

A request is ``REPLICATE /<device>/<partition>/<hash>`` with a JSON array ``[operation, argument...]``. This
file names the operations and turns what a remote says about its database into a ``RemoteState``; it does no
I/O.

Whole databases travel by rsync, as the peer does it, or by an *upload*: a REPLICATE whose body is the file
and whose ``BACKEND_DATABASE_UPLOAD`` header names the sender's database. A server that takes uploads says
so with the same header in all its answers, so that no version is guessed
(doc/decisions/0003-database-uploads.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp

SYNC = "sync"
MERGE_ITEMS = "merge_items"
MERGE_SYNCS = "merge_syncs"
COMPLETE_RSYNC = "complete_rsync"
RSYNC_THEN_MERGE = "rsync_then_merge"
MERGE_SHARD_RANGES = "merge_shard_ranges"
GET_SHARD_RANGES = "get_shard_ranges"

#: A remote that has less than this part of our rows, and lacks more than a batch, gets the whole database.
MUCH_BEHIND = 0.5
#: SQLite's integers are below it.
_ROW_ID_END = 1 << 63
#: Longest file name, bytes.
_IDENTITY_BYTES_MAX = 255
#: ``rsync_then_merge`` may take this long: rows per second that a receiver merges at least.
MERGED_ROWS_PER_SECOND = 2000


@dataclass(frozen=True, slots=True)
class RemoteState:
    """State of a remote database; None for fields that older or single-policy nodes omit."""

    max_row: int
    hash: str
    id: str
    created_at: str
    put_timestamp: str
    delete_timestamp: str
    metadata: str
    status_changed_at: str | None = None
    count: int | None = None
    storage_policy_index: int | None = None
    #: Only in answers: how far the remote has our rows, and its last shard range row.
    point: int = -1
    shard_max_row: int | None = None

    @classmethod
    def of_arguments(cls, values: Sequence[object]) -> RemoteState:
        """From the arguments of ``sync``; raises ``InvalidValue``."""
        if len(values) < 7:
            raise InvalidValue(f"sync needs 7 arguments, not {len(values)}")
        names = (
            *("max_row", "hash", "id", "created_at", "put_timestamp", "delete_timestamp", "metadata"),
            *("status_changed_at", "count", "storage_policy_index"),
        )
        return cls.of_mapping(dict(zip(names, values, strict=False)))

    @classmethod
    def of_mapping(cls, values: Mapping[str, Any]) -> RemoteState:
        """From the answer to ``sync``; raises ``InvalidValue``."""
        if not isinstance(values, Mapping):
            raise InvalidValue("a database is described by an object")
        policy_index = values.get("storage_policy_index")
        shard_max_row = values.get("shard_max_row")
        changed_at = values.get("status_changed_at")
        return cls(
            max_row=_number(values, "max_row"),
            hash=_text(values, "hash"),
            id=_identity(values),
            created_at=_time(values, "created_at"),
            put_timestamp=_time(values, "put_timestamp"),
            delete_timestamp=_time(values, "delete_timestamp"),
            metadata=values.get("metadata") or "" if isinstance(values.get("metadata"), str) else "",
            status_changed_at=None if changed_at is None else _time(values, "status_changed_at"),
            count=None if values.get("count") is None else _number(values, "count"),
            storage_policy_index=None if policy_index is None else _number(values, "storage_policy_index"),
            point=-1 if values.get("point") is None else _number(values, "point"),
            shard_max_row=None if shard_max_row is None else _number(values, "shard_max_row"),
        )

    def is_much_behind(self, max_row: int, per_diff: int) -> bool:
        """Return True if sending a database of ``max_row`` rows whole is less work than sending what it
        lacks.
        """
        return max_row - self.max_row > per_diff and self.max_row / max_row < MUCH_BEHIND


def row_ids(items: Sequence[Mapping[str, object]]) -> list[int]:
    """Return the senders' ROWIDs of rows in a message; raises ``InvalidValue``."""
    numbers: list[Any] = [item.get("ROWID") for item in items]
    if set(map(type, numbers)) != {int} or not -_ROW_ID_END <= min(numbers) <= max(numbers) < _ROW_ID_END:
        return [_number(item, "ROWID") for item in items]
    return numbers


def _number(values: Mapping[str, Any], name: str) -> int:
    try:
        number = int(values[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InvalidValue(f"{name} must be a whole number")
    if not -_ROW_ID_END <= number < _ROW_ID_END:
        raise InvalidValue(f"{name} is out of range")
    return number


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise InvalidValue(f"{name} must be text")
    return value


def _identity(values: Mapping[str, object]) -> str:
    value = _text(values, "id")
    check_identity(value)
    return value


def check_identity(value: object) -> str:
    """Return a database id, which is also a file name.

    Raises ``InvalidValue`` for what is none, or another path.
    """
    if not isinstance(value, str) or not value.isprintable() or "/" in value or value in ("", ".", ".."):
        raise InvalidValue("not the id of a database")
    if len(value.encode()) > _IDENTITY_BYTES_MAX:
        raise InvalidValue("the id of a database is too long")
    return value


def _time(values: Mapping[str, object], name: str) -> str:
    """Return a timestamp as columns hold it: the schema's ``0`` stays as it is."""
    value = values.get(name)
    if not isinstance(value, (str, int, float)):
        raise InvalidValue(f"{name} must be a timestamp")
    time = Timestamp(value)
    return "0" if value == "0" else time.internal
