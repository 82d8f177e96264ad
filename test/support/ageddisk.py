"""A disk on which nothing has changed for some time."""

from swift.platform.disk import Disk


class AgedDisk(Disk):
    """All files were changed some time ago: its clock is ahead."""

    def now_ns(self):
        return super().now_ns() + 10_000_000_000
