"""Decides whether a request is admitted, from rules, capacity and usage, without input or output.

    grant = gate.ask(facts, now, expected_bytes=size)
    if isinstance(grant, Rejection): ...
    wait_s = grant.draw(65536, now)   # as bytes flow
    grant.end(now)

A request beyond a greatest rate of its own is refused with 429; one beyond what its lane may use now with
503; both say why and when to come again. One that is let in draws what it moves, and is told to wait when its
lane owes: streams that are under way then go slower, so that those with a guarantee get it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from swift.middleware.admission.amounts import NOTHING, RATES, Amounts, shown
from swift.middleware.admission.qos import QosClasses, RateLimit
from swift.middleware.admission.rules import LIMIT, AdmissionFacts, AdmissionRule, AdmissionRules

#: Of a request of unknown size so much is expected at first.
FIRST_GUESS_BYTES = 64 << 10
#: So much of a request is counted before it moves a byte, so that no more come in than can be served; of
#: longer ones the rest is counted as it moves, and may have to wait.
PREPAID_BYTES = 16 << 20
#: How much a single request changes what is expected of the next of its lane.
_LEARN = 0.1
#: What of the free streams a lane may take beyond its fair share.
_STREAMS_LENT = 0.75
#: The lanes of which sizes are remembered.
_SIZES_MAX = 10_000
#: The key of everything that is not guaranteed, in ``Demand``.
SPARE = "spare"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a request may not come in, and when it might."""

    status: int
    wait_s: float
    why: str


@dataclass(frozen=True, slots=True)
class ReservedClass:
    """A lane that a ticket gives: so many bytes a second."""

    key: str
    bytes: float


@dataclass(slots=True)
class Use:
    """Requests and bytes under one name since the last report, and the number of open streams."""

    bytes: float = 0.0
    requests: float = 0.0
    streams: int = 0


@dataclass(frozen=True, slots=True)
class _Class:
    key: str
    guaranteed: Amounts
    weight: float


class Admitted:
    """A request that was let in; ``end`` it exactly once."""

    __slots__ = ("lane", "_gate", "_limits", "_expected", "_prepaid", "_size", "_drawn", "_is_over")

    def __init__(
        self,
        gate: Limiter,
        lane: _Class,
        limits: Mapping[str, AdmissionRule],
        expected: float,
        prepaid: float,
    ):
        self.lane = lane.key
        self._gate = gate
        self._limits = tuple(limits)
        self._expected = expected
        self._prepaid = prepaid
        self._size: float | None = None
        self._drawn = 0.0
        self._is_over = False

    def expect(self, size: float, now: float) -> None:
        """It is known now how many bytes it has: so many are counted at once, up to what is paid
        beforehand."""
        self._size = size
        expected = min(size, self._prepaid)
        more, self._expected = expected - self._expected, expected
        if more:
            self._gate.draw(self.lane, self._limits, more, now)

    def draw(self, amount: float, now: float) -> float:
        """Count bytes that were moved; the seconds to wait before any more are."""
        # What was expected has been counted already and does not wait.
        counted = min(amount, self._expected)
        self._expected -= counted
        self._drawn += amount
        if amount <= counted:
            return 0.0
        return self._gate.draw(self.lane, self._limits, amount - counted, now)

    def wait_s(self, now: float) -> float:
        """The seconds that it is still to wait."""
        return self._gate.draw(self.lane, self._limits, 0.0, now)

    def end(self, now: float) -> None:
        """It is over."""
        if not self._is_over:
            self._is_over = True
            size = self._drawn if self._size is None else self._size
            self._gate.end(self.lane, self._limits, self._expected, size, now)


