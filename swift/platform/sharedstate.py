"""State that the processes of a node share through memory, which cannot fail or fill up.

Two tables of random numbers. The *epoch* of a device stands in every entry about it; a new one makes all
of them unproven at once. The *stripe* of a partition changes before and after every change in it; who
read the disk in between keeps nothing. Numbers are only compared and never counted up, so no lock is
needed.

A session is a process that uses the tier: a locked file, so that it ends with its process. The first one
of a node after all had gone renews every epoch: no process watched for changes meanwhile.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from swift.platform.locks import HOLDER_TIMEOUT_S, poll

_WORD = struct.Struct("<Q")
EPOCHS = 256
STRIPES = 65536
#: After both tables: which index is in use, and until when (monotonic nanoseconds) nothing may be kept.
_INDEX_AT = (EPOCHS + STRIPES) * _WORD.size
_PAUSE_AT = _INDEX_AT + _WORD.size
_MOUNTS_AT = _PAUSE_AT + _WORD.size
BYTES = _MOUNTS_AT + EPOCHS * _WORD.size
TOKEN_BYTES = 8
#: A session waits so long for a process that opens or closes another one, seconds.
SESSION_TIMEOUT_S = 1.0
_MAKING = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class SharedState:
    """Both tables, in a buffer that the processes share."""

    def __init__(self, buffer: bytearray | mmap.mmap):
        self._buffer = buffer

    def epoch(self, device: str) -> int:
        """Return the epoch that valid entries of a device carry."""
        value: int = _WORD.unpack_from(self._buffer, _epoch_at(device))[0]
        return value

    def renew(self, device: str | None = None) -> None:
        """Let no entry of a device (None: of any) be believed before it was compared with the disk."""
        places = range(0, EPOCHS * 8, 8) if device is None else (_epoch_at(device),)
        for offset in places:
            # Never zero: that is the epoch of nothing.
            _WORD.pack_into(self._buffer, offset, int.from_bytes(os.urandom(8), "little") | 1)

    def mounted(self, device: str, mount: int) -> None:
        """Note the mount of a device; after another mount its entries are not used."""
        offset = _MOUNTS_AT + _epoch_at(device)
        if _WORD.unpack_from(self._buffer, offset)[0] != mount:
            self.renew(device)
            _WORD.pack_into(self._buffer, offset, mount)

    def stripe(self, partition: bytes) -> int:
        """Return a number that is another after every change in a partition."""
        value: int = _WORD.unpack_from(self._buffer, _stripe_at(partition))[0]
        return value

    def touch(self, partition: bytes) -> None:
        """Something in a partition is about to change, or has changed."""
        _WORD.pack_into(self._buffer, _stripe_at(partition), int.from_bytes(os.urandom(8), "little"))

    @property
    def index(self) -> int:
        """Identity of the current index; a process with another one reopens it."""
        value: int = _WORD.unpack_from(self._buffer, _INDEX_AT)[0]
        return value

    @index.setter
    def index(self, value: int) -> None:
        _WORD.pack_into(self._buffer, _INDEX_AT, value)

    def pause(self, until_ns: int) -> None:
        """Nothing may be kept before ``until_ns`` (monotonic): a change could not be noted in the index."""
        _WORD.pack_into(self._buffer, _PAUSE_AT, until_ns)

    def is_paused(self, now_ns: int) -> bool:
        """Return True if nothing may be kept now."""
        until: int = _WORD.unpack_from(self._buffer, _PAUSE_AT)[0]
        return now_ns < until


def _epoch_at(device: str) -> int:
    return zlib.crc32(device.encode()) % EPOCHS * 8


def _stripe_at(partition: bytes) -> int:
    return (EPOCHS + zlib.crc32(partition) % STRIPES) * 8


class SessionLost(OSError):
    """The shared files were removed: other processes no longer know this one."""


def _session_lock(directory: str, owner: tuple[int, int] | None = None) -> AbstractContextManager[None]:
    return held(f"{directory}/lock", owner, timeout_s=SESSION_TIMEOUT_S)


class TierSession:
    """Session of this process in the tier; files that root makes are given to ``owner``. Raises OSError."""

    def __init__(self, directory: str, owner: tuple[int, int] | None = None):
        self.directory = directory
        self._owner = owner
        self.token = os.urandom(TOKEN_BYTES)
        for made in (directory, f"{directory}/sessions"):
            if not os.path.isdir(made):
                os.makedirs(made, mode=0o755, exist_ok=True)
                _give(made, owner)
            check_owner(made, owner)
        with _session_lock(directory, owner):
            self.is_first = not list(self._living())
            self._path = f"{directory}/sessions/{self.token.hex()}"
            self._fd = os.open(self._path, _MAKING | os.O_EXCL, 0o644)
            _give(self._path, owner)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            self.shared_state = self._map()
            if self.is_first:
                self.shared_state.renew()

    def _map(self) -> SharedState:
        path = f"{self.directory}/words"
        fd = os.open(path, _MAKING, 0o644)
        try:
            _give(path, self._owner)
            # Now, not at first use: the kernel would kill the process if memory is full then.
            os.posix_fallocate(fd, 0, BYTES)
            return SharedState(mmap.mmap(fd, BYTES))
        finally:
            os.close(fd)

    def _living(self) -> Iterator[str]:
        """Return the sessions of living processes; remove the files of others."""
        for name in os.listdir(f"{self.directory}/sessions"):
            if self._lives(name):
                yield name
            else:
                _unlink(f"{self.directory}/sessions/{name}")

    def _lives(self, name: str) -> bool:
        try:
            fd = os.open(f"{self.directory}/sessions/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return _is_held(fd)
        finally:
            os.close(fd)

    def is_alive(self, token: bytes) -> bool:
        """Return True if the process of a session may still do something."""
        return token == self.token or self._lives(token.hex())

    def report(self, data: bytes) -> None:
        """Publish this process's counts. Raises ``SessionLost`` when the others cannot see this one.

        What is shorter than a report before ends with spaces: a reader at any moment finds one of both whole.
        """
        status = os.fstat(self._fd)
        if not status.st_nlink:
            raise SessionLost(f"{self._path} was removed")
        os.pwrite(self._fd, data.ljust(status.st_size), 0)

    def close(self, leaving: Callable[[bool], None]) -> None:
        """End it; before another one can begin, ``leaving`` is told whether it was the last one."""
        try:
            with _session_lock(self.directory):
                self._end()
                leaving(not any(True for _ in self._living()))
        except StateHeld:
            # The one that holds it is alive.
            self._end()
            leaving(False)

    def _end(self) -> None:
        _unlink(self._path)
        os.close(self._fd)

    def forget(self) -> None:
        """In a child of the process: the session stays the parent's."""
        os.close(self._fd)


