"""Transfer plans: fetching a large object from several nodes at once (doc/explanation/striping.md).

A plan cuts the wanted bytes into units. It sets the number of nodes that work at a time and the number of
units that may be in flight or waiting for the client (the look-ahead), which bounds the memory.
``TransferSchedule`` hands the units out while it runs. A source that is done gets the next one, so that a
fast node fetches more than a slow one. A unit that a node failed to fetch is given to another. The unit that
the client waits for is requested from a second node when the first takes several times as long as others do.
Both are pure and printable: sources are numbers here.

``TransferRates`` keeps the rates of devices from one download to the next. A rate is measured where a device
was the bottleneck of a download. It is used for some minutes, with less weight the older it is, and then
forgotten, so that a device that was slow is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swift.base.clock import Clock
from swift.base.ranges import Span
from swift.ring.device import Node

#: A unit is late when it takes so many times as long as the fastest node needs for one, and at least so long.
LATE_FACTOR = 3.0
LATE_MIN_S = 0.25
#: A node that fetches a unit in this time is not slow, however fast others are.
SLOW_MIN_S = 0.05
#: A node that is so many times slower than the fastest is left out: it would hardly contribute.
SLOW_FACTOR = 4.0
#: A node that is too slow to deliver in time may try again after so many seconds.
PROBE_S = 5.0
#: The weight of the last unit in a node's rate.
_LEARN = 0.3


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """The plan by which a span is fetched."""

    span: Span
    #: Bytes of a unit; the last one may be shorter.
    unit: int
    #: Number of nodes that work at a time.
    width: int
    #: Number of units that may be in flight or wait for the client at a time.
    ahead: int
    #: Known rates of nodes in bytes a second, in the order in which they begin; None: unknown.
    rates: tuple[float | None, ...] = ()
    #: Number of much slower nodes that are used only when others fail.
    left_out: int = 0

    @property
    def units(self) -> int:
        """The number of units."""
        return -(-self.span.length // self.unit)

    @property
    def memory(self) -> int:
        """Bytes that are held at most."""
        return self.unit * self.ahead

    def bytes_of(self, number: int) -> Span:
        """Return the bytes of a unit."""
        start = self.span.start + number * self.unit
        return Span(start, min(start + self.unit, self.span.stop))

    def __str__(self) -> str:
        known = ", ".join("?" if rate is None else f"{rate / 1e6:.1f}" for rate in self.rates)
        nodes = f"{self.width} nodes" + (f" ({known} MB/s)" if any(self.rates) else "")
        without = f" without {self.left_out} slow ones," if self.left_out else ""
        return (
            f"bytes {self.span.start}-{self.span.stop - 1}: {self.units} units of {self.unit} bytes from"
            f" {nodes},{without} {self.ahead} ahead, {self.memory} bytes at most"
        )


def is_much_slower(rate: float | None, best: float) -> bool:
    """Return True if a node of this rate is of no use beside the ``best``; False for an unknown rate."""
    return rate is not None and rate * SLOW_FACTOR < best


def make_plan(
    span: Span, *, rates: Sequence[float | None], unit: int, memory: int, from_bytes: int
) -> TransferPlan | None:
    """Return the plan for a span; None when one node is as good.

    ``rates`` are those of the nodes that have it, None where unknown: first that of the node with the open
    response, slow ones last. ``memory`` is the bound in bytes, ``from_bytes`` the shortest span that is
    worth it.
    """
    ahead = memory // unit
    best = max((rate for rate in rates if rate is not None), default=0.0)
    left_out = sum(is_much_slower(rate, best) for rate in rates[1:])
    # The unit being sent, and one that may be requested twice, give no work to another node.
    width = min(len(rates) - left_out, ahead - 2)
    if span.length < max(from_bytes, 2 * unit) or width < 2:
        return None
    return TransferPlan(span, unit, width, ahead, tuple(rates[:width]), left_out)


class TransferSchedule:
    """Decides which unit a source fetches next. Callers pass a time that never runs backwards, seconds."""

    def __init__(self, plan: TransferPlan):
        self.plan = plan
        #: The unit that the client gets next.
        self.consumed = 0
        self._next = 0
        #: Units that failed, to be fetched from another source.
        self._failed_units: set[int] = set()
        #: unit → source → when it began.
        self._under_way: dict[int, dict[int, float]] = {}
        #: Units that are there.
        self._fetched: set[int] = set()
        #: When a source began its last unit, or was refused its first.
        self._last_started: dict[int, float] = {}
        #: Seconds a unit takes, by source: what is known beforehand, and then what it took.
        self._times = {n: plan.unit / rate for n, rate in enumerate(plan.rates) if rate}

    @property
    def buffers(self) -> int:
        """Units in memory: under way, also twice, waiting for the client, or being sent."""
        under_way = sum(len(sources) for sources in self._under_way.values())
        return len(self._fetched) + under_way + (self.consumed > 0)

    @property
    def is_over(self) -> bool:
        """Everything was consumed."""
        return self.consumed >= self.plan.units

    def take(self, source: int, now: float) -> int | None:
        """Return the unit that a source is to fetch now; None if there is nothing to fetch."""
        number = self._choose(source, now)
        if number is not None:
            self._under_way.setdefault(number, {})[source] = now
            self._last_started[source] = now
        return number

    def _choose(self, source: int, now: float) -> int | None:
        free = self.plan.ahead - self.buffers
        if free <= 0:
            return None
        if self._failed_units:
            number = min(self._failed_units)
            self._failed_units.discard(number)
            return number
        if self._is_late(source, now):
            return self.consumed
        # The last place is reserved for a unit that is requested twice.
        is_room = free > 1 and self._next < min(self.plan.units, self.consumed + self.plan.ahead)
        if is_room and not self._would_delay(source, now):
            self._next += 1
            return self._next - 1
        return None

    def _would_delay(self, source: int, now: float) -> bool:
        """Return True if the client would wait for this source's next unit; False at times, to probe it."""
        took, best = self._times.get(source), min(self._times.values(), default=0.0)
        if took is None or took <= max(SLOW_MIN_S, LATE_FACTOR * best):
            return False
        if now - self._last_started.setdefault(source, now) > PROBE_S:
            return False
        before_it = self._next - self.consumed
        return took > before_it * best / max(1, self.plan.width - 1)

    def _is_late(self, source: int, now: float) -> bool:
        """Return True if the unit that the client waits for should be requested from this source as well."""
        sources = self._under_way.get(self.consumed, {})
        if len(sources) != 1 or source in sources:
            return False
        (began,) = sources.values()
        return now - began > self.late_s

    @property
    def late_s(self) -> float:
        """The seconds after which a unit is late."""
        return max(LATE_MIN_S, LATE_FACTOR * min(self._times.values(), default=LATE_MIN_S))

    def done(self, source: int, number: int, now: float) -> bool:
        """Record that a source fetched a unit; return False if another source was first and the data is
        superfluous.
        """
        sources = self._under_way.get(number, {})
        began = sources.pop(source, None)
        if began is not None:
            took, before = now - began, self._times.get(source)
            self._times[source] = took if before is None else before + _LEARN * (took - before)
        if not sources:
            self._under_way.pop(number, None)
        if number < self.consumed or number in self._fetched:
            return False
        self._fetched.add(number)
        return True

    def failed(self, source: int, number: int) -> None:
        """Record that a source failed to fetch a unit and fetches no more."""
        self._times.pop(source, None)
        sources = self._under_way.get(number, {})
        sources.pop(source, None)
        if not sources:
            self._under_way.pop(number, None)
            if number >= self.consumed and number not in self._fetched:
                self._failed_units.add(number)

    def consume(self) -> int | None:
        """Return the next unit for the client and count it as sent; None when it is not there yet."""
        if self.consumed not in self._fetched:
            return None
        self._fetched.discard(self.consumed)
        self.consumed += 1
        return self.consumed - 1

    def __str__(self) -> str:
        under_way = ", ".join(
            f"{number} from {'+'.join(map(str, sorted(sources)))}"
            for number, sources in sorted(self._under_way.items())
        )
        held = ", ".join(map(str, sorted(self._fetched)))
        sent = f"{self.consumed} of {self.plan.units} sent"
        return f"{sent}; held: {held or 'none'}; under way: {under_way or 'none'}"


