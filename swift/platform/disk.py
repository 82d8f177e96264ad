"""The Disk seam: every file operation that a storage engine uses, as one object handed down from the top.

The real ``Disk`` is the operating system's own functions under its own names, so that the seam costs
nothing. A simulation subclasses it to record, delay, fail or forget operations; therefore an engine may
touch files only through the ``Disk`` it was given. Everything takes paths or descriptors and raises
OSError. It refuses to know what files mean and in which order they must be synced (``platform.durable``).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import re
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_HANDLE_BYTES_MAX = 128
_HEAD = struct.Struct("=Ii")


@functools.cache
def _handle_library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.name_to_handle_at.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_int),
        ctypes.c_int,
    )
    library.open_by_handle_at.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
    return library


def _raise(file: object) -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), str(file))


def handle_of(file: int | str) -> bytes:
    """Return the handle of a file or descriptor. Raises OSError, EOPNOTSUPP where there are none."""
    buffer = ctypes.create_string_buffer(_HEAD.pack(_HANDLE_BYTES_MAX, 0), _HEAD.size + _HANDLE_BYTES_MAX)
    mount = ctypes.c_int()
    where, name, flags = (
        (file, b"", _AT_EMPTY_PATH) if isinstance(file, int) else (_AT_FDCWD, os.fsencode(file), 0)
    )
    try:
        failed = _handle_library().name_to_handle_at(where, name, buffer, ctypes.byref(mount), flags)
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if failed:
        _raise(file)
    length, _kind = _HEAD.unpack_from(buffer.raw)
    return buffer.raw[: _HEAD.size + length]


def open_handle(root_fd: int, handle: bytes, flags: int) -> int:
    """Open the file of a handle on the filesystem of ``root_fd``.

    Raises OSError: ESTALE when it is gone, EPERM when it is not permitted.
    """
    try:
        fd: int = _handle_library().open_by_handle_at(root_fd, handle, flags)
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if fd < 0:
        _raise("handle")
    return fd


_ID_FILE = "/proc/sys/kernel/random/boot_id"
_STAT_FILE = "/proc/stat"


class Boot(NamedTuple):
    """One run of a kernel; the id is empty where it cannot be known."""

    id: str = ""
    #: Unix seconds when it began.
    began_s: float = 0.0


def read_boot(id_file: str = _ID_FILE, stat_file: str = _STAT_FILE) -> Boot:
    """Return this run; ``Boot()`` on systems without these files."""
    try:
        with open(id_file, encoding="utf-8") as file:
            boot_id = file.read().strip()
        with open(stat_file, encoding="utf-8") as file:
            began = next(line for line in file if line.startswith("btime "))
        return Boot(boot_id, float(began.split()[1]))
    except (OSError, ValueError, IndexError, StopIteration):
        return Boot()


_KEEP_SIZE = 1
_PUNCH_HOLE = 2
#: SYNC_FILE_RANGE_WRITE.
_WRITE = 2
_this_boot = functools.cache(read_boot)
#: Error numbers of filesystems without O_TMPFILE, fallocate or RWF_NOWAIT.
UNSUPPORTED = frozenset((errno.EOPNOTSUPP, errno.ENOSYS, errno.EISDIR, errno.EINVAL))


class _CLibrary:
    """Functions of libc that Python lacks: ``fallocate(2)`` with KEEP_SIZE, ``sync_file_range(2)``; looked
    up at first use.
    """

    def __init__(self) -> None:
        self._library: object = None
        self._how: dict[int, _OpenHow] = {}

    @functools.cached_property
    def _syscall(self) -> Callable[..., int]:
        """The function ``syscall``; calls keep the lock of the interpreter, because they wait for nothing."""
        syscall = ctypes.PyDLL(None).syscall
        syscall.restype = ctypes.c_long
        return syscall

    def _functions(self) -> Any:
        if self._library is None:
            library = ctypes.CDLL(None, use_errno=True)
            library.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
            library.sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
            library.syncfs.argtypes = (ctypes.c_int,)
            self._library = library
        return self._library

    def fallocate(self, fd: int, mode: int, offset: int, size_bytes: int) -> None:
        _check(self._functions().fallocate(fd, mode, offset, size_bytes))

    def sync_file_range(self, fd: int, offset: int, length: int, flags: int) -> None:
        self._functions().sync_file_range(fd, offset, length, flags)

    def open_cached(self, dir_fd: int, path: str, flags: int) -> int | None:
        how = self._how.get(flags)
        if how is None:
            how = self._how[flags] = _OpenHow(flags, 0, _RESOLVE_CACHED)
        fd: int = self._syscall(_SYS_OPENAT2, dir_fd, os.fsencode(path), ctypes.byref(how), _OPEN_HOW_BYTES)
        return fd if fd >= 0 else None

    def syncfs(self, fd: int) -> None:
        _check(self._functions().syncfs(fd))


class _OpenHow(ctypes.Structure):
    """The struct open_how of openat2."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_OPEN_HOW_BYTES = ctypes.sizeof(_OpenHow)
