"""Ring file content, version 1: one JSON header, then the rows in the writer's byte order.

Bytes in, ``RingTable`` out and back; gzip, files and version numbers other than 1 are not known here.
spec: ring.md §4
"""

from __future__ import annotations

import json
import struct
import sys
from array import array

from swift.ring.errors import RingFormatError
from swift.ring.table import (
    RingTable,
    check_rows,
    checked_build_version,
    checked_next_part_power,
    checked_part_shift,
    checked_records,
)

_LENGTH = struct.Struct(">I")


def dump_json(value: object) -> bytes:
    """JSON as every ring file carries it: sorted keys, ASCII, ``", "`` and ``": "``."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True).encode("ascii")


def load_json(body: bytes | memoryview, what: str) -> object:
    """Return the value of JSON bytes, or RingFormatError saying ``what`` is not JSON."""
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise RingFormatError(f"its {what} is not JSON")


def decode(body: bytes | memoryview) -> RingTable:
    """Return the table in ``body``, the uncompressed bytes after magic and version. Raises RingFormatError.

    Whether the rows name existing devices is left to ``table.check_assigned``.
    """
    body = memoryview(body)
    if len(body) < _LENGTH.size:
        raise RingFormatError("the file ends before its JSON header")
    (length,) = _LENGTH.unpack_from(body)
    rows_start = _LENGTH.size + length
    if len(body) < rows_start:
        raise RingFormatError("the file ends inside its JSON header")
    head = load_json(body[_LENGTH.size : rows_start], "JSON header")
    if not isinstance(head, dict):
        raise RingFormatError("its JSON header is not an object")
    part_shift = checked_part_shift(head.get("part_shift"))
    records = checked_records(head.get("devs"))
    rows = _decode_rows(body[rows_start:], head, 1 << (32 - part_shift))
    check_rows(rows, 1 << (32 - part_shift))
    return RingTable(
        part_shift=part_shift,
        rows=rows,
        records=records,
        build_version=checked_build_version(head.get("version")),
        next_part_power=checked_next_part_power(head.get("next_part_power")),
        format_version=1,
    )


def _decode_rows(body: memoryview, head: dict[str, object], partition_count: int) -> tuple[array[int], ...]:
    byteorder = head.get("byteorder", sys.byteorder)
    if byteorder not in ("little", "big"):
        raise RingFormatError(f"byteorder is {byteorder!r}")
    count = head.get("replica_count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise RingFormatError(f"replica_count is {count!r}, not a whole number")
    rows = []
    for start in range(0, min(count * 2 * partition_count, len(body)), 2 * partition_count):
        chunk = body[start : start + 2 * partition_count]
        if len(chunk) % 2:
            raise RingFormatError("the last assignment row ends inside a device id")
        row = array("H")
        row.frombytes(chunk)
        if byteorder != sys.byteorder:
            row.byteswap()
        rows.append(row)
    if len(body) > count * 2 * partition_count:
        raise RingFormatError("there are other bytes after its last assignment row")
    if len(rows) != count:
        raise RingFormatError(f"the file ends after {len(rows)} of {count} assignment rows")
    return tuple(rows)


def encode(table: RingTable) -> bytes:
    """Return the uncompressed bytes after magic and version.

    Raises RingFormatError for ids wider than 2 bytes.
    """
    if table.dev_id_bytes != 2:
        raise RingFormatError("Ring v1 only supports 2-byte dev IDs")
    head: dict[str, object] = {
        "byteorder": sys.byteorder,
        "devs": [record and dict(record) for record in table.records],
        "part_shift": table.part_shift,
        "replica_count": len(table.rows),
    }
    if table.build_version is not None:
        head["version"] = table.build_version
    if table.next_part_power is not None:
        head["next_part_power"] = table.next_part_power
    text = dump_json(head)
    return b"".join([_LENGTH.pack(len(text)), text, *(row.tobytes() for row in table.rows)])
