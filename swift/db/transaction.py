"""Group commit: concurrent writes to one database share a transaction and its sync.

While one batch is being committed in a disk thread, later submitters gather in the next; the first of them
commits it as soon as the device is free. ``submit`` returns when its batch is durable and raises what its
commit raised, so nothing is acknowledged that is not stored. It knows neither SQL nor rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from swift.green import Event, sleep

#: Runs a blocking call off the event loop and returns its result.
Run = Callable[..., Any]
#: A batch that has this many items takes no more, which keeps the wait of each one short.
BATCH_MAX = 1000


class _Batch:
    """Items that will be committed together."""

    __slots__ = ("items", "turn", "done", "error")

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = list(items)
        #: Set when the batch before this one is done.
        self.turn = Event()
        self.done = Event()
        self.error: Exception | None = None


class GroupCommit:
    """Gathers items and hands them, in order of arrival, to ``commit`` in batches.

    ``commit`` runs through ``run`` (a disk thread); it must raise unless everything is durable.
    """

    def __init__(self, commit: Callable[[list[Any]], None], run: Run):
        self._commit = commit
        self._run = run
        self._busy = False
        self._waiting: deque[_Batch] = deque()
        #: Batches committed so far; with the number of items it tells how well grouping works.
        self.batches = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being committed or waits for it."""
        return not self._busy and not self._waiting

    def submit(self, items: Sequence[Any]) -> None:
        """Return when ``items`` are durable; raises what their commit raised."""
        last = self._waiting[-1] if self._waiting else None
        if last is not None and len(last.items) < BATCH_MAX:
            last.items.extend(items)
            last.done.wait()
            if last.error is not None:
                raise last.error
            return
        batch = _Batch(items)
        self._wait_for_turn(batch)
        self._lead(batch)
        if batch.error is not None:
            raise batch.error

    def _wait_for_turn(self, batch: _Batch) -> None:
        idle = self.is_idle
        self._waiting.append(batch)
        try:
            if idle:
                # Whatever else arrived in this turn of the loop comes along.
                batch.turn.set()
                sleep(0)
            else:
                batch.turn.wait()
        except BaseException:
            self._finish(batch, InterruptedError("the commit was abandoned"))
            raise
        finally:
            self._waiting.remove(batch)
            if batch.done.is_set and batch.turn.is_set:
                self._wake_next()

    def _lead(self, batch: _Batch) -> None:
        self._busy = True
        error: Exception | None = InterruptedError("the commit was abandoned")
        try:
            self._run(self._commit, batch.items)
            error = None
        except Exception as failure:
            error = failure
        finally:
            # Also when this green thread is killed: the disk thread goes on, nobody knows the outcome.
            self.batches += 1
            self._busy = False
            self._finish(batch, error)
            self._wake_next()

    def _wake_next(self) -> None:
        if self._waiting:
            self._waiting[0].turn.set()

    @staticmethod
    def _finish(batch: _Batch, error: Exception | None) -> None:
        batch.error = error
        batch.done.set()

    def __repr__(self) -> str:
        waiting = sum(len(batch.items) for batch in self._waiting)
        return f"<GroupCommit {'busy' if self._busy else 'idle'}, {waiting} waiting, {self.batches} done>"