class Limiter:
    """Decides for one process."""

    def __init__(self, rules: AdmissionRules, capacity: Amounts, *, burst_s: float, now: float):
        self._rules = rules
        self._capacity = capacity
        self._burst_s = burst_s
        self._lanes = {name: QosClasses(getattr(capacity, name), burst_s, now) for name in RATES}
        self._known: dict[str, _Class] = {}
        self._bounds: dict[tuple[str, str], RateLimit] = {}
        #: What part of a name's rates is this process's, by (resource, name), and of names that are not
        #: there.
        self._parts: Mapping[tuple[str, str], float] = {}
        self._other_part = 1.0
        self._promises: Mapping[str, float] = {}
        self._elsewhere: Mapping[str, int] = {}
        self._sizes: dict[str, float] = {}
        #: Until when streams of a lane wait: as long as they do, no others come in.
        self._waits: dict[str, float] = {}
        #: Since the last report.
        self.uses: defaultdict[str, Use] = defaultdict(Use)

    # what it is told

    def set_rules(self, rules: AdmissionRules, now: float) -> None:
        """Other rules from now on; requests that are under way keep their lanes."""
        self._rules = rules
        self._known.clear()
        self._bounds.clear()
        self._settle(now)

    def set_capacity(self, capacity: Amounts, now: float) -> None:
        """Another capacity from now on, of the whole cluster."""
        self._capacity = capacity
        self._settle(now)

    def set_reservations(self, promises: Mapping[str, float], now: float) -> None:
        """Set the bandwidth reserved by the current reservations: bytes a second by lane name."""
        if promises != self._promises:
            self._promises = promises
            self._settle(now)

    def set_shares(
        self, parts: Mapping[tuple[str, str], float], other: float, streams: Mapping[str, int], now: float
    ) -> None:
        """Set this process's share of the cluster's rates, and the numbers of streams that other processes
        have open.
        """
        self._parts, self._other_part, self._elsewhere = parts, other, streams
        self._known.clear()
        for (resource, key), bound in self._bounds.items():
            whole = self._whole_bound(resource, key)
            if whole is not None:
                bound.rate = whole * self.part(resource, key)
        self._settle(now)

    def part(self, resource: str, key: str) -> float:
        """This process's part of a name's rate."""
        return self._parts.get((resource, key), self._other_part)

    def _settle(self, now: float) -> None:
        """This process's capacity: its parts of all guarantees, and of the rest."""
        for name, lanes in self._lanes.items():
            whole = getattr(self._capacity, name)
            if whole is None:
                lanes.set_capacity(None, now)
                continue
            kept = {key: getattr(amounts, name) or 0.0 for key, amounts in self._rules.guarantees().items()}
            if name == "bytes":
                kept.update(self._promises)
            total = sum(kept.values())
            mine = sum(amount * self.part(name, key) for key, amount in kept.items())
            scale = min(1.0, whole / total) if total else 1.0
            spare = max(0.0, whole - total) * self.part(name, SPARE)
            lanes.set_capacity(max(mine * scale + spare, 1e-6), now)

    def _whole_bound(self, resource: str, key: str) -> float | None:
        name = key.split("/", 1)[0].removeprefix(LIMIT)
        rule = next((rule for rule in self._rules.rules if rule.name == name), None)
        amount: float | None = None if rule is None else getattr(rule.greatest, resource)
        return amount

    # requests

    def ask(
        self,
        facts: AdmissionFacts,
        now: float,
        *,
        expected_bytes: float | None = None,
        promise: ReservedClass | None = None,
    ) -> Admitted | Rejection:
        """Let a request in, or say why not. ``expected_bytes`` None: its size is unknown."""
        lane = self._class_of(facts, promise)
        limits = dict(self._rules.limits_of(facts))
        size = self._sizes.get(lane.key, FIRST_GUESS_BYTES) if expected_bytes is None else expected_bytes
        prepaid = self._prepaid(limits)
        expected = min(size, prepaid)
        refusal = self._check_limits(limits, now) or self._check_class(lane, now)
        if refusal is not None:
            self._note(lane, limits, expected, 0)
            return refusal
        self._note(lane, limits, expected, 1)
        for name, amount in (("bytes", expected), ("requests", 1.0)):
            self._lanes[name].take(lane.key, amount, now)
            for key in limits:
                if (name, key) in self._bounds:
                    self._bounds[name, key].take(amount)
        return Admitted(self, lane, limits, expected, prepaid)

    def draw(self, lane: str, limits: tuple[str, ...], amount: float, now: float) -> float:
        """See ``Admitted.draw``; a negative amount gives back."""
        if amount:
            self.uses[lane].bytes += amount
        lanes = self._lanes["bytes"]
        self._open(lanes, "bytes", lane)
        lanes.take(lane, amount, now)
        wait_s = lanes.ask(lane, now)
        if wait_s > 0:
            self._waits[lane] = now + wait_s
        for key in limits:
            if amount:
                self.uses[key].bytes += amount
            bound = self._bounds.get(("bytes", key))
            if bound is not None:
                bound.take(amount)
                wait_s = max(wait_s, bound.ask(now))
        return wait_s

    def end(self, lane: str, limits: tuple[str, ...], unused: float, size: float, now: float) -> None:
        """See ``Admitted.end``."""
        if unused:
            self.draw(lane, limits, -unused, now)
        for key in (lane, *limits):
            self.uses[key].streams -= 1
        if len(self._sizes) >= _SIZES_MAX:
            self._sizes.clear()
        before = self._sizes.get(lane, FIRST_GUESS_BYTES)
        self._sizes[lane] = before + _LEARN * (min(size, PREPAID_BYTES) - before)

    def _class_of(self, facts: AdmissionFacts, promise: ReservedClass | None) -> _Class:
        if promise is not None:
            promised = Amounts(bytes=promise.bytes * self.part("bytes", promise.key))
            lane = self._known[promise.key] = _Class(promise.key, promised, 1.0)
            return lane
        key, rule = self._rules.lane_of(facts)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _SIZES_MAX:
                self._known.clear()
            whole = NOTHING if rule is None else rule.guaranteed
            mine = {n: a * self.part(n, key) for n in RATES if (a := getattr(whole, n)) is not None}
            weight = 1.0 if rule is None else rule.weight
            known = self._known[key] = _Class(key, replace(whole, **mine), weight)
        return known

    def _prepaid(self, limits: Mapping[str, AdmissionRule]) -> float:
        """Return the number of bytes to count before a request moves any: at most one second of the rate."""
        rates = [self._lanes["bytes"].capacity or PREPAID_BYTES]
        for key, rule in limits.items():
            if rule.greatest.bytes:
                rates.append(rule.greatest.bytes * self.part("bytes", key))
        return max(FIRST_GUESS_BYTES, min(PREPAID_BYTES, *rates))

    def _open(self, lanes: QosClasses, resource: str, key: str) -> None:
        """Have a lane ready to be asked."""
        lane = self._known.get(key)
        if lane is None:
            lanes.set_class(key)
        else:
            lanes.set_class(key, guaranteed=getattr(lane.guaranteed, resource) or 0.0, weight=lane.weight)

    def _note(self, lane: _Class, limits: Mapping[str, AdmissionRule], expected: float, streams: int) -> None:
        """Keep what was asked for, let in or not: it says how much of the whole this process needs."""
        for key in (lane.key, *limits):
            use = self.uses[key]
            use.bytes += expected
            use.requests += 1
            use.streams += streams

    def _check_limits(self, limits: Mapping[str, AdmissionRule], now: float) -> Rejection | None:
        for key, rule in limits.items():
            most = rule.greatest.streams
            if most is not None and self._streams(key) >= most:
                return _limited(rule, "streams", most, 1.0)
            for name in RATES:
                rate: float | None = getattr(rule.greatest, name)
                if rate is None:
                    continue
                bound = self._bounds.get((name, key))
                if bound is None:
                    bound = RateLimit(rate * self.part(name, key), self._burst_s, now)
                    self._keep(name, key, bound)
                wait_s = bound.ask(now)
                if wait_s > 0:
                    return _limited(rule, name, rate, wait_s)
        return None

    def _keep(self, name: str, key: str, bound: RateLimit) -> None:
        if len(self._bounds) >= _SIZES_MAX:
            self._bounds.clear()
        self._bounds[name, key] = bound

    def _check_class(self, lane: _Class, now: float) -> Rejection | None:
        refusal = self._check_streams(lane)
        if refusal is not None:
            return refusal
        for name, lanes in self._lanes.items():
            self._open(lanes, name, lane.key)
            wait_s = lanes.ask(lane.key, now)
            if name == "bytes":
                wait_s = max(wait_s, self._waits.get(lane.key, now) - now)
            if wait_s > 0:
                whole = getattr(self._capacity, name)
                return _full(lane.key, name, f"all {shown(whole, name)} are in use or promised", wait_s)
        return None

    def _check_streams(self, lane: _Class) -> Rejection | None:
        """Streams cannot be taken back, so those that are guaranteed are never lent."""
        whole = self._capacity.streams
        if whole is None:
            return None
        mine = self._streams(lane.key)
        if mine < (lane.guaranteed.streams or 0):
            return None
        kept = {key: amounts.streams or 0.0 for key, amounts in self._rules.guarantees().items()}
        lent = lane_count = 0.0
        for key in {*self.uses, *self._elsewhere}:
            if key.startswith(LIMIT):
                continue
            open_now = max(0.0, self._streams(key) - kept.get(key, 0))
            lent += open_now
            lane_count += open_now > 0 or key == lane.key
        free = max(0.0, whole - sum(kept.values()))
        has = max(0.0, mine - kept.get(lane.key, 0))
        fair = free / max(1.0, lane_count)
        if lent < free and (has < fair or lent < free * _STREAMS_LENT):
            return None
        return _full(lane.key, "streams", f"all {shown(whole, 'streams')} are in use or promised", 1.0)

    def _streams(self, key: str) -> int:
        use = self.uses.get(key)
        return (0 if use is None else use.streams) + self._elsewhere.get(key, 0)

    def report(self) -> dict[str, Use]:
        """Return the usage since the last report by name, and reset it; the numbers of open streams stay."""
        self._waits = {key: until for key, until in self._waits.items() if key in self.uses}
        told = {key: replace(use) for key, use in self.uses.items()}
        for key, use in list(self.uses.items()):
            use.bytes = use.requests = 0.0
            if not use.streams:
                del self.uses[key]
        return told

    def __repr__(self) -> str:
        return f"<Limiter {self._capacity}, {len(self._rules.rules)} rules, {self._lanes!r}>"


def _limited(rule: AdmissionRule, resource: str, most: float, wait_s: float) -> Rejection:
    return Rejection(429, wait_s, f"Rule {rule.name} allows {shown(most, resource)}.")


def _full(key: str, resource: str, what: str, wait_s: float) -> Rejection:
    return Rejection(503, wait_s, f"No {resource} are free for {key}: {what}.")
