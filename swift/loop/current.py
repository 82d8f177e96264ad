"""The event loop of this thread, as those see it who wait.

Who may switch to whom (anything else hangs or runs twice):

=====================  =======================  ====================================================
who                    switches to              how
=====================  =======================  ====================================================
a green thread         the loop, always         ``Loop.switch``, by ``park``, ``wait_for``, ``Handover``
the loop               whoever waits for what   ``wait`` (descriptors), ``wake`` (those parked), deadlines,
                       has happened             ``Handover.switch``
the loop               a detached worker        by its entry in ``ready``, when it got work
another thread         nobody                   it leaves its result and writes to an eventfd
=====================  =======================  ====================================================

So a green thread never switches to another one, and everything that wakes one does so by way of the loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import greenlet


class DeadlineExceeded(Exception):
    """A wait passed its deadline."""


class Loop(Protocol):
    """What waits need of an event loop; ``swift.green`` fills it in. Deadlines are monotonic seconds."""

    def switch(self) -> object:
        """Go on with the loop until somebody switches back here; returns what was handed over."""

    def park(self, deadline: float | None) -> None:
        """Sleep until somebody wakes the caller; raises ``DeadlineExceeded``.

        A wake-up may be stale, meant for an earlier sleep: callers look again at what they wait for.
        """

    def wake(self, waiter: greenlet.greenlet) -> None:
        """Have one that is parked go on in the loop's next turn; nothing when it is parked no more."""

    def wait_for(self, fd: int, events: int, deadline: float | None) -> None:
        """Sleep until one of the epoll ``events`` happens on ``fd``; a wake-up may be stale."""

    def on_readable(self, fd: int, callback: Callable[[], None]) -> None:
        """Call back in the loop whenever ``fd`` has something to read."""


class _Here(threading.local):
    """What belongs to an operating system thread. This module is read before anything is made cooperative."""

    loop: Loop | None = None


_here = _Here()
_begin: list[Callable[[], Loop]] = []


def begin_with(begin: Callable[[], Loop]) -> None:
    """Say what makes the loop of a thread that has none yet."""
    _begin[:] = [begin]


def use(loop: Loop) -> None:
    """This is the loop of this thread from now on."""
    _here.loop = loop


def loop() -> Loop:
    """This thread's loop, made at its first use."""
    found = _here.loop
    if found is None:
        found = _here.loop = _begin[0]()
    return found
