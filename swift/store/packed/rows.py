"""Rows of the index that are not of objects: volumes, partitions, spaces, and its state.

doc/formats/packed.md, "Index", has their layout.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple, Protocol

from swift.base.errors import InvalidValue
from swift.store.lmdbindex import Writing
from swift.store.packed.entry import EXPLICIT, META_SPACE, Space, object_key, space_bits
from swift.store.packed.record import Position

_VOLUME = META_SPACE + b"v"
_PARTITION = META_SPACE + b"p"
_SPACES = META_SPACE + b"s"
_COMPLETE = META_SPACE + b"complete"
_UNINDEXED = META_SPACE + b"u"
_ADOPTED = META_SPACE + b"a"
_UNWANTED = META_SPACE + b"x"
_LOST = META_SPACE + b"l"
_NONCE = META_SPACE + b"n"
_OWNER = META_SPACE + b"owner"
_UNCONFIRMED = META_SPACE + b"d"
_CONFIRMED = META_SPACE + b"w"
_NUMBER = struct.Struct(">I")
_PLACE = struct.Struct(">II")
_VOLUME_ROW = struct.Struct(">QQ")
#: Bit in the end of a volume that is closed.
_CLOSED = 1 << 63
_COUNT = struct.Struct(">Q")
_LOST_ROW = struct.Struct(">IQ")
_PARTITION_ROW = struct.Struct(">QQ")
_SPACES_MAX = 254
FORMAT = b"1"
#: Rows of one read.
SOME = 1000


class ReadsIndex(Protocol):
    """The reading half of an index or of a change of it."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""

    def items(self, begin: bytes, end: bytes, count: int) -> list[tuple[bytes, bytes]]:
        """Return at most ``count`` keys and values from ``begin`` to before ``end``."""


class VolumeRow(NamedTuple):
    """Content of a volume: where its indexed records end, bytes, and those of live ones, rounded up."""

    end: int = 0
    live_bytes: int = 0
    #: True if something was written behind the end that must never count: nothing more is appended.
    is_closed: bool = False


class PartitionRow(NamedTuple):
    """Changes of a partition: a number that is another one after each, and when (Unix ns) the last was."""

    sequence: int
    changed_ns: int


def read_volume(index: ReadsIndex, number: int) -> VolumeRow:
    """Return the row of a volume; an empty one when there is none."""
    value = index.get(_VOLUME + _NUMBER.pack(number))
    return _volume_row(value) if value else VolumeRow()


def _volume_row(value: bytes) -> VolumeRow:
    end, live_bytes = _VOLUME_ROW.unpack(value)
    return VolumeRow(end & ~_CLOSED, live_bytes, bool(end & _CLOSED))


def write_volume(writing: Writing, number: int, row: VolumeRow) -> None:
    """Set the row of a volume."""
    end = row.end | (_CLOSED if row.is_closed else 0)
    writing.put(_VOLUME + _NUMBER.pack(number), _VOLUME_ROW.pack(end, row.live_bytes))


def delete_volume(writing: Writing, number: int) -> None:
    """Remove the row of a volume, and what is known of unwanted and lost records in it."""
    writing.delete(_VOLUME + _NUMBER.pack(number))
    writing.delete(_NONCE + _NUMBER.pack(number))
    for begin, _end in lost_ranges(writing, number):
        writing.delete(_LOST + _LOST_ROW.pack(number, begin))
    for unit in unwanted_units(writing, number):
        writing.delete(_UNWANTED + _PLACE.pack(number, unit))


def volumes(index: ReadsIndex) -> dict[int, VolumeRow]:
    """Return the rows of all volumes."""
    found = _all(index, _VOLUME, _VOLUME[:-1] + b"w")
    return {_NUMBER.unpack(key[2:])[0]: _volume_row(value) for key, value in found}


def set_nonce(writing: Writing, number: int, nonce: bytes) -> None:
    """Note the nonce of a volume of which records are indexed."""
    writing.put(_NONCE + _NUMBER.pack(number), nonce)


def nonces(index: ReadsIndex) -> dict[int, bytes]:
    """Return the noted nonces of volumes."""
    found = _all(index, _NONCE, _NONCE[:-1] + b"o")
    return {_NUMBER.unpack(key[2:])[0]: value for key, value in found}


