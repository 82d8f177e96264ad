"""Waiting for non-blocking sockets and other descriptors; a wait for one event costs one system call.

Deadlines are monotonic seconds; what passes one raises ``DeadlineExceeded``.
"""

from __future__ import annotations

import select
import ssl
from collections.abc import Callable

from swift.loop.current import loop

ONESHOT = select.EPOLLONESHOT
_READABLE = select.EPOLLIN | select.EPOLLRDHUP | ONESHOT
_WRITABLE = select.EPOLLOUT | ONESHOT


def on_readable(fd: int, callback: Callable[[], None]) -> None:
    """Call back in the loop, from now on, whenever ``fd`` has something to read; it must not raise."""
    loop().on_readable(fd, callback)


def wait_readable(fd: int, deadline: float | None = None) -> None:
    """Wait until ``fd`` has something to read; raises ``DeadlineExceeded``.

    A wake-up may be stale: callers try their system call and wait again.
    """
    loop().wait_for(fd, _READABLE, deadline)


def wait_writable(fd: int, deadline: float | None = None) -> None:
    """Wait until ``fd`` takes more bytes; like ``wait_readable``."""
    loop().wait_for(fd, _WRITABLE, deadline)


def handshake(tls: ssl.SSLSocket, deadline: float) -> None:
    """Agree on encryption over a non-blocking socket; raises ``DeadlineExceeded`` and OSError."""
    while True:
        try:
            tls.do_handshake()
            return
        except ssl.SSLWantReadError:
            wait_readable(tls.fileno(), deadline)
        except ssl.SSLWantWriteError:
            wait_writable(tls.fileno(), deadline)
