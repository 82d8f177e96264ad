"""Mapped files on devices that may fail: a page that cannot be read does not end the process.

The kernel sends SIGBUS when a read of a mapping fails on its device, which ends the process.
A ``MapGuard`` puts a page of its owner's choice in place of each one that cannot be had, lets the reading
go on, and remembers that it did: what was read is worth nothing, and the mapping is to be given up. Pages
past the end of the file count as well. A SIGBUS from anywhere else ends the process as ever.

The handler is Python within a signal, which is right here only: the signal is raised by the instruction that
reads the mapping, never between two others, so nothing that Python stands on is half done.

Writing fails more quietly: the kernel keeps what was written in memory, forgets it when the device refuses
it, and reads the old bytes afterwards. ``has_lost_writes`` asks it about that.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import signal
import threading

_FAILED_READ = 2  # BUS_ADRERR: a signal of the kernel about an address that nothing can be read from
_WITH_INFO = 4
_WAIT_OFFSET = 1
_FIXED = 0x10
_ADDRESS_AT = 16
_MASK_BYTES = 128

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    """``struct sigaction`` of 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_byte * _MASK_BYTES),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    )
    library.sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return library


class MapGuard:
    """Watches the mapping of one file in this process, from its making until ``release``.

    ``page`` is the beginning of what is read instead. Raises OSError when the file is not mapped.
    """

    def __init__(self, path: str, page: bytes = b""):
        self.has_failed = False
        self._page = page
        # Before anything is written: the kernel tells a descriptor of what fails while it is open.
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._begin, self._end = _find_mapping(os.path.realpath(path))
        if not self._end:
            os.close(self._fd)
            raise OSError(f"{path} is not mapped")
        _registry.add(self)

    def has_lost_writes(self) -> bool:
        """Return True if the device has refused something since the last call; it takes no time."""
        return bool(_library().sync_file_range(self._fd, 0, mmap.PAGESIZE, _WAIT_OFFSET))

    def release(self) -> None:
        """Forget the mapping."""
        _registry.remove(self)
        os.close(self._fd)

    def covers(self, address: int) -> bool:
        """Return True if an address is in the mapping."""
        return self._begin <= address < self._end

    def replace_page(self, address: int) -> None:
        """Put another page in place of the one that could not be read. Raises OSError."""
        self.has_failed = True
        begin = address - address % mmap.PAGESIZE
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED
        got = _library().mmap(begin, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
        if got != begin:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        ctypes.memmove(begin, self._page, len(self._page))


class _GuardRegistry:
    """The guards of this process, and the handler, which is there from the first of them on."""

    def __init__(self) -> None:
        #: A set in order; changed in one step each time, because guards also end in garbage collections.
        self._guards: dict[MapGuard, None] = {}
        self._lock = threading.RLock()
        self._handler = _Handler(self._handle)
        self._before: _Action | None = None

    def add(self, guard: MapGuard) -> None:
        with self._lock:
            if self._before is None:
                before, action = _Action(), _Action()
                action.handler = ctypes.cast(self._handler, ctypes.c_void_p).value
                action.flags = _WITH_INFO
                _library().sigaction(signal.SIGBUS, ctypes.byref(action), ctypes.byref(before))
                self._before = before
        self._guards[guard] = None

    def remove(self, guard: MapGuard) -> None:
        del self._guards[guard]

    def _handle(self, number: int, info: int, _context: int) -> None:
        """Handle the signal in place of the instruction, which is repeated afterwards."""
        code = ctypes.c_int.from_address(info + 8).value
        address = ctypes.c_size_t.from_address(info + _ADDRESS_AT).value
        if code == _FAILED_READ:
            for guard in tuple(self._guards):
                if guard.covers(address):
                    try:
                        guard.replace_page(address)
                        return
                    except OSError:
                        break
        # Not ours: as it was before there were guards, which ends the process unless another handler exists.
        assert self._before is not None
        _library().sigaction(number, ctypes.byref(self._before), None)
        if code <= 0:
            os.kill(os.getpid(), number)


def _find_mapping(path: str) -> tuple[int, int]:
    """Return the addresses at which this process has mapped a file; zeros when it has not. Raises OSError."""
    begin = end = 0
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            words = line.rstrip("\n").split(maxsplit=5)
            if len(words) == 6 and words[5] == path:
                first, last = (int(word, 16) for word in words[0].split("-"))
                begin, end = min(begin or first, first), max(end, last)
    return begin, end


_registry = _GuardRegistry()
