"""The handle of a disk: how code outside of engines reaches the files of a device.

Calls to a disk block. A ``DiskHandle`` makes each call where calls to its device may run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Unpack

from swift.base.calls import Run, T, Ts, run_inline
from swift.platform.disk import Disk


class DiskHandle:
    """The disk of one device, and where its calls run."""

    __slots__ = ("disk", "run")

    def __init__(self, disk: Disk, run: Run = run_inline):
        #: These two are for engines; others make calls.
        self.disk = disk
        self.run = run

    def call(self, work: Callable[[Disk, Unpack[Ts]], T], *args: *Ts) -> T:
        """Run a function of several steps as one call; its first argument is the disk."""
        return self.run(work, self.disk, *args)

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return self.run(self.disk.listdir, path)

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a file or directory."""
        return self.run(self.disk.stat, path)

    def statvfs(self, path: str) -> os.statvfs_result:
        """Return the status of a filesystem."""
        return self.run(self.disk.statvfs, path)

    def is_directory(self, path: str) -> bool:
        """Return True if a directory is there."""
        return self.run(os.path.isdir, path)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self.run(self.disk.unlink, path)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory."""
        self.run(self.disk.rename, old, new)

    def __repr__(self) -> str:
        return f"DiskHandle({self.disk!r})"
