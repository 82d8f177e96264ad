"""Ring file content, version 2: named sections with digests, and an index at the end.

Reading works on the uncompressed bytes and finds the sections by name through the index; sections it does
not know are left alone. Writing returns the sections as separate pieces, because each must be compressed
on its own (the index stores where each piece begins in the file); ``ringfile`` does the compressing.
spec: ring.md §5
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from array import array
from collections.abc import Callable

from swift.ring.errors import RingFormatError
from swift.ring.format_v1 import dump_json, load_json
from swift.ring.table import (
    TYPECODE_OF_WIDTH,
    RingTable,
    check_rows,
    checked_build_version,
    checked_next_part_power,
    checked_part_shift,
    checked_records,
)

METADATA = "swift/ring/metadata"
DEVICES = "swift/ring/devices"
ASSIGNMENTS = "swift/ring/assignments"
DIGESTS = frozenset({"md5", "sha1", "sha256", "sha512"})
_U64 = struct.Struct(">Q")
_INDEX_ENTRY_LENGTH = 6
_TRAILER_BYTES = 2 * _U64.size


def _blob(raw: memoryview, start: int, what: str) -> memoryview:
    """Return the body of the length-prefixed blob at ``start``."""
    if start < 0 or start + _U64.size > len(raw):
        raise RingFormatError(f"its {what} lies outside of the file")
    (length,) = _U64.unpack_from(raw, start)
    body_start = start + _U64.size
    if length > len(raw) - body_start:
        raise RingFormatError(f"the file ends inside its {what}")
    return raw[body_start : body_start + length]


def _index(raw: memoryview) -> dict[str, object]:
    if len(raw) < _TRAILER_BYTES:
        raise RingFormatError("the file ends before its index")
    (start,) = _U64.unpack_from(raw, len(raw) - _TRAILER_BYTES)
    index = load_json(_blob(raw, start, "index"), "index")
    if not isinstance(index, dict):
        raise RingFormatError("its index is not an object")
    return index


def _section(raw: memoryview, index: dict[str, object], name: str) -> memoryview:
    """Return the body of a section whose offsets and digest have been checked."""
    entry = index.get(name)
    if entry is None:
        raise RingFormatError(f"section {name} is missing")
    if not isinstance(entry, list) or len(entry) != _INDEX_ENTRY_LENGTH:
        raise RingFormatError(f"the index entry of section {name} does not have six elements")
    _, start, _, end, digest_name, digest = entry
    if not isinstance(start, int) or not isinstance(end, int):
        raise RingFormatError(f"the index entry of section {name} holds no offsets")
    body = _blob(raw, start, f"section {name}")
    if start + _U64.size + len(body) != end:
        raise RingFormatError(f"the length of section {name} differs from the index")
    if digest_name not in DIGESTS:
        raise RingFormatError(f"section {name} has a digest of unknown kind {digest_name!r}")
    if hashlib.new(digest_name, raw[start:end], usedforsecurity=False).hexdigest() != digest:
        raise RingFormatError(f"section {name} does not match its digest")
    return body


def decode(raw: bytes | memoryview) -> RingTable:
    """Return the table in ``raw``, the whole uncompressed file. Raises RingFormatError.

    Whether the rows name existing devices is left to ``table.check_assigned``.
    """
    raw = memoryview(raw)
    index = _index(raw)
    head = load_json(_section(raw, index, METADATA), "metadata")
    if not isinstance(head, dict):
        raise RingFormatError("its metadata is not an object")
    part_shift = checked_part_shift(head.get("part_shift"))
    width = head.get("dev_id_bytes")
    if width not in TYPECODE_OF_WIDTH:
        raise RingFormatError(f"dev_id_bytes is {width!r}, not 2 or 4")
    records = checked_records(load_json(_section(raw, index, DEVICES), "device list"))
    rows = _decode_rows(_section(raw, index, ASSIGNMENTS), width, 1 << (32 - part_shift))
    check_rows(rows, 1 << (32 - part_shift))
    return RingTable(
        part_shift=part_shift,
        rows=rows,
        records=records,
        build_version=checked_build_version(head.get("version")),
        next_part_power=checked_next_part_power(head.get("next_part_power")),
        format_version=2,
    )


def _decode_rows(body: memoryview, width: int, partition_count: int) -> tuple[array[int], ...]:
    if len(body) % width:
        raise RingFormatError("the last assignment row ends inside a device id")
    rows = []
    for start in range(0, len(body), width * partition_count):
        row = array(TYPECODE_OF_WIDTH[width])
        row.frombytes(body[start : start + width * partition_count])
        if sys.byteorder == "little":
            row.byteswap()
        rows.append(row)
    return tuple(rows)


def _big_endian(row: array[int]) -> bytes:
    if sys.byteorder == "big":
        return row.tobytes()
    swapped = row[:]
    swapped.byteswap()
    return swapped.tobytes()


def sections(table: RingTable) -> list[tuple[str, bytes]]:
    """Return the sections of a file in the order in which they are written."""
    head: dict[str, object] = {
        "dev_id_bytes": table.dev_id_bytes,
        "part_shift": table.part_shift,
        "replica_count": table.replica_count if table.rows else 0,
        "version": table.build_version,
    }
    if table.next_part_power is not None:
        head["next_part_power"] = table.next_part_power
    return [
        (METADATA, dump_json(head)),
        (DEVICES, dump_json([record and dict(record) for record in table.records])),
        (ASSIGNMENTS, b"".join(map(_big_endian, table.rows))),
    ]


def framed(body: bytes) -> bytes:
    """``body`` behind its length."""
    return _U64.pack(len(body)) + body


class IndexWriter:
    """Collects where the sections went and renders the index.

    ``position`` returns (bytes of the file so far, uncompressed bytes so far); the caller compresses.
    """

    def __init__(self, position: Callable[[], tuple[int, int]]):
        self._position = position
        self._entries: dict[str, list[int | str]] = {}

    def add(self, name: str, blob: bytes, write: Callable[[bytes], None]) -> None:
        """Write one framed section through ``write`` and remember its place and digest."""
        compressed_start, start = self._position()
        write(blob)
        compressed_end, end = self._position()
        digest = hashlib.sha256(blob).hexdigest()
        self._entries[name] = [compressed_start, start, compressed_end, end, "sha256", digest]

    def render(self) -> tuple[bytes, bytes, bytes]:
        """Return the framed index, then its uncompressed and compressed offset as eight bytes each."""
        compressed, uncompressed = self._position()
        body = json.dumps(self._entries, sort_keys=True).encode("ascii")
        return framed(body), _U64.pack(uncompressed), _U64.pack(compressed)
