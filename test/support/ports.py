"""Free ports for servers under test.

They come from below the range that the kernel takes for outgoing connections,
so that no client's connection can be given one before its server listens.
"""

import secrets
import socket

LOWEST = 10240
#: Where Linux begins to number outgoing connections (``ip_local_port_range``).
EPHEMERAL = 32768


#: What was given out to this process's tests already; none is given twice.
_given = set()


def free_ports(count):
    """``count`` different ports that nothing listens on now."""
    return [free_range(1) for _ in range(count)]


def free_range(count):
    """The first of ``count`` consecutive free ports, at a random place."""
    first = LOWEST + secrets.randbelow(EPHEMERAL - LOWEST)
    for _ in range(2):
        while first + count <= EPHEMERAL:
            wanted = range(first, first + count)
            taken = next((port for port in wanted if not _is_free(port)), None)
            if taken is None:
                _given.update(wanted)
                return first
            first = taken + 1
        first = LOWEST
    raise RuntimeError("no free ports")


def _is_free(port):
    if port in _given:
        return False
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