def is_foreign(index: ReadsIndex, number: int, nonce: bytes) -> bool:
    """Return True if the records of another volume of this number are indexed."""
    return index.get(_NONCE + _NUMBER.pack(number)) not in (None, nonce)


def set_unwanted(writing: Writing, position: Position) -> None:
    """Note a record that never counts: nothing may be concluded from it."""
    writing.put(_UNWANTED + _PLACE.pack(*position), b"1")


def unwanted_units(index: ReadsIndex, number: int) -> set[int]:
    """Return the units of a volume at which unwanted records begin."""
    begin = _UNWANTED + _NUMBER.pack(number)
    found = _all(index, begin, _UNWANTED + _NUMBER.pack(number + 1))
    return {_PLACE.unpack(key[2:])[1] for key, _value in found}


def set_lost(writing: Writing, number: int, begin: int, end: int) -> None:
    """Note a range of a volume, bytes, whose records could not be indexed."""
    writing.put(_LOST + _LOST_ROW.pack(number, begin), _COUNT.pack(end))


def lost_ranges(index: ReadsIndex, number: int) -> list[tuple[int, int]]:
    """Return the ranges of a volume, bytes, whose records could not be indexed."""
    found = _all(index, _LOST + _NUMBER.pack(number), _LOST + _NUMBER.pack(number + 1))
    return [(_LOST_ROW.unpack(key[2:])[1], _COUNT.unpack(value)[0]) for key, value in found]


def lost_bytes(index: ReadsIndex) -> dict[int, int]:
    """Return the bytes whose records could not be indexed, of the volumes that have any."""
    lost: dict[int, int] = {}
    for key, value in _all(index, _LOST, _LOST[:-1] + b"m"):
        number, begin = _LOST_ROW.unpack(key[2:])
        lost[number] = lost.get(number, 0) + _COUNT.unpack(value)[0] - begin
    return lost


def read_partition(index: ReadsIndex, policy: int, partition: int) -> PartitionRow | None:
    """Return the row of a partition; None when it does not exist."""
    value = index.get(_PARTITION + _PLACE.pack(policy, partition))
    return PartitionRow(*_PARTITION_ROW.unpack(value)) if value else None


def touch_partition(writing: Writing, policy: int, partition: int, now_ns: int) -> None:
    """Note a change in a partition; makes its row."""
    key = _PARTITION + _PLACE.pack(policy, partition)
    value = writing.get(key)
    # Begins at random: a partition that comes again must not repeat what it was.
    before = _PARTITION_ROW.unpack(value)[0] if value else int.from_bytes(os.urandom(7), "big")
    writing.put(key, _PARTITION_ROW.pack(before + 1, now_ns))


def delete_partition(writing: Writing, policy: int, partition: int) -> None:
    """Remove the row of a partition."""
    writing.delete(_PARTITION + _PLACE.pack(policy, partition))


def partitions(index: ReadsIndex, policy: int) -> list[int]:
    """Return the partitions of a policy that exist, in ascending order."""
    begin = _PARTITION + _NUMBER.pack(policy)
    end = _PARTITION + _NUMBER.pack(policy + 1)
    return [_PLACE.unpack(key[2:])[1] for key, _value in _all(index, begin, end)]


