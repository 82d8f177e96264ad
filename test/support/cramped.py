"""A disk whose files have even less room for attributes than those of ext4, wherever the tests run."""

import errno
import os
from types import SimpleNamespace

from swift.platform.disk import Disk
from swift.store.registry import EngineParts, StoreRegistry


class CrampedDisk(Disk):
    """Files take ``room`` bytes of attributes; ``is_full`` has the filesystem say that nothing is left."""

    def __init__(self, room=1500, code=errno.ENOSPC, *, is_full=False):
        self.room = room
        self.code = code
        self.is_full = is_full

    def setxattr(self, file, name, value):
        others = sum(len(os.getxattr(file, other)) for other in os.listxattr(file) if other != name)
        if others + len(value) > self.room:
            raise OSError(self.code, os.strerror(self.code))
        os.setxattr(file, name, value)

    def statvfs(self, file):
        if self.is_full:
            return SimpleNamespace(f_frsize=4096, f_blocks=1000, f_bavail=10, f_files=100, f_favail=50)
        return os.statvfs(file)


def cramped_stores(context, disk):
    """Engines on such a disk for the server of ``context``."""
    return StoreRegistry(
        EngineParts(devices=context.devices, hasher=context.hasher, clock=context.clock, disk=disk)
    )
