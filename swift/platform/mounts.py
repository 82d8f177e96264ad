"""Paths of devices and checks that they are mounted (spec: object-disk.md §13)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_plus

from swift.base.errors import DeviceUnavailable


def is_mount(path: str) -> bool:
    """Return True if ``path`` is a mount point, or carries an ``.ismount`` file that says so."""
    try:
        here = os.lstat(path)
        if not os.path.islink(path):
            above = os.lstat(os.path.join(path, ".."))
            if here.st_dev != above.st_dev or here.st_ino == above.st_ino:
                return True
        return os.path.isfile(os.path.join(path, ".ismount"))
    except OSError:
        return False


class Devices:
    """The devices below one directory.

    ``admit`` is called with the name and path of a device before it is used for the first time, and may raise
    ``DeviceUnavailable``.
    """

    __slots__ = ("root", "mount_check", "_admit", "_paths")

    def __init__(
        self,
        root: str,
        *,
        mount_check: bool = True,
        admit: Callable[[str, str], None] = lambda _name, _path: None,
    ):
        self.root = root
        self.mount_check = mount_check
        self._admit = admit
        #: The paths of names that were usable once, which need not be looked through again.
        self._paths: dict[str, str] = {}

    def path(self, device: str) -> str:
        """The directory of ``device``; raises ``DeviceUnavailable`` when it must not be used."""
        path = self._paths.get(device)
        if path is None:
            if not device or quote_plus(device) != device or device in (".", ".."):
                raise DeviceUnavailable(device)
            path = f"{self.root}/{device}"
        if not (is_mount(path) if self.mount_check else os.path.isdir(path)):
            # Another device may be mounted there next.
            self._paths.pop(device, None)
            raise DeviceUnavailable(device)
        if device not in self._paths:
            self._admit(device, path)
            self._paths[device] = path
        return path

    def is_usable(self, device: str) -> bool:
        """Return True if ``path`` would give a directory."""
        try:
            self.path(device)
        except DeviceUnavailable:
            return False
        return True

    def names(self) -> list[str]:
        """The names of all directories below the root, usable or not, sorted."""
        try:
            return sorted(e.name for e in Path(self.root).iterdir() if e.is_dir())
        except OSError:
            return []

    def __repr__(self) -> str:
        return f"Devices({self.root!r}, mount_check={self.mount_check})"
