"""Divides one rate among lanes: a guarantee for each, and fair shares of the rest.

Every lane (an account, or whom a rule is for) has two stocks. Its *own* grows at its guaranteed rate and is
used by no other lane until it is full; what overflows is lent. Its *spare* grows by its share of what is
free: all that is not guaranteed or not used, divided among the lanes that ask, by weight. A lane whose
stocks are not in debt may go on; use is counted after the fact, so a stock may go below zero and is paid
back before anything else.

What holds at any time, and is tested: in any time T no more than capacity x (T + 2 x burst) is used, and a
piece for each stream; a lane that asks for its guarantee gets it; how many connections a lane has plays no
role. Pure but for the time that callers pass in.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A lane that asked for nothing for so long, and owes nothing, takes no share.
ACTIVE_S = 2.0
#: The shares are not worked out more often than this, and for each lane so much seldomer: it takes time.
TICK_S = 0.005
LANE_TICK_S = 50e-6
#: How much of the past counts in what a lane is given, seconds.
FLOW_S = 0.5
#: Longest Retry-After.
WAIT_MAX_S = 60.0


@dataclass(slots=True)
class QosClass:
    """One lane; stocks in units of the resource."""

    guaranteed: float = 0.0
    weight: float = 1.0
    own: float = 0.0
    spare: float = 0.0
    asked_at: float = -1e18
    #: Units a second that it was given of late.
    flow: float = 0.0

    @property
    def left(self) -> float:
        """Bytes that the lane may use now; negative while it is in debt."""
        return self.own + self.spare


class QosClasses:
    """All lanes of one rate (units a second); capacity None: nothing is scarce."""

    def __init__(self, capacity: float | None, burst_s: float, now: float):
        self._capacity = capacity
        self._burst_s = burst_s
        self._lanes: dict[str, QosClass] = {}
        #: Free amount without a taker.
        self._pool = (capacity or 0.0) * burst_s
        self._at = now

    @property
    def capacity(self) -> float | None:
        """Units a second."""
        return self._capacity

    def set_capacity(self, capacity: float | None, now: float) -> None:
        """From now on there is so much."""
        self.refill(now)
        self._capacity = capacity

    def set_class(self, key: str, *, guaranteed: float = 0.0, weight: float = 1.0) -> None:
        """Make or change a lane; one without a guarantee goes away by itself."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = QosClass()
            lane.own = guaranteed * self._burst_s
            self._pool -= lane.own
        lane.guaranteed, lane.weight = guaranteed, weight

    def ask(self, key: str, now: float) -> float:
        """Seconds until a lane may go on; 0 when it may now. The lane is one of those that ask from now on.

        Callers set the lane before: one that has asked for nothing for long may be gone.
        """
        if self._capacity is None:
            return 0.0
        lane = self._lanes[key]
        is_new = now - lane.asked_at > ACTIVE_S
        lane.asked_at = now
        self.refill(now)
        if is_new and self._pool > 0:
            given = min(self._pool, max(0.0, self._stock_max(lane) - lane.spare))
            lane.spare += given
            self._pool -= given
        return 0.0 if lane.left >= 0 else min(WAIT_MAX_S, -lane.left / self._rate(lane))

    def take(self, key: str, amount: float, now: float) -> None:
        """Count what a lane used; a negative amount gives back."""
        if self._capacity is None:
            return
        lane = self._lanes.get(key)
        if lane is None:
            self._pool -= amount
            return
        lane.asked_at = now
        from_own = min(amount, max(lane.own, 0.0)) if amount > 0 else 0.0
        lane.own -= from_own
        lane.spare -= amount - from_own

    def refill(self, now: float) -> None:
        """Let the stocks grow."""
        passed_s = now - self._at
        if self._capacity is None or passed_s < TICK_S + LANE_TICK_S * len(self._lanes):
            return
        self._at = now
        free = self._pool + self._capacity * passed_s
        promised = sum(lane.guaranteed for lane in self._lanes.values())
        # Less than was promised may be left of a capacity that is learnt: all then get as much less.
        scale = min(1.0, self._capacity / promised) if promised else 1.0
        for lane in self._lanes.values():
            free += self._refill_own(lane, passed_s, scale)
        self._forget = min(1.0, passed_s / FLOW_S)
        self._pool = self._give(free, now, self._forget / passed_s)

    def _refill_own(self, lane: QosClass, passed_s: float, scale: float) -> float:
        """Let a lane's own stock grow; what that leaves of what is free (negative: takes)."""
        fresh = lane.guaranteed * passed_s * scale
        lane.own += fresh
        if lane.spare < 0 < lane.own:
            paid = min(lane.own, -lane.spare)
            lane.own -= paid
            lane.spare += paid
        over = max(0.0, lane.own - lane.guaranteed * self._burst_s)
        lane.own -= over
        return over - fresh

    def _give(self, free: float, now: float, learn: float) -> float:
        """Divide what is free among the lanes that ask, by weight, as far as they have room; the rest.

        ``learn`` is what a unit that is given now changes of what is known of a lane's flow.
        """
        asking: list[QosClass] = []
        for key, lane in list(self._lanes.items()):
            if now - lane.asked_at <= ACTIVE_S or lane.spare < 0:
                asking.append(lane)
                continue
            free += lane.spare
            lane.spare = 0.0
            if not lane.guaranteed:
                del self._lanes[key]
        weights = sum(lane.weight for lane in asking)
        self._weights = weights
        rooms: list[tuple[float, QosClass]] = []
        for lane in asking:
            lane.flow *= 1.0 - self._forget
            room = self._stock_max(lane) - lane.spare
            if room < 0:
                # Others ask now as well.
                free -= room
                lane.spare += room
            rooms.append((max(0.0, room) / lane.weight, lane))
        held = 0.0
        for room_by_weight, lane in sorted(rooms, key=lambda pair: pair[0]):
            given = max(0.0, min(room_by_weight * lane.weight, free * lane.weight / weights))
            lane.spare += given
            lane.flow += learn * given
            free -= given
            weights -= lane.weight
            held += max(0.0, lane.spare)
        return min(free, max(0.0, (self._capacity or 0.0) * self._burst_s - held))

    #: The weights of all lanes that asked when shares were worked out last.
    _weights: float = 0.0
    #: What of the flows of lanes is from before that.
    _forget: float = 1.0

    def _part(self, lane: QosClass) -> float:
        return lane.weight / max(self._weights, lane.weight)

    def _stock_max(self, lane: QosClass) -> float:
        return (self._capacity or 0.0) * self._burst_s * self._part(lane)

    def _rate(self, lane: QosClass) -> float:
        """Return the rate at which a lane's tokens refill while all current lanes stay active."""
        capacity = self._capacity or 0.0
        promised = sum(other.guaranteed for other in self._lanes.values())
        free = max(0.0, capacity - promised)
        # What others are guaranteed and do not use is lent for an unknown time.
        return max(lane.guaranteed + max(lane.flow, free * self._part(lane)), capacity / 1000, 1e-9)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key} {lane.left:.0f}" for key, lane in sorted(self._lanes.items()))
        return f"<QosClasses of {self._capacity}: {shown}; {self._pool:.0f} free>"


class RateLimit:
    """A greatest rate: a stock that grows at it, and is used after the fact."""

    __slots__ = ("rate", "_burst_s", "_stock", "_at")

    def __init__(self, rate: float, burst_s: float, now: float):
        self.rate = rate
        self._burst_s = burst_s
        self._stock = rate * burst_s
        self._at = now

    def ask(self, now: float) -> float:
        """Seconds until more may be used; 0 when it may now."""
        self._stock = min(self.rate * self._burst_s, self._stock + self.rate * (now - self._at))
        self._at = now
        return 0.0 if self._stock >= 0 else min(WAIT_MAX_S, -self._stock / self.rate)

    def take(self, amount: float) -> None:
        """Count what was used; a negative amount gives back."""
        self._stock -= amount

    def __repr__(self) -> str:
        return f"<RateLimit {self.rate:g}/s, {self._stock:g} left>"