_SYS_OPENAT2 = 437
_RESOLVE_CACHED = 0x20


def _check(result: int) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


class _MemoryFigures:
    """``/proc/meminfo``, opened once."""

    def __init__(self) -> None:
        self._fd = -1

    def read(self) -> bytes:
        try:
            if self._fd < 0:
                self._fd = os.open("/proc/meminfo", os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._fd, 4096, 0)
        except OSError:
            return b""


_library = _CLibrary()
_memory = _MemoryFigures()
#: struct flock: type, whence, start, length, process.
_FLOCK = struct.Struct("@hhqqi0q")
_DIRTY = re.compile(rb"^Dirty: *(\d+) kB", re.MULTILINE)


class SoleFile(NamedTuple):
    """The only file of a hash directory, a regular one that holds data."""

    #: -1 unless it was to be opened.
    fd: int
    status: os.stat_result
    #: The attributes as they are stored.
    metadata: bytes
    checksum: bytes
    #: None unless it was to be read.
    body: bytes | None


class JournalLines(NamedTuple):
    """Lines for a journal; it and its lock file are made if they are missing."""

    lock_path: str
    path: str
    lines: bytes


#: Results of ``try_publish``.
NOTHING, APPENDED, PUBLISHED = range(3)
#: Pairs of a name and its value.
Attributes = tuple[tuple[str, bytes], ...]
#: The names of a directory and its only file, if that is known.
Look = tuple[list[str], SoleFile | None]
#: The same with the descriptor of the directory.
Held = tuple[int, list[str], SoleFile | None]


