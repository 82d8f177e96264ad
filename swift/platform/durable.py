"""The order of writes and syncs that makes a file durable; written down here and nowhere else.

Publishing a new file (spec: object-disk.md §9) is: sync the file; sync the parents of every directory
that may be new, from the leaf up; announce (journals that must know before others can see the file);
name it; sync its directory. A file that has a name therefore always has content, attributes and
ancestors on the device, and a failed sync is the caller's error: the name is taken away again and
nothing is retried, because the kernel forgets which pages failed. Existing names are replaced by a
rename, so that at no moment neither the old nor the new file is there.

It refuses to know what the files contain.
"""

from __future__ import annotations

import os
import secrets
import string
from collections.abc import Callable, Mapping, Sequence

from swift.platform.disk import NOTHING, PUBLISHED, Disk, JournalLines
from swift.platform.syncing import Syncs, moments, sync_directory

#: Attempts to make a directory that others remove while it is empty.
_MKDIR_TRIES = 10
_TEMPORARY_CHARS = string.ascii_letters + string.digits


def write_all(disk: Disk, fd: int, data: bytes | memoryview) -> None:
    """Write every byte; raises OSError."""
    written = disk.write(fd, data)
    if written != len(data):
        view = memoryview(data)[written:]
        while view:
            view = view[disk.write(fd, view) :]


def make_directories(disk: Disk, path: str, *, below: str) -> list[str]:
    """Create ``path`` and what is missing above it, but never ``below`` itself.

    Returns the directories that got a new entry, from the leaf up: those must be synced before anything
    in ``path`` counts as stored. Raises FileNotFoundError when ``below`` is missing, because making it
    would write to the disk that the device is mounted on.
    """
    parent = path.rpartition("/")[0]
    try:
        disk.mkdir(path)
        return [parent]
    except FileExistsError:
        return []
    except FileNotFoundError:
        if parent == below:
            raise
    touched: list[str] = []
    for attempt in range(1, _MKDIR_TRIES + 1):
        # What was made once more is of the same names.
        touched = make_directories(disk, parent, below=below) or touched
        try:
            disk.mkdir(path)
        except FileExistsError:
            # Another writer was quicker but may not have synced it yet.
            pass
        except FileNotFoundError:
            # Another process removed the empty parent between the two calls.
            if attempt == _MKDIR_TRIES:
                raise
            continue
        break
    return [parent, *touched]


class UnnamedFile:
    """A file being written: unnamed where the filesystem can, else a temporary name to be renamed."""

    __slots__ = ("_disk", "fd", "opened", "temporary")

    def __init__(self, disk: Disk, fd: int, temporary: str | None = None, *, is_written: bool = False):
        self._disk = disk
        self.fd = fd
        #: See ``Syncs``; None if something of it was written before.
        self.opened = None if is_written else next(moments)
        self.temporary = temporary

    def discard(self) -> None:
        """Close it and leave nothing behind; harmless when closed."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            self._disk.close(fd)
        temporary, self.temporary = self.temporary, None
        if temporary is not None:
            _unlink_quietly(self._disk, temporary)

    def __del__(self) -> None:
        # Its maker may have been ended between opening and storing it.
        self.discard()

    def _link_name(self, name: str, directory: str, dir_fd: int, *, replace: bool) -> None:
        if self.temporary is not None:
            self._disk.rename(self.temporary, name, dst_dir_fd=dir_fd)
            self.temporary = None
            return
        if not replace:
            self._disk.link_unnamed(self.fd, name, dir_fd=dir_fd)
            return
        # rsync's pattern for partial files: every tool of this family knows to ignore and remove it.
        spare = f".{name}.{''.join(secrets.choice(_TEMPORARY_CHARS) for _ in range(6))}"
        self._disk.link_unnamed(self.fd, spare, dir_fd=dir_fd)
        try:
            self._disk.rename(spare, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        except OSError:
            _unlink_quietly(self._disk, f"{directory}/{spare}")
            raise


def open_temporary(disk: Disk, directory: str) -> UnnamedFile:
    """Return a file with a random temporary name in ``directory``, for filesystems without unnamed ones."""
    while True:
        path = f"{directory}/{secrets.token_hex(8)}.tmp"
        try:
            fd = disk.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        return UnnamedFile(disk, fd, path)


def publish(
    disk: Disk,
    syncs: Syncs,
    file: UnnamedFile,
    name: str,
    *,
    directory: str,
    dir_fd: int,
    dir_opened: int,
    unsynced: Sequence[str],
    announce: Callable[[], None],
    replace: bool,
    lines: JournalLines | None = None,
) -> None:
    """Give ``file`` its final name in ``directory``, durably; see the top of this file for the order.

    ``dir_opened`` is the moment at which ``dir_fd`` was open (see ``Syncs``), which may be later than that of
    the file, unless that has none: errors between the two are told only to who was open by then.
    ``unsynced`` are the directories from ``make_directories``; ``replace`` tells that the name exists.
    ``lines`` are all that ``announce`` writes, if that is known.
    Raises OSError, after which the new name does not exist (with ``replace``: it may, holding the new
    content, because the old one is gone). FileNotFoundError means that the directory was removed.
    """
    if file.opened is None:
        syncs.make_durable(file.fd, dir_opened, unsynced, witness=dir_fd)
    else:
        syncs.make_durable(file.fd, file.opened, unsynced)
    done = NOTHING
    if lines is not None and file.opened is None and not replace:
        done = disk.try_publish(lines, file.fd, name, dir_fd=dir_fd)
    if done == PUBLISHED:
        file.fd = -1
    else:
        if done == NOTHING:
            announce()
        file._link_name(name, directory, dir_fd, replace=replace)
    try:
        syncs.make_durable(dir_fd, dir_opened)
    except OSError:
        if not replace:
            _unlink_quietly(disk, f"{directory}/{name}")
        raise


def replace_file(
    disk: Disk,
    path: str,
    data: bytes,
    *,
    temporary_directory: str | None = None,
    unsynced: Sequence[str] = (),
    mode: int | None = None,
    attributes: Mapping[str, bytes] | None = None,
) -> None:
    """Set the whole content of ``path`` atomically and durably; raises OSError and leaves the old one.

    ``unsynced`` are the directories from ``make_directories`` of its directory; ``mode`` are its permissions.
    ``attributes`` come with the content.
    """
    directory = os.path.dirname(path)
    file = open_temporary(disk, temporary_directory or directory)
    try:
        write_all(disk, file.fd, data)
        if mode is not None:
            disk.fchmod(file.fd, mode)
        for name, value in (attributes or {}).items():
            disk.setxattr(file.fd, name, value)
        disk.fsync(file.fd)
        for parent in unsynced:
            sync_directory(disk, parent)
        assert file.temporary is not None
        disk.rename(file.temporary, path)
        file.temporary = None
        sync_directory(disk, directory)
    finally:
        file.discard()


def _unlink_quietly(disk: Disk, path: str) -> None:
    try:
        disk.unlink(path)
    except OSError:
        # Another process removed it, or the device fails anyway: the first error is the one to report.
        return


def rename_durably(disk: Disk, syncs: Syncs, old: str, new: str, *, dir_fd: int) -> None:
    """Rename within one directory and sync it; raises OSError, FileNotFoundError when ``old`` is gone."""
    moment = next(moments)
    disk.rename(old, new, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    syncs.make_durable(dir_fd, moment)
