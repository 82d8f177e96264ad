"""Sockets on which servers take connections."""

from __future__ import annotations

import socket


def listen(ip: str, port: int, backlog: int, *, keep_idle_s: int = 0) -> socket.socket:
    """Return a listening non-blocking TCP socket; raises OSError when the address is taken.

    With ``keep_idle_s`` the kernel probes connections that were silent for so long.
    """
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if keep_idle_s:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, keep_idle_s)
        sock.bind((ip, port))
        sock.listen(backlog)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
