"""Waits for non-blocking sockets and other descriptors, connections and TLS handshakes.

Deadlines are monotonic seconds; a wait past its deadline raises ``DeadlineExceeded``.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
from collections.abc import Callable

from swift.loop.base import loop

_READABLE = select.EPOLLIN | select.EPOLLRDHUP
_WRITABLE = select.EPOLLOUT


def on_readable(fd: int, callback: Callable[[], None]) -> None:
    """Call back from the loop, from now on, whenever ``fd`` is readable; the callback must not raise."""
    loop().on_readable(fd, callback)


def wait_readable(fd: int, deadline: float | None = None) -> None:
    """Wait until ``fd`` is readable; raises ``DeadlineExceeded``.

    A wake-up may be stale: callers try their system call and wait again.
    """
    loop().wait_for(fd, _READABLE, deadline)


def wait_writable(fd: int, deadline: float | None = None) -> None:
    """Wait until ``fd`` is writable; like ``wait_readable``."""
    loop().wait_for(fd, _WRITABLE, deadline)


def handshake(tls: ssl.SSLSocket, deadline: float) -> None:
    """Perform the TLS handshake over a non-blocking socket; raises ``DeadlineExceeded`` and OSError."""
    while True:
        try:
            tls.do_handshake()
            return
        except ssl.SSLWantReadError:
            wait_readable(tls.fileno(), deadline)
        except ssl.SSLWantWriteError:
            wait_writable(tls.fileno(), deadline)


def connect(ip: str, port: int, deadline: float | None) -> socket.socket:
    """Return a connected non-blocking TCP socket; raises OSError or ``DeadlineExceeded``."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sock.connect((ip, port))
        except BlockingIOError:
            wait_writable(sock.fileno(), deadline)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock
