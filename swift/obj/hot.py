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

#: Objects remembered per generation; two generations are kept.
GENERATION_MAX = 16384
#: An inline look that took longer was not answered from memory.
SLOW_S = 0.05


class HotObjects:
    """Remembers which objects were used lately."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._young: set[tuple[str, str, int]] = set()
        self._old: set[tuple[str, str, int]] = set()

    def call(self, key: ObjectKey, run: Callable[..., Any], function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)``, inline when the object is hot."""
        mark = (key.device, key.hash, key.policy.index)
        if mark in self._young or mark in self._old:
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
        if len(self._young) >= GENERATION_MAX:
            self._old, self._young = self._young, set()
        self._young.add((key.device, key.hash, key.policy.index))

    def cool(self, device: str) -> None:
        """Forget every object of a device."""
        self._young = {mark for mark in self._young if mark[0] != device}
        self._old = {mark for mark in self._old if mark[0] != device}

    def __repr__(self) -> str:
        return f"HotObjects({len(self._young)} + {len(self._old)})"
