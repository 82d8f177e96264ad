"""Open brokers of one process: the most recently used ones stay open (bounded by number and by weight).

Opening a database costs more than answering most requests. A broker checks by itself that its files are the
current ones, so a cached one is never wrong, only sometimes useless. When all of them weigh too
much, those that were not used for the longest time give their memory back and stay open.

What a request got stays open until the request ends (``Held``): it waits in between, for the device or for
its own body, and others may then need room for brokers of theirs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Generic, TypeVar

from swift.db.broker import Broker
from swift.db.files import DatabasePath

#: Each open database holds a descriptor and some 100 KB for its schema, whatever it weighs beside that.
OPEN_MAX = 128
#: Largest weight of all of them together (``Broker.weight``), bytes.
WEIGHT_MAX = 24 << 20

B = TypeVar("B", bound=Broker)

#: The brokers that the request of this green thread got.
_held: ContextVar[list[Broker] | None] = ContextVar("held", default=None)


class Held:
    """``with Held(cache):`` keeps open what this green thread gets from the cache in the block."""

    __slots__ = ("_cache", "_token")

    def __init__(self, cache: BrokerCache[Any]):
        self._cache = cache

    def __enter__(self) -> None:
        """Begin to remember."""
        self._token = _held.set([])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        brokers = _held.get()
        _held.reset(self._token)
        if brokers:
            self._cache.release(brokers)


class BrokerCache(Generic[B]):
    """Brokers by their place; ``make`` builds a closed one."""

    def __init__(self, make: Callable[..., B], open_max: int = OPEN_MAX, weight_max: int = WEIGHT_MAX):
        self._make = make
        self._open_max = open_max
        self._weight_max = weight_max
        self._brokers: OrderedDict[DatabasePath, B] = OrderedDict()
        #: Weights of used brokers after their use, the least recently used ones first; bytes.
        self._weights: OrderedDict[DatabasePath, int] = OrderedDict()
        self._weight = 0

    def get(self, place: DatabasePath, *names: str) -> B:
        """Return the broker of a database; concurrent users share it."""
        broker = self._brokers.get(place)
        if broker is None:
            broker = self._brokers[place] = self._make(place, *names)
            if len(self._brokers) > self._open_max:
                self._make_room()
        else:
            self._brokers.move_to_end(place)
        _hold(broker)
        return broker

    def peek(self, place: DatabasePath) -> B | None:
        """Return the broker of a place when there is one already."""
        broker = self._brokers.get(place)
        if broker is not None:
            _hold(broker)
        return broker

    def release(self, brokers: list[Broker]) -> None:
        """Release brokers that a request held."""
        for broker in brokers:
            broker.holders -= 1
            if self._brokers.get(broker.place) is broker:
                self._weigh(broker)
            elif not broker.is_busy:
                # Forgotten while it was in use.
                broker.close()

    @property
    def weight(self) -> int:
        """Memory of all brokers, bytes."""
        return self._weight

    def _weigh(self, broker: Broker) -> None:
        """Note what a broker weighs that was used just now; when it is too much others give theirs back."""
        weights, place, weight = self._weights, broker.place, broker.weight
        self._weight += weight - weights.get(place, 0)
        weights[place] = weight
        weights.move_to_end(place)
        if self._weight > self._weight_max:
            self._relax_oldest(place)

    def _relax_oldest(self, newest: DatabasePath) -> None:
        for place in list(self._weights):
            if self._weight <= self._weight_max:
                return
            broker = self._brokers[place]
            if place != newest and not broker.is_busy:
                self._drop_weight(place)
                broker.relax()

    def _drop_weight(self, place: DatabasePath) -> None:
        self._weight -= self._weights.pop(place, 0)

    def _make_room(self) -> None:
        """Close the least recently used idle brokers."""
        newest = next(reversed(self._brokers))
        excess = len(self._brokers) - self._open_max
        idle = [p for p, broker in self._brokers.items() if p is not newest and not broker.is_busy]
        for place in idle[:excess]:
            self._drop_weight(place)
            self._brokers.pop(place).close()

    def forget(self, place: DatabasePath) -> None:
        """Close a broker, e.g. because its directory was moved away."""
        self._drop_weight(place)
        broker = self._brokers.pop(place, None)
        if broker is not None and not broker.is_busy:
            broker.close()

    def forget_device(self, device: str) -> None:
        """Close the brokers of a device, so that it can be unmounted."""
        for place in [place for place in self._brokers if place.device == device]:
            self.forget(place)

    def close(self) -> None:
        """Close all of them."""
        self._weights.clear()
        self._weight = 0
        while self._brokers:
            self._brokers.popitem()[1].close()

    def __len__(self) -> int:
        return len(self._brokers)


def _hold(broker: Broker) -> None:
    held = _held.get()
    if held is not None and broker not in held:
        broker.holders += 1
        held.append(broker)
