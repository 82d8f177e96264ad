"""The list of reservations that all proxies share, in memcached.

A reservation is made while a lock is held (a counter that only the first brings to one); what each proxy
knows of reservations that are not over is put into the list again at every turn, so that a memcached that was
started anew forgets nothing that a proxy knows. When memcached is away nothing is reserved: no client may
promise what others might have promised as well. Tickets that are out hold all the same: they carry what they
are good for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict

from swift.cluster.memcache import MemcacheError
from swift.gateway.infocache import Cache
from swift.middleware.admission.tickets import ReservedShare, live

_LIST = "admission/reservations"
_LOCK = "admission/reservations/lock"
#: A lock whose holder went away is over after so long, seconds.
_LOCK_S = 5.0
#: How often, and how long between, the lock is tried.
_TRIES = 40
_PAUSE_S = 0.05
#: Reservations of a cluster at a time; more would not fit into a value of memcached.
RESERVATIONS_MAX = 2000

#: From the reservations of all to the new one, None when there is no room.
Decide = Callable[[Iterable[ReservedShare]], ReservedShare | None]


class Busy(MemcacheError):
    """Others held the lock for too long."""


class SharedReservations:
    """The reservations that this proxy knows."""

    def __init__(self, sleep: Callable[[float], None]):
        self._sleep = sleep
        self._known: dict[str, ReservedShare] = {}

    def known(self, now: float) -> dict[str, ReservedShare]:
        """Those that are not over, by id."""
        self._known = live(self._known.values(), now)
        return self._known

    def reserve(self, cache: Cache, decide: Decide, now: float) -> ReservedShare | None:
        """Make a reservation, if ``decide`` does; raises ``MemcacheError``."""
        self._lock(cache)
        try:
            self.receive(cache, now)
            if len(self._known) >= RESERVATIONS_MAX:
                return None
            made = decide(tuple(self._known.values()))
            if made is not None:
                self._known[made.id] = made
                self._publish(cache, now)
            return made
        finally:
            cache.delete(_LOCK)

    def receive(self, cache: Cache, now: float) -> None:
        """Learn what others reserved, and bring back what the list has lost; raises ``MemcacheError``."""
        value = cache.get(_LIST, None, raise_on_error=True)
        told = [r for item in value if (r := ReservedShare.of(item))] if isinstance(value, list) else []
        ids = {r.id for r in told}
        self._known = live((*told, *self._known.values()), now)
        if any(id_ not in ids for id_ in self._known):
            self._publish(cache, now)

    def _publish(self, cache: Cache, now: float) -> None:
        last = max((r.ends for r in self._known.values()), default=now)
        values = [asdict(r) for r in self._known.values()]
        cache.set(_LIST, values, ttl_s=max(1.0, last - now), raise_on_error=True)

    def _lock(self, cache: Cache) -> None:
        for _ in range(_TRIES):
            if cache.incr(_LOCK, ttl_s=_LOCK_S) == 1:
                return
            self._sleep(_PAUSE_S)
        raise Busy("others reserve all the time")
