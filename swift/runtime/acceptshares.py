"""Fair shares of new connections among the workers of one address.

The workers accept from one socket, and whichever is woken first takes a connection. Of 16 connections that
clients keep open one worker easily gets 12, while another one idles. Each worker therefore tells the others
how many it has, in shared memory; one with more than another of them waits a moment before it accepts.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

#: A worker with more connections than another leaves a new one to it for so long, seconds.
YIELD_S = 0.002
#: A worker that took and ended nothing during so many of these waits hangs: no other waits for it.
YIELDS_MAX = 50
#: Of a worker that does not accept.
_AWAY = -1
_ITEM_BYTES = 4
_CHANGES_MAX = (1 << 31) - 1


class AcceptShares:
    """The number of connections of each worker, and how often it changed; make it before forking."""

    def __init__(self, slots: int):
        slots = max(1, slots)
        numbers = memoryview(mmap.mmap(-1, 2 * slots * _ITEM_BYTES)).cast("i")
        self._counts, self._changes = numbers[:slots], numbers[slots:]
        for slot in range(slots):
            self._counts[slot] = _AWAY

    def register_worker(self, slot: int, peers: Sequence[int]) -> AcceptShare:
        """Return the share of this process as worker ``slot``; ``peers`` accept from the same socket."""
        return AcceptShare(self._counts, self._changes, slot, peers)


class AcceptShare:
    """The share of one worker."""

    def __init__(self, counts: memoryview, changes: memoryview, slot: int, peers: Sequence[int]):
        self._counts = counts
        self._changes = changes
        self._slot = slot
        #: Other worker → the changes that it had at the last wait, and the waits since it has those.
        self._waits = {peer: (0, 0) for peer in peers if peer != slot}
        self.update(0)

    def update(self, connections: int) -> None:
        """Tell the others how many connections this worker has."""
        slot, changes = self._slot, self._changes
        self._counts[slot] = connections
        changes[slot] = (changes[slot] + 1) & _CHANGES_MAX

    def leave(self) -> None:
        """Tell the others that this worker accepts no more."""
        self._counts[self._slot] = _AWAY

    def is_ahead(self) -> bool:
        """Return True if a connection should be left to another worker; the caller then waits."""
        counts, waits = self._counts, self._waits
        own, is_ahead = counts[self._slot], False
        for peer, (known, waited) in waits.items():
            if _AWAY < counts[peer] < own:
                changes = self._changes[peer]
                waited = waited + 1 if changes == known else 1
                waits[peer] = changes, waited
                is_ahead = is_ahead or waited <= YIELDS_MAX
        return is_ahead
