"""Waiting inside calls that may block: how long they were suspended.

A device is judged by how long its calls take. That must not count what was not the device's doing: waiting
for a lock or for others to join a sync, during which the event loop went on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar

# Every green thread has a context of its own.
_waited_s = ContextVar("waited_s", default=0.0)


def waited_s() -> float:
    """Return the seconds this green thread has waited since it began; only differences have a meaning."""
    return _waited_s.get()


class yielding:  # noqa: N801
    """``with yielding():`` what happens inside is waiting."""

    __slots__ = ("_monotonic", "_started")

    def __init__(self, monotonic: Callable[[], float] = time.monotonic):
        self._monotonic = monotonic

    def __enter__(self) -> None:
        self._started = self._monotonic()

    def __exit__(self, *_error: object) -> None:
        _waited_s.set(_waited_s.get() + self._monotonic() - self._started)
