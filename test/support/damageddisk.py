"""A disk on which one directory or file cannot be read."""

import errno
import os

from swift.platform.disk import Disk


class DamagedDisk(Disk):
    """Everything but ``path`` is in order."""

    def __init__(self, path):
        self._path = str(path)

    def _check(self, path):
        if str(path) == self._path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self._path)

    def listdir(self, path):
        self._check(path)
        return super().listdir(path)

    def stat(self, path, **options):
        self._check(path)
        return super().stat(path, **options)
