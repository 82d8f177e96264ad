"""Container brokers on a temporary device stand for all brokers."""

import errno
import os

import pytest

from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.platform.disk import Disk


class FaultyDisk(Disk):
    """Fails the calls whose names are in ``broken``."""

    def __init__(self):
        self.broken = set()

    def _check(self, name):
        if name in self.broken:
            raise OSError(errno.EIO, f"injected {name}")

    def fdatasync(self, fd):
        self._check("fdatasync")
        os.fdatasync(fd)

    def fsync(self, fd):
        self._check("fsync")
        os.fsync(fd)

    def write(self, fd, data):
        self._check("write")
        if "short write" in self.broken:
            os.write(fd, bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, "injected full disk")
        return os.write(fd, data)

    def rename(self, *args, **kwargs):
        self._check("rename")
        os.rename(*args, **kwargs)


class Room:
    """One container directory and brokers of it, as several processes would have them."""

    def __init__(self, root):
        (root / "sda").mkdir()
        self.disk = FaultyDisk()
        self.place = DatabasePath(str(root / "sda"), "containers", "7", "0123456789abcdef0123456789abcdef")
        self.warnings = []

    def broker(self):
        engine = Engine(disk=self.disk, warn=self.warnings.append)
        broker = ContainerBroker(self.place, engine, "a", "c")
        broker.refresh()
        return broker

    def created(self):
        broker = self.broker()
        broker.create(Timestamp(1), 0, created_at=Timestamp(1))
        return broker


@pytest.fixture()
def room(tmp_path):
    return Room(tmp_path)


@pytest.fixture()
def row():
    def make(name, time=2, **changes):
        return ObjectRow(name, Timestamp(time).internal, 5, "text/plain", "e")._replace(**changes)

    return make
