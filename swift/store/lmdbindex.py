"""Sorted map of bytes on a device, changed by one writer at a time, read by any process.

It is LMDB without syncs: a killed process leaves it whole, a power cut may tear it. So a file beside it
says in which run of the kernel it was last opened and whether the last user closed it; after any other
end it is thrown away. Its users can make it again: the cache tier from nothing, the packed engine from its
volumes.

The device may fail at any time. LMDB reads it through a mapping, which is guarded: a page that cannot be
read is an error and kills no process. Its locks are in memory, where nothing fails while they are held. An
index with such a page, or with writes that the device refused, is discarded by the process that notices.

Its directory may be replaced, and an older copy may be written over its file, while processes use it. So a
word in memory names the index in use, whatever its directory holds; the number of the last change, which LMDB
keeps in memory as well, must be in the file; and a process notes the end of its use only where it began.

LMDB waits for the writer without end, also for a process that was stopped while it writes. So a lock of our
own comes before LMDB's, and a change is refused when it is not free in time.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import re
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from swift.base.digits import is_digits
from swift.base.errors import ConfigError
from swift.base.extras import install_command
from swift.green import pause
from swift.platform.devices import NO_SPACE_ERRORS
from swift.platform.locks import HOLDER_TIMEOUT_S, Patience
from swift.platform.mapguard import MapGuard
from swift.platform.sharedstate import StateHeld, held
from swift.platform.waiting import yielding

if TYPE_CHECKING:
    import lmdb

#: Address space, not room: the size is bounded by what is kept.
MAP_BYTES = 256 << 30
STATE = "index.json"
#: Its size: the same for each content.
_STATE_BYTES = 256
_READERS_MAX = 1024
#: LMDB takes 64 bytes for each reader, and two pages are more than the rest.
_LOCK_BYTES = _READERS_MAX * 64 + 8192
_NAME = re.compile("[0-9a-f]{16}")
#: In memory: the name of the index in use.
_CURRENT = "current"
_WORD = struct.Struct("<Q")
#: In each of the first two pages of LMDB's file: the number of the change that wrote it.
_CHANGE_AT = 144
#: LMDB writes at most so many pages at a time, bytes.
_WRITE_BYTES_MAX = 64 * 4096
_PAUSE_MIN_S, _PAUSE_MAX_S, _PAUSE_GROWTH = 50e-6, 0.02, 0.05
#: Content in place of an unreadable page: a leaf of LMDB's tree that has no entries.
_EMPTY_LEAF = struct.pack("<QHHHH", 0, 0, 2, 16, 4096)


class IndexFailed(Exception):
    """The index cannot be used now: an error of the device, or what it holds is damaged."""


class IndexFull(IndexFailed):
    """Its device has no room for a change; it can be read."""


class IndexReplaced(IndexFailed):
    """Another index is in its place."""


class IndexBusy(IndexFailed):
    """Another process, stopped perhaps, has been changing it for too long; nothing is wrong with it."""

    def __init__(self, seconds: float):
        super().__init__(f"another process has been changing it for more than {seconds:g} s")
        self.seconds = seconds


class Writing(Protocol):
    """A change of the index; it happens as a whole or not at all."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""

    def put(self, key: bytes, value: bytes) -> object:
        """Set it."""

    def delete(self, key: bytes) -> bool:
        """Remove it; whether it was there."""

    def scan(self, prefix: bytes) -> Iterator[bytes]:
        """Return the keys that begin so, in order; nothing may be changed meanwhile."""

    def items(self, begin: bytes, end: bytes, count: int) -> list[tuple[bytes, bytes]]:
        """See ``Index``."""


class Index(Protocol):
    """A map that several processes share. Every call raises ``IndexFailed`` when it cannot be used."""

    #: The same for all who have this one open; never zero.
    identity: int

    def check(self) -> None:
        """Look whether it may be used on; to be called now and then.

        Raises ``IndexReplaced`` if opening it now gives another index, or OSError.
        """

    def is_current(self) -> bool:
        """Return True unless another index took its place; costs a system call."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, as of the last change."""

    def keys(self, prefix: bytes, after: bytes, count: int) -> list[bytes]:
        """Return the next keys after ``after`` that begin so, in order; at most ``count``."""

    def items(self, begin: bytes, end: bytes, count: int) -> list[tuple[bytes, bytes]]:
        """Return at most ``count`` keys and values from ``begin`` to before ``end``; empty: the last one."""

    def size_bytes(self) -> int:
        """Return the space that it takes."""

    def writing(self) -> AbstractContextManager[Writing]:
        """Change it; an exception within the block changes nothing. Raises ``IndexBusy`` as well."""

    def discard(self) -> None:
        """Throw it away because what it holds is wrong; each of its users opens a new one."""

    def close(self, *, is_last: bool) -> None:
        """Give it up; the last user leaves it so that it survives a boot."""


