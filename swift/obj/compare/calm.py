"""Which partitions a pass leaves alone for now, because they are being written.

Hashing a partition while objects come in says little about it in a moment, costs a durable write of its
hashes, and takes the device from those who write. A partition that was in order when it was last looked at is
therefore left alone until it comes to rest; one that never does is looked at now and then. What could not be
brought in order is never left alone. A new ring makes every partition worth a look, and so does a partner
that turns out to have lost something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from swift.ring.view import RingView

#: A partition that is being written is looked at after so long, seconds, although it did not come to rest.
BUSY_S = 600.0


class Calm:
    """The memory of one daemon, kept from pass to pass; some 100 bytes a partition.

    A partition is at rest when it was not written for ``calm_s`` seconds.
    """

    def __init__(self, monotonic: Callable[[], float], calm_s: float, busy_s: float = BUSY_S):
        self._monotonic = monotonic
        self._calm_s = calm_s
        self._busy_s = busy_s
        #: Device and policy → the ring they go by, and when partitions were found settled.
        self._settled: dict[tuple[str, int], tuple[RingView, dict[int, float]]] = {}

    def may_wait(self, device: str, policy: int, view: RingView, part: int, idle_s: float) -> bool:
        """Whether to leave a partition alone that was written ``idle_s`` seconds ago."""
        settled_s = self._of(device, policy, view).get(part)
        if settled_s is None or idle_s >= self._calm_s:
            return False
        return self._monotonic() - settled_s < self._busy_s

    def settled(self, device: str, policy: int, view: RingView, parts: Iterable[int]) -> None:
        """Everybody has the same of these partitions, or was just brought what was lacking."""
        self._of(device, policy, view).update(dict.fromkeys(parts, self._monotonic()))

    def forget(self, device: str, policy: int) -> None:
        """Everything is worth a look: a partner may have lost all it had."""
        self._settled.pop((device, policy), None)

    def _of(self, device: str, policy: int, view: RingView) -> dict[int, float]:
        ring, known = self._settled.get((device, policy), (None, {}))
        if ring is not view:
            known = {}
            self._settled[device, policy] = view, known
        return known

    def __repr__(self) -> str:
        return f"<Calm {sum(len(known) for _, known in self._settled.values())} settled partitions>"
