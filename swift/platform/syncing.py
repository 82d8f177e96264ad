"""Making files durable: each by itself, or all that wait for it in one sync of their filesystem.

A new object needs four syncs: its file, its directory and two new directories above. A device flushes its
cache for each of them. When several changes of one device wait at the same moment, ``SharedSyncs`` has the
kernel write out the whole filesystem once instead (``syncfs(2)``), which makes all of them durable: group
commit, as databases do it (DeWitt et al., 1984).

While one such sync is under way, the next ones gather, so a busy device gets few large ones.

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

from swift.green import ThreadPool, in_green_thread
from swift.platform.batches import GreenBatches, ThreadBatches
from swift.platform.disk import Disk

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: From how many single syncs on one of the filesystem is cheaper.
_WORTHWHILE_SYNCS = 2
#: A sync of the filesystem that takes longer than this, and than so much for each single sync that it stood
#: for, was not the cheaper way, seconds.
LONG_S = 0.1
LONG_EACH_S = 0.02
#: Duration of separate syncs after such a failure, seconds.
PENALTY_S = 2.0
#: Unwritten bytes of the machine above which the filesystem is not synced as a whole: so many for each single
#: sync that is saved, at most ``DIRTY_LIMIT``.
DIRTY_EACH = 1 << 20
DIRTY_LIMIT = 64 << 20
#: Lifetime of that figure, because it costs a system call, seconds.
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

    def make_durable(
        self, fd: int, opened: int, directories: Sequence[str] = (), *, witness: int | None = None
    ) -> None:
        """Return when an open file (or directory) and the names in ``directories`` are durable.

        ``opened`` is a moment (``next(moments)``) at which ``witness``, a descriptor of the same filesystem,
        was open and nothing of the file written yet; it is ``fd`` unless given.
        Raises OSError; whether anything is durable then is not known.
        """


class SingleSyncs:
    """Each file and directory by itself."""

    def __init__(self, disk: Disk):
        self._disk = disk

    def make_durable(
        self, fd: int, opened: int, directories: Sequence[str] = (), *, witness: int | None = None
    ) -> None:
        """See ``Syncs``."""
        self._disk.sync(fd, directories)

    def __repr__(self) -> str:
        return "SingleSyncs()"


class _PendingSync:
    """One that waits for a sync."""

    __slots__ = ("directories", "error", "fd", "opened", "witness")

    def __init__(self, fd: int, opened: int, directories: Sequence[str], witness: int):
        self.fd = fd
        self.witness = witness
        self.opened = opened
        self.directories = directories
        #: None only once everything is known to be durable.
        self.error: OSError | None = OSError(errno.EINTR, "the sync was not finished")


class SyncCostModel:
    """Decides whether one sync of a device's filesystem is cheaper than several syncs of files.

    Learns from what syncs of the filesystem took (``record_sync``); ``dirty_bytes``: what else they wait for.
    """

    def __init__(self, dirty_limit: int, dirty_bytes: Callable[[], int]):
        self._dirty_limit = dirty_limit
        self._read_dirty_bytes = dirty_bytes
        self._dirty_bytes = 0
        self._dirty_until = 0.0
        self._alone_until = 0.0

    def is_filesystem_sync_cheaper(self, file_syncs: int, now_s: float) -> bool:
        """Return True if a filesystem sync is cheaper than so many syncs of single files.

        ``now_s``: monotonic seconds.
        """
        if file_syncs < _WORTHWHILE_SYNCS or now_s < self._alone_until:
            return False
        if now_s >= self._dirty_until:
            self._dirty_bytes = self._read_dirty_bytes()
            self._dirty_until = now_s + DIRTY_FOR_S
        return self._dirty_bytes <= min(file_syncs * DIRTY_EACH, self._dirty_limit)

    def record_sync(self, saved: int, seconds: float, now: float) -> None:
        """Note a sync of the filesystem that replaced ``saved`` others and ended ``now``."""
        if seconds > max(LONG_S, saved * LONG_EACH_S):
            self._alone_until = now + PENALTY_S

    def __repr__(self) -> str:
        return f"<SyncCostModel {self._dirty_bytes} bytes dirty, alone until {self._alone_until:.1f}>"


class SharedSyncs:
    """``Syncs`` of the changes that are made to one device, by green threads or by threads of its pool.

    Those of green threads gather apart from those of other threads, because neither can wait for the other.
    ``run`` makes the blocking calls of the former, in a thread unless given.
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
        self._cost_model = SyncCostModel(dirty_limit, disk.dirty_bytes)
        self._monotonic = monotonic
        run = run or ThreadPool(1, "sync").call
        self._green_batches = GreenBatches[_PendingSync](lambda members: self._sync(members, run))
        self._thread_batches = ThreadBatches[_PendingSync](self._sync_together_if_cheaper)

    def make_durable(
        self, fd: int, opened: int, directories: Sequence[str] = (), *, witness: int | None = None
    ) -> None:
        """See ``Syncs``."""
        member = _PendingSync(fd, opened, directories, fd if witness is None else witness)
        if in_green_thread():
            self._green_batches.wait(member)
        elif not self._thread_batches.wait(member):
            self._single.make_durable(fd, opened, directories)
            return
        if member.error is not None:
            raise OSError(*member.error.args)

    def _sync(self, members: list[_PendingSync], run: Callable[..., None]) -> None:
        saved = _count_saved_syncs(members)
        if self._cost_model.is_filesystem_sync_cheaper(saved, self._monotonic()):
            # The waiting caller may give up and close its descriptor meanwhile.
            witness = self._disk.duplicate(_witness(members))
            try:
                self._sync_filesystem(members, witness, saved, run)
            finally:
                self._disk.close(witness)
        else:
            self._sync_each(members, run)

    def _sync_together_if_cheaper(self, members: list[_PendingSync]) -> bool:
        """In a thread: sync all if that is cheaper; else each does so in its own, at the same time."""
        saved = _count_saved_syncs(members)
        shares = self._cost_model.is_filesystem_sync_cheaper(saved, self._monotonic())
        if shares:
            self._sync_filesystem(members, _witness(members), saved, _run_inline)
        return shares

    def _sync_each(self, members: list[_PendingSync], run: Callable[..., None]) -> None:
        for member in members:
            try:
                # The waiting caller may give up and close its descriptor meanwhile.
                fd = self._disk.duplicate(member.fd)
                try:
                    run(self._single.make_durable, fd, member.opened, member.directories)
                finally:
                    self._disk.close(fd)
            except OSError as error:
                member.error = error
            else:
                member.error = None

    def _sync_filesystem(
        self, members: list[_PendingSync], witness: int, saved: int, run: Callable[..., None]
    ) -> None:
        started = self._monotonic()
        failure: OSError | None = None
        try:
            run(self._disk.sync_filesystem, witness)
        except OSError as error:
            failure = error
        for member in members:
            member.error = failure
        ended = self._monotonic()
        self._cost_model.record_sync(saved, ended - started, ended)

    def __repr__(self) -> str:
        return f"<SharedSyncs {self._cost_model!r}>"


def _witness(members: list[_PendingSync]) -> int:
    """Return the descriptor that was open first: the kernel tells it of all failures since."""
    return min(members, key=_moment).witness


def _moment(member: _PendingSync) -> int:
    return member.opened


def _count_saved_syncs(members: list[_PendingSync]) -> int:
    return sum(1 + len(member.directories) for member in members)


def _run_inline(function: Callable[..., None], *args: object) -> None:
    function(*args)
