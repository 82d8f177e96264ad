"""Preallocation of database files, so that they grow in few pieces (account-container.md §3).

The descriptor stays open as long as the database does: closing it would drop SQLite's locks on the file.
"""

from __future__ import annotations

import os

from swift.base.errors import NoSpace
from swift.platform.devices import FULL
from swift.platform.disk import UNSUPPORTED, Disk
from swift.platform.faults import open_regular

_MB = 1_000_000
_STEPS = (1 * _MB, 2 * _MB, 5 * _MB, 10 * _MB, 25 * _MB, 50 * _MB)
#: So close to the end of what is allocated the next step is taken, bytes.
_MARGIN = _MB // 2


def target_size(size_bytes: int) -> int:
    """How much to allocate for a file of this size: the next of 1, 2, 5, 10, 25, 50, 100, 150... MB."""
    for step in _STEPS:
        if size_bytes < step - _MARGIN:
            return step
    whole = _STEPS[-1]
    return ((size_bytes + _MARGIN) // whole + 1) * whole


class Preallocator:
    """Keeps one file allocated ahead of its size."""

    def __init__(self, disk: Disk, path: str):
        self._disk = disk
        self._fd = open_regular(disk, path, os.O_RDWR)
        self._allocated = 0

    def grow(self) -> None:
        """Allocate the next step when the file comes near; raises ``NoSpace`` or OSError."""
        wanted = target_size(self._disk.fstat(self._fd).st_size)
        if wanted <= self._allocated:
            return
        try:
            self._disk.preallocate(self._fd, wanted)
        except OSError as error:
            if error.errno in FULL:
                raise NoSpace(f"no room for a database of {wanted} bytes")
            if error.errno not in UNSUPPORTED:
                raise
        self._allocated = wanted

    def close(self) -> None:
        """Only when every connection of this process to the file is closed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._disk.close(fd)
