"""Free space: preallocation and the reserve that is never filled (spec: object-disk.md §13)."""

from __future__ import annotations

import errno
from typing import Protocol

from swift.base.errors import NoSpace
from swift.platform.disk import UNSUPPORTED, Disk

#: Smaller files are written in one piece; the filesystem places them better without preallocation.
PREALLOCATE_FROM_BYTES = 65536
FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


class ReserveRule(Protocol):
    """Amount of space to keep free, e.g. ``config.kinds.Reserve``."""

    def bytes_of(self, total_bytes: int) -> int:
        """The reserve on a filesystem of that size."""


class SpaceGuard:
    """Refuses writes that would eat into the reserve; ``enabled`` false turns all of it off."""

    __slots__ = ("_disk", "_reserve", "enabled")

    def __init__(self, disk: Disk, reserve: ReserveRule | None, *, enabled: bool = True):
        self._disk = disk
        self._reserve = reserve
        self.enabled = enabled

    def check(self, path: str, size_bytes: int | None) -> None:
        """Raise ``NoSpace`` unless a file of this size (None: unknown) may be written below ``path``.

        With a known size the reserve must stay free *after* the write; otherwise it must be free now.
        """
        if not self.enabled or self._reserve is None:
            return
        stats = self._disk.statvfs(path)
        free = stats.f_frsize * stats.f_bavail
        reserve = self._reserve.bytes_of(stats.f_frsize * stats.f_blocks)
        if free - size_bytes <= reserve if size_bytes else free < reserve:
            raise NoSpace(f"{free} bytes free below {path}, {reserve} are reserved")

    def preallocate(self, fd: int, size_bytes: int | None) -> None:
        """Reserve blocks for a large file of known size; raises ``NoSpace`` or OSError."""
        if not self.enabled or size_bytes is None or size_bytes < PREALLOCATE_FROM_BYTES:
            return
        try:
            self._disk.preallocate(fd, size_bytes)
        except OSError as error:
            if error.errno in FULL:
                raise NoSpace(f"no room for {size_bytes} bytes")
            if error.errno not in UNSUPPORTED:
                raise

    def __repr__(self) -> str:
        return f"SpaceGuard(reserve={self._reserve}, enabled={self.enabled})"