class WriterLock:
    """Lock of those who change an index: threads of a process, and processes.

    It is a file's lock, which ends with its process. ``path`` is that of the file. Raises OSError.
    """

    def __init__(self, path: str, timeout_s: float = HOLDER_TIMEOUT_S):
        self._patience = Patience(timeout_s)
        self._mutex = threading.Lock()
        self._fd = -1
        self._fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the only one who changes the index. Raises ``IndexBusy``."""
        timeout_s = self._patience.timeout_s
        self._patience.is_exhausted = not self._wait(timeout_s)
        if self._patience.is_exhausted:
            raise IndexBusy(timeout_s)
        try:
            yield
        finally:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            finally:
                self._mutex.release()

    def _wait(self, timeout_s: float) -> bool:
        """Take both locks; return False if they were not free in time."""
        deadline, pause_s = time.monotonic() + timeout_s, _PAUSE_MIN_S
        while not self._try():
            if time.monotonic() >= deadline:
                return False
            with yielding():
                pause(pause_s)
            pause_s = min(pause_s * (1 + _PAUSE_GROWTH), _PAUSE_MAX_S)
        return True

    def _try(self) -> bool:
        # Not held during pauses: another green thread may run then, which must not wait for it.
        if not self._mutex.acquire(blocking=False):
            return False
        is_locked = False
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except BlockingIOError:
            pass
        finally:
            if not is_locked:
                self._mutex.release()
        return is_locked

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


class _Opened:
    """An index as all of this process share it; closed when the last call that uses it has ended."""

    def __init__(self, name: str, way: str, writer_lock: WriterLock, map_bytes: int):
        self.name = name
        self.writer_lock = writer_lock
        self.env = _environment(way, map_bytes)
        self.guard = MapGuard(way, _EMPTY_LEAF)
        self._page_bytes = int(self.env.stat()["psize"])
        self._fd = os.open(way, os.O_RDONLY | os.O_CLOEXEC)
        #: A copy that an operator puts in its place has another one.
        self.inode = _inode(way)

    def is_behind(self, change: int) -> bool:
        """Return True if a change, which LMDB's memory knows, is not in the file."""
        return int(self.env.info()["last_txnid"]) < change

    def is_left_by(self, change: int) -> bool:
        """Return True if the file is as a change left it and no later one took place. Raises OSError.

        LMDB writes two pages in turn. A copy that is written over the file during a change leaves one that
        does not belong to the other. A writer that was killed leaves a page of the next change.
        """
        # One read, because each lets another thread take the interpreter; shorter where the file ends.
        data = os.pread(self._fd, self._page_bytes + _WORD.size, _CHANGE_AT)
        pages = [data[at : at + _WORD.size] for at in (0, self._page_bytes)]
        last, other = (int.from_bytes(pages[number & 1], "little") for number in (change, change + 1))
        return last == change and other in (max(change - 1, 0), change + 1)

    def __del__(self) -> None:
        if hasattr(self, "env"):
            self.env.close()
        if hasattr(self, "guard"):
            self.guard.release()
        if hasattr(self, "_fd"):
            os.close(self._fd)


#: The oldest release of lmdb that reports damaged pages as errors.
LMDB_LEAST = (2, 1, 1)
_ONE_USER = "; servers, daemons and commands must run as the user that it belongs to"
_PATHS = "; make it, or correct index_path and state_path"
_ADVICE = {
    errno.ENOENT: _PATHS,
    errno.ENOTDIR: _PATHS,
    errno.EACCES: _ONE_USER,
    errno.EPERM: _ONE_USER,
    errno.EROFS: "; servers write to it: mount its file system read-write",
}
#: LMDB must be opened once only by a process: by its id and the directory.
_open: WeakValueDictionary[tuple[int, str], _Opened] = WeakValueDictionary()


def _write_synced(directory: int, name: str, data: bytes, flags: int) -> None:
    """Write a file of an open directory from its beginning, durably. Raises OSError."""
    fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC | flags, 0o644, dir_fd=directory)
    try:
        if os.pwrite(fd, data, 0) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        os.fsync(fd)
    finally:
        os.close(fd)


