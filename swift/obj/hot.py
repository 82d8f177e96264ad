"""Which objects are worth looking up on the event loop.

Looking an object up is a handful of system calls that do not wait when its directory and inodes are in
memory, which they are for a while after it was used. So the second look at an object happens inline, the
first one in the device's thread pool. A look that turns out slow makes its whole device cold again, so
that a failing disk is not waited for twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swift.base.clock import Clock
from swift.store.api import ObjectKey

#: Objects of a device remembered per generation; two generations are kept.
GENERATION_MAX = 16384
#: An inline look that took longer was not answered from memory.
SLOW_S = 0.05


class _Generations:
    """The marks of one device: numbers, because thousands of keys would take megabytes."""

    __slots__ = ("young", "old")

    def __init__(self) -> None:
        self.young: set[int] = set()
        self.old: set[int] = set()

    def add(self, mark: int) -> None:
        """Remember a mark, and in time forget those that were not added again."""
        if len(self.young) >= GENERATION_MAX:
            self.old, self.young = self.young, set()
        self.young.add(mark)


class HotObjects:
    """Remembers which objects were used lately; that two have the same mark does no harm."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._devices: dict[str, _Generations] = {}

    def call(self, key: ObjectKey, run: Callable[..., Any], function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)``, inline when the object is hot."""
        mark, marks = _mark(key), self._devices.get(key.device)
        if marks is not None and (mark in marks.young or mark in marks.old):
            started = self._clock.monotonic()
            try:
                return function(*args)
            finally:
                if self._clock.monotonic() - started > SLOW_S:
                    self.cool(key.device)
        result = run(function, *args)
        self.add(key)
        return result

    def add(self, key: ObjectKey) -> None:
        """The object was used just now."""
        marks = self._devices.get(key.device)
        if marks is None:
            marks = self._devices[key.device] = _Generations()
        marks.add(_mark(key))

    def cool(self, device: str) -> None:
        """Forget every object of a device."""
        self._devices.pop(device, None)

    def __len__(self) -> int:
        return sum(len(marks.young) + len(marks.old) for marks in self._devices.values())

    def __repr__(self) -> str:
        return f"<HotObjects {len(self)}>"


def _mark(key: ObjectKey) -> int:
    return hash(key.hash) + key.policy.index
