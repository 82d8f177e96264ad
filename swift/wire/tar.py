"""Tar archives as they come: headers become members, data stays data (POSIX.1-2001 pax, ustar and GNU).

The archive is pulled through a function, in bounded pieces; nothing that an archive says makes it kept in
memory. Sparse members are told apart: what they stand for may be any number of times larger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from swift.base.errors import InvalidValue

BLOCK = 512
#: Names and attributes of one member, bytes.
EXTRAS_BYTES_MAX = 1 << 18
#: No pax record of more keys than this.
_RECORDS_MAX = 1000


class BadTar(InvalidValue):
    """The archive is not one, or not all of one."""


class MemberKind(Enum):
    """Type of a member."""

    FILE = "file"
    SPARSE = "sparse file"
    OTHER = "directory, link or device"


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an archive; ``attributes`` are pax records by name."""

    name: bytes
    size: int
    kind: MemberKind
    attributes: dict[str, bytes] = field(default_factory=dict)


_FILES = frozenset(b"0\x007")
_NO_DATA = frozenset(b"123456")


class TarReader:
    """Reads members one after the other; ``read(size)`` gives up to ``size`` bytes, none at the end."""

    def __init__(self, read: Callable[[int], bytes]):
        self._read = read
        self._left = 0
        self._padding = 0
        self._offset = 0
        self._defaults: dict[str, bytes] = {}

    @property
    def left(self) -> int:
        """Bytes of the current member that were not read yet."""
        return self._left

    def next(self) -> Member | None:
        """Return the next member, None after the last.

        The one before must have been read. Raises ``BadTar``.
        """
        assert not self._left, "read a member before the next one"
        self._read_exactly(self._padding)
        self._padding = 0
        extras: dict[str, bytes] = {}
        while True:
            header = self._header()
            if header is None:
                return None
            kind = header[156:157]
            size = _parse_number(header[124:136])
            if kind in (b"x", b"g", b"L", b"K"):
                self._apply_extension(kind, self._read_extension(size), extras)
                continue
            records = {**self._defaults, **extras}
            if kind[0] in _NO_DATA:
                size = 0
            elif "size" in records:
                size = _parse_decimal(records["size"])
            self._left, self._padding = size, -size % BLOCK
            return Member(
                records.get("path") or _member_name(header), size, _member_kind(kind, records), records
            )

    def read_data(self, size: int) -> bytes:
        """Return up to ``size`` bytes of the current member, none at its end; raises ``BadTar``."""
        data = self._read(min(size, self._left)) if self._left else b""
        if self._left and not data:
            raise BadTar("unexpected end of data")
        self._left -= len(data)
        self._offset += len(data)
        return data

    def _header(self) -> bytes | None:
        block = b""
        while len(block) < BLOCK and (data := self._read(BLOCK - len(block))):
            block += data
        first, self._offset = not self._offset, self._offset + len(block)
        if not block:
            if first:
                raise BadTar("empty file")
            return None
        if len(block) < BLOCK:
            raise BadTar("truncated header" if first else "unexpected end of data")
        if not block.strip(b"\0"):
            return None
        if _parse_number(block[148:156]) != sum(block[:148]) + sum(block[156:]) + 8 * 32:
            raise BadTar("invalid header")
        return block

    def _read_extension(self, size: int) -> bytes:
        if size > EXTRAS_BYTES_MAX:
            raise BadTar("a name or attributes are too long")
        data = self._read_exactly(size)
        self._read_exactly(-size % BLOCK)
        return data

    def _read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._read(size - len(data))
            if not piece:
                raise BadTar("unexpected end of data")
            data += piece
        self._offset += size
        return data

    def _apply_extension(self, kind: bytes, data: bytes, extras: dict[str, bytes]) -> None:
        records = self._defaults if kind == b"g" else extras
        if kind == b"L":
            records["path"] = data.rstrip(b"\0")
        elif kind != b"K":
            records.update(_parse_pax_records(data))
        size = sum(len(name) + len(value) for name, value in records.items())
        if len(records) > _RECORDS_MAX or size > EXTRAS_BYTES_MAX:
            # Headers may follow each other without end.
            raise BadTar("a name or attributes are too long")


def _member_kind(kind: bytes, records: dict[str, bytes]) -> MemberKind:
    if kind == b"S" or any(name.startswith("GNU.sparse.") for name in records):
        return MemberKind.SPARSE
    return MemberKind.FILE if kind[0] in _FILES else MemberKind.OTHER


def _member_name(header: bytes) -> bytes:
    name = header[:100].split(b"\0", 1)[0]
    if header[257:263] == b"ustar\0" and (prefix := header[345:500].split(b"\0", 1)[0]):
        name = prefix + b"/" + name
    return name


def _parse_number(text: bytes) -> int:
    """Return a number of a header: octal digits, or binary after a byte of 0x80."""
    if text[0] == 0x80:
        return int.from_bytes(text[1:], "big")
    digits = text.split(b"\0", 1)[0].strip()
    try:
        return int(digits or b"0", 8) if not digits.startswith((b"-", b"+")) else _refuse()
    except ValueError:
        return _refuse()


def _refuse() -> int:
    raise BadTar("invalid header")


def _parse_decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise BadTar("invalid header")
    return int(text)


def _parse_pax_records(data: bytes) -> dict[str, bytes]:
    """Return the records of a pax header: ``<length> <name>=<value>`` lines, each as long as it says."""
    records: dict[str, bytes] = {}
    while data.strip(b"\0"):
        length, space, _ = data[:24].partition(b" ")
        if not space or not length.isdigit() or len(records) >= _RECORDS_MAX:
            raise BadTar("invalid header")
        record, data = data[: int(length)], data[int(length) :]
        if len(record) != int(length) or int(length) <= len(length) + 1 or not record.endswith(b"\n"):
            raise BadTar("invalid header")
        name, equals, value = record[len(length) + 1 : -1].partition(b"=")
        if not equals:
            raise BadTar("invalid header")
        records[name.decode("utf-8", "surrogateescape")] = value
    return records
