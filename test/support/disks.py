"""Disks that are old, damaged or full, irregular files, and a filesystem store."""

from __future__ import annotations

import errno
import os
import signal
import socket
from contextlib import contextmanager
from hashlib import md5
from types import SimpleNamespace

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.api import ObjectKey, ReadOptions
from swift.store.registry import EngineParts, StoreRegistry, file_store

# --- ageddisk ---------------------------------------------------------------------------------------

# A disk on which nothing has changed for some time.


class AgedDisk(Disk):
    """A disk with a clock ahead, on which all files are old."""

    def now_ns(self):
        return super().now_ns() + 10_000_000_000


# --- damageddisk ------------------------------------------------------------------------------------

# A disk on which one directory or file cannot be read.


class DamagedDisk(Disk):
    """A disk on which reading ``path`` fails."""

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


# --- cramped ----------------------------------------------------------------------------------------

# A disk whose files have even less room for attributes than those of ext4, wherever the tests run.


class CrampedDisk(Disk):
    """A disk whose files can have ``room`` bytes of attributes; ``is_full`` reports no free space."""

    def __init__(self, room=1500, code=errno.ENOSPC, *, is_full=False, free_blocks=10):
        self.room = room
        self.code = code
        self.is_full = is_full
        self.free_blocks = free_blocks

    def setxattr(self, file, name, value):
        others = sum(len(os.getxattr(file, other)) for other in os.listxattr(file) if other != name)
        if others + len(value) > self.room:
            raise OSError(self.code, os.strerror(self.code))
        os.setxattr(file, name, value)

    def statvfs(self, file):
        if self.is_full:
            return SimpleNamespace(
                f_frsize=4096, f_blocks=1000, f_bavail=self.free_blocks, f_files=100, f_favail=50
            )
        return os.statvfs(file)


def cramped_stores(context, disk):
    """Return engines on such a disk for the server of ``context``."""
    return StoreRegistry(
        EngineParts(devices=context.devices, hasher=context.hasher, clock=context.clock, disk=disk)
    )


# --- oddfiles ---------------------------------------------------------------------------------------

# Things that are no regular files, to be put in the place of one.


def _socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket may be no longer than 108 characters.
        before = os.getcwd()
        os.chdir(os.path.dirname(path))
        try:
            server.bind(os.path.basename(path))
        finally:
            os.chdir(before)


def _link(path):
    with open(f"{os.path.dirname(path)}/target", "wb") as file:
        file.write(b"secret")
    os.symlink("target", path)


def _directory(path):
    os.mkdir(path)
    with open(f"{path}/child", "wb"):
        pass


#: Kind → how to make one at a path.
ODD = {
    "fifo": os.mkfifo,
    "socket": _socket,
    "dangling-link": lambda path: os.symlink("nowhere", path),
    "link": _link,
    "directory": _directory,
    "empty": lambda path: open(path, "wb").close(),
}


def replace(path, kind):
    """Replace a file or directory by an irregular one; the original is kept beside it."""
    path = str(path)
    if os.path.lexists(path):
        os.rename(path, f"{path}.was")
    ODD[kind](path)


@contextmanager
def bounded(seconds=20):
    """Fail after ``seconds`` instead of hanging."""

    def hangs(*_args):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- filestore --------------------------------------------------------------------------------------

# A store of files below a temporary folder, and one object in it.


NOW_S = 1_700_000_000.0
NOW = ReadOptions(NOW_S)
GOLD = Policy(0, "gold", is_default=True)
HASHER = PathHasher(b"p", b"s")
PATH = EntityPath("AUTH_a", "c", "o")
KEY = ObjectKey("sda", "7", GOLD, PATH, HASHER.hexdigest(*PATH))


def make_store(root, disk=None, notice=lambda _text: None):
    os.makedirs(root / "sda", exist_ok=True)
    return file_store(
        EngineParts(
            devices=Devices(str(root), mount_check=False),
            hasher=HASHER,
            clock=ManualClock(NOW_S),
            disk=disk or Disk(),
            notice=notice,
        )
    )


def metadata_of(body, at):
    return {
        "X-Timestamp": at.internal,
        "Content-Type": "text/plain",
        "Content-Length": str(len(body)),
        "ETag": md5(body).hexdigest(),
        "name": str(PATH),
    }


def put(store, body=b"body", at=Timestamp(NOW_S), key=KEY):  # noqa: B008
    with store.edit(key, NOW, create=True) as edit:
        draft = edit.draft(len(body))
        draft.write(body)
        edit.put(draft, at, metadata_of(body, at))


def directory(root):
    return root / "sda/objects/7" / KEY.hash[-3:] / KEY.hash


def data_file(root):
    return next(directory(root).glob("*.data"))


def read(store, start, stop):
    stored = store.open(KEY, NOW)
    try:
        return b"".join(stored.blocks(start, stop))
    finally:
        stored.close()


LARGE = os.urandom((2 << 20) + 17)
#: Where the chunks of it begin.
CHUNKS = [0, 1 << 20, 2 << 20]


def flip(path, position):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))
