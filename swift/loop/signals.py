"""Signals that interrupt a loop waiting in the kernel.

Python runs signal handlers between two instructions of Python, and a waiting loop executes none. Each
signal therefore writes a byte to a pipe that the loop polls.

Apart from the loops, which all use it through ``green``.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

from swift.loop.sockets import on_readable


def on_signals(signals: Iterable[int], callback: Callable[[int], None]) -> None:
    """Call back with its number when one of ``signals`` arrives.

    Called once per process, in its main thread; the callback runs there.
    """
    for number in signals:
        signal.signal(number, lambda came, _frame: callback(came))
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    on_readable(reading, lambda: _drain(reading))


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(fd, 512)
