"""Moving a backend's body to a client without copying it through this process (splice).

A pipe stands between the two sockets: the kernel moves references to the pages that arrived. That needs a
body that can give its bytes to a pipe (``splice_into``), a client without TLS and enough to move; the rest is
copied with ``read_into``. It refuses to know where the bytes come from.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from swift.http.body import BodyError, ResponseBody
from swift.runtime.connection import Connection

#: Shorter bodies are copied: making a pipe costs as much.
SPLICE_BYTES_MIN = 256 << 10
#: Capacities of a pipe that are tried, bytes. Users may have 64 MiB of pipes (fs.pipe-user-pages-soft).
PIPE_SIZES = (1 << 20, 256 << 10)
#: Pipes beyond the user's allowance hold next to nothing, and copying is faster.
PIPE_BYTES_MIN = 64 << 10
#: Copied bodies move in pieces of this size.
COPY_BYTES = 256 << 10


class _Pipe:
    """Both ends of a pipe, non-blocking; ``size`` is its capacity, 0 if no pipe could be made."""

    __slots__ = ("source", "sink", "size")

    def __init__(self, needed: int) -> None:
        self.source = self.sink = -1
        self.size = 0
        try:
            self.source, self.sink = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            for size in PIPE_SIZES:
                with suppress(OSError):
                    self.size = fcntl.fcntl(self.sink, fcntl.F_SETPIPE_SZ, min(size, needed))
                    return
            self.size = fcntl.fcntl(self.sink, fcntl.F_GETPIPE_SZ)
        except OSError:
            self.close()

    def close(self) -> None:
        """Close both ends."""
        for fd in (self.source, self.sink):
            if fd >= 0:
                os.close(fd)
        self.source = self.sink = -1
        self.size = 0


def relay_body(connection: Connection, body: ResponseBody, announced: int | None) -> None:
    """Send a body that fills buffers, exactly the announced number of bytes.

    Raises ``BodyError`` when it has more or less, ``ConnectionClosed`` when the client is gone.
    """
    left = (1 << 63) if announced is None else announced
    if left >= SPLICE_BYTES_MIN and announced is not None and not connection.is_tls:
        left = _splice(connection, body, left)
    buffer = memoryview(bytearray(min(COPY_BYTES, left + 1)))
    while size := body.read_into(buffer):
        if size > left:
            connection.send_all(buffer[:left])
            raise BodyError("the body is longer than announced")
        connection.send_all(buffer[:size])
        left -= size
    if announced is not None and left:
        raise BodyError(f"the body ended {left} bytes early")


def _splice(connection: Connection, body: ResponseBody, left: int) -> int:
    """Move what can be moved; the bytes that are left to be copied."""
    pipe = _Pipe(left)
    try:
        if pipe.size < PIPE_BYTES_MIN:
            return left
        while left:
            size = body.splice_into(pipe.sink, min(pipe.size, left))
            if size <= 0:
                return left
            connection.send_pipe(pipe.source, size)
            left -= size
        return left
    finally:
        pipe.close()
