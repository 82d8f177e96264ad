"""Open brokers of one process: the most recently used ones stay open (bounded).

Opening a database costs more than answering most requests. A broker checks by itself that its files are the
current ones, so a cached one is never wrong, only sometimes useless.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from swift.db.broker import Broker
from swift.db.files import Place

#: Each open database holds two descriptors and two page caches.
OPEN_MAX = 128

B = TypeVar("B", bound=Broker)


class BrokerCache(Generic[B]):
    """Brokers by their place; ``make`` builds a closed one."""

    def __init__(self, make: Callable[..., B], open_max: int = OPEN_MAX):
        self._make = make
        self._open_max = open_max
        self._brokers: OrderedDict[Place, B] = OrderedDict()

    def get(self, place: Place, *names: str) -> B:
        """The broker of a place, the same one for everybody who asks while it is in use."""
        broker = self._brokers.get(place)
        if broker is None:
            broker = self._brokers[place] = self._make(place, *names)
            if len(self._brokers) > self._open_max:
                self._make_room()
        else:
            self._brokers.move_to_end(place)
        return broker

    def peek(self, place: Place) -> B | None:
        """The broker of a place when there is one already."""
        return self._brokers.get(place)

    def _make_room(self) -> None:
        """Close the least recently used idle broker."""
        newest = next(reversed(self._brokers))
        for place, broker in self._brokers.items():
            if not broker.is_busy and place is not newest:
                del self._brokers[place]
                broker.close()
                return

    def forget(self, place: Place) -> None:
        """Close a broker, e.g. because its directory was moved away."""
        broker = self._brokers.pop(place, None)
        if broker is not None and not broker.is_busy:
            broker.close()

    def close(self) -> None:
        """Close all of them."""
        while self._brokers:
            self._brokers.popitem()[1].close()

    def __len__(self) -> int:
        return len(self._brokers)
