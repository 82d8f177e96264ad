"""Waiting inside calls that may block: how long they were suspended, and calls that must not block.

A device is judged by how long its calls take. That must not count what was not the device's doing: waiting
for a lock or for others to join a sync, during which the event loop went on.

``call_without_blocking`` makes a call on the event loop that serves other devices as well. Code that would
wait for a disk asks first: ``before_blocking`` ends the call, and a thread repeats it from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Unpack

from swift.base.calls import T, Ts

# Every green thread has a context of its own.
_waited_s = ContextVar("waited_s", default=0.0)
_must_not_block = ContextVar("must_not_block", default=False)


class WouldBlock(Exception):
    """A call on the event loop has to wait for a disk; it changed nothing, and a thread repeats it."""


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


def call_without_blocking(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Return the result of a call on the event loop; raises ``WouldBlock`` instead of waiting for a disk."""
    token = _must_not_block.set(True)
    try:
        return function(*args)
    finally:
        _must_not_block.reset(token)


def must_not_block() -> bool:
    """Return True inside ``call_without_blocking``."""
    return _must_not_block.get()


def before_blocking() -> None:
    """Announce that a disk is waited for. Raises ``WouldBlock`` where that is not allowed."""
    if _must_not_block.get():
        raise WouldBlock


def allow_blocking() -> None:
    """Let the rest of a call block: it has changed something, so it must not be repeated."""
    _must_not_block.set(False)
