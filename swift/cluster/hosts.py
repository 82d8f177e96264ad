"""Host names in rings and configuration, looked up without blocking the event loop."""

from __future__ import annotations

import socket

from swift.green import blocking_getaddrinfo
from swift.platform.threads import ThreadPool

_threads = ThreadPool(4, "names")


def resolve(host: str, port: int) -> str:
    """A host name's first address; literal addresses are returned as they are. Raises OSError."""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
        return host
    except OSError:
        return str(_threads.call(blocking_getaddrinfo, host, port, 0, socket.SOCK_STREAM)[0][4][0])
