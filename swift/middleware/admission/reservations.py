"""The list of reservations that all proxies share, in memcached.

A reservation is made under a lock (a counter that only the first process brings to one). Each proxy stores
its unexpired reservations again at every exchange, so that a restarted memcached loses none that a proxy
knows. Without memcached no reservations are made: other proxies might reserve the same bandwidth. Issued
tickets stay valid, because they carry their content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict

from swift.cluster.memcache import MemcacheError
from swift.gateway.infocache import Cache
from swift.middleware.admission.tickets import ReservedShare, unexpired

_LIST_KEY = "admission/reservations"
_LOCK_KEY = "admission/reservations/lock"
#: A lock whose holder went away is over after so long, seconds.
_LOCK_EXPIRY_S = 5.0
#: Attempts to take the lock, and seconds between them.
_LOCK_TRIES = 40
_LOCK_PAUSE_S = 0.05
#: Reservations of a cluster at a time; more would not fit into a value of memcached.
RESERVATIONS_MAX = 2000

#: From the reservations of all to the new one, None when there is no room.
MakeReservation = Callable[[Iterable[ReservedShare]], ReservedShare | None]


class ReservationLockBusy(MemcacheError):
    """Others held the lock for too long."""


class SharedReservations:
    """The reservations that this proxy knows."""

    def __init__(self, sleep: Callable[[float], None]):
        self._sleep = sleep
        self._reservations: dict[str, ReservedShare] = {}

    def unexpired(self, now: float) -> dict[str, ReservedShare]:
        """Return the reservations that are not over, by id."""
        self._reservations = unexpired(self._reservations.values(), now)
        return self._reservations

    def reserve(self, cache: Cache, decide: MakeReservation, now: float) -> ReservedShare | None:
        """Make the reservation that ``decide`` returns, if any; raises ``MemcacheError``."""
        self._lock(cache)
        try:
            self.synchronize(cache, now)
            if len(self._reservations) >= RESERVATIONS_MAX:
                return None
            made = decide(tuple(self._reservations.values()))
            if made is not None:
                self._reservations[made.id] = made
                self._publish(cache, now)
            return made
        finally:
            cache.delete(_LOCK_KEY)

    def synchronize(self, cache: Cache, now: float) -> None:
        """Take reservations of other proxies, restore those that the list lost; raises ``MemcacheError``."""
        value = cache.get(_LIST_KEY, None, raise_on_error=True)
        listed = [r for item in value if (r := ReservedShare.of(item))] if isinstance(value, list) else []
        ids = {r.id for r in listed}
        self._reservations = unexpired((*listed, *self._reservations.values()), now)
        if any(id_ not in ids for id_ in self._reservations):
            self._publish(cache, now)

    def _publish(self, cache: Cache, now: float) -> None:
        last = max((r.ends for r in self._reservations.values()), default=now)
        values = [asdict(r) for r in self._reservations.values()]
        cache.set(_LIST_KEY, values, ttl_s=max(1.0, last - now), raise_on_error=True)

    def _lock(self, cache: Cache) -> None:
        for _ in range(_LOCK_TRIES):
            if cache.incr(_LOCK_KEY, ttl_s=_LOCK_EXPIRY_S) == 1:
                return
            self._sleep(_LOCK_PAUSE_S)
        raise ReservationLockBusy("others reserve all the time")