def _all(index: ReadsIndex, begin: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    while some := index.items(begin, end, SOME):
        found.extend(some)
        begin = some[-1][0] + b"\0"
    return found


def is_complete(index: ReadsIndex) -> bool:
    """Return True if every record is in the index, but for those of the tails of volumes."""
    return index.get(_COMPLETE) == FORMAT


def owner(index: ReadsIndex) -> bytes | None:
    """Return the identity of the volumes of which the index is, None when it is empty."""
    return index.get(_OWNER)


def set_owner(writing: Writing, identity: bytes) -> None:
    """Note the identity of the volumes that are being indexed."""
    writing.put(_OWNER, identity)


def set_complete(writing: Writing) -> None:
    """Note that every record is in the index."""
    writing.put(_COMPLETE, FORMAT)


def unconfirmed(index: ReadsIndex) -> bytes:
    """Return the mark of a device that lost records, empty without one."""
    return index.get(_UNCONFIRMED) or b""


def set_unconfirmed(writing: Writing, mark: bytes) -> None:
    """Note that partitions are unconfirmed unless they have the same mark."""
    writing.put(_UNCONFIRMED, mark)


def confirmed(index: ReadsIndex, policy: int, partition: int) -> bytes:
    """Return the mark with which a partition was confirmed last, empty if it never was."""
    return index.get(_CONFIRMED + _PLACE.pack(policy, partition)) or b""


def set_confirmed(writing: Writing, policy: int, partition: int, mark: bytes) -> None:
    """Note that a partition equals another replica."""
    writing.put(_CONFIRMED + _PLACE.pack(policy, partition), mark)


def is_all_confirmed(index: ReadsIndex) -> bool:
    """Return True if each partition is confirmed."""
    mark = unconfirmed(index)
    places = [key.removeprefix(_PARTITION) for key, _value in _all(index, _PARTITION, _PARTITION[:-1] + b"q")]
    return all(index.get(_CONFIRMED + place) == mark for place in places)


def delete_unconfirmed(writing: Writing) -> None:
    """Note that nothing is unconfirmed."""
    writing.delete(_UNCONFIRMED)
    for key, _value in _all(writing, _CONFIRMED, _CONFIRMED[:-1] + b"x"):
        writing.delete(key)


def known_policies(index: ReadsIndex) -> dict[int, bool]:
    """Return the policies of which it is known if there may be files that the index does not have."""
    found = _all(index, _UNINDEXED, META_SPACE + b"v")
    return {_NUMBER.unpack(key[2:])[0]: value == b"1" for key, value in found}


def set_unindexed(writing: Writing, policy: int, is_unindexed: bool) -> None:
    """Note whether there may be files of a policy that the index does not have, in any partition."""
    writing.put(_UNINDEXED + _NUMBER.pack(policy), b"1" if is_unindexed else b"0")
    for adopted, _value in _all(
        writing, _ADOPTED + _NUMBER.pack(policy), _ADOPTED + _NUMBER.pack(policy + 1)
    ):
        writing.delete(adopted)


def is_adopted(index: ReadsIndex, policy: int, partition: int) -> bool:
    """Return True if the index has every file of a partition."""
    return index.get(_ADOPTED + _PLACE.pack(policy, partition)) is not None


def set_adopted(writing: Writing, policy: int, partition: int) -> None:
    """Note that the index has every file of a partition."""
    writing.put(_ADOPTED + _PLACE.pack(policy, partition), b"1")


def explicit_spaces(index: ReadsIndex) -> list[tuple[int, int]]:
    """Return the policy and the first byte of each space whose keys have the partition in them."""
    found = _all(index, _SPACES, META_SPACE + b"t")
    return [(_NUMBER.unpack(key[2:6])[0], value[0]) for key, value in found if key[-1] == EXPLICIT]


class Spaces:
    """First bytes of the keys of objects, by policy and number of bits of partitions; see ``entry``."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[int, int], int] = {}

    def find(self, index: ReadsIndex, policy: int, partition: int, object_hash: bytes) -> bytes | None:
        """Return the key of an object, None if nothing was ever stored where it would be."""
        bits = space_bits(partition, object_hash)
        prefix = self._prefix(index, policy, bits)
        if prefix is None:
            return None
        self._prefixes[policy, bits] = prefix
        return object_key(prefix, bits, partition, object_hash)

    def _prefix(self, index: ReadsIndex, policy: int, bits: int) -> int | None:
        prefix = self._prefixes.get((policy, bits))
        if prefix is None:
            value = index.get(Space(policy, bits).row)
            return value[0] if value else None
        return prefix

    def make(self, writing: Writing, policy: int, partition: int, object_hash: bytes) -> bytes:
        """Return the key of an object that is about to be stored; raises ``InvalidValue`` if there are too
        many policies.
        """
        bits = space_bits(partition, object_hash)
        prefix = self._prefix(writing, policy, bits)
        if prefix is None:
            taken = [value[0] for _key, value in _all(writing, _SPACES, META_SPACE + b"t")]
            prefix = max(taken, default=0) + 1
            if prefix > _SPACES_MAX:
                raise InvalidValue("the index has no room for another policy")
            # Not kept in memory: this change may fail.
            writing.put(Space(policy, bits).row, bytes((prefix,)))
        return object_key(prefix, bits, partition, object_hash)

    def of_policy(self, index: ReadsIndex, policy: int) -> list[tuple[int, int]]:
        """Return the first byte and the bits of each space of a policy."""
        begin = Space(policy, 0).row
        return [(value[0], key[-1]) for key, value in _all(index, begin, Space(policy + 1, 0).row)]
