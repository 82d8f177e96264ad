"""Decides whether a request is admitted, from rules, capacity and usage, without input or output.

    grant = limiter.admit(facts, now, expected_bytes=size)
    if isinstance(grant, Rejection): ...
    wait_s = grant.count_bytes(65536, now)   # as bytes flow
    grant.end(now)

A request beyond its own rate limit is rejected with 429, one beyond its class's present share with 503. Both
responses have the reason and a Retry-After. An admitted request draws the bytes that it moves, and waits when
its class is in debt: running streams then go slower, so that those with a guarantee get it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from swift.middleware.admission.amounts import NO_AMOUNTS, RATES, Amounts, format_amount
from swift.middleware.admission.qos import QosClasses, RateLimit
from swift.middleware.admission.rules import LIMIT_PREFIX, AdmissionRule, AdmissionRules, RequestProperties

#: Of a request of unknown size so much is expected at first.
UNKNOWN_SIZE_BYTES = 64 << 10
#: So much of a request is counted before it moves a byte, so that no more come in than can be served; of
#: longer ones the rest is counted as it moves, and may have to wait.
PREPAID_BYTES = 16 << 20
#: Weight of a single request in the expected size of the next of its class.
_SIZE_SMOOTHING = 0.1
#: Part of the free streams that a class may take beyond its fair share.
_LENDABLE_STREAMS_SHARE = 0.75
#: The classes of which sizes are remembered.
_SIZES_MAX = 10_000
#: The key of everything that is not guaranteed, in ``Usage`` by key.
UNGUARANTEED_KEY = "spare"


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason why a request is not admitted, and the time until it may be."""

    status: int
    wait_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class ReservedClass:
    """The class of a ticket, with its bytes a second."""

    key: str
    bytes: float


@dataclass(slots=True)
class Usage:
    """Requests and bytes under one name since the last report, and the number of open streams."""

    bytes: float = 0.0
    requests: float = 0.0
    streams: int = 0


@dataclass(frozen=True, slots=True)
class _ClassSettings:
    key: str
    guaranteed: Amounts
    weight: float


class AdmittedRequest:
    """An admitted request; ``end`` it exactly once."""

    __slots__ = (
        "class_key",
        "_limiter",
        "_limits",
        "_expected",
        "_prepaid_bytes",
        "_size",
        "_moved",
        "_is_over",
    )

    def __init__(
        self,
        limiter: Limiter,
        qos_class: _ClassSettings,
        limits: Mapping[str, AdmissionRule],
        expected: float,
        prepaid: float,
    ):
        self.class_key = qos_class.key
        self._limiter = limiter
        self._limits = tuple(limits)
        self._expected = expected
        self._prepaid_bytes = prepaid
        self._size: float | None = None
        self._moved = 0.0
        self._is_over = False

    def set_expected_size(self, size: float, now: float) -> None:
        """Count a size that is known now, up to the prepaid bytes."""
        self._size = size
        expected = min(size, self._prepaid_bytes)
        more, self._expected = expected - self._expected, expected
        if more:
            self._limiter.count_bytes(self.class_key, self._limits, more, now)

    def count_bytes(self, amount: float, now: float) -> float:
        """Count bytes that were moved; return the seconds to wait before the next ones."""
        # Expected bytes have been counted already and do not wait.
        counted = min(amount, self._expected)
        self._expected -= counted
        self._moved += amount
        if amount <= counted:
            return 0.0
        return self._limiter.count_bytes(self.class_key, self._limits, amount - counted, now)

    def wait_s(self, now: float) -> float:
        """Return the seconds that the request still has to wait."""
        return self._limiter.count_bytes(self.class_key, self._limits, 0.0, now)

    def end(self, now: float) -> None:
        """End the request and count its remaining bytes."""
        if not self._is_over:
            self._is_over = True
            size = self._moved if self._size is None else self._size
            self._limiter.end(self.class_key, self._limits, self._expected, size, now)


