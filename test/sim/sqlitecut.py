"""Possible states of files that SQLite writes, after a power cut.

SQLite does its own input and output. ``Recorder`` puts itself between the real SQLite and its files (a VFS
whose writing methods note what they do and call the real ones), ``RecordedDisk`` between our code and the
``Disk`` seam. What both do to files below one directory becomes one log, in the order in which it happened.
Replayed on a ``PagedDisk`` it can be stopped anywhere, and ``crash_states`` of that disk written to a
directory and opened.

The rules are those of ``powercut``, and for bytes harder ones: every single write since the last sync of a
file may be there or not, each by itself, and the last one may be torn at a sector.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sqlite3
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, string_at
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swift.platform.disk import Disk
from test.sim.powercut import ROOT, Image, Inode, SimulatedDisk

SECTOR = 512
#: Ways in which a file with many unsynced writes is left, at most.
VARIANTS_MAX = 40
_OPEN_CREATE = 0x4


# --- the simulated device ------------------------------------------------------------------------------


class PagedInode(Inode):
    """A file that remembers every write and truncation since it was synced."""

    def __init__(self, number: int) -> None:
        super().__init__(number, None)
        self.changes: list[tuple[int, bytes | None]] = []

    def change(self, offset: int, data: bytes | None) -> None:
        """Write at an offset, or (None) truncate there."""
        self.changes.append((offset, data))
        old = self.data.ljust(offset, b"\0")
        self.data = old[:offset] if data is None else old[:offset] + data + old[offset + len(data) :]

    def settle(self) -> None:
        """Make everything durable."""
        self.synced_data = self.data
        self.changes.clear()

    @property
    def is_dirty(self) -> bool:
        """Return True if there are unsynced changes, even if they cancel each other out."""
        return bool(self.changes)

    def variants(self, _chooser: random.Random) -> list[tuple[bytes, dict[str, bytes]]]:
        """Return states with no write, single, first, torn and random writes, all but one; last, with all."""
        changes, count = self.changes, len(self.changes)
        chooser = random.Random(count)
        subsets = [set(), *({n} for n in range(count)), *(set(range(count)) - {n} for n in range(count))]
        subsets += [set(range(n)) for n in range(count)]
        subsets += [{n for n in range(count) if chooser.random() < 0.5} for _ in range(8)]
        if len(subsets) > VARIANTS_MAX:
            subsets = [set(), *chooser.sample(subsets[1:], VARIANTS_MAX)]
        bodies = [self._with([changes[n] for n in sorted(kept)]) for kept in subsets]
        offset, data = changes[-1]
        if data is not None and len(data) > 1:
            half = len(data) // 2 // SECTOR * SECTOR or len(data) // 2
            bodies.append(self._with([*changes[:-1], (offset, data[:half])]))
        bodies.append(self.data)
        unique = list(dict.fromkeys(reversed(bodies)))[::-1]
        return [(body, {}) for body in unique]

    def _with(self, changes: list[tuple[int, bytes | None]]) -> bytes:
        data = bytearray(self.synced_data)
        for offset, piece in changes:
            if len(data) < offset:
                data += bytes(offset - len(data))
            if piece is None:
                del data[offset:]
            else:
                data[offset : offset + len(piece)] = piece
        return bytes(data)


class PagedDisk(SimulatedDisk):
    """A simulated disk whose files can be written at any offset."""

    def _new(self, *, directory: bool = False) -> Inode:
        if directory:
            return super()._new(directory=True)
        number = max(self._inodes) + 1
        inode = self._inodes[number] = PagedInode(number)
        return inode

    def pwrite(self, fd: int, data: bytes, offset: int | None) -> None:
        """Write at an offset, or (None) at the end."""
        self._changing()
        inode = self._of(fd)
        assert isinstance(inode, PagedInode)
        inode.change(len(inode.data) if offset is None else offset, data)

    def truncate(self, fd: int, size: int) -> None:
        """See ``os.ftruncate``."""
        self._changing()
        inode = self._of(fd)
        assert isinstance(inode, PagedInode)
        if size != len(inode.data):
            inode.change(size, None)

    def fsync(self, fd: int) -> None:
        """Make a file's bytes, or a directory's names durable."""
        super().fsync(fd)
        self.fdatasync(fd)

    def fdatasync(self, fd: int) -> None:
        """Make a file's bytes durable."""
        inode = self._of(fd)
        if isinstance(inode, PagedInode):
            inode.settle()


def materialize(image: Image, root: Path, number: int = ROOT) -> None:
    """Write a state into a directory that does not exist yet."""
    root.mkdir()
    for name, child in image.directories[number].items():
        if child in image.directories:
            materialize(image, root / name, child)
        else:
            (root / name).write_bytes(image.files[child][0])