def _inode(path: str, directory: int | None = None) -> int:
    """Return the inode of a file, 0 when it cannot be looked at."""
    try:
        return os.stat(path, dir_fd=directory).st_ino
    except OSError:
        return 0


def _current_word(memory: str) -> mmap.mmap:
    """Return the word in memory that names the index in use. Raises OSError."""
    fd = os.open(f"{memory}/{_CURRENT}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Now, not at first use: the kernel would kill the process if memory is full then.
        os.posix_fallocate(fd, 0, _WORD.size)
        return mmap.mmap(fd, _WORD.size)
    finally:
        os.close(fd)


def _free_bytes(path: str) -> int:
    """Return the free space of the filesystem of a path. Raises OSError."""
    stats = os.statvfs(path)
    return stats.f_bavail * stats.f_frsize


def _environment(path: str, map_bytes: int) -> lmdb.Environment:
    import lmdb

    env = lmdb.open(
        path,
        subdir=False,
        map_size=map_bytes,
        sync=False,
        metasync=False,
        readahead=False,
        max_readers=_READERS_MAX,
        max_spare_txns=8,
    )
    env.reader_check()
    return env


def lmdb_version() -> str:
    """Return the release of lmdb that is installed, empty without one."""
    try:
        import lmdb
    except ImportError:
        return ""
    return lmdb.__version__


def require_lmdb(version: str) -> None:
    """Raise ``ConfigError`` without lmdb, or if that release ends the process when it reads a damaged page.

    See ``lmdb_version``.
    """
    install = install_command("tier")
    if not version:
        raise ConfigError(f"the index needs the package lmdb ({install})")
    numbers = tuple(int(number) for number in version.split(".")[:3] if is_digits(number))
    if numbers < LMDB_LEAST:
        least = ".".join(map(str, LMDB_LEAST))
        raise ConfigError(
            f"the index needs lmdb {least} or newer, not {version}, which a damaged index crashes ({install})"
        )


def opening_failed(directory: str, error: Exception) -> IndexFailed:
    """Return the error of an index that cannot be opened, with what to do where that is known."""
    reason, advice = str(error), ""
    if isinstance(error, OSError) and error.strerror:
        reason = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        advice = _ADVICE.get(error.errno or 0, "")
    return IndexFailed(f"cannot open {directory}: {reason}{advice}")


class LmdbIndex:
    """The index in a directory, its locks in one in memory; for one process.

    Raises ``IndexFailed``, ``ConfigError``.
    """

    def __init__(
        self,
        directory: str,
        boot_id: str,
        memory: str,
        *,
        writer_timeout_s: float = HOLDER_TIMEOUT_S,
        opening_timeout_s: float = HOLDER_TIMEOUT_S,
        map_bytes: int = MAP_BYTES,
        free_bytes: Callable[[str], int] = _free_bytes,
    ):
        require_lmdb(lmdb_version())
        import lmdb

        self._writer_timeout_s, self._map_bytes = writer_timeout_s, map_bytes
        self._free_bytes = free_bytes

        self._errors = (lmdb.Error, OSError)
        #: State of an index with unreadable pages, for other processes.
        self._damages = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError)
        self._full = (lmdb.DiskError, lmdb.MapFullError)
        self._directory, self._boot_id, self._memory = directory, boot_id, memory
        self._key = os.getpid(), directory
        self._directory_fd = -1
        try:
            for made in (directory, memory):
                os.makedirs(made, exist_ok=True)
            self._directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with held(f"{memory}/index.lock", timeout_s=opening_timeout_s):
                self._current = _current_word(memory)
                name = self._begin()
                opened = _open.get(self._key)
                if opened is None or opened.name != name:
                    opened = _open[self._key] = self._map(name)
        except StateHeld as error:
            raise IndexBusy(error.seconds)
        except self._errors as error:
            raise opening_failed(directory, error)
        self._opened: _Opened | None = opened
        self.identity = int(name, 16) | 1

    def __del__(self) -> None:
        self._close_directory()

    def _close_directory(self) -> None:
        fd, self._directory_fd = self._directory_fd, -1
        if fd >= 0:
            os.close(fd)

    def _begin(self) -> str:
        """Note that it is in use: its name, a new one if a power cut may have torn the old one."""
        state = self._state()
        name = str(state.get("name", ""))
        is_used = state.get("boot") == self._boot_id != "" and os.path.lexists(self._way(name))
        is_whole = is_used or bool(state.get("closed"))
        # A copy may be torn, or of another time than what processes know that run.
        is_named = _NAME.fullmatch(name) is not None
        is_original = is_named and state.get("inode") == _inode(f"{name}.mdb", self._directory_fd) != 0
        if not is_whole or not is_original:
            name = os.urandom(8).hex()
            for directory in (self._directory, self._memory):
                for old in os.listdir(directory):
                    if old.endswith((".mdb", ".mdb-lock")):
                        os.unlink(f"{directory}/{old}")
            with open(self._file(name), "wb"):
                pass
        # Always, because it tells whether the device takes writes.
        self._note(name, closed=False)
        # From now on no process goes on with another one.
        _WORD.pack_into(self._current, 0, int(name, 16))
        return name

    def _map(self, name: str) -> _Opened:
        way = self._way(name)
        if not os.path.lexists(way):
            # Before LMDB has it: to close it afterwards would let go of the locks. And now, not at first use:
            # the kernel would kill the process if memory is full then.
            with open(f"{way}-lock", "wb") as lock:
                os.posix_fallocate(lock.fileno(), 0, _LOCK_BYTES)
            os.symlink(os.path.abspath(self._file(name)), way)
        writer_lock = WriterLock(f"{self._memory}/writer.lock", self._writer_timeout_s)
        return _Opened(name, way, writer_lock, self._map_bytes)

    def _way(self, name: str) -> str:
        """LMDB has its locks beside the path by which it is opened, so it is opened by a link."""
        return f"{self._memory}/{name}.mdb"

    def _file(self, name: str) -> str:
        return f"{self._directory}/{name}.mdb"

    def _state(self) -> dict[str, object]:
        try:
            fd = os.open(STATE, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory_fd)
            with open(fd, "rb") as file:
                found = json.load(file)
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _note(self, name: str, *, closed: bool) -> None:
        directory = self._directory_fd
        inode = _inode(f"{name}.mdb", directory)
        facts = {"boot": self._boot_id, "name": name, "closed": closed, "inode": inode}
        state = json.dumps(facts).ljust(_STATE_BYTES).encode()
        try:
            _write_synced(directory, f"{STATE}.new", state, os.O_CREAT | os.O_TRUNC)
        except OSError as error:
            if error.errno not in NO_SPACE_ERRORS:
                raise
            # A full device can be read; writing over what is there needs no space, and is one sector.
            try:
                _write_synced(directory, STATE, state, 0)
            except FileNotFoundError:
                raise error
            return
        os.replace(f"{STATE}.new", STATE, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)

    def check(self) -> None:
        opened = self._in_use()
        self._check_pages(opened)
        if opened.guard.has_lost_writes():
            self._throw_away(opened)
            raise IndexFailed("the device has refused writes")
        if not self._is_noted(opened):
            raise IndexReplaced("the index was replaced")
        try:
            # No page is used again that a killed process was reading.
            opened.env.reader_check()
        except self._errors as error:
            raise self._failure(opened, error)

    def is_current(self) -> bool:
        opened = self._opened
        return opened is not None and self._is_in_place(opened)

    def _is_in_place(self, opened: _Opened) -> bool:
        """Return True if an index is the one in use, and has its path."""
        (current,) = _WORD.unpack_from(self._current)
        return current == int(opened.name, 16) and _inode(self._file(opened.name)) == opened.inode != 0

    def _is_noted(self, opened: _Opened) -> bool:
        """Return True if the directory that was opened has its path, and says that this index is in use."""
        return (
            self._is_in_place(opened)
            and self._state().get("name") == opened.name
            and _inode(f"{opened.name}.mdb", self._directory_fd) == opened.inode
        )

    def _in_use(self) -> _Opened:
        """Yield the open index, protected against closing by others."""
        if self._opened is None:
            raise IndexFailed("it was closed")
        return self._opened

    def _check_pages(self, opened: _Opened) -> None:
        """Raise ``IndexFailed`` when something could not be read: nothing of what was is to be believed."""
        if opened.guard.has_failed:
            self._throw_away(opened)
            raise IndexFailed("the device cannot be read")

    def _check_not_older(self, opened: _Opened, txn: lmdb.Transaction) -> None:
        """Raise ``IndexFailed`` when the file lacks the change that a reader begins at."""
        if opened.is_behind(txn.id()):
            raise self._overwritten(opened)

    def _overwritten(self, opened: _Opened) -> IndexFailed:
        self._check_pages(opened)
        self._throw_away(opened)
        return IndexFailed("another file, an older copy perhaps, was written over it")

    def _failure(self, opened: _Opened, error: Exception) -> IndexFailed:
        """Translate an LMDB error; a damaged index is not opened again."""
        self._check_pages(opened)
        if isinstance(error, self._damages):
            self._throw_away(opened)
        if isinstance(error, self._full) or self._is_cut_short(error):
            return IndexFull(str(error))
        return IndexFailed(str(error))

    def _is_cut_short(self, error: Exception) -> bool:
        """Return True if a write had room for a part only, which LMDB reports as an I/O error."""
        if os.strerror(errno.EIO) not in str(error):
            return False
        try:
            return self._free_bytes(self._directory) < _WRITE_BYTES_MAX
        except OSError:
            return False

    def _throw_away(self, opened: _Opened) -> None:
        """Discard the index; the next process that opens it creates a new one."""
        try:
            os.unlink(f"{opened.name}.mdb", dir_fd=self._directory_fd)
        except OSError:
            # It is gone, or nothing can be opened there anyhow.
            return

    def discard(self) -> None:
        self._throw_away(self._in_use())

    def get(self, key: bytes) -> bytes | None:
        opened = self._in_use()
        try:
            with opened.env.begin() as txn:
                found = _bytes(txn.get(key))
                self._check_not_older(opened, txn)
        except self._errors as error:
            raise self._failure(opened, error)
        self._check_pages(opened)
        return found

    def keys(self, prefix: bytes, after: bytes, count: int) -> list[bytes]:
        opened = self._in_use()
        begin = max(prefix, after + b"\0" if after else prefix)
        try:
            with opened.env.begin() as txn:
                found = list(islice(_LmdbWriting(txn).scan(prefix, begin), count))
                self._check_not_older(opened, txn)
        except self._errors as error:
            raise self._failure(opened, error)
        self._check_pages(opened)
        return found

    def items(self, begin: bytes, end: bytes, count: int) -> list[tuple[bytes, bytes]]:
        opened = self._in_use()
        try:
            with opened.env.begin() as txn:
                found = _LmdbWriting(txn).items(begin, end, count)
                self._check_not_older(opened, txn)
        except self._errors as error:
            raise self._failure(opened, error)
        self._check_pages(opened)
        return found

    def size_bytes(self) -> int:
        opened = self._in_use()
        try:
            return os.stat(self._file(opened.name)).st_blocks * 512
        except OSError as error:
            raise IndexFailed(str(error))

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        opened = self._in_use()
        try:
            with opened.writer_lock.hold(), opened.env.begin(write=True) as txn:
                if not opened.is_left_by(txn.id() - 1):
                    raise self._overwritten(opened)
                yield _LmdbWriting(txn)
                # Nothing that was made from a page that is none may be kept.
                self._check_pages(opened)
        except self._errors as error:
            raise self._failure(opened, error)
        self._check_pages(opened)

    def close(self, *, is_last: bool) -> None:
        opened, self._opened = self._opened, None
        try:
            if opened is None or not is_last or opened.guard.has_failed or not self._is_noted(opened):
                return
            with opened.env.begin() as txn:
                self._check_not_older(opened, txn)
            opened.env.sync(True)
            self._note(opened.name, closed=True)
        except self._errors as error:
            raise IndexFailed(str(error))
        finally:
            self._close_directory()


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    """Return the value of a transaction without buffers."""
    assert not isinstance(value, memoryview)
    return value


class _LmdbWriting:
    def __init__(self, txn: lmdb.Transaction):
        self._txn = txn
        # LMDB's own, because each change calls them a dozen times.
        self.get: Callable[[bytes], bytes | None] = txn.get  # type: ignore[assignment]
        self.put: Callable[[bytes, bytes], bool] = txn.put
        self.delete: Callable[[bytes], bool] = txn.delete

    def scan(self, prefix: bytes, begin: bytes = b"") -> Iterator[bytes]:
        with self._txn.cursor() as cursor:
            found = cursor.set_range(begin or prefix)
            while found:
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    return
                yield key
                found = cursor.next()

    def items(self, begin: bytes, end: bytes, count: int) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        with self._txn.cursor() as cursor:
            if not cursor.set_range(begin):
                return found
            for key, value in cursor.iternext():
                if (end and bytes(key) >= end) or len(found) == count:
                    break
                found.append((bytes(key), bytes(value)))
        return found
