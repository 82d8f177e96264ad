"""What devices brought lately, remembered from one download to the next (doc/explanation/striping.md).

A rate is measured where a device was what a download waited for: units that are fetched whole, archives that
were waited for most of the time. It is believed for some minutes, the less against a new one the older it is,
and then forgotten, so that a device that was slow is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence

from swift.base.clock import Clock
from swift.proxy.obj.plan import is_much_slower
from swift.ring.device import Node

#: A rate is believed for so many seconds, and counts half against a new one after so many.
BELIEVED_S = 300.0
HALF_S = 60.0
#: How many devices are remembered; those that were heard of longest ago are forgotten.
DEVICES_MAX = 4096
#: What is shorter says more about the request than about the device.
BYTES_MIN = 64 << 10
#: How much a new rate of so many bytes says; of more it says more.
_LEARN = 0.3
_LEARN_BYTES = 4 << 20


class Rates:
    """Bytes a second by device, as one process has measured them."""

    def __init__(self, clock: Clock, *, devices_max: int = DEVICES_MAX):
        self._clock = clock
        self._devices_max = devices_max
        #: Key of a node → rate, and when it was measured; what was measured last comes last.
        self._seen: dict[str, tuple[float, float]] = {}

    def record(self, node: Node, size: int, seconds: float) -> None:
        """A device brought ``size`` bytes in so long."""
        if size < BYTES_MIN or seconds <= 0:
            return
        now, rate = self._clock.monotonic(), size / seconds
        known = self._seen.pop(node.key, None)
        if known is not None and now - known[1] <= BELIEVED_S:
            weight = (1 - _LEARN) ** max(1.0, size / _LEARN_BYTES) * 0.5 ** ((now - known[1]) / HALF_S)
            rate += weight * (known[0] - rate)
        elif len(self._seen) >= self._devices_max:
            del self._seen[next(iter(self._seen))]
        self._seen[node.key] = rate, now

    def of(self, node: Node) -> float | None:
        """Bytes a second of a device; None when nothing is known that can be believed."""
        rate, at = self._seen.get(node.key, (0.0, -BELIEVED_S - 1))
        return rate if self._clock.monotonic() - at <= BELIEVED_S else None

    def slow_last(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes in their order, but those that are much slower than the quickest last."""
        rates = [(node, self.of(node)) for node in nodes]
        best = max((rate for _, rate in rates if rate is not None), default=0.0)
        rates.sort(key=lambda pair: is_much_slower(pair[1], best))
        return [node for node, _ in rates]

    def quickest_first(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes by their rates; those of which nothing is known lead, so that something will be."""
        known = {node.id: self.of(node) for node in nodes}
        return sorted(nodes, key=lambda node: -(known[node.id] or float("inf")))

    def __repr__(self) -> str:
        rates = ", ".join(f"{key} {rate / 1e6:.1f} MB/s" for key, (rate, _) in self._seen.items())
        return f"<Rates {rates}>"