# --- the log ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One operation: a method of ``PagedDisk`` (or a note of the test) with its arguments."""

    what: str
    args: tuple[Any, ...]


class Log:
    """Operations in order; the log numbers descriptors itself."""

    def __init__(self, top: str):
        self.top = top
        self.steps: list[Step] = []
        self._handles = 0

    def add(self, what: str, *args: Any) -> None:
        """Record an operation."""
        self.steps.append(Step(what, args))

    def opened(self, path: str, *, created: bool) -> int:
        """Record that a file was opened; return its number."""
        self._handles += 1
        self.add("open", self._handles, path, os.O_CREAT if created else 0)
        return self._handles

    def covers(self, path: str) -> bool:
        """Return True if a path is on the simulated device."""
        return path.startswith(self.top + "/") or path == self.top

    def replay(self, disk: PagedDisk, step: Step, handles: dict[int, int]) -> None:
        """Apply a step to a simulated disk."""
        what, args = step.what, step.args
        if what == "open":
            handles[args[0]] = disk.open(args[1], args[2])
        elif what == "sync directory":
            fd = disk.open(args[0], os.O_DIRECTORY)
            disk.fsync(fd)
            disk.close(fd)
        elif what in ("mkdir", "rmdir", "unlink", "rename"):
            getattr(disk, what)(*args)
        else:
            handle, *rest = args
            getattr(disk, what)(handles[handle], *rest)


class RecordedDisk(Disk):
    """The real disk; all changes are recorded."""

    def __init__(self, log: Log):
        self._log = log
        self._handles: dict[int, int] = {}

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        """See ``Disk``."""
        created = bool(flags & os.O_CREAT) and not os.path.exists(path)
        fd = os.open(path, flags, mode)
        if self._log.covers(path):
            if flags & os.O_DIRECTORY == os.O_DIRECTORY:
                self._handles[fd] = -1
            else:
                self._handles[fd] = self._log.opened(path, created=created)
        return fd

    def write(self, fd: int, data: Any) -> int:
        """See ``Disk``."""
        written = os.write(fd, data)
        self._log.add("pwrite", self._handles[fd], bytes(data[:written]), None)
        return written

    def truncate(self, fd: int, size: int) -> None:
        """See ``Disk``."""
        os.ftruncate(fd, size)
        self._log.add("truncate", self._handles[fd], size)

    def fsync(self, fd: int) -> None:
        """See ``Disk``."""
        if self._handles[fd] == -1:
            self._log.add("sync directory", os.readlink(f"/proc/self/fd/{fd}"))
        else:
            self._log.add("fsync", self._handles[fd])

    def fdatasync(self, fd: int) -> None:
        """See ``Disk``; the real device need not be synced."""
        self._log.add("fdatasync", self._handles[fd])

    def close(self, fd: int) -> None:
        """See ``Disk``."""
        self._handles.pop(fd, None)
        super().close(fd)

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        """See ``Disk``."""
        os.mkdir(path, mode)
        self._log.add("mkdir", path)

    def unlink(self, path: str) -> None:
        """See ``Disk``."""
        os.unlink(path)
        self._log.add("unlink", path)

    def rename(self, old: str, new: str) -> None:
        """See ``Disk``."""
        os.rename(old, new)
        self._log.add("rename", old, new)


# --- between SQLite and its files ---------------------------------------------------------------------


class _File(Structure):
    _fields_ = (("methods", c_void_p),)


class _Methods(Structure):
    """``sqlite3_io_methods``."""

    _fields_ = (
        ("version", c_int),
        *((name, c_void_p) for name in ("close", "read", "write", "truncate", "sync", "file_size", "lock")),
        *((name, c_void_p) for name in ("unlock", "check", "control", "sector", "characteristics")),
        *((name, c_void_p) for name in ("shm_map", "shm_lock", "shm_barrier", "shm_unmap")),
        *((name, c_void_p) for name in ("fetch", "unfetch")),
    )


class _Vfs(Structure):
    """``sqlite3_vfs``."""

    _fields_ = (
        ("version", c_int),
        ("file_bytes", c_int),
        ("path_max", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        *((name, c_void_p) for name in ("open", "delete", "access", "full_path", "dl_open", "dl_error")),
        *((name, c_void_p) for name in ("dl_sym", "dl_close", "randomness", "sleep", "time", "last_error")),
        *((name, c_void_p) for name in ("time64", "set_call", "get_call", "next_call")),
    )


_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_CLOSE = CFUNCTYPE(c_int, c_void_p)
_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
_OPEN_DIRECTORY = CFUNCTYPE(c_int, c_char_p, POINTER(c_int))
_GET_CALL = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
_SET_CALL = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)


def sqlite_library() -> ctypes.CDLL | None:
    """Return the library that Python's sqlite3 uses; None when it is built into Python."""
    sqlite3.connect(":memory:").close()
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/libsqlite3" in line}
    return ctypes.CDLL(paths.pop()) if paths else None


