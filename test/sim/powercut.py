"""A disk in memory that knows the states that a power cut may leave.

``SimulatedDisk`` is a ``Disk``. It remembers every change of names (mkdir, create, link, rename, unlink,
rmdir) and of files (bytes, attributes) until a sync makes it durable. ``crash_states`` lists what may be
found after the power went away now, as images that can be mounted again. The rules are those that every
journalling filesystem keeps, and no kinder:

* A name is durable once its directory was synced; syncing the file itself does not help. Until then each
  change of a directory may be kept or lost by itself, in any combination with the others.
* A rename is one change: it is kept in both directories or in none, and durable once either was synced.
* Bytes and attributes are durable once the file was synced (``fdatasync``: bytes only). Until then the bytes
  may be all, none, zeros, cut short or half there, and each attribute may be there or not.
* A file that is written in the middle (``pwrite``) is a row of sectors: of each the device has what was
  synced or what any later write made of it, and the size is any that the file had since. What was never
  written below the size reads as zeros.
* Changes apply in order: what is kept of later changes lies over what is kept of earlier ones.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, product
from types import SimpleNamespace

from swift.platform.disk import Boot, Disk

ROOT = 1
#: Bytes that a device writes atomically.
SECTOR = 512
#: Ways of each moment to tear the writes of a file that are chosen at random.
TORN_AT_RANDOM = 6
#: Every disk that is mounted is another run of the kernel.
_boots = count()


def _error(code: int, path: object = "") -> OSError:
    return OSError(code, os.strerror(code), str(path))


class Killed(BaseException):
    """The process was killed at this operation; none of its code runs any longer."""


@dataclass(slots=True)
class Inode:
    """A file or, with ``entries``, a directory; ``synced_*`` survives a power cut."""

    number: int
    entries: dict[str, int] | None = None
    data: bytes = b""
    attributes: dict[str, bytes] = field(default_factory=dict)
    synced_data: bytes = b""
    synced_attributes: dict[str, bytes] = field(default_factory=dict)
    #: Offset and bytes of each ``pwrite`` since the last sync.
    writes: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def is_dirty(self) -> bool:
        """Return True if a power cut may change it."""
        return self.data != self.synced_data or self.attributes != self.synced_attributes

    def variants(self, chooser: random.Random) -> list[tuple[bytes, dict[str, bytes]]]:
        """Return the possible bytes and attributes of the file after a power cut."""
        bodies = [self.synced_data]
        if self.writes:
            bodies += torn_writes(self.synced_data, self.writes, chooser)
        elif self.data != self.synced_data:
            half = (len(self.data) + 1) // 2
            torn = self.data[:half] + bytes(len(self.data) - half)
            bodies += [self.data, bytes(len(self.data)), self.data[:half], torn]
        changed = [
            name
            for name in sorted({*self.attributes, *self.synced_attributes})
            if self.attributes.get(name) != self.synced_attributes.get(name)
        ]
        found = []
        for kept in product((False, True), repeat=len(changed)):
            attributes = dict(self.synced_attributes)
            for name, is_kept in zip(changed, kept, strict=True):
                if is_kept:
                    attributes[name] = self.attributes[name]
            found.append(attributes)
        pairs = list(product(bodies, found))
        return [pair for position, pair in enumerate(pairs) if pair not in pairs[:position]]


def torn_writes(synced: bytes, writes: list[tuple[int, bytes]], chooser: random.Random) -> list[bytes]:
    """Return the possible contents after writes that were not synced; the last one is complete."""
    versions = [synced]
    for offset, data in writes:
        before = versions[-1].ljust(offset, b"\0")
        versions.append(before[:offset] + data + before[offset + len(data) :])
    size = len(versions[-1])
    sectors = range(0, size, SECTOR)
    last = min(offset for offset, _ in writes[-1:]) // SECTOR * SECTOR

    def mixed(number_of: Callable[[int], int], length: int) -> bytes:
        found = bytearray()
        for begin in sectors:
            piece = versions[number_of(begin)][begin : begin + SECTOR]
            found += piece.ljust(min(SECTOR, size - begin), b"\0")
        return bytes(found[:length])

    newest = len(versions) - 1
    found = [versions[0].ljust(size, b"\0"), versions[newest - 1], versions[newest - 1].ljust(size, b"\0")]
    # Without the first sector of the last write; with nothing but that one.
    found.append(mixed(lambda begin: newest - (begin == last), size))
    found.append(mixed(lambda begin: newest - (begin != last), size))
    for _ in range(TORN_AT_RANDOM):
        share = chooser.random()
        chosen = {
            begin: chooser.randrange(newest + 1) if chooser.random() < share else newest for begin in sectors
        }
        length = size if chooser.random() < 0.7 else len(chooser.choice(versions))
        found.append(mixed(chosen.__getitem__, length))
    for _ in range(2):
        # In order up to a sector.
        end = chooser.randrange(0, size + SECTOR, SECTOR)
        found.append(mixed(lambda begin, end=end: newest if begin < end else newest - 1, size))
    return [*found, versions[newest]]


@dataclass(slots=True)
class Change:
    """One change of names: entries that go, entries that come; durable once one directory is synced."""

    gone: list[tuple[int, str]]
    come: list[tuple[int, str, int]]
    is_durable: bool = False
    #: The time of the change: the later change time of its directories.
    moment: int = 0

    def directories(self) -> set[int]:
        """Return the directories that the change affects."""
        return {where for where, _ in self.gone} | {where for where, _, _ in self.come}

    def apply(self, directories: dict[int, dict[str, int]]) -> None:
        """Apply the change to entries by directory."""
        for where, name in self.gone:
            directories[where].pop(name, None)
        for where, name, inode in self.come:
            directories[where][name] = inode


@dataclass(frozen=True, slots=True)
class Image:
    """The durable state: entries of directories, bytes and attributes of files."""

    directories: dict[int, dict[str, int]]
    files: dict[int, tuple[bytes, dict[str, bytes]]]
    #: The change time of each directory.
    times: dict[int, int] = field(default_factory=dict)

    def fingerprint(self) -> int:
        """Return a value that is equal for images with equal reachable content."""
        return hash(self._tree(ROOT))

    def _tree(self, number: int) -> tuple[object, ...]:
        if number in self.directories:
            entries = self.directories[number]
            return tuple((name, self._tree(entries[name])) for name in sorted(entries))
        data, attributes = self.files[number]
        return (data, tuple(sorted(attributes.items())))


class SimulatedDisk(Disk):
    """Files below ``top``; ``before_change`` is called before every change."""

    def __init__(self, top: str, image: Image | None = None, *, unnamed: bool = True):
        self.top = top
        self.unnamed = unnamed
        self.before_change: Callable[[], None] = lambda: None
        #: How many more changes the process makes before it is killed; negative: it lives.
        self.lives = -1
        self._inodes: dict[int, Inode] = {ROOT: Inode(ROOT, {})}
        self._base: dict[int, dict[str, int]] = {ROOT: {}}
        self._changes: list[Change] = []
        self._open: dict[int, list[int]] = {}
        self._locks: dict[int, int] = {}
        #: Locked bytes of files, with the descriptor that has each.
        self._byte_locks: dict[tuple[int, int], int] = {}
        self._next_fd = 100
        self._boot = Boot(f"boot-{next(_boots)}", 1.0)
        #: Change times of directories, now and as they were when all was durable.
        self._times: dict[int, int] = {}
        self._base_times: dict[int, int] = {}
        self._moment = 0
        if image is not None:
            self._load(image)

    def _load(self, image: Image) -> None:
        for number, entries in image.directories.items():
            self._inodes[number] = Inode(number, dict(entries))
        for number, (data, attributes) in image.files.items():
            self._inodes[number] = Inode(number, None, data, dict(attributes), data, dict(attributes))
        self._base = {number: dict(entries) for number, entries in image.directories.items()}
        self._times, self._base_times = dict(image.times), dict(image.times)
        # The clock advances: all further changes are later than the existing ones.
        self._moment = max(image.times.values(), default=0) + 1_000_000

    # --- simulation ----------------------------------------------------------------------------------

    def sync_everything(self) -> None:
        """Make everything durable, as a long time without power cuts does."""
        self._base = {n: dict(i.entries) for n, i in self._inodes.items() if i.entries is not None}
        self._changes.clear()
        self._base_times = dict(self._times)
        for inode in self._inodes.values():
            inode.synced_data, inode.synced_attributes = inode.data, dict(inode.attributes)
            inode.writes.clear()

    def restart_process(self) -> None:
        """Restart the process: its descriptors and locks are released, the page cache stays."""
        self._open.clear()
        self._locks.clear()
        self._byte_locks.clear()
        self.lives = -1

    def forked(self) -> SimulatedDisk:
        """Return a copy of disk and page cache, as after a kill of all processes."""
        disk = SimulatedDisk(self.top, unnamed=self.unnamed)
        for number, inode in self._inodes.items():
            entries = None if inode.entries is None else dict(inode.entries)
            disk._inodes[number] = Inode(
                number,
                entries,
                inode.data,
                dict(inode.attributes),
                inode.synced_data,
                dict(inode.synced_attributes),
                list(inode.writes),
            )
        disk._base = {number: dict(entries) for number, entries in self._base.items()}
        disk._changes = [replace(change) for change in self._changes]
        disk._times, disk._base_times = dict(self._times), dict(self._base_times)
        disk._moment, disk._boot = self._moment, self._boot
        return disk

    def page_cache(self) -> tuple[object, ...]:
        """Return the state that processes see; equal for equal trees of files."""
        return self._seen(ROOT)

    def _seen(self, number: int) -> tuple[object, ...]:
        inode = self._inodes[number]
        if inode.entries is not None:
            return tuple((name, self._seen(inode.entries[name])) for name in sorted(inode.entries))
        return (inode.data, len(inode.writes), tuple(sorted(inode.attributes.items())))

    def inode_number(self, fd: int) -> int:
        """Return the inode number of an open file."""
        return self._of(fd).number

    def pwrite_at(self, number: int, data: bytes | memoryview, offset: int) -> None:
        """Write into an inode, as a process with an open descriptor does."""
        fd = self._descriptor(self._inodes[number])
        self.pwrite(fd, data, offset)
        self.close(fd)

    def crash_states(self, limit: int, chooser: random.Random) -> Iterator[Image]:
        """Return the possible device states after a power cut now: all, or ``limit`` chosen samples."""
        pending = [change for change in self._changes if not change.is_durable]
        named = {inode for change in self._changes for _, _, inode in change.come}
        named.update(inode for entries in self._base.values() for inode in entries.values())
        dirty = [self._inodes[number] for number in sorted(named) if self._inodes[number].is_dirty]
        variants = [inode.variants(chooser) for inode in dirty if inode.entries is None]
        numbers = [inode.number for inode in dirty if inode.entries is None]
        sizes = [2] * len(pending) + [len(each) for each in variants]
        for choice in _choices(sizes, limit, chooser):
            kept = {id(change) for change, is_kept in zip(pending, choice, strict=False) if is_kept}
            files = {
                number: each[position]
                for number, each, position in zip(numbers, variants, choice[len(pending) :], strict=True)
            }
            yield self._image(kept, files)

    def _image(self, kept: set[int], chosen: dict[int, tuple[bytes, dict[str, bytes]]]) -> Image:
        directories: dict[int, dict[str, int]] = {}
        files = {}
        for number, inode in self._inodes.items():
            if inode.entries is not None:
                directories[number] = dict(self._base.get(number, {}))
            else:
                files[number] = chosen.get(number) or (inode.synced_data, inode.synced_attributes)
        times = dict(self._base_times)
        for change in self._changes:
            if change.is_durable or id(change) in kept:
                change.apply(directories)
                times.update(dict.fromkeys(change.directories(), change.moment))
        return Image(directories, files, times)

    def _alive(self) -> None:
        if self.lives == 0:
            raise Killed

    def _changing(self) -> None:
        """Announce a changing operation; kill the process if it is due."""
        self._alive()
        if self.lives > 0:
            self.lives -= 1
        self.before_change()

    # --- looking things up ---------------------------------------------------------------------------

    def _at(self, path: str, dir_fd: int | None = None) -> tuple[Inode, str]:
        """Return the directory and the last name of a path."""
        if dir_fd is not None and not path.startswith("/"):
            return self._of(dir_fd), path
        if not path.startswith(self.top):
            raise _error(errno.ENOENT, path)
        names = [name for name in path[len(self.top) :].split("/") if name]
        where = self._inodes[ROOT]
        for name in names[:-1]:
            where = self._entry(where, name, path)
        if where.entries is None:
            raise _error(errno.ENOTDIR, path)
        return where, names[-1] if names else ""

    def _entry(self, where: Inode, name: str, path: str) -> Inode:
        if where.entries is None:
            raise _error(errno.ENOTDIR, path)
        if not name:
            return where
        number = where.entries.get(name)
        if number is None:
            raise _error(errno.ENOENT, path)
        return self._inodes[number]

    def _find(self, file: int | str) -> Inode:
        self._alive()
        return self._of(file) if isinstance(file, int) else self._entry(*self._at(file), file)

    def _of(self, fd: int) -> Inode:
        if fd not in self._open:
            raise _error(errno.EBADF, fd)
        return self._inodes[self._open[fd][0]]

    def _new(self, *, directory: bool = False) -> Inode:
        number = max(self._inodes) + 1
        inode = self._inodes[number] = Inode(number, {} if directory else None)
        return inode

    def _record(self, gone: list[tuple[int, str]], come: list[tuple[int, str, int]]) -> None:
        self._changing()
        self._moment += 1
        change = Change(gone, come, moment=self._moment)
        change.apply({n: i.entries for n, i in self._inodes.items() if i.entries is not None})
        self._times.update(dict.fromkeys(change.directories(), self._moment))
        self._changes.append(change)

    def _descriptor(self, inode: Inode) -> int:
        self._next_fd += 1
        self._open[self._next_fd] = [inode.number, 0]
        return self._next_fd

    # --- Disk: descriptors ---------------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        """See ``os.open``."""
        self._alive()
        where, name = self._at(path)
        assert where.entries is not None
        if name and name not in where.entries:
            if not flags & os.O_CREAT:
                raise _error(errno.ENOENT, path)
            inode = self._new()
            self._record([], [(where.number, name, inode.number)])
            return self._descriptor(inode)
        if flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
        inode = self._entry(where, name, path)
        if flags & os.O_DIRECTORY and inode.entries is None:
            raise _error(errno.ENOTDIR, path)
        return self._descriptor(inode)

    def open_unnamed(self, directory: str) -> int:
        """See ``Disk``."""
        if not self.unnamed:
            raise _error(errno.EOPNOTSUPP, directory)
        if self._find(directory).entries is None:
            raise _error(errno.ENOTDIR, directory)
        return self._descriptor(self._new())

    def link_unnamed(self, fd: int, name: str, *, dir_fd: int) -> None:
        """See ``Disk``."""
        inode, where = self._of(fd), self._of(dir_fd)
        assert where.entries is not None
        if name in where.entries:
            raise _error(errno.EEXIST, name)
        if where.number not in self._reachable():
            raise _error(errno.ENOENT, name)
        self._record([], [(where.number, name, inode.number)])

    def _reachable(self) -> set[int]:
        found, todo = {ROOT}, [ROOT]
        while todo:
            for number in (self._inodes[todo.pop()].entries or {}).values():
                if number not in found:
                    found.add(number)
                    todo.append(number)
        return found

    def close(self, fd: int) -> None:
        """See ``Disk``."""
        opened = self._open.pop(fd, None)
        if opened is not None and self._locks.get(opened[0]) == fd:
            del self._locks[opened[0]]
        for place in [place for place, owner in self._byte_locks.items() if owner == fd]:
            del self._byte_locks[place]

    def lock_byte(self, fd: int, offset: int) -> bool:
        """See ``Disk``."""
        self._alive()
        return self._byte_locks.setdefault((self._of(fd).number, offset), fd) == fd

    def unlock_byte(self, fd: int, offset: int) -> None:
        """See ``Disk``."""
        self._alive()
        if self._byte_locks.get((self._of(fd).number, offset)) == fd:
            del self._byte_locks[self._of(fd).number, offset]

    def read(self, fd: int, size: int) -> bytes:
        """See ``os.read``."""
        data = self.pread(fd, size, self._open[fd][1])
        self._open[fd][1] += len(data)
        return data

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """See ``os.pread``."""
        self._alive()
        return self._of(fd).data[offset : offset + size]

    def read_cached(self, fd: int, size_bytes: int, offset: int = 0) -> bytes | None:
        """See ``Disk``."""
        data = self.pread(fd, size_bytes, offset)
        return data if len(data) == size_bytes else None

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Append; the engine never uses ``write`` in the middle of a file."""
        self._changing()
        inode = self._of(fd)
        inode.data += bytes(data)
        return len(data)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """See ``os.pwrite``."""
        self._changing()
        inode = self._of(fd)
        piece, before = bytes(data), inode.data.ljust(offset, b"\0")
        inode.data = before[:offset] + piece + before[offset + len(piece) :]
        inode.writes.append((offset, piece))
        return len(piece)

    def punch_hole(self, fd: int, offset: int, length: int) -> None:
        """Write zeros, which may reach the disk at any time, like any write."""
        self.pwrite(fd, bytes(max(0, min(length, self.fstat(fd).st_size - offset))), offset)

    def now_ns(self) -> int:
        """Return the time of a clock that advances with every change."""
        return self._moment + 1

    def truncate(self, fd: int, size: int) -> None:
        """See ``os.ftruncate``."""
        self._changing()
        inode = self._of(fd)
        inode.data = inode.data[:size].ljust(size, b"\0")

    def fstat(self, fd: int) -> SimpleNamespace:
        """Size, inode, times and links."""
        return self._stat(self._find(fd))

    def statvfs(self, file: int | str) -> SimpleNamespace:
        """Return the figures of a filesystem with unlimited space."""
        return SimpleNamespace(f_frsize=4096, f_blocks=1 << 40, f_bavail=1 << 40, f_files=0, f_favail=0)

    def stat(self, path: str, *, follow_symlinks: bool = True) -> SimpleNamespace:
        """Size, inode, times and links."""
        return self._stat(self._find(path))

    def _stat(self, inode: Inode) -> SimpleNamespace:
        links = int(inode.number in self._reachable())
        return SimpleNamespace(
            st_mode=stat.S_IFREG if inode.entries is None else stat.S_IFDIR,
            st_size=len(inode.data),
            st_ino=inode.number,
            st_dev=1,
            st_mtime=0.0,
            st_ctime_ns=self._times.get(inode.number, 0),
            st_mtime_ns=self._times.get(inode.number, 0),
            st_nlink=links,
        )

    def handle(self, file: int | str) -> bytes:
        """The number of the inode, which is never used again."""
        return b"%d" % self._find(file).number

    def open_handle(self, root: str, handle: bytes, flags: int) -> int:
        """See ``Disk``."""
        self._alive()
        number = int(handle)
        if number not in self._reachable():
            raise _error(errno.ESTALE, root)
        return self._descriptor(self._inodes[number])

    def fchmod(self, fd: int, mode: int) -> None:
        """Do nothing: permissions have no effect here."""

    def fsync(self, fd: int) -> None:
        """Make a file's bytes and attributes, or a directory's names durable."""
        self._changing()
        inode = self._of(fd)
        inode.synced_data, inode.synced_attributes = inode.data, dict(inode.attributes)
        inode.writes.clear()
        for change in self._changes:
            if inode.number in change.directories():
                change.is_durable = True

    def fdatasync(self, fd: int) -> None:
        """Make a file's bytes durable."""
        self._changing()
        inode = self._of(fd)
        inode.synced_data = inode.data
        inode.writes.clear()

    def sync_filesystem(self, fd: int) -> None:
        """Make everything durable."""
        self._changing()
        self._of(fd)
        self.sync_everything()

    def dirty_bytes(self) -> int:
        """Return 0: no other program writes on this machine."""
        return 0

    def duplicate(self, fd: int) -> int:
        """See ``os.dup``."""
        return self._descriptor(self._of(fd))

    def flock(self, fd: int, operation: int) -> None:
        """Take or release an exclusive lock; never wait."""
        self._alive()
        number = self._of(fd).number
        if operation & fcntl.LOCK_UN:
            self._locks.pop(number, None)
        elif self._locks.setdefault(number, fd) != fd:
            raise _error(errno.EWOULDBLOCK)

    def preallocate(self, fd: int, size_bytes: int) -> None:
        """Do nothing: there is always space."""

    def start_writeback(self, fd: int, offset: int, length: int) -> None:
        """Do nothing: writes may reach the device at any time."""

    def prefetch(self, fd: int, offset: int, length: int) -> None:
        """Do nothing: everything is in memory."""

    def drop_cache(self, fd: int, offset: int, length: int) -> None:
        """Do nothing: everything is in memory."""

    def boot(self) -> Boot:
        """See ``Disk``."""
        return self._boot

    # --- Disk: names ---------------------------------------------------------------------------------

    def listdir(self, path: str) -> list[str]:
        """See ``os.listdir``."""
        entries = self._find(path).entries
        if entries is None:
            raise _error(errno.ENOTDIR, path)
        return list(entries)

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        """See ``os.mkdir``."""
        self._alive()
        where, name = self._at(path)
        assert where.entries is not None
        if not name or name in where.entries:
            raise _error(errno.EEXIST, path)
        self._record([], [(where.number, name, self._new(directory=True).number)])

    def rmdir(self, path: str) -> None:
        """See ``os.rmdir``."""
        where, name = self._at(path)
        entries = self._find(path).entries
        if entries is None:
            raise _error(errno.ENOTDIR, path)
        if entries:
            raise _error(errno.ENOTEMPTY, path)
        self._record([(where.number, name)], [])

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        """See ``os.unlink``."""
        self._alive()
        where, name = self._at(path, dir_fd)
        if self._entry(where, name, path).entries is not None:
            raise _error(errno.EISDIR, path)
        self._record([(where.number, name)], [])

    def link(self, old: str, new: str) -> None:
        """See ``os.link``."""
        inode = self._find(old)
        where, name = self._at(new)
        assert where.entries is not None
        if name in where.entries:
            raise _error(errno.EEXIST, new)
        self._record([], [(where.number, name, inode.number)])

    def rename(
        self, old: str, new: str, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        """See ``os.rename``."""
        self._alive()
        source, old_name = self._at(old, src_dir_fd)
        inode = self._entry(source, old_name, old)
        target, new_name = self._at(new, dst_dir_fd)
        assert target.entries is not None
        taken = target.entries.get(new_name)
        if taken is not None and self._inodes[taken].entries:
            raise _error(errno.ENOTEMPTY, new)
        self._record([(source.number, old_name)], [(target.number, new_name, inode.number)])

    # --- Disk: attributes ----------------------------------------------------------------------------

    def getxattr(self, file: int | str, name: str) -> bytes:
        """See ``os.getxattr``."""
        attributes = self._find(file).attributes
        if name not in attributes:
            raise _error(errno.ENODATA, file)
        return attributes[name]

    def listxattr(self, file: int | str) -> list[str]:
        """See ``os.listxattr``."""
        return list(self._find(file).attributes)

    def setxattr(self, file: int | str, name: str, value: bytes) -> None:
        """See ``os.setxattr``."""
        self._changing()
        self._find(file).attributes[name] = bytes(value)


def _choices(sizes: list[int], limit: int, chooser: random.Random) -> Iterator[tuple[int, ...]]:
    """Every combination of one position per size, or ``limit`` of them: extremes first, then at random."""
    total = 1
    for size in sizes:
        total *= size
    if total <= limit:
        yield from product(*map(range, sizes))
        return
    nothing, everything = tuple(0 for _ in sizes), tuple(size - 1 for size in sizes)
    seen = set()

    def extremes() -> Iterator[tuple[int, ...]]:
        yield nothing
        yield everything
        for position, size in enumerate(sizes):
            for value in range(size):
                yield (*nothing[:position], value, *nothing[position + 1 :])
                yield (*everything[:position], value, *everything[position + 1 :])

    for choice in extremes():
        if choice not in seen and len(seen) < limit:
            seen.add(choice)
            yield choice
    while len(seen) < limit:
        choice = tuple(chooser.randrange(size) for size in sizes)
        if choice not in seen:
            seen.add(choice)
            yield choice
