"""``Disk`` with several steps in one call of the extension ``native`` (``native.c``), if it was compiled.

A thread gives up the interpreter's lock for each system call and has to get it back, which costs more than
most of the calls themselves. ``SWIFT_NATIVE=0`` does without (doc/decisions/0033-native-calls.md).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from types import ModuleType

from swift.platform.disk import Attributes, Disk, Held, JournalLines, Look, SoleFile

#: The environment variable that turns it off.
VARIABLE = "SWIFT_NATIVE"


class NativeDisk(Disk):
    """The machine's files by way of the extension, a module."""

    def __init__(self, module: ModuleType):
        self._native = module

    def close_read(self, fd: int) -> None:
        """See ``Disk``."""
        self._native.close(fd)

    def sync(self, fd: int, directories: Sequence[str] = ()) -> None:
        """See ``Disk``."""
        self._native.sync(fd, tuple(directories))

    def try_hold(self, path: str, below: str | None, made: list[str]) -> Held | None:
        """See ``Disk``."""
        held = self._native.hold(path, below, made)
        if held is None:
            return None
        fd, names, file = held
        return fd, names, None if file is None else SoleFile(*file)

    def try_look(self, path: str, *, opens: bool, body_bytes_max: int) -> Look | None:
        """See ``Disk``."""
        found = self._native.look(path, opens, body_bytes_max)
        if found is None:
            return None
        _fd, names, file = found
        return names, None if file is None else SoleFile(*file)

    def try_create(self, directory: str, body: bytes, attributes: Attributes) -> int | None:
        """See ``Disk``."""
        fd: int | None = self._native.create(directory, body, attributes)
        return fd

    def try_append(self, lines: JournalLines) -> bool:
        """See ``Disk``."""
        return bool(self._native.publish(*lines, -1, "", -1))

    def try_publish(self, lines: JournalLines, fd: int, name: str, *, dir_fd: int) -> int:
        """See ``Disk``."""
        done: int = self._native.publish(*lines, fd, name, dir_fd)
        return done


def native_module() -> ModuleType | None:
    """Return the extension; None if it was not compiled or is turned off."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        return importlib.import_module(".native", __package__)
    except ImportError:
        return None


def machine_disk() -> Disk:
    """Return the disk of servers and daemons, native where that is possible."""
    module = native_module()
    return Disk() if module is None else NativeDisk(module)