class Disk:
    """The machine's files. Subclass and override to simulate others."""

    # Descriptors.
    open: Callable[..., int] = staticmethod(os.open)
    read: Callable[[int, int], bytes] = staticmethod(os.read)
    pread: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    write: Callable[[int, bytes | bytearray | memoryview], int] = staticmethod(os.write)
    pwrite: Callable[[int, bytes | bytearray | memoryview, int], int] = staticmethod(os.pwrite)
    duplicate: Callable[[int], int] = staticmethod(os.dup)
    truncate: Callable[[int, int], None] = staticmethod(os.ftruncate)
    fstat: Callable[[int], os.stat_result] = staticmethod(os.fstat)
    fchmod: Callable[[int, int], None] = staticmethod(os.fchmod)
    fsync: Callable[[int], None] = staticmethod(os.fsync)
    fdatasync: Callable[[int], None] = staticmethod(os.fdatasync)
    flock: Callable[[int, int], None] = staticmethod(fcntl.flock)

    # The clock that stamps files, Unix nanoseconds: what is compared with their times comes from here.
    now_ns: Callable[[], int] = staticmethod(time.time_ns)

    # Names.
    stat: Callable[..., os.stat_result] = staticmethod(os.stat)
    listdir: Callable[[Any], list[str]] = staticmethod(os.listdir)
    mkdir: Callable[..., None] = staticmethod(os.mkdir)
    rmdir: Callable[..., None] = staticmethod(os.rmdir)
    unlink: Callable[..., None] = staticmethod(os.unlink)
    rename: Callable[..., None] = staticmethod(os.rename)
    link: Callable[..., None] = staticmethod(os.link)
    #: Gives a path the times of now.
    touch: Callable[[str], None] = staticmethod(os.utime)
    statvfs: Callable[[int | str], os.statvfs_result] = staticmethod(os.statvfs)

    # Extended attributes, of descriptors or paths.
    getxattr: Callable[[int | str, str], bytes] = staticmethod(os.getxattr)
    setxattr: Callable[[int | str, str, bytes], None] = staticmethod(os.setxattr)
    listxattr: Callable[[int | str], list[str]] = staticmethod(os.listxattr)

    def close(self, fd: int) -> None:
        """Give a descriptor back; never raises.

        An error of close comes too late to mean anything: durability needs a call of fsync before.
        """
        try:
            os.close(fd)
        except OSError:
            return

    def close_read(self, fd: int) -> None:
        """Give back a descriptor that was only read from, of what still has a name; never raises."""
        self.close(fd)

    def sync(self, fd: int, directories: Sequence[str] = ()) -> None:
        """Make an open file (or directory) durable, then the names in directories. Raises OSError."""
        self.fsync(fd)
        for path in directories:
            directory = self.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self.fsync(directory)
            finally:
                self.close(directory)

    # Several steps in one call. None or false: nothing was done, and the caller takes the steps itself.
    # ``nativedisk.NativeDisk`` takes them in C.

    def try_hold(self, path: str, below: str | None, made: list[str]) -> Held | None:
        """Lock a hash directory and return its descriptor, names and only file.

        Unless ``below`` is None it is made if it is missing, as by ``durable.make_directories``; ``made``
        gets the directories with new entries, whatever is returned.
        """
        return None

    def try_look(self, path: str, *, opens: bool, body_bytes_max: int) -> Look | None:
        """Return the names in a hash directory and its only file, opened and with a small body if wanted."""
        return None

    def try_create(self, directory: str, body: bytes, attributes: Attributes) -> int | None:
        """Return a file like that of ``open_unnamed`` with a body and attributes."""
        return None

    def try_append(self, lines: JournalLines) -> bool:
        """Append to a journal. Raises OSError if a part was written."""
        return False

    def try_publish(self, lines: JournalLines, fd: int, name: str, *, dir_fd: int) -> int:
        """Append to a journal, then name the file of ``open_unnamed`` and close it; return how much was done.

        Raises OSError if a part of the lines was written.
        """
        return NOTHING

    def lock_byte(self, fd: int, offset: int) -> bool:
        """Lock a byte of an open file against other openings of it; return False if one has it locked."""
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock_byte(self, fd: int, offset: int) -> None:
        """Unlock a byte."""
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, offset, 1, 0))

    def open_unnamed(self, directory: str) -> int:
        """Return a new writable file without a name, which vanishes unless ``link_unnamed`` names it.

        Raises OSError with a code in ``UNSUPPORTED`` where the filesystem cannot do it.
        """
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def link_unnamed(self, fd: int, name: str, *, dir_fd: int) -> None:
        """Name the file of ``open_unnamed``; FileExistsError when the name is taken."""
        # With a directory descriptor Python calls linkat(AT_SYMLINK_FOLLOW), without one plain link().
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=True)

    def preallocate(self, fd: int, size_bytes: int) -> None:
        """Reserve blocks without changing the length of the file."""
        _library.fallocate(fd, _KEEP_SIZE, 0, size_bytes)

    def punch_hole(self, fd: int, offset: int, length: int) -> None:
        """Give back the blocks of a part of a file, which reads as zeros then. Raises OSError."""
        _library.fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, offset, length)

    def open_cached(self, path: str, flags: int, *, dir_fd: int = _AT_FDCWD) -> int | None:
        """Open a file if path and file are in memory; never waits for a device.

        None if they are not, there is no such file, or the kernel cannot tell (before Linux 5.12). On XFS a
        file has to be opened in the usual way first.
        """
        return _library.open_cached(dir_fd, path, flags | os.O_CLOEXEC)

    def read_cached(self, fd: int, size_bytes: int, offset: int = 0) -> bytes | None:
        """Return ``size_bytes`` of a file if they are in memory, else None; never waits for a device."""
        buffer = bytearray(size_bytes)
        try:
            got = os.preadv(fd, (buffer,), offset, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in UNSUPPORTED:
                return None
            raise
        return bytes(buffer) if got == size_bytes else None

    def handle(self, file: int | str) -> bytes:
        """Return the handle that opens a file or descriptor without its path; raises OSError where the
        filesystem has none.
        """
        return handle_of(file)

    def open_handle(self, root: str, handle: bytes, flags: int) -> int:
        """Open the file of a handle on the filesystem of the directory ``root``.

        Raises OSError: ESTALE when the file is gone, EPERM when it is not permitted.
        """
        where = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return open_handle(where, handle, flags)
        finally:
            os.close(where)

    def boot(self) -> Boot:
        """Return the run of the kernel whose page cache the files are in."""
        return _this_boot()

    def start_writeback(self, fd: int, offset: int, length: int) -> None:
        """Have the kernel begin to write these bytes to the device, so that a later sync waits less.

        A hint: nothing is durable by it, and where it cannot be given nothing happens.
        """
        _library.sync_file_range(fd, offset, length, _WRITE)

    def sync_filesystem(self, fd: int) -> None:
        """Make everything on the filesystem of ``fd`` durable.

        Raises OSError when writing any of it has failed since ``fd`` was opened (see ``tells_failures``).
        """
        _library.syncfs(fd)

    @property
    def tells_failures(self) -> bool:
        """True if ``sync_filesystem`` reports failed writes.

        Linux reports failed writes of files since 5.8, of the filesystem's own since 5.17.
        """
        release = re.match(r"(\d+)\.(\d+)", os.uname().release)
        return release is not None and (int(release[1]), int(release[2])) >= (5, 17)

    def dirty_bytes(self) -> int:
        """Return the number of bytes that this machine still has to write to its devices; 0 where the
        kernel does not report it.
        """
        found = _DIRTY.search(_memory.read())
        return int(found[1]) << 10 if found else 0

    def prefetch(self, fd: int, offset: int, length: int) -> None:
        """Have the kernel read these bytes with as few requests as the device takes; a hint.

        Reading in order alone begins small and never asks for more than ``read_ahead_kb`` at a time, and a
        disk that serves others in between seeks for each of these.
        """
        os.posix_fadvise(fd, offset, length, os.POSIX_FADV_WILLNEED)

    def drop_cache(self, fd: int, offset: int, length: int) -> None:
        """Tell the kernel that these bytes will not be read again soon."""
        os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)


def names_in(disk: Disk, directory: str) -> list[str]:
    """Return the names in a directory, none if it is missing or is none. Raises OSError."""
    try:
        return disk.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
