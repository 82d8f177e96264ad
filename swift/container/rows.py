"""Object rows and the one rule by which two versions of a row become one (account-container.md §7).

A row's ``created_at`` packs three times: when the data, the content type and the metadata were written. Each
of them belongs to whichever version is newer in that respect, so merging is commutative, associative and
idempotent: replicas converge whatever order the rows arrive in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp, decode_timestamps, encode_timestamps
from swift.db.rowtable import state_of
from swift.db.unknown import Unknown, completed, pending_values, unknown_values

_SWIFT_BYTES = "swift_bytes="
_COLUMNS = ("name", "created_at", "size", "content_type", "etag", "deleted", "storage_policy_index")
_PLAIN = itemgetter(*_COLUMNS)
_STORED_KEYS = frozenset(("ROWID", *_COLUMNS))
_KNOWN_KEYS = _STORED_KEYS | {"ctype_timestamp", "meta_timestamp"}
_SIZE_MAX = (1 << 63) - 1


class ObjectRow(NamedTuple):
    """A row of the ``object`` table, or a report about to become one.

    ``ctype_timestamp`` and ``meta_timestamp`` (internal texts or None) override what ``created_at`` packs;
    a stored row has them packed. ``deleted`` is 0, 1 for a tombstone, or what a newer release means by it.
    """

    name: str
    created_at: str
    size: int
    content_type: str
    etag: str
    deleted: int = 0
    storage_policy_index: int = 0
    ctype_timestamp: str | None = None
    meta_timestamp: str | None = None
    #: Of columns that this release does not know; they belong to the data.
    unknown: Unknown = ()

    @property
    def key(self) -> tuple[str, int]:
        """Key of the row: a name in a policy."""
        return (self.name, self.storage_policy_index)

    def times(self) -> tuple[Timestamp, Timestamp, Timestamp]:
        """Return the times of data, content type and metadata; raises ``InvalidTimestamp``."""
        data, ctype, meta = decode_timestamps(self.created_at)
        if self.ctype_timestamp is not None:
            ctype = meta = Timestamp(self.ctype_timestamp)
        if self.meta_timestamp is not None:
            meta = Timestamp(self.meta_timestamp)
        return data, ctype, meta

    def packed(self) -> ObjectRow:
        """Return the row as it is stored."""
        if self.ctype_timestamp is None and self.meta_timestamp is None:
            return self
        return self._replace(
            created_at=encode_timestamps(*self.times()), ctype_timestamp=None, meta_timestamp=None
        )

    def as_dict(self, row_id: int) -> dict[str, object]:
        """Return the row as ``merge_items`` messages carry it (§13)."""
        return {"ROWID": row_id, **dict(zip(_COLUMNS, self, strict=False)), **dict(self.unknown)}

    def as_update(self) -> dict[str, object]:
        """Return the row as an UPDATE carries it."""
        values = self._asdict()
        del values["unknown"]
        return {**values, **dict(self.unknown)}


#: A row of all its fields in a tuple, without a step in Python for each of many.
_row_of_tuple: Callable[[tuple[object, ...]], ObjectRow] = partial(tuple.__new__, ObjectRow)


def tombstone(name: str, timestamp: Timestamp, policy_index: int) -> ObjectRow:
    """Return the row of a deleted object."""
    return ObjectRow(name, timestamp.internal, 0, "application/deleted", "noetag", 1, policy_index)


def row_of_mapping(values: object) -> ObjectRow:
    """Return a row from a JSON object (UPDATE, merge_items); raises ``InvalidValue``."""
    if type(values) is not dict and not isinstance(values, Mapping):
        raise InvalidValue("an object row must be an object")
    found = map(values.get, ObjectRow._fields, (None, None, 0, "", "", 0, 0, None, None))
    return _checked(*found, unknown=unknown_values(values, _KNOWN_KEYS))


def rows_of_mappings(items: Sequence[Any]) -> list[ObjectRow]:
    """``row_of_mapping`` of many, which costs a third as long as they are as nodes send them."""
    try:
        columns = list(zip(*map(_PLAIN, items), strict=True))
        if _are_plain(*columns) and _STORED_KEYS.issuperset(set().union(*items)):
            return list(map(_row_of_tuple, zip(*columns, repeat(None), repeat(None), repeat(()))))
    except (KeyError, TypeError, UnicodeEncodeError):
        # Whatever it is, looking at each of them tells what to do about it.
        pass
    return [row_of_mapping(item) for item in items]


def _are_plain(
    names: Sequence[str],
    created: Sequence[str],
    sizes: Sequence[int],
    content_types: Sequence[str],
    etags: Sequence[str],
    deleted: Sequence[int],
    policies: Sequence[int],
) -> bool:
    """Return True if ``_checked`` would leave rows as they are; looks at columns, because there are few.

    Raises TypeError, UnicodeEncodeError and ``InvalidTimestamp`` for some that are not.
    """
    for texts in (names, content_types, etags):
        "".join(texts).encode("utf-8")
    numbers = (*sizes, *deleted, *policies)
    if not all(names) or set(map(type, numbers)) != {int} or min(deleted) < 0:
        return False
    if min(numbers) < -_SIZE_MAX or max(numbers) > _SIZE_MAX:
        return False
    return _are_times(created)


def _are_times(texts: Sequence[str]) -> bool:
    """Return True if all texts are packed timestamps; raises ``InvalidTimestamp`` or TypeError otherwise."""
    usual = texts
    if set(map(len, texts)) != {16}:
        usual = [text for text in texts if len(text) == 16]
        for text in texts:
            if len(text) != 16:
                decode_timestamps(text)
    joined = "".join(usual)
    digits = joined.replace(".", "")
    if joined[10::16] == "." * len(usual) and len(digits) == 15 * len(usual) and digits.isdecimal():
        return joined.isascii()
    return not usual


def row_of_pending(entry: tuple[object, ...]) -> ObjectRow:
    """Return a row from a pending tuple of 6 (oldest) to 9 items (§6), or more; raises ``InvalidValue``."""
    if len(entry) < 6:
        raise InvalidValue(f"a pending object row has 6 items or more, not {len(entry)}")
    return _checked(*entry[:9], *(0, None, None)[len(entry) - 6 :], unknown=pending_values(entry[9:]))


def _checked(*values: Any, unknown: Unknown = ()) -> ObjectRow:
    name, created_at, size, content_type, etag, deleted, policy_index, ctype_time, meta_time = values
    for text in (name, created_at, content_type, etag):
        _check_text(text)
    if not name:
        raise InvalidValue("an object row needs a name")
    row = ObjectRow(
        name,
        created_at,
        _number(size, "size"),
        content_type,
        etag,
        state_of(_number(deleted, "deleted")),
        _number(policy_index, "storage_policy_index"),
        _time(ctype_time),
        _time(meta_time),
        unknown,
    )
    row.times()
    return row


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InvalidValue(f"an object row has text where {text!r} is")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidValue("an object row has text that is not UTF-8")


def _number(value: Any, noun: str) -> int:
    try:
        number = 0 if value is None or value == "" else int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(f"{noun} of an object row must be a whole number, not {value!r}")
    if not -_SIZE_MAX <= number <= _SIZE_MAX:
        raise InvalidValue(f"{noun} of an object row is out of range")
    return number


def _time(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, int, float)):
        raise InvalidValue(f"not a timestamp: {value!r}")
    return Timestamp(value).internal


def split_swift_bytes(content_type: str) -> tuple[str, str | None]:
    """Return a content type without its ``swift_bytes`` parameter, and that parameter's value or None."""
    if _SWIFT_BYTES not in content_type:
        return content_type, None
    head, *parameters = content_type.split(";")
    kept, found = [head], None
    for parameter in parameters:
        if parameter.strip().startswith(_SWIFT_BYTES):
            found = parameter.strip()[len(_SWIFT_BYTES) :].strip().strip('"')
        else:
            kept.append(parameter)
    return ";".join(kept), found


