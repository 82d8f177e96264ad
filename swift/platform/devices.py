"""Paths of devices, mount checks, and the space that is never filled (spec: object-disk.md §13)."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote_plus

from swift.base.errors import DeviceUnavailable, NoSpace
from swift.platform.disk import UNSUPPORTED, Disk


def is_mount(path: str) -> bool:
    """Return True if ``path`` is a mount point, or has an ``.ismount`` file."""
    try:
        here = os.lstat(path)
        if not stat.S_ISLNK(here.st_mode):
            above = os.lstat(os.path.join(path, ".."))
            if here.st_dev != above.st_dev or here.st_ino == above.st_ino:
                return True
        return os.path.isfile(os.path.join(path, ".ismount"))
    except OSError:
        return False


class Devices:
    """The devices below one directory.

    ``admit`` is called with the name and path of a device before it is used for the first time, and may raise
    ``DeviceUnavailable``. ``returned`` is called with the name of a device that is there again, and with the
    time at which it was found missing first (Unix seconds).
    """

    __slots__ = ("root", "mount_check", "_admit", "_returned", "_paths", "_missing")

    def __init__(
        self,
        root: str,
        *,
        mount_check: bool = True,
        admit: Callable[[str, str], None] = lambda _name, _path: None,
        returned: Callable[[str, float], None] = lambda _name, _missing_s: None,
    ):
        self.root = root
        self.mount_check = mount_check
        self._admit = admit
        #: The paths of names that were usable once, which need not be looked through again.
        self._paths: dict[str, str] = {}
        self._returned = returned
        #: Device → when it was found missing first.
        self._missing: dict[str, float] = {}

    def path(self, device: str) -> str:
        """Return the directory of ``device``; raises ``DeviceUnavailable`` when it must not be used."""
        path = self._paths.get(device)
        if path is None:
            if not device or quote_plus(device) != device or device in (".", ".."):
                raise DeviceUnavailable(device)
            path = f"{self.root}/{device}"
        if not (is_mount(path) if self.mount_check else os.path.isdir(path)):
            # Another device may be mounted there next.
            was_known = self._paths.pop(device, None) is not None
            # Requests may name anything: only mount points count.
            if device not in self._missing and (was_known or os.path.isdir(path)):
                self._missing[device] = time.time()
            raise DeviceUnavailable(device)
        if device not in self._paths:
            self._admit(device, path)
            self._paths[device] = path
            if missing_s := self._missing.pop(device, 0.0):
                self._returned(device, missing_s)
        return path

    def is_usable(self, device: str) -> bool:
        """Return True if ``path`` would give a directory."""
        try:
            self.path(device)
        except DeviceUnavailable:
            return False
        return True

    def names(self) -> list[str]:
        """Return the names of all directories below the root, usable or not, sorted."""
        try:
            return sorted(e.name for e in Path(self.root).iterdir() if e.is_dir())
        except OSError:
            return []

    def __repr__(self) -> str:
        return f"Devices({self.root!r}, mount_check={self.mount_check})"


#: Smaller files are written in one piece; the filesystem places them better without preallocation.
PREALLOCATE_FROM_BYTES = 65536
NO_SPACE_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT))


class ReserveRule(Protocol):
    """Amount of space to keep free, e.g. ``config.kinds.Reserve``."""

    def bytes_of(self, total_bytes: int) -> int:
        """Return the reserve on a filesystem of that size."""


class LeastRoom(NamedTuple):
    """Room to keep free whatever is configured: so much, or a part of the filesystem if that is less."""

    size_bytes: int
    inodes: int
    #: One divided by the largest part.
    parts: int


class SpaceGuard:
    """Refuses writes that would eat into the reserve; ``enabled`` false turns all of it off."""

    __slots__ = ("_disk", "_reserve", "_reserved", "enabled")

    def __init__(self, disk: Disk, reserve: ReserveRule | None, *, enabled: bool = True):
        self._disk = disk
        self._reserve = reserve
        #: The reserve on a filesystem by the size of that.
        self._reserved: dict[int, int] = {}
        self.enabled = enabled

    def check(self, path: str, size_bytes: int | None, *, least: LeastRoom | None = None) -> None:
        """Raise ``NoSpace`` unless a file of this size (None: unknown) may be written below ``path``.

        With a known size the reserve must stay free *after* the write; otherwise it must be free now.
        ``least`` is kept free even if the reserve is less.
        """
        if least is None and (not self.enabled or self._reserve is None):
            return
        stats = self._disk.statvfs(path)
        free = stats.f_frsize * stats.f_bavail
        total = stats.f_frsize * stats.f_blocks
        reserve = self._reserve_on(total)
        if least is not None:
            reserve = max(reserve, min(least.size_bytes, total // least.parts))
            inodes = min(least.inodes, stats.f_files // least.parts)
            # Some filesystems count none.
            if stats.f_favail < inodes:
                raise NoSpace(f"{stats.f_favail} inodes free below {path}, {inodes} are reserved")
        if free - size_bytes <= reserve if size_bytes else free < reserve:
            raise NoSpace(f"{free} bytes free below {path}, {reserve} are reserved")

    def _reserve_on(self, total_bytes: int) -> int:
        """Return the configured reserve on a filesystem of that size."""
        if not self.enabled or self._reserve is None:
            return 0
        reserve = self._reserved.get(total_bytes)
        if reserve is None:
            reserve = self._reserved[total_bytes] = self._reserve.bytes_of(total_bytes)
        return reserve

    def preallocate(self, fd: int, size_bytes: int | None) -> None:
        """Reserve blocks for a large file of known size; raises ``NoSpace`` or OSError."""
        if not self.enabled or size_bytes is None or size_bytes < PREALLOCATE_FROM_BYTES:
            return
        try:
            self._disk.preallocate(fd, size_bytes)
        except OSError as error:
            if error.errno in NO_SPACE_ERRORS:
                raise NoSpace(f"no room for {size_bytes} bytes")
            if error.errno not in UNSUPPORTED:
                raise

    def __repr__(self) -> str:
        return f"SpaceGuard(reserve={self._reserve}, enabled={self.enabled})"