#: A rate is used for so many seconds, and its weight against a new one is half after so many.
MAX_AGE_S = 300.0
HALF_LIFE_S = 60.0
#: Maximum number of devices with rates; the least recently measured ones are dropped.
DEVICES_MAX = 4096
#: Shorter transfers measure the request rather than the device.
BYTES_MIN = 64 << 10
#: The weight of a new rate from so many bytes; more bytes weigh more.
_LEARN_RATE = 0.3
_LEARN_BYTES = 4 << 20


class TransferRates:
    """Bytes a second by device, as one process has measured them."""

    def __init__(self, clock: Clock, *, devices_max: int = DEVICES_MAX):
        self.clock = clock
        self._devices_max = devices_max
        #: Key of a node → rate, and when it was measured; what was measured last comes last.
        self._seen: dict[str, tuple[float, float]] = {}

    def record(self, node: Node, size: int, seconds: float) -> None:
        """Record that a device sent ``size`` bytes in so many seconds."""
        if size < BYTES_MIN or seconds <= 0:
            return
        now, rate = self.clock.monotonic(), size / seconds
        known = self._seen.pop(node.key, None)
        if known is not None and now - known[1] <= MAX_AGE_S:
            weight = (1 - _LEARN_RATE) ** max(1.0, size / _LEARN_BYTES) * 0.5 ** (
                (now - known[1]) / HALF_LIFE_S
            )
            rate += weight * (known[0] - rate)
        elif len(self._seen) >= self._devices_max:
            del self._seen[next(iter(self._seen))]
        self._seen[node.key] = rate, now

    def rate_of(self, node: Node) -> float | None:
        """Return the rate of a device in bytes a second; None when no recent rate is known."""
        rate, at = self._seen.get(node.key, (0.0, -MAX_AGE_S - 1))
        return rate if self.clock.monotonic() - at <= MAX_AGE_S else None

    def slow_last(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes in their order, with those that are much slower than the fastest at the end."""
        rates = [(node, self.rate_of(node)) for node in nodes]
        best = max((rate for _, rate in rates if rate is not None), default=0.0)
        rates.sort(key=lambda pair: is_much_slower(pair[1], best))
        return [node for node, _ in rates]

    def fastest_first(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes by their rates; nodes with an unknown rate lead, so that it is measured."""
        known = {node.id: self.rate_of(node) for node in nodes}
        return sorted(nodes, key=lambda node: -(known[node.id] or float("inf")))

    def __repr__(self) -> str:
        rates = ", ".join(f"{key} {rate / 1e6:.1f} MB/s" for key, (rate, _) in self._seen.items())
        return f"<Rates {rates}>"
