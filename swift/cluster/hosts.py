"""Host names in rings and configuration, looked up without blocking the event loop."""

from __future__ import annotations

import socket

from swift.green import ThreadPool

_threads = ThreadPool(4, "names")


def resolve(host: str, port: int) -> str:
    """Return a host name's first address; literal addresses are returned unchanged. Raises OSError."""
    return host if _is_literal(host) else resolve_all(host, port)[0]


def resolve_all(host: str, port: int) -> list[str]:
    """Return the distinct addresses of a host name; a literal address is the only one. Raises OSError."""
    if _is_literal(host):
        return [host]
    try:
        found = _threads.call(socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM)
    except UnicodeError as error:
        # A label is too long for the encoding of host names.
        raise OSError(f"{host[:80]!r} is no host name: {error}")
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_literal(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        return False
    return True