def reports_in(directory: str) -> list[bytes]:
    """Return the reports of the node's living sessions. Raises OSError."""
    found = []
    try:
        names = os.listdir(f"{directory}/sessions")
    except FileNotFoundError:
        return []
    for name in names:
        try:
            with open(f"{directory}/sessions/{name}", "rb") as file:
                if _is_held(file.fileno()):
                    found.append(file.read().rstrip(b" "))
        except FileNotFoundError:
            continue
    return found


def _is_held(fd: int) -> bool:
    """Return True if the process of a session's file lives."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _give(path: str, owner: tuple[int, int] | None) -> None:
    """Give a file that root made to the servers' user."""
    if owner is not None and os.geteuid() == 0:
        os.chown(path, *owner)


def check_owner(path: str, owner: tuple[int, int] | None = None) -> None:
    """Raise PermissionError unless a directory is ours: in ``/dev/shm`` others may have made it first."""
    found = os.lstat(path)
    trusted = {0, os.geteuid(), *(owner or ())[:1]}
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in trusted or found.st_mode & stat.S_IWOTH:
        raise PermissionError(
            errno.EPERM, "it must be a directory of this user that no other may write", path
        )


class StateHeld(OSError):
    """Another process, stopped perhaps, has held a lock of the shared state for too long."""

    def __init__(self, path: str, seconds: float):
        super().__init__(errno.EBUSY, f"another process has held it for more than {seconds:g} s", path)
        self.seconds = seconds


@contextmanager
def held(
    path: str, owner: tuple[int, int] | None = None, *, timeout_s: float = HOLDER_TIMEOUT_S
) -> Iterator[None]:
    """Only one process at a time is within; ``path`` is a file in memory. Raises ``StateHeld``, OSError."""
    fd = os.open(path, _MAKING, 0o644)
    try:
        _give(path, owner)
        if not poll(partial(_try_lock, fd), timeout_s):
            raise StateHeld(path, timeout_s)
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    """Take the exclusive lock of a file; return False if another process has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
