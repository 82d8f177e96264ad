"""Search in the audit log of this proxy, from its end backwards, through rotated files as well.

A search reads a bounded number of bytes and then gives the position where the next one goes on. Files are
found again by their inodes: the log may be rotated between two searches.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from swift.middleware.audit_log.logfile import rotated_files
from swift.platform.disk import Disk
from swift.platform.regularfiles import open_with_status

#: Bytes and seconds of one search.
SEARCH_BYTES_MAX = 32 << 20
SEARCH_S = 3.0
_BLOCK_BYTES = 256 << 10
#: No line of the log is longer; longer ones are dropped.
_LINE_BYTES_MAX = 64 << 10


class Position(NamedTuple):
    """The place before which a search goes on: a file and the start of a line."""

    inode: int
    offset: int

    def __str__(self) -> str:
        return f"{self.inode}-{self.offset}"


@dataclass(frozen=True)
class AuditTerms:
    """Conditions on lines; empty ones are fulfilled by all. Times are beginnings of ISO 8601 texts in UTC."""

    user: str = ""
    path: str = ""
    method: str = ""
    status: str = ""
    address: str = ""
    since: str = ""
    until: str = ""

    def fulfils(self, values: Mapping[str, object]) -> bool:
        """Return True for a line that is looked for."""
        moment = str(values.get("time", ""))
        users = (str(values.get("user", "")), str(values.get("access_key", "")))
        return (
            (not self.method or self.method == values.get("method"))
            and (not self.status or str(values.get("status", "")).startswith(self.status))
            and (not self.address or self.address in (values.get("client"), values.get("peer")))
            and any(self.user in user for user in users)
            and self.path in path_of(values)
            and self.since <= moment
            and (not self.until or moment[: len(self.until)] <= self.until)
        )


@dataclass(frozen=True)
class Found:
    """Lines, newest first, and where the search goes on; None at the end of the log."""

    lines: Sequence[Mapping[str, object]]
    next: Position | None
    #: True if the search stopped as it had read enough.
    is_cut: bool = False


def path_of(values: Mapping[str, object]) -> str:
    """Return the path of a line's request."""
    names = [values.get(key) for key in ("account", "container", "object")]
    return "/".join(str(name) for name in names if name is not None) or str(values.get("path", ""))


def search(path: str, terms: AuditTerms, before: Position | None, count: int) -> Found:
    """Return up to ``count`` lines. Raises ``IrregularFile`` and OSError, without a log FileNotFoundError."""
    disk, lines = Disk(), list[Mapping[str, object]]()
    deadline, budget = time.monotonic() + SEARCH_S, SEARCH_BYTES_MAX
    files = [path, *reversed(rotated_files(path))]
    for number, name in enumerate(files):
        try:
            fd, status = open_with_status(disk, name, os.O_RDONLY)
        except FileNotFoundError:
            # It was rotated or removed just now; without any file there is no log.
            if len(files) == 1:
                raise
            continue
        try:
            if before is not None and before.inode != status.st_ino:
                continue
            end = status.st_size if before is None else min(before.offset, status.st_size)
            before = None
            for offset, line in lines_backwards(fd, end):
                budget, end = budget - (end - offset), offset
                values = _parse(line)
                if values is not None and terms.fulfils(values):
                    lines.append(values)
                is_cut = budget < 0 or time.monotonic() > deadline
                if len(lines) >= count or is_cut:
                    is_last = not offset and number + 1 == len(files)
                    return Found(lines, None if is_last else Position(status.st_ino, offset), is_cut)
        finally:
            disk.close(fd)
    return Found(lines, None)


def lines_backwards(fd: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file before ``end`` with their offsets, the last one first.

    An empty line stands for what was read without finding the start of one.
    """
    rest = b""
    while end > 0:
        begin = max(0, end - _BLOCK_BYTES)
        block = os.pread(fd, end - begin, begin) + rest
        end = begin
        if len(block) > _BLOCK_BYTES + _LINE_BYTES_MAX:
            # A line without an end: what it has so far is dropped.
            block = block[: _BLOCK_BYTES + 1]
        first, *others = block.split(b"\n")
        offset = begin + len(block)
        for line in reversed(others):
            offset -= len(line)
            if line:
                yield offset, line
            offset -= 1
        rest = first
        yield begin + len(rest), b""
    if rest:
        yield 0, rest


def _parse(line: bytes) -> Mapping[str, object] | None:
    """Return the values of a line; None if it is none."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None
