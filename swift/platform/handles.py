"""Files by kernel handle: opening a file without looking up its path (``open_by_handle_at(2)``).

A handle names an inode and its generation within a filesystem, so that a handle of a removed file opens
nothing, also when its inode is used again. Opening needs CAP_DAC_READ_SEARCH. Python has neither call.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_HANDLE_BYTES_MAX = 128
_HEAD = struct.Struct("=Ii")


@functools.cache
def _library() -> ctypes.CDLL:
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
        failed = _library().name_to_handle_at(where, name, buffer, ctypes.byref(mount), flags)
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
        fd: int = _library().open_by_handle_at(root_fd, handle, flags)
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if fd < 0:
        _raise("handle")
    return fd
