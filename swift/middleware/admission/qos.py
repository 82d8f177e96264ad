"""QoS classes: one rate divided into a guarantee for each class, and fair shares of the rest.

Every class (an account, or the subject of a rule) has two kinds of tokens. Its *guaranteed tokens* grow at
its guaranteed rate; no other class uses them until they are at their maximum, and the overflow is shared.
Its *shared tokens* grow by its share of the free rate: everything that is not guaranteed or not used, divided
among the active classes by weight. A class whose tokens are not below zero may continue. Use is counted
afterwards, so tokens may fall below zero; this debt is paid back first.

Invariants, which are tested: in any time T at most capacity x (T + 2 x burst) is used, and a piece for each
stream; a class that requests its guarantee gets it; the number of connections of a class plays no role. Pure
except for the time that callers pass in.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A class without requests for so long, and without debt, gets no share.
ACTIVE_S = 2.0
#: The shares are computed at most this often; each class adds to the interval, because it costs time.
TICK_S = 0.005
CLASS_TICK_S = 50e-6
#: The averaging time of a class's flow, seconds.
RATE_AVERAGING_S = 0.5
#: Longest Retry-After.
WAIT_MAX_S = 60.0


@dataclass(slots=True)
class QosClass:
    """One QoS class; stocks in units of the resource."""

    guaranteed: float = 0.0
    weight: float = 1.0
    guaranteed_tokens: float = 0.0
    shared_tokens: float = 0.0
    last_request_at: float = -1e18
    #: Units a second that it was given recently.
    recent_rate: float = 0.0

    @property
    def available_tokens(self) -> float:
        """Bytes that the class may use now; negative while it is in debt."""
        return self.guaranteed_tokens + self.shared_tokens


class QosClasses:
    """The classes of one rate (units a second); capacity None: no limit."""

    def __init__(self, capacity: float | None, burst_s: float, now: float):
        self._capacity = capacity
        self._burst_s = burst_s
        self._classes: dict[str, QosClass] = {}
        #: Free amount without a taker.
        self._free_tokens = (capacity or 0.0) * burst_s
        self._refilled_at = now

    @property
    def capacity(self) -> float | None:
        """Units a second."""
        return self._capacity

    def set_capacity(self, capacity: float | None, now: float) -> None:
        """Set the capacity from now on."""
        self.refill(now)
        self._capacity = capacity

    def set_class(self, key: str, *, guaranteed: float = 0.0, weight: float = 1.0) -> None:
        """Add or change a class; one without a guarantee is removed once it is inactive."""
        qos_class = self._classes.get(key)
        if qos_class is None:
            qos_class = self._classes[key] = QosClass()
            qos_class.guaranteed_tokens = guaranteed * self._burst_s
            self._free_tokens -= qos_class.guaranteed_tokens
        qos_class.guaranteed, qos_class.weight = guaranteed, weight

    def wait_s(self, key: str, now: float) -> float:
        """Return the seconds until a class may continue, 0 if it may now; the class becomes active.

        Callers set the class before, because an inactive one may have been removed.
        """
        if self._capacity is None:
            return 0.0
        qos_class = self._classes[key]
        is_new = now - qos_class.last_request_at > ACTIVE_S
        qos_class.last_request_at = now
        self.refill(now)
        if is_new and self._free_tokens > 0:
            given = min(self._free_tokens, max(0.0, self._tokens_max(qos_class) - qos_class.shared_tokens))
            qos_class.shared_tokens += given
            self._free_tokens -= given
        return (
            0.0
            if qos_class.available_tokens >= 0
            else min(WAIT_MAX_S, -qos_class.available_tokens / self._refill_rate(qos_class))
        )

    def consume(self, key: str, amount: float, now: float) -> None:
        """Count what a class used; a negative amount is returned."""
        if self._capacity is None:
            return
        qos_class = self._classes.get(key)
        if qos_class is None:
            self._free_tokens -= amount
            return
        qos_class.last_request_at = now
        from_own = min(amount, max(qos_class.guaranteed_tokens, 0.0)) if amount > 0 else 0.0
        qos_class.guaranteed_tokens -= from_own
        qos_class.shared_tokens -= amount - from_own

    def refill(self, now: float) -> None:
        """Add the tokens of the time since the last refill."""
        passed_s = now - self._refilled_at
        if self._capacity is None or passed_s < TICK_S + CLASS_TICK_S * len(self._classes):
            return
        self._refilled_at = now
        free = self._free_tokens + self._capacity * passed_s
        promised = sum(qos_class.guaranteed for qos_class in self._classes.values())
        # A learned capacity may fall below the sum of guarantees: all are then scaled down.
        scale = min(1.0, self._capacity / promised) if promised else 1.0
        for qos_class in self._classes.values():
            free += self._refill_guaranteed(qos_class, passed_s, scale)
        self._decay = min(1.0, passed_s / RATE_AVERAGING_S)
        self._free_tokens = self._distribute(free, now, self._decay / passed_s)

    def _refill_guaranteed(self, qos_class: QosClass, passed_s: float, scale: float) -> float:
        """Add a class's guaranteed tokens; return the change of the free tokens, mostly negative."""
        fresh = qos_class.guaranteed * passed_s * scale
        qos_class.guaranteed_tokens += fresh
        if qos_class.shared_tokens < 0 < qos_class.guaranteed_tokens:
            paid = min(qos_class.guaranteed_tokens, -qos_class.shared_tokens)
            qos_class.guaranteed_tokens -= paid
            qos_class.shared_tokens += paid
        over = max(0.0, qos_class.guaranteed_tokens - qos_class.guaranteed * self._burst_s)
        qos_class.guaranteed_tokens -= over
        return over - fresh

    def _distribute(self, free: float, now: float, learn: float) -> float:
        """Divide free tokens among active classes by weight, up to their maximum; return the rest.

        ``learn`` is what a unit that is given now changes of what is known of a class's flow.
        """
        active: list[QosClass] = []
        for key, qos_class in list(self._classes.items()):
            if now - qos_class.last_request_at <= ACTIVE_S or qos_class.shared_tokens < 0:
                active.append(qos_class)
                continue
            free += qos_class.shared_tokens
            qos_class.shared_tokens = 0.0
            if not qos_class.guaranteed:
                del self._classes[key]
        weights = sum(qos_class.weight for qos_class in active)
        self._active_weight = weights
        rooms: list[tuple[float, QosClass]] = []
        for qos_class in active:
            qos_class.recent_rate *= 1.0 - self._decay
            room = self._tokens_max(qos_class) - qos_class.shared_tokens
            if room < 0:
                # More classes are active than before.
                free -= room
                qos_class.shared_tokens += room
            rooms.append((max(0.0, room) / qos_class.weight, qos_class))
        held = 0.0
        for room_by_weight, qos_class in sorted(rooms, key=lambda pair: pair[0]):
            given = max(0.0, min(room_by_weight * qos_class.weight, free * qos_class.weight / weights))
            qos_class.shared_tokens += given
            qos_class.recent_rate += learn * given
            free -= given
            weights -= qos_class.weight
            held += max(0.0, qos_class.shared_tokens)
        return min(free, max(0.0, (self._capacity or 0.0) * self._burst_s - held))

    #: Sum of the weights of the classes that were active at the last refill.
    _active_weight: float = 0.0
    #: Part of the classes' flows from before this interval.
    _decay: float = 1.0

    def _weight_share(self, qos_class: QosClass) -> float:
        return qos_class.weight / max(self._active_weight, qos_class.weight)

    def _tokens_max(self, qos_class: QosClass) -> float:
        return (self._capacity or 0.0) * self._burst_s * self._weight_share(qos_class)

    def _refill_rate(self, qos_class: QosClass) -> float:
        """Return the rate at which a class's tokens refill while all current classes stay active."""
        capacity = self._capacity or 0.0
        promised = sum(other.guaranteed for other in self._classes.values())
        free = max(0.0, capacity - promised)
        # Unused guarantees of other classes are available for an unknown time.
        return max(
            qos_class.guaranteed + max(qos_class.recent_rate, free * self._weight_share(qos_class)),
            capacity / 1000,
            1e-9,
        )

    def __repr__(self) -> str:
        classes = ", ".join(
            f"{key} {qos_class.available_tokens:.0f}" for key, qos_class in sorted(self._classes.items())
        )
        return f"<QosClasses of {self._capacity}: {classes}; {self._free_tokens:.0f} free>"


class RateLimit:
    """A rate limit: tokens that grow at the rate; use is counted afterwards."""

    __slots__ = ("rate", "_burst_s", "_tokens", "_refilled_at")

    def __init__(self, rate: float, burst_s: float, now: float):
        self.rate = rate
        self._burst_s = burst_s
        self._tokens = rate * burst_s
        self._refilled_at = now

    def wait_s(self, now: float) -> float:
        """Return the seconds until more may be used; 0 if it may now."""
        self._tokens = min(self.rate * self._burst_s, self._tokens + self.rate * (now - self._refilled_at))
        self._refilled_at = now
        return 0.0 if self._tokens >= 0 else min(WAIT_MAX_S, -self._tokens / self.rate)

    def consume(self, amount: float) -> None:
        """Count what was used; a negative amount is returned."""
        self._tokens -= amount

    def __repr__(self) -> str:
        return f"<RateLimit {self.rate:g}/s, {self._tokens:g} left>"
