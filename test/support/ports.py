"""Free ports for servers under test.

They come from below the range that the kernel takes for outgoing connections,
so that no client's connection can be given one before its server listens.

Servers begin to listen long after their ports were chosen, and may share ports with others
(``SO_REUSEPORT``). So processes of tests that run side by side must not choose the same ones: each takes
slices of the range for itself and holds them, as long as it lives, by abstract sockets of their names.
"""

import secrets
import socket

LOWEST = 10240
#: Where Linux begins to number outgoing connections (``ip_local_port_range``).
EPHEMERAL = 32768
SLICE = 256
SLICES = (EPHEMERAL - LOWEST) // SLICE


class Ports:
    """The ports of one process; it takes ``most`` of the ``SLICES``, one after the other as it needs them."""

    def __init__(self, most=SLICES):
        self._most = most
        self._slices = []
        self._left = range(0)

    def free_range(self, count):
        """The first of ``count`` consecutive free ports; given ones come again when no others are left."""
        for _ in range(2 * SLICES):
            while len(self._left) >= count:
                wanted, self._left = self._left[:count], self._left[count:]
                if all(_is_free(port) for port in wanted):
                    return wanted[0]
            self._left = self._next_slice()
        raise RuntimeError("no free ports")

    def _next_slice(self):
        taken = _take_slice() if len(self._slices) < self._most else None
        if taken is None:
            self._most = len(self._slices)
            if not self._slices:
                raise RuntimeError("other tests have all ports")
            taken = self._slices.pop(0)
        self._slices.append(taken)
        number, _held = taken
        return range(LOWEST + number * SLICE, LOWEST + (number + 1) * SLICE)


def _take_slice():
    """The number of a slice that nobody had, with what holds it; None when all are taken."""
    for number in secrets.SystemRandom().sample(range(SLICES), SLICES):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.bind(f"\0swift-test-ports-{number}")
        except OSError:
            sock.close()
        else:
            return number, sock
    return None


_ports = Ports()
free_range = _ports.free_range


def free_ports(count):
    """``count`` different ports that nothing listens on now."""
    return [free_range(1) for _ in range(count)]


def _is_free(port):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
