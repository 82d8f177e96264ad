"""A disk on which nothing has changed for some time."""

from swift.platform.disk import Disk


class AgedStatus:
    """A status whose change lies some time back."""

    def __init__(self, status):
        self._status = status
        self.st_ctime_ns = status.st_ctime_ns - 10_000_000_000

    def __getattr__(self, name):
        return getattr(self._status, name)


class AgedDisk(Disk):
    """All files were changed some time ago."""

    def stat(self, path, **options):
        return AgedStatus(super().stat(path, **options))
