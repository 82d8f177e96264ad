"""Making files durable: each by itself, or all that wait for it in one sync of their filesystem.

A new object needs four syncs: its file, its directory and two new directories above. A device flushes its
cache for each of them. When several changes of one device wait in the same turn of the event loop,
``SharedSyncs`` has the kernel write out the whole filesystem once instead (``syncfs(2)``), which makes all
of them durable: group commit, as databases do it (DeWitt et al., 1984).

While one such sync is under way in a thread, the next ones gather, so a busy device gets few large ones.

It is asked for only where it is the cheaper way: with several syncs to save, and while little else waits to
be written to the devices of this machine, because ``syncfs`` waits for that as well.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Protocol

from swift.green import Event, in_green_thread, spawn_detached
from swift.platform.disk import Disk
from swift.platform.threads import ThreadPool
from swift.platform.waiting import letting_others_run

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: From how many single syncs on one of the filesystem is cheaper.
_WORTHWHILE = 2
#: A sync of the filesystem that takes longer than this, and than so much for each single sync that it stood
#: for, was not the cheaper way, seconds.
LONG_S = 0.1
LONG_EACH_S = 0.02
#: For how long everybody syncs alone after such a one, seconds.
PENALTY_S = 2.0
#: Unwritten bytes of the machine above which nobody asks for them all to be written: so many for each single
#: sync that is saved, at most ``DIRTY_LIMIT``.
DIRTY_EACH = 1 << 20
DIRTY_LIMIT = 64 << 20
#: For how long the answer to that is believed (the kernel takes 20 µs to give it), seconds.
DIRTY_FOR_S = 0.05

#: Numbers the moments at which files are opened.
moments = count()


def sync_directory(disk: Disk, path: str) -> None:
    """Make the names in a directory durable; raises OSError."""
    fd = disk.open(path, _DIRECTORY)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)


class Syncs(Protocol):
    """Makes changes of one device durable."""

    def settle(self, fd: int, opened: int, directories: Sequence[str] = ()) -> None:
        """Return when an open file (or directory) and the names in ``directories`` are durable.

        ``opened`` is a moment (``next(moments)``) at which ``fd`` was open and nothing of it written yet.
        Raises OSError; whether anything is durable then is not known.
        """


class SingleSyncs:
    """Each file and directory by itself."""

    def __init__(self, disk: Disk):
        self._disk = disk

    def settle(self, fd: int, opened: int, directories: Sequence[str] = ()) -> None:
        """See ``Syncs``."""
        self._disk.fsync(fd)
        for path in directories:
            sync_directory(self._disk, path)

    def __repr__(self) -> str:
        return "SingleSyncs()"


class _Member:
    """One that waits for a sync."""

    __slots__ = ("directories", "error", "fd", "opened")

    def __init__(self, fd: int, opened: int, directories: Sequence[str]):
        self.fd = fd
        self.opened = opened
        self.directories = directories
        #: None only once everything is known to be durable.
        self.error: OSError | None = OSError(errno.EINTR, "the sync was not finished")


class _Batch:
    """Those who share the next sync."""

    __slots__ = ("done", "members")

    def __init__(self) -> None:
        self.members: list[_Member] = []
        self.done = Event()


class SharedSyncs:
    """``Syncs`` of the changes that green threads make to one device; other threads sync alone.

    While the machine has more than ``dirty_limit`` bytes yet to write, everybody syncs alone. ``run`` makes
    the blocking calls, in a thread unless given.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        dirty_limit: int = DIRTY_LIMIT,
        run: Callable[..., None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._disk = disk
        self._single = SingleSyncs(disk)
        self._dirty_limit = dirty_limit
        self._monotonic = monotonic
        self._alone_until = 0.0
        self._dirty_bytes = 0
        self._dirty_until = 0.0
        self._run = run or ThreadPool(1, "sync").call
        self._gathering: _Batch | None = None
        self._is_busy = False

    def settle(self, fd: int, opened: int, directories: Sequence[str] = ()) -> None:
        """See ``Syncs``."""
        if not in_green_thread():
            self._single.settle(fd, opened, directories)
            return
        member = _Member(fd, opened, directories)
        batch = self._gathering
        if batch is None:
            batch = self._gathering = _Batch()
        batch.members.append(member)
        if not self._is_busy:
            self._is_busy = True
            spawn_detached(self._sync_all)
        with letting_others_run():
            try:
                batch.done.wait()
            finally:
                if batch is self._gathering:
                    # Given up before its turn; its descriptor is closed now.
                    batch.members.remove(member)
        if member.error is not None:
            raise OSError(*member.error.args)

    def _sync_all(self) -> None:
        """Sync batch after batch until nobody waits; begins when all who were woken together wait."""
        try:
            while self._gathering is not None:
                batch, self._gathering = self._gathering, None
                try:
                    self._sync(batch.members)
                finally:
                    batch.done.set()
        finally:
            self._is_busy = False

    def _sync(self, members: list[_Member]) -> None:
        saved = sum(1 + len(member.directories) for member in members)
        if saved < _WORTHWHILE or self._is_dear(saved):
            self._sync_each(members)
        else:
            self._sync_filesystem(members, saved)

    def _sync_each(self, members: list[_Member]) -> None:
        for member in members:
            try:
                # Whoever waits may give up and close its descriptor meanwhile.
                fd = self._disk.duplicate(member.fd)
                try:
                    self._run(self._single.settle, fd, member.opened, member.directories)
                finally:
                    self._disk.close(fd)
            except OSError as error:
                member.error = error
            else:
                member.error = None

    def _sync_filesystem(self, members: list[_Member], saved: int) -> None:
        started = self._monotonic()
        failure: OSError | None = None
        # The kernel tells a descriptor of the failures since it was opened: the first one hears of all.
        # Whoever waits may give up and close it meanwhile.
        fd = self._disk.duplicate(min(members, key=_moment).fd)
        try:
            self._run(self._disk.sync_filesystem, fd)
        except OSError as error:
            failure = error
        finally:
            self._disk.close(fd)
        for member in members:
            member.error = failure
        ended = self._monotonic()
        if ended - started > max(LONG_S, saved * LONG_EACH_S):
            self._alone_until = ended + PENALTY_S

    def _is_dear(self, saved: int) -> bool:
        now = self._monotonic()
        if now < self._alone_until:
            return True
        if now >= self._dirty_until:
            self._dirty_bytes = self._disk.dirty_bytes()
            self._dirty_until = now + DIRTY_FOR_S
        return self._dirty_bytes > min(saved * DIRTY_EACH, self._dirty_limit)

    def __repr__(self) -> str:
        return "SharedSyncs()"


def _moment(member: _Member) -> int:
    return member.opened