def merge(existing: ObjectRow | None, new: ObjectRow) -> ObjectRow:
    """One row from two versions; ``existing`` itself when nothing changes.

    Equal times keep the existing side, completed by what only a newer release knows of the same data. Where
    times tie but contents differ (which no healthy cluster produces) the result depends on the order, as it
    does for the peer.
    """
    if existing is None:
        return new.packed()
    if existing.created_at == new.created_at and new.ctype_timestamp is None and new.meta_timestamp is None:
        return _same_data(existing, new)
    have, come = existing.times(), new.times()
    keeps_data, keeps_ctype, keeps_meta = (a >= b for a, b in zip(have, come, strict=True))
    data = existing if keeps_data else new
    if have[0] == come[0]:
        data = _same_data(existing, new)
    if data is existing and keeps_ctype and keeps_meta:
        return existing
    ctype = existing if keeps_ctype else new
    times = tuple(max(pair) for pair in zip(have, come, strict=True))
    return ObjectRow(
        new.name,
        encode_timestamps(*times),
        data.size,
        _joined_type(ctype.content_type, data.content_type),
        data.etag,
        data.deleted,
        new.storage_policy_index,
        unknown=data.unknown,
    )


def _same_data(existing: ObjectRow, new: ObjectRow) -> ObjectRow:
    """Return a row of the data that both are of: the higher ``deleted`` above 1, all unknown values."""
    if new.deleted <= 1 and not new.unknown:
        return existing
    chosen, other = (new, existing) if new.deleted > max(existing.deleted, 1) else (existing, new)
    unknown = completed(chosen.unknown, other.unknown)
    return chosen if unknown is chosen.unknown else chosen._replace(unknown=unknown)


def _joined_type(ctype: str, data: str) -> str:
    """Return the content type of one version with the ``swift_bytes`` of the other."""
    if _SWIFT_BYTES not in ctype and _SWIFT_BYTES not in data:
        return ctype
    size = split_swift_bytes(data)[1]
    plain = split_swift_bytes(ctype)[0]
    return plain if size is None else f"{plain};{_SWIFT_BYTES}{size}"
