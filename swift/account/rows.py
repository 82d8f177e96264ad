"""Container rows of an account and how two versions of one become one (account-container.md §7).

Put and delete times only grow; counts and policy are those of the record merged last. That is the peer's
rule, and nodes can be mixed: counts are repeated by the container updater until they agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp
from swift.db.rowtable import state_of
from swift.db.unknown import Unknown, completed, pending_values, unknown_values

_NUMBER_MAX = (1 << 63) - 1


class ContainerRow(NamedTuple):
    """A row of the ``container`` table; None is "not known" in reports."""

    name: str
    put_timestamp: str | None
    delete_timestamp: str | None
    object_count: int | None
    bytes_used: int | None
    deleted: int = 0
    storage_policy_index: int | None = 0
    #: Of columns that this release does not know.
    unknown: Unknown = ()


_COLUMNS = ContainerRow._fields[:-1]
_KNOWN_KEYS = frozenset(("ROWID", *_COLUMNS))


def row_of_mapping(values: object) -> ContainerRow:
    """Return a row from a JSON object (merge_items); raises ``InvalidValue``."""
    if not isinstance(values, Mapping):
        raise InvalidValue("a container row must be an object")
    found = map(values.get, _COLUMNS, (None, None, None, None, None, 0, 0))
    return _checked(*found, unknown=unknown_values(values, _KNOWN_KEYS))


def row_of_pending(entry: tuple[object, ...]) -> ContainerRow:
    """Return a row from a pending tuple of 6 (oldest), 7 items (§6) or more; raises ``InvalidValue``."""
    if len(entry) < 6:
        raise InvalidValue(f"a pending container row has 6 items or more, not {len(entry)}")
    return _checked(*entry[:7], *(0,)[len(entry) - 6 :], unknown=pending_values(entry[7:]))


def _checked(*values: object, unknown: Unknown = ()) -> ContainerRow:
    name, put, delete, objects, size, deleted, policy_index = values
    if not isinstance(name, str) or not name:
        raise InvalidValue("a container row needs a name")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidValue("the name of a container row is not UTF-8")
    return ContainerRow(
        name,
        _time(put),
        _time(delete),
        _number(objects),
        _number(size),
        state_of(_number(deleted) or 0),
        _number(policy_index),
        unknown,
    )


def _number(value: Any) -> int | None:
    """Return a count, which pending files may hold as text; None and the empty text are unknown."""
    if value is None or value == "":
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(f"not a whole number in a container row: {value!r}")
    if not -_NUMBER_MAX <= number <= _NUMBER_MAX:
        raise InvalidValue("a number in a container row is out of range")
    return number


def _time(value: object) -> str | None:
    """Return a timestamp text as it is stored: the schema's ``0`` stays as it is."""
    if value is None or value == "":
        return None
    if not isinstance(value, (str, int, float)):
        raise InvalidValue(f"not a timestamp: {value!r}")
    time = Timestamp(value)
    return value if isinstance(value, str) and value == "0" else time.internal


def merge(existing: ContainerRow | None, new: ContainerRow) -> ContainerRow:
    """One row from two versions."""
    put, delete = new.put_timestamp or "0", new.delete_timestamp or "0"
    objects, size, policy_index = new.object_count, new.bytes_used, new.storage_policy_index
    if existing is not None:
        put = _later(existing.put_timestamp, put)
        delete = _later(existing.delete_timestamp, delete)
        objects = existing.object_count if objects is None else objects
        size = existing.bytes_used if size is None else size
        policy_index = existing.storage_policy_index if policy_index is None else policy_index
    deleted, unknown = int(Timestamp(delete) > Timestamp(put) and not objects), new.unknown
    if existing is not None:
        unknown = completed(new.unknown, existing.unknown)
    # The row of the last put or deletion decides, as in the newer release.
    told = max((row for row in (existing, new) if row is not None), key=_changed_at)
    if told.deleted > 1:
        deleted = told.deleted
    return ContainerRow(
        new.name, put, delete, objects or 0, size or 0, deleted, policy_index or 0, unknown=unknown
    )


def _changed_at(row: ContainerRow) -> tuple[Timestamp, int]:
    """Return the time of a row's last put or deletion, with ``deleted`` as tie-breaker."""
    return max(Timestamp(row.put_timestamp or 0), Timestamp(row.delete_timestamp or 0)), row.deleted


def _later(a: str | None, b: str) -> str:
    return b if a is None or Timestamp(b) > Timestamp(a) else a