class Limiter:
    """Admits and rejects requests for one process."""

    def __init__(self, rules: AdmissionRules, capacity: Amounts, *, burst_s: float, now: float):
        self._rules = rules
        self._capacity = capacity
        self._burst_s = burst_s
        self._classes = {name: QosClasses(getattr(capacity, name), burst_s, now) for name in RATES}
        self._class_settings: dict[str, _ClassSettings] = {}
        self._rate_limits: dict[tuple[str, str], RateLimit] = {}
        #: This process's part of a name's rates, by (resource, name), and of names that are not
        #: there.
        self._shares: Mapping[tuple[str, str], float] = {}
        self._other_share = 1.0
        self._reservations: Mapping[str, float] = {}
        self._other_streams: Mapping[str, int] = {}
        self._sizes: dict[str, float] = {}
        #: Until when streams of a class wait: as long as they do, no others come in.
        self._waiting_until: dict[str, float] = {}
        #: Since the last report.
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)

    # settings

    def set_rules(self, rules: AdmissionRules, now: float) -> None:
        """Set the rules from now on; running requests keep their classes."""
        self._rules = rules
        self._class_settings.clear()
        self._rate_limits.clear()
        self._apply_shares(now)

    def set_capacity(self, capacity: Amounts, now: float) -> None:
        """Set the capacity of the whole cluster from now on."""
        self._capacity = capacity
        self._apply_shares(now)

    def set_reservations(self, reservations: Mapping[str, float], now: float) -> None:
        """Set the bandwidth reserved by the current reservations: bytes a second by class name."""
        if reservations != self._reservations:
            self._reservations = reservations
            self._apply_shares(now)

    def set_shares(
        self, shares: Mapping[tuple[str, str], float], other: float, streams: Mapping[str, int], now: float
    ) -> None:
        """Set this process's share of the cluster's rates, and the numbers of streams that other processes
        have open.
        """
        self._shares, self._other_share, self._other_streams = shares, other, streams
        self._class_settings.clear()
        for (resource, key), rate_limit in self._rate_limits.items():
            whole = self._cluster_limit(resource, key)
            if whole is not None:
                rate_limit.rate = whole * self.share(resource, key)
        self._apply_shares(now)

    def share(self, resource: str, key: str) -> float:
        """Return this process's part of a name's rate."""
        return self._shares.get((resource, key), self._other_share)

    def _apply_shares(self, now: float) -> None:
        """Set this process's capacity: its shares of all guarantees, and of the rest."""
        for name, classes in self._classes.items():
            whole = getattr(self._capacity, name)
            if whole is None:
                classes.set_capacity(None, now)
                continue
            guaranteed_streams = {
                key: getattr(amounts, name) or 0.0 for key, amounts in self._rules.guarantees().items()
            }
            if name == "bytes":
                guaranteed_streams.update(self._reservations)
            total = sum(guaranteed_streams.values())
            mine = sum(amount * self.share(name, key) for key, amount in guaranteed_streams.items())
            scale = min(1.0, whole / total) if total else 1.0
            spare = max(0.0, whole - total) * self.share(name, UNGUARANTEED_KEY)
            classes.set_capacity(max(mine * scale + spare, 1e-6), now)

    def _cluster_limit(self, resource: str, key: str) -> float | None:
        name = key.split("/", 1)[0].removeprefix(LIMIT_PREFIX)
        rule = next((rule for rule in self._rules.rules if rule.name == name), None)
        amount: float | None = None if rule is None else getattr(rule.greatest, resource)
        return amount

    # requests

    def admit(
        self,
        properties: RequestProperties,
        now: float,
        *,
        expected_bytes: float | None = None,
        reserved: ReservedClass | None = None,
    ) -> AdmittedRequest | Rejection:
        """Admit or reject a request. ``expected_bytes`` is None if its size is unknown."""
        qos_class = self._find_class(properties, reserved)
        limits = dict(self._rules.matching_limits(properties))
        size = (
            self._sizes.get(qos_class.key, UNKNOWN_SIZE_BYTES) if expected_bytes is None else expected_bytes
        )
        prepaid = self._prepaid_bytes(limits)
        expected = min(size, prepaid)
        rejection = self._check_limits(limits, now) or self._check_class(qos_class, now)
        if rejection is not None:
            self._record_request(qos_class, limits, expected, 0)
            return rejection
        self._record_request(qos_class, limits, expected, 1)
        for name, amount in (("bytes", expected), ("requests", 1.0)):
            self._classes[name].consume(qos_class.key, amount, now)
            for key in limits:
                if (name, key) in self._rate_limits:
                    self._rate_limits[name, key].consume(amount)
        return AdmittedRequest(self, qos_class, limits, expected, prepaid)

    def count_bytes(self, class_key: str, limits: tuple[str, ...], amount: float, now: float) -> float:
        """Count bytes and return the seconds to wait; a negative amount is returned."""
        if amount:
            self.usage[class_key].bytes += amount
        classes = self._classes["bytes"]
        self._configure_class(classes, "bytes", class_key)
        classes.consume(class_key, amount, now)
        wait_s = classes.wait_s(class_key, now)
        if wait_s > 0:
            self._waiting_until[class_key] = now + wait_s
        for key in limits:
            if amount:
                self.usage[key].bytes += amount
            rate_limit = self._rate_limits.get(("bytes", key))
            if rate_limit is not None:
                rate_limit.consume(amount)
                wait_s = max(wait_s, rate_limit.wait_s(now))
        return wait_s

    def end(self, class_key: str, limits: tuple[str, ...], unused: float, size: float, now: float) -> None:
        """Return the unused bytes of a request that ended, and note its size."""
        if unused:
            self.count_bytes(class_key, limits, -unused, now)
        for key in (class_key, *limits):
            self.usage[key].streams -= 1
        if len(self._sizes) >= _SIZES_MAX:
            self._sizes.clear()
        before = self._sizes.get(class_key, UNKNOWN_SIZE_BYTES)
        self._sizes[class_key] = before + _SIZE_SMOOTHING * (min(size, PREPAID_BYTES) - before)

    def _find_class(self, properties: RequestProperties, reserved: ReservedClass | None) -> _ClassSettings:
        if reserved is not None:
            promised = Amounts(bytes=reserved.bytes * self.share("bytes", reserved.key))
            qos_class = self._class_settings[reserved.key] = _ClassSettings(reserved.key, promised, 1.0)
            return qos_class
        key, rule = self._rules.find_class(properties)
        known = self._class_settings.get(key)
        if known is None:
            if len(self._class_settings) >= _SIZES_MAX:
                self._class_settings.clear()
            whole = NO_AMOUNTS if rule is None else rule.guaranteed
            mine = {n: a * self.share(n, key) for n in RATES if (a := getattr(whole, n)) is not None}
            weight = 1.0 if rule is None else rule.weight
            known = self._class_settings[key] = _ClassSettings(key, replace(whole, **mine), weight)
        return known

    def _prepaid_bytes(self, limits: Mapping[str, AdmissionRule]) -> float:
        """Return the number of bytes to count before a request moves any: at most one second of the rate."""
        rates = [self._classes["bytes"].capacity or PREPAID_BYTES]
        for key, rule in limits.items():
            if rule.greatest.bytes:
                rates.append(rule.greatest.bytes * self.share("bytes", key))
        return max(UNKNOWN_SIZE_BYTES, min(PREPAID_BYTES, *rates))

    def _configure_class(self, classes: QosClasses, resource: str, key: str) -> None:
        """Set a class before it is used."""
        qos_class = self._class_settings.get(key)
        if qos_class is None:
            classes.set_class(key)
        else:
            classes.set_class(
                key, guaranteed=getattr(qos_class.guaranteed, resource) or 0.0, weight=qos_class.weight
            )

    def _record_request(
        self, qos_class: _ClassSettings, limits: Mapping[str, AdmissionRule], expected: float, streams: int
    ) -> None:
        """Record a request, admitted or not: demand decides this process's share of the whole."""
        for key in (qos_class.key, *limits):
            use = self.usage[key]
            use.bytes += expected
            use.requests += 1
            use.streams += streams

    def _check_limits(self, limits: Mapping[str, AdmissionRule], now: float) -> Rejection | None:
        for key, rule in limits.items():
            most = rule.greatest.streams
            if most is not None and self._count_streams(key) >= most:
                return _limit_rejection(rule, "streams", most, 1.0)
            for name in RATES:
                rate: float | None = getattr(rule.greatest, name)
                if rate is None:
                    continue
                rate_limit = self._rate_limits.get((name, key))
                if rate_limit is None:
                    rate_limit = RateLimit(rate * self.share(name, key), self._burst_s, now)
                    self._add_rate_limit(name, key, rate_limit)
                wait_s = rate_limit.wait_s(now)
                if wait_s > 0:
                    return _limit_rejection(rule, name, rate, wait_s)
        return None

    def _add_rate_limit(self, name: str, key: str, rate_limit: RateLimit) -> None:
        if len(self._rate_limits) >= _SIZES_MAX:
            self._rate_limits.clear()
        self._rate_limits[name, key] = rate_limit

    def _check_class(self, qos_class: _ClassSettings, now: float) -> Rejection | None:
        rejection = self._check_streams(qos_class)
        if rejection is not None:
            return rejection
        for name, classes in self._classes.items():
            self._configure_class(classes, name, qos_class.key)
            wait_s = classes.wait_s(qos_class.key, now)
            if name == "bytes":
                wait_s = max(wait_s, self._waiting_until.get(qos_class.key, now) - now)
            if wait_s > 0:
                whole = getattr(self._capacity, name)
                return _capacity_rejection(
                    qos_class.key, name, f"all {format_amount(whole, name)} are in use or promised", wait_s
                )
        return None

    def _check_streams(self, qos_class: _ClassSettings) -> Rejection | None:
        """Check the number of streams; guaranteed streams are not lent, because they cannot be withdrawn."""
        whole = self._capacity.streams
        if whole is None:
            return None
        mine = self._count_streams(qos_class.key)
        if mine < (qos_class.guaranteed.streams or 0):
            return None
        guaranteed_streams = {
            key: amounts.streams or 0.0 for key, amounts in self._rules.guarantees().items()
        }
        lent = lane_count = 0.0
        for key in {*self.usage, *self._other_streams}:
            if key.startswith(LIMIT_PREFIX):
                continue
            open_now = max(0.0, self._count_streams(key) - guaranteed_streams.get(key, 0))
            lent += open_now
            lane_count += open_now > 0 or key == qos_class.key
        free = max(0.0, whole - sum(guaranteed_streams.values()))
        has = max(0.0, mine - guaranteed_streams.get(qos_class.key, 0))
        fair = free / max(1.0, lane_count)
        if lent < free and (has < fair or lent < free * _LENDABLE_STREAMS_SHARE):
            return None
        return _capacity_rejection(
            qos_class.key, "streams", f"all {format_amount(whole, 'streams')} are in use or promised", 1.0
        )

    def _count_streams(self, key: str) -> int:
        use = self.usage.get(key)
        return (0 if use is None else use.streams) + self._other_streams.get(key, 0)

    def take_report(self) -> dict[str, Usage]:
        """Return the usage since the last report by name, and reset it; the numbers of open streams stay."""
        self._waiting_until = {key: until for key, until in self._waiting_until.items() if key in self.usage}
        usage = {key: replace(use) for key, use in self.usage.items()}
        for key, use in list(self.usage.items()):
            use.bytes = use.requests = 0.0
            if not use.streams:
                del self.usage[key]
        return usage

    def __repr__(self) -> str:
        return f"<Limiter {self._capacity}, {len(self._rules.rules)} rules, {self._classes!r}>"


def _limit_rejection(rule: AdmissionRule, resource: str, most: float, wait_s: float) -> Rejection:
    return Rejection(429, wait_s, f"Rule {rule.name} allows {format_amount(most, resource)}.")


def _capacity_rejection(key: str, resource: str, what: str, wait_s: float) -> Rejection:
    return Rejection(503, wait_s, f"No {resource} are free for {key}: {what}.")