class Recorder:
    """Records all files opened inside the ``with`` block in ``log``."""

    def __init__(self, library: ctypes.CDLL, log: Log):
        self.log = log
        self._library = library
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        self._real = library.sqlite3_vfs_find(None)
        self._files: dict[int, tuple[int, _Methods]] = {}
        self._tables: dict[int, tuple[_Methods, _Methods]] = {}
        self._keep: list[Any] = []
        self._syncing: int | None = None
        real = self._real.contents
        self._vfs = _Vfs.from_buffer_copy(real)
        self._vfs.name = b"recorder"
        self._vfs.open = self._hook(_OPEN(self._open))
        self._vfs.delete = self._hook(_DELETE(self._delete))
        get_call = _GET_CALL(real.get_call)
        self._real_open_directory = get_call(ctypes.cast(self._real, c_void_p), b"openDirectory")
        self._open_directory_hook = self._hook(_OPEN_DIRECTORY(self._open_directory))

    def _hook(self, function: Any) -> int:
        """Return the address of a callback, kept alive by this recorder."""
        self._keep.append(function)
        return ctypes.cast(function, c_void_p).value or 0

    def __enter__(self) -> Recorder:
        self._library.sqlite3_vfs_register(byref(self._vfs), 1)
        self._set_open_directory(self._open_directory_hook)
        return self

    def __exit__(self, *_error: object) -> None:
        # Connections closed by the garbage collector still call the recorded methods: collect them now.
        gc.collect()
        self._set_open_directory(self._real_open_directory)
        self._library.sqlite3_vfs_unregister(byref(self._vfs))
        self._library.sqlite3_vfs_register(self._real, 1)

    def _set_open_directory(self, function: int) -> None:
        set_call = _SET_CALL(self._real.contents.set_call)
        set_call(ctypes.cast(self._real, c_void_p), b"openDirectory", function)

    # methods that SQLite calls

    def _open(self, _vfs: int, name: int, file: int, flags: int, out_flags: int) -> int:
        path = os.fsdecode(string_at(name)) if name else ""
        created = bool(flags & _OPEN_CREATE) and not os.path.exists(path)
        code = _OPEN(self._real.contents.open)(
            ctypes.cast(self._real, c_void_p), name, file, flags, out_flags
        )
        if code == 0 and self.log.covers(path):
            handle = _File.from_address(file)
            real, ours = self._table(handle.methods)
            handle.methods = ctypes.addressof(ours)
            self._files[file] = (self.log.opened(path, created=created), real)
        return code

    def _table(self, address: int) -> tuple[_Methods, _Methods]:
        """Return the real methods of a file and ours."""
        if address not in self._tables:
            real = _Methods.from_address(address)
            ours = _Methods.from_buffer_copy(real)
            ours.close = self._hook(_CLOSE(self._close))
            ours.write = self._hook(_WRITE(self._write))
            ours.truncate = self._hook(_TRUNCATE(self._truncate))
            ours.sync = self._hook(_SYNC(self._sync))
            self._tables[address] = real, ours
        return self._tables[address]

    def _close(self, file: int) -> int:
        _number, real = self._files.pop(file)
        return int(_CLOSE(real.close)(file))

    def _write(self, file: int, data: int, size: int, offset: int) -> int:
        number, real = self._files[file]
        self.log.add("pwrite", number, string_at(data, size), offset)
        return int(_WRITE(real.write)(file, data, size, offset))

    def _truncate(self, file: int, size: int) -> int:
        number, real = self._files[file]
        self.log.add("truncate", number, size)
        return int(_TRUNCATE(real.truncate)(file, size))

    def _sync(self, file: int, flags: int) -> int:
        number, real = self._files[file]
        self._syncing = number
        code = int(_SYNC(real.sync)(file, flags))
        if self._syncing is not None:
            self.log.add("fdatasync", number)
        self._syncing = None
        return code

    def _delete(self, _vfs: int, name: bytes, sync_directory: int) -> int:
        path = os.fsdecode(name)
        if self.log.covers(path) and os.path.exists(path):
            self.log.add("unlink", path)
        return int(
            _DELETE(self._real.contents.delete)(ctypes.cast(self._real, c_void_p), name, sync_directory)
        )

    def _open_directory(self, name: bytes, fd: Any) -> int:
        """Record a sync of the file and its directory: SQLite opens directories only to sync them."""
        path = os.path.dirname(os.fsdecode(name))
        if self.log.covers(path):
            if self._syncing is not None:
                self.log.add("fdatasync", self._syncing)
                self._syncing = None
            self.log.add("sync directory", path)
        return int(_OPEN_DIRECTORY(self._real_open_directory)(name, fd))
