"""Container rows of an account and how two versions of one become one (account-container.md §7).

Put and delete times only grow; counts and policy are those of the record merged last. That is the peer's
rule, and nodes can be mixed: counts are repeated by the container updater until they agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp

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

    def as_dict(self, row_id: int) -> dict[str, object]:
        """The row as ``merge_items`` messages carry it (§13)."""
        return {"ROWID": row_id, **self._asdict()}


def row_of_mapping(values: object) -> ContainerRow:
    """A row from a JSON object (merge_items); raises ``InvalidValue``."""
    if not isinstance(values, Mapping):
        raise InvalidValue("a container row must be an object")
    return _checked(
        values.get("name"),
        values.get("put_timestamp"),
        values.get("delete_timestamp"),
        values.get("object_count"),
        values.get("bytes_used"),
        values.get("deleted", 0),
        values.get("storage_policy_index", 0),
    )


def row_of_pending(entry: tuple[object, ...]) -> ContainerRow:
    """A row from a pending tuple of 6 (oldest) or 7 items (§6); raises ``InvalidValue``."""
    if not 6 <= len(entry) <= 7:
        raise InvalidValue(f"a pending container row has 6 or 7 items, not {len(entry)}")
    return _checked(*entry, *(0,)[len(entry) - 6 :])


def _checked(*values: object) -> ContainerRow:
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
        int(bool(_number(deleted))),
        _number(policy_index),
    )


def _number(value: Any) -> int | None:
    """A count, which pending files may hold as text; None and the empty text are unknown."""
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
    """A timestamp text as it is stored: the schema's ``0`` stays as it is."""
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
    is_deleted = Timestamp(delete) > Timestamp(put) and not objects
    return ContainerRow(new.name, put, delete, objects or 0, size or 0, int(is_deleted), policy_index or 0)


def _later(a: str | None, b: str) -> str:
    return b if a is None or Timestamp(b) > Timestamp(a) else a
