"""Signals that are noticed at once, also by an event loop that sleeps in the kernel.

Python runs signal handlers when it next runs anything, which a sleeping loop does not; so a byte in a pipe
wakes it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

from swift import green


def on_signals(signals: Iterable[int], callback: Callable[[int], None]) -> None:
    """Call back with its number in the main thread as soon as one of ``signals`` comes.

    Call it there, once a process.
    """
    for number in signals:
        signal.signal(number, lambda came, _frame: callback(came))
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    green.on_readable(reading, lambda: _drain(reading))


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(fd, 512)
