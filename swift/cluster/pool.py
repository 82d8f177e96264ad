"""Which idle connection to reuse: decisions without I/O.

Connections are kept by address, the most recently used first (it is the most likely to be alive and
warm). The client asks, connects and closes; this class only remembers.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

Address = tuple[str, int]


class Idle(Protocol):
    """What the pool needs to know of a connection."""

    address: Address
    idle_since: float


C = TypeVar("C", bound=Idle)


class ConnectionPool(Generic[C]):
    """Idle connections by address, bounded in number and age."""

    def __init__(self, *, per_address_max: int = 64, idle_max_s: float = 30.0):
        self.per_address_max = per_address_max
        self.idle_max_s = idle_max_s
        self._idle: dict[Address, list[C]] = {}

    def take(self, address: Address, now: float) -> tuple[C | None, list[C]]:
        """The freshest idle connection to ``address`` (or None), and those too old, to be closed."""
        stack = self._idle.get(address)
        if not stack:
            return None, []
        newest = stack[-1]
        if now - newest.idle_since > self.idle_max_s:
            self._idle[address] = []
            return None, stack
        return stack.pop(), []

    def give(self, connection: C, now: float) -> C | None:
        """Keep a connection; returns one to close when the address has enough."""
        connection.idle_since = now
        stack = self._idle.setdefault(connection.address, [])
        stack.append(connection)
        return stack.pop(0) if len(stack) > self.per_address_max else None

    def drop_all(self) -> list[C]:
        """Forget everything, e.g. after a fork; the connections to close."""
        everything = [c for stack in self._idle.values() for c in stack]
        self._idle.clear()
        return everything

    def __len__(self) -> int:
        return sum(len(stack) for stack in self._idle.values())

    def __repr__(self) -> str:
        return f"<ConnectionPool {len(self)} idle to {len(self._idle)} addresses>"
