"""QoS classes: one rate divided into a guarantee for each class, and fair shares of the rest.

Every class (an account, or the subject of a rule) has two stocks. Its *own* grows at its guaranteed rate and
is used by no other class until it is full; the overflow is lent. Its *spare* grows by its share of the free
rate: everything that is not guaranteed or not used, divided among the active classes by weight. A class whose
stocks are not in debt may go on. Use is counted afterwards, so a stock may go below zero and is paid back
before anything else.

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
FLOW_S = 0.5
#: Longest Retry-After.
WAIT_MAX_S = 60.0


@dataclass(slots=True)
class QosClass:
    """One QoS class; stocks in units of the resource."""

    guaranteed: float = 0.0
    weight: float = 1.0
    own: float = 0.0
    spare: float = 0.0
    requested_at: float = -1e18
    #: Units a second that it was given recently.
    flow: float = 0.0

    @property
    def left(self) -> float:
        """Bytes that the class may use now; negative while it is in debt."""
        return self.own + self.spare


class QosClasses:
    """The classes of one rate (units a second); capacity None: no limit."""

    def __init__(self, capacity: float | None, burst_s: float, now: float):
        self._capacity = capacity
        self._burst_s = burst_s
        self._classes: dict[str, QosClass] = {}
        #: Free amount without a taker.
        self._pool = (capacity or 0.0) * burst_s
        self._at = now

    @property
    def capacity(self) -> float | None:
        """Units a second."""
        return self._capacity

    def set_capacity(self, capacity: float | None, now: float) -> None:
        """Set the capacity from now on."""
        self.refill(now)
        self._capacity = capacity

    def set_class(self, key: str, *, guaranteed: float = 0.0, weight: float = 1.0) -> None:
        """Make or change a class; one without a guarantee goes away by itself."""
        qos_class = self._classes.get(key)
        if qos_class is None:
            qos_class = self._classes[key] = QosClass()
            qos_class.own = guaranteed * self._burst_s
            self._pool -= qos_class.own
        qos_class.guaranteed, qos_class.weight = guaranteed, weight

    def wait_s(self, key: str, now: float) -> float:
        """Return the seconds until a class may go on, 0 when it may now; the class becomes active.

        Callers set the class before, because an inactive one may have been removed.
        """
        if self._capacity is None:
            return 0.0
        qos_class = self._classes[key]
        is_new = now - qos_class.requested_at > ACTIVE_S
        qos_class.requested_at = now
        self.refill(now)
        if is_new and self._pool > 0:
            given = min(self._pool, max(0.0, self._stock_max(qos_class) - qos_class.spare))
            qos_class.spare += given
            self._pool -= given
        return 0.0 if qos_class.left >= 0 else min(WAIT_MAX_S, -qos_class.left / self._rate(qos_class))

    def take(self, key: str, amount: float, now: float) -> None:
        """Count what a class used; a negative amount gives back."""
        if self._capacity is None:
            return
        qos_class = self._classes.get(key)
        if qos_class is None:
            self._pool -= amount
            return
        qos_class.requested_at = now
        from_own = min(amount, max(qos_class.own, 0.0)) if amount > 0 else 0.0
        qos_class.own -= from_own
        qos_class.spare -= amount - from_own

    def refill(self, now: float) -> None:
        """Let the stocks grow."""
        passed_s = now - self._at
        if self._capacity is None or passed_s < TICK_S + CLASS_TICK_S * len(self._classes):
            return
        self._at = now
        free = self._pool + self._capacity * passed_s
        promised = sum(qos_class.guaranteed for qos_class in self._classes.values())
        # Less than was promised may be left of a capacity that is learnt: all then get as much less.
        scale = min(1.0, self._capacity / promised) if promised else 1.0
        for qos_class in self._classes.values():
            free += self._refill_own(qos_class, passed_s, scale)
        self._forget = min(1.0, passed_s / FLOW_S)
        self._pool = self._give(free, now, self._forget / passed_s)

    def _refill_own(self, qos_class: QosClass, passed_s: float, scale: float) -> float:
        """Let a class's own stock grow; what that leaves of what is free (negative: takes)."""
        fresh = qos_class.guaranteed * passed_s * scale
        qos_class.own += fresh
        if qos_class.spare < 0 < qos_class.own:
            paid = min(qos_class.own, -qos_class.spare)
            qos_class.own -= paid
            qos_class.spare += paid
        over = max(0.0, qos_class.own - qos_class.guaranteed * self._burst_s)
        qos_class.own -= over
        return over - fresh

    def _give(self, free: float, now: float, learn: float) -> float:
        """Divide what is free among the classes that ask, by weight, as far as they have room; the rest.

        ``learn`` is what a unit that is given now changes of what is known of a class's flow.
        """
        active: list[QosClass] = []
        for key, qos_class in list(self._classes.items()):
            if now - qos_class.requested_at <= ACTIVE_S or qos_class.spare < 0:
                active.append(qos_class)
                continue
            free += qos_class.spare
            qos_class.spare = 0.0
            if not qos_class.guaranteed:
                del self._classes[key]
        weights = sum(qos_class.weight for qos_class in active)
        self._weights = weights
        rooms: list[tuple[float, QosClass]] = []
        for qos_class in active:
            qos_class.flow *= 1.0 - self._forget
            room = self._stock_max(qos_class) - qos_class.spare
            if room < 0:
                # Others ask now as well.
                free -= room
                qos_class.spare += room
            rooms.append((max(0.0, room) / qos_class.weight, qos_class))
        held = 0.0
        for room_by_weight, qos_class in sorted(rooms, key=lambda pair: pair[0]):
            given = max(0.0, min(room_by_weight * qos_class.weight, free * qos_class.weight / weights))
            qos_class.spare += given
            qos_class.flow += learn * given
            free -= given
            weights -= qos_class.weight
            held += max(0.0, qos_class.spare)
        return min(free, max(0.0, (self._capacity or 0.0) * self._burst_s - held))

    #: The weights of all classes that asked when shares were worked out last.
    _weights: float = 0.0
    #: Part of the classes' flows from before this interval.
    _forget: float = 1.0

    def _share(self, qos_class: QosClass) -> float:
        return qos_class.weight / max(self._weights, qos_class.weight)

    def _stock_max(self, qos_class: QosClass) -> float:
        return (self._capacity or 0.0) * self._burst_s * self._share(qos_class)

    def _rate(self, qos_class: QosClass) -> float:
        """Return the rate at which a class's tokens refill while all current classes stay active."""
        capacity = self._capacity or 0.0
        promised = sum(other.guaranteed for other in self._classes.values())
        free = max(0.0, capacity - promised)
        # Unused guarantees of other classes are lent for an unknown time.
        return max(
            qos_class.guaranteed + max(qos_class.flow, free * self._share(qos_class)), capacity / 1000, 1e-9
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{key} {qos_class.left:.0f}" for key, qos_class in sorted(self._classes.items()))
        return f"<QosClasses of {self._capacity}: {shown}; {self._pool:.0f} free>"


class RateLimit:
    """A rate limit: a stock that grows at the rate; use is counted afterwards."""

    __slots__ = ("rate", "_burst_s", "_stock", "_at")

    def __init__(self, rate: float, burst_s: float, now: float):
        self.rate = rate
        self._burst_s = burst_s
        self._stock = rate * burst_s
        self._at = now

    def wait_s(self, now: float) -> float:
        """Return the seconds until more may be used; 0 when it may now."""
        self._stock = min(self.rate * self._burst_s, self._stock + self.rate * (now - self._at))
        self._at = now
        return 0.0 if self._stock >= 0 else min(WAIT_MAX_S, -self._stock / self.rate)

    def take(self, amount: float) -> None:
        """Count what was used; a negative amount gives back."""
        self._stock -= amount

    def __repr__(self) -> str:
        return f"<RateLimit {self.rate:g}/s, {self._stock:g} left>"
