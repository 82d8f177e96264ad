"""Gathers what waits at the same moment, so that it is done together: group commit (DeWitt et al., 1984).

While one batch is being processed, the next one gathers. Green threads gather apart from other threads,
because neither can wait for the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from swift.green import Event, spawn_detached
from swift.platform.waiting import yielding

M = TypeVar("M")


class _GreenBatch(Generic[M]):
    """Green threads that wait for the next processing."""

    __slots__ = ("done", "is_begun", "members")

    def __init__(self) -> None:
        self.members: list[M] = []
        self.done = Event()
        self.is_begun = False


class GreenBatches(Generic[M]):
    """Processes what green threads bring in one turn of the event loop together.

    ``process`` gets the members and reports failures through them; it must not raise. With ``finishes`` a
    green thread that is killed leaves only after a processing that has begun with its member.
    """

    def __init__(self, process: Callable[[list[M]], object], *, finishes: bool = False):
        self._process = process
        self._finishes = finishes
        self._gathering: _GreenBatch[M] | None = None
        self._is_busy = False

    def wait(self, member: M) -> None:
        """Return when the member was processed."""
        batch = self._gathering
        if batch is None:
            batch = self._gathering = _GreenBatch()
        batch.members.append(member)
        if not self._is_busy:
            self._is_busy = True
            spawn_detached(self._process_all)
        with yielding():
            try:
                batch.done.wait()
            except BaseException:
                while self._finishes and batch.is_begun and not batch.done.is_set:
                    self._wait_on(batch)
                raise
            finally:
                if batch is self._gathering:
                    # Given up before its turn; others may be equal to it.
                    batch.members[:] = [each for each in batch.members if each is not member]

    def _wait_on(self, batch: _GreenBatch[M]) -> None:
        try:
            batch.done.wait()
        except BaseException:
            # Killed again; the first one is raised when the batch is done.
            return

    def _process_all(self) -> None:
        """Process batch after batch until no caller waits; begins when all callers woken together wait."""
        try:
            while self._gathering is not None:
                batch, self._gathering = self._gathering, None
                batch.is_begun = True
                try:
                    self._process(batch.members)
                finally:
                    batch.done.set()
        finally:
            self._is_busy = False


class _ThreadBatch(Generic[M]):
    """Threads that may share the next processing; the first of them decides, and does it."""

    __slots__ = ("is_done", "is_shared", "members")

    def __init__(self) -> None:
        self.members: list[M] = []
        self.is_done = False
        self.is_shared = True


class ThreadBatches(Generic[M]):
    """Processes what threads bring while one batch is under way together.

    ``process`` processes a batch, or returns False at once.
    """

    def __init__(self, process: Callable[[list[M]], bool]):
        self._process = process
        self._changed = threading.Condition()
        self._gathering: _ThreadBatch[M] | None = None
        self._is_busy = False

    def wait(self, member: M) -> bool:
        """Return when the member was processed; False when its batch was not."""
        with self._changed:
            batch = self._gathering
            if batch is not None:
                batch.members.append(member)
                while not batch.is_done:
                    self._changed.wait()
                return batch.is_shared
            batch = self._gathering = _ThreadBatch()
            batch.members.append(member)
            while self._is_busy:
                self._changed.wait()
            self._gathering = None
            self._is_busy = True
        try:
            batch.is_shared = self._process(batch.members)
        finally:
            with self._changed:
                self._is_busy = False
                batch.is_done = True
                self._changed.notify_all()
        return batch.is_shared
