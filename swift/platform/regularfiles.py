"""Errors of devices, and files of the wrong kind: two things that are no proof of damage and one that is.

An error number tells that a call failed, never that stored bytes are wrong: the call may succeed a second
later. A quarantine needs a read that succeeded. A FIFO, a socket, a device node, a directory or a
symbolic link in the place of a file is such a proof, because ``lstat`` succeeded. Opening such a file must
neither wait nor follow a link, therefore files below a device are opened by ``open_regular``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from typing import TypeAlias

from swift.platform.disk import Disk

#: The device is gone, is read-only or refuses this process: nothing on it can be used.
DEVICE_LOST = frozenset(
    (
        errno.EROFS,
        errno.ENODEV,
        errno.ENXIO,
        errno.ENOMEDIUM,
        errno.ENOTCONN,
        errno.ESHUTDOWN,
        errno.EACCES,
        errno.EPERM,
    )
)
#: One call failed in the device, its driver or its filesystem. XFS answers ENODATA for a medium error.
CALL_FAILED = frozenset(
    (
        errno.EIO,
        errno.ENODATA,
        errno.EUCLEAN,
        errno.EBADMSG,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EREMOTEIO,
        errno.ENOLINK,
        errno.EILSEQ,
    )
)
#: Errors that count against a device. Others (EMFILE, ENOMEM) are the process's or the machine's.
DEVICE_ERRORS = DEVICE_LOST | CALL_FAILED

#: Time stamp, size, inode and device of a file.
FileIdentity: TypeAlias = tuple[int, int, int, int]

_READ_BYTES = 1 << 20
SAFE_FLAGS = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
)


class IrregularFile(OSError):
    """Something else is in the place of a regular file; ``strerror`` has its type."""


class UnreadableFile(OSError):
    """A file that is there cannot be read, so what it holds is unknown but not absent."""


def is_device_error(error: BaseException) -> bool:
    """Return True if an error counts against the device it was met on."""
    return (
        isinstance(error, OSError) and not isinstance(error, IrregularFile) and error.errno in DEVICE_ERRORS
    )


def describe_irregular(mode: int) -> str:
    """Return what a file of this ``st_mode`` is; empty for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "no regular file")


def check_regular(mode: int, path: str) -> None:
    """Raise ``IrregularFile`` unless ``st_mode`` is that of a regular file."""
    found = describe_irregular(mode)
    if found:
        raise IrregularFile(errno.EINVAL, f"{found} is in the place of a file", path)


def irregular_file_at(disk: Disk, path: str) -> IrregularFile | None:
    """Return the error for what is at ``path``; None for a regular file, nothing, or an unknown type."""
    try:
        check_regular(disk.stat(path, follow_symlinks=False).st_mode, path)
    except IrregularFile as error:
        return error
    except OSError:
        return None
    return None


def is_blocking(disk: Disk, path: str) -> bool:
    """Return True if what is at ``path`` is there and no directory, nor a link to one. Raises OSError."""
    try:
        disk.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not stat.S_ISDIR(disk.stat(path).st_mode)
    except FileNotFoundError:
        # A dangling link, or it was removed just now; then moving it finds nothing.
        return True


def open_regular(disk: Disk, path: str, flags: int, mode: int = 0o600) -> int:
    """Open a file below a device without waiting and without following a link.

    Raises ``IrregularFile`` for what is no regular file, and OSError.
    """
    return open_with_status(disk, path, flags, mode)[0]


def open_with_status(disk: Disk, path: str, flags: int, mode: int = 0o600) -> tuple[int, os.stat_result]:
    """Open like ``open_regular``; return the descriptor and the file's status."""
    try:
        fd = disk.open(path, flags | SAFE_FLAGS, mode)
    except FileNotFoundError:
        raise
    except OSError as error:
        # ELOOP for a link, ENXIO for a socket or a FIFO without reader, EISDIR, EACCES for a device node.
        odd = irregular_file_at(disk, path)
        if odd is None:
            raise
        raise odd from error
    try:
        status = disk.fstat(fd)
        check_regular(status.st_mode, path)
    except BaseException:
        disk.close(fd)
        raise
    return fd, status


def read_regular(disk: Disk, path: str) -> bytes:
    """Return the content of a file below a device. Raises ``IrregularFile`` and OSError."""
    fd = open_regular(disk, path, os.O_RDONLY)
    try:
        pieces = []
        while piece := disk.read(fd, _READ_BYTES):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        disk.close(fd)


def file_identity(path: str) -> FileIdentity:
    """Return a value that changes when an operator's file is replaced; raises OSError.

    The time stamp alone is not enough. A symbolic link that is switched to a file of the same age, as in
    volumes of Kubernetes, leads to another inode.
    """
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def read_through_links(path: str) -> bytes:
    """Return the content of a file that an operator placed, which may be behind links, without waiting.

    Opening a FIFO would wait for a writer, and all of the process with it. Raises ``IrregularFile`` and
    OSError.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_regular(os.fstat(fd).st_mode, path)
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def open_or_replace(disk: Disk, path: str, flags: int, mode: int = 0o600) -> int:
    """Open like ``open_regular`` a file that holds nothing of a client, replacing an odd one.

    For lock files, journals and caches, which are made anew. Raises OSError.
    """
    try:
        return open_regular(disk, path, flags, mode)
    except IrregularFile:
        move_irregular_file_aside(disk, path)
        return open_regular(disk, path, flags, mode)


def move_irregular_file_aside(disk: Disk, path: str) -> None:
    """Rename an odd file within its directory; one that is regular by now stays.

    Raises OSError, BlockingIOError while another process does the same.

    The name begins with a dot, as that of a partial file of rsync: every tool of this family ignores it.
    """
    directory, _, name = path.rpartition("/")
    lock = disk.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have been quicker and made a regular file; all of them hold this lock.
        if irregular_file_at(disk, path) is not None:
            disk.rename(path, f"{directory}/.{name.lstrip('.')}.{secrets.token_hex(3)}")
    finally:
        disk.close(lock)
