"""Group commit: concurrent writes to one database share a transaction and its sync.

While one batch is being committed in a disk thread, later submitters gather in the next; the first of them
commits it as soon as the device is free. ``submit`` returns when its batch is durable and raises what its
commit raised, so nothing is acknowledged that is not stored. It knows neither SQL nor rows.

The life of a batch:

==============  =======================================  ==========================================
state           begins when                              ends when
==============  =======================================  ==========================================
gathering       a submitter finds none that has room     its turn has come: at once if nothing was
                                                         under way, else when those before are done
being written   its first submitter takes it out of      ``commit`` returned or raised, or that
                ``_waiting``                             submitter was killed
done            ``_end`` wakes who joined, and sets      never
                the turn of the next
given up        its first submitter is killed while it   never; who joined gets an error, and the
                gathers                                  turn goes on
==============  =======================================  ==========================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from swift.base.calls import Run as Run
from swift.green import Event, sleep

#: A batch that has this many items takes no more, which keeps the wait of each one short.
BATCH_MAX = 1000


class _Batch:
    """Items that will be committed together."""

    __slots__ = ("items", "turn", "done", "error")

    def __init__(self, items: Sequence[object], turn: Event | None) -> None:
        self.items = list(items)
        #: Set when the batch before this one is done; None for one that need not wait.
        self.turn = turn
        #: Made by the first one who joins.
        self.done: Event | None = None
        self.error: Exception | None = None

    def join(self, items: Sequence[object]) -> None:
        """Have ``items`` committed too; returns when it is done."""
        self.items.extend(items)
        if self.done is None:
            self.done = Event()
        self.done.wait()
        if self.error is not None:
            raise self.error


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
        """True if no commit runs or waits."""
        return not self._busy and not self._waiting

    def submit(self, items: Sequence[object]) -> None:
        """Return when ``items`` are durable; raises what their commit raised."""
        waiting = self._waiting
        if waiting and len(waiting[-1].items) < BATCH_MAX:
            waiting[-1].join(items)
            return
        batch = _Batch(items, Event() if self._busy or waiting else None)
        waiting.append(batch)
        try:
            if batch.turn is None:
                # Whatever else arrived in this turn of the loop comes along.
                sleep(0)
            else:
                batch.turn.wait()
            waiting.remove(batch)
            self._busy = True
            self._run(self._commit, batch.items)
        except Exception as error:
            batch.error = error
            raise
        except BaseException:
            # This green thread is killed; the disk thread may go on, and the outcome is unknown.
            batch.error = InterruptedError("the commit was abandoned")
            raise
        finally:
            self._end(batch)

    def _end(self, batch: _Batch) -> None:
        """Tell who joined, and then who comes next."""
        waiting = self._waiting
        if batch in waiting:
            waiting.remove(batch)
        else:
            self._busy = False
            self.batches += 1
        if batch.done is not None:
            batch.done.set()
        had_turn = batch.turn is None or batch.turn.is_set
        if had_turn and waiting and (turn := waiting[0].turn) is not None:
            turn.set()

    def __repr__(self) -> str:
        waiting = sum(len(batch.items) for batch in self._waiting)
        return f"<GroupCommit {'busy' if self._busy else 'idle'}, {waiting} waiting, {self.batches} done>"
