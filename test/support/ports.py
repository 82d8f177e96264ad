"""Free ports for servers under test."""

import socket


def free_ports(count):
    """``count`` different ports that nothing listens on now."""
    sockets = []
    try:
        for _ in range(count):
            sock = socket.socket()
            sock.bind(("127.0.0.1", 0))
            sockets.append(sock)
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def free_range(count, start=20000, stop=60000):
    """The first of ``count`` consecutive free ports."""
    first = start
    while first + count < stop:
        taken = next((p for p in range(first, first + count) if not _is_free(p)), None)
        if taken is None:
            return first
        first = taken + 1
    raise RuntimeError("no free ports")


def _is_free(port):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
