"""Rate limit of updates for one container (spec: replication.md §6, options ``max_objects_per_…``).

Containers are hashed into buckets with a pace each. An update that comes too early is held back and handed
out when its bucket is due, or at the end; when too many are held back, or the pass has to end, the rest
stays on disk for the next pass.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from zlib import crc32

from swift.runtime.daemon import PassContext

U = TypeVar("U")


@dataclass(slots=True)
class _Bucket(Generic[U]):
    due_s: float = 0.0
    held: deque[U] = field(default_factory=deque)


class ContainerPacer(Generic[U]):
    """Reorders a stream of updates; counts ``deferrals``, ``drains`` and ``skips``."""

    def __init__(self, pass_context: PassContext, *, per_second: float, buckets: int, held_max: int):
        self._pass_context = pass_context
        self._gap_s = 1.0 / per_second
        self._buckets: list[_Bucket[U]] = [_Bucket() for _ in range(buckets)]
        self._held_max = held_max
        self._held = 0
        #: (due, index) of every bucket that holds something back.
        self._waiting: list[tuple[float, int]] = []

    def pace(self, updates: Iterator[U], container_of: Callable[[U], str]) -> Iterator[U]:
        """Yield the updates in the order in which they may be sent."""
        for update in updates:
            yield from self._due()
            index = crc32(container_of(update).encode("utf-8", "surrogateescape")) % len(self._buckets)
            if self._admit(index, update):
                yield update
        yield from self._drain()

    def _now(self) -> float:
        return self._pass_context.clock.monotonic()

    def _admit(self, index: int, update: U) -> bool:
        """Return True if the update is due; otherwise defer or skip it."""
        bucket = self._buckets[index]
        if not bucket.held and bucket.due_s <= self._now():
            bucket.due_s = self._now() + self._gap_s
            return True
        if self._held >= self._held_max:
            self._pass_context.counters.add("skips")
            return False
        if not bucket.held:
            heapq.heappush(self._waiting, (bucket.due_s, index))
        bucket.held.append(update)
        self._held += 1
        self._pass_context.counters.add("deferrals")
        return False

    def _due(self) -> Iterator[U]:
        while self._waiting and self._waiting[0][0] <= self._now():
            yield self._release()

    def _release(self) -> U:
        _, index = heapq.heappop(self._waiting)
        bucket = self._buckets[index]
        update = bucket.held.popleft()
        self._held -= 1
        bucket.due_s = self._now() + self._gap_s
        if bucket.held:
            heapq.heappush(self._waiting, (bucket.due_s, index))
        return update

    def _drain(self) -> Iterator[U]:
        """Yield the deferred updates that become due before the next pass."""
        while self._waiting:
            wait_s = self._waiting[0][0] - self._now()
            if self._now() + max(0.0, wait_s) >= self._pass_context.deadline_s:
                break
            if wait_s > 0 and self._pass_context.stop.wait(wait_s):
                return
            self._pass_context.counters.add("drains")
            yield self._release()
        if self._held:
            self._pass_context.counters.add("skips", self._held)
