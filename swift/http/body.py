"""Bodies: what a request brings and what a response sends.

A response body is one of four kinds, so that the server can send each the cheapest way: ``bytes`` (one
write together with the head), ``FileBody`` (sendfile), ``RelayBody`` (a backend's socket, moved in
large pieces), or any iterable of bytes and file ranges. Whoever wants to know when a body ends subscribes
to the response's ``on_end``; nobody wraps iterators for that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from swift.base.errors import SwiftError

#: How much is read at once where no option says otherwise, bytes.
CHUNK_BYTES = 65536
#: How much of a file is held in memory when it cannot be sent as one.
FILE_CHUNK_BYTES = 1 << 20


class BodyError(SwiftError):
    """A body could not be read to its end; ``status`` is the answer when that is the client's doing."""

    status = 499


class ClientDisconnected(BodyError):
    """The sender closed its connection before the announced end (499)."""


class BodyTimeout(BodyError):
    """The sender sent nothing for the client timeout (408)."""

    status = 408


class BadFraming(BodyError):
    """The chunked framing is malformed (400)."""

    status = 400


class RequestBody(Protocol):
    """The body of a request as handlers read it."""

    #: Announced bytes, or None when the body is chunked.
    length: int | None

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes (all that is left when negative); empty at the end.

        Raises ``ClientDisconnected``, ``BodyTimeout`` or ``BadFraming``.
        """

    def send_continue(self, headers: dict[str, str]) -> None:
        """Send ``100 Continue`` with these extra headers now, when the client asked to wait for it.

        May be called again for a multi-stage body (object-server.md §10); afterwards ``next_stage``
        continues with the following chunked body.
        """

    def next_stage(self) -> None:
        """Begin to read another chunked body of the same request (object-server.md §10)."""


def read_into(body: RequestBody, view: memoryview) -> int:
    """Read at least a byte into ``view``; 0 at the end. Raises like ``RequestBody.read``.

    A body that can fill a buffer itself, as one that comes from a socket can, has a method of this name;
    others are read and copied.
    """
    direct = getattr(body, "read_into", None)
    if direct is not None:
        return int(direct(view))
    data = body.read(len(view))
    view[: len(data)] = data
    return len(data)


def trailers_of(body: RequestBody) -> dict[str, str]:
    """The trailers of a chunked body that was read to its end; none of bodies that know of none."""
    trailers: dict[str, str] = getattr(body, "trailers", {})
    return trailers


class BytesBody:
    """A request body that is already in memory."""

    __slots__ = ("length", "_data", "_position")

    def __init__(self, data: bytes = b"", *, chunked: bool = False):
        self.length: int | None = None if chunked else len(data)
        self._data = data
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, all when negative."""
        start = self._position
        stop = len(self._data) if size < 0 else min(len(self._data), start + size)
        self._position = stop
        return self._data if start == 0 and stop == len(self._data) else self._data[start:stop]

    def send_continue(self, headers: dict[str, str]) -> None:
        """Nothing waits for it: the body is here."""

    def next_stage(self) -> None:
        """The bytes of all stages are one."""


class FileBody:
    """``length`` bytes of an open file from ``offset`` on, sent by sendfile.

    Takes ownership of ``fd``: ``close`` runs ``on_close`` (or closes the descriptor) exactly once.
    """

    __slots__ = ("fd", "offset", "length", "_on_close")

    def __init__(self, fd: int, offset: int, length: int, on_close: Callable[[], None]):
        self.fd = fd
        self.offset = offset
        self.length = length
        self._on_close: Callable[[], None] | None = on_close

    def close(self) -> None:
        """Release the file."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()


def chunks_of(body: Any) -> Iterator[bytes]:
    """The bytes of any response body, its file ranges read; for those who cannot send files."""
    for piece in (body,) if isinstance(body, bytes | FileBody) else body:
        if not isinstance(piece, FileBody):
            yield piece
            continue
        offset, end = piece.offset, piece.offset + piece.length
        while offset < end:
            data = os.pread(piece.fd, min(end - offset, FILE_CHUNK_BYTES), offset)
            if not data:
                raise BodyError(f"the file ended {end - offset} bytes early")
            offset += len(data)
            yield data


class RelayBody(Protocol):
    """A backend response body that can be moved to a client socket in large pieces.

    It may have a method ``splice_into(pipe, size)`` that waits for bytes, moves up to ``size`` into an empty
    pipe and returns how many; 0 when the next bytes must be had by ``read_into``.
    """

    #: Bytes left, or None when unknown.
    length: int | None

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with what is there; 0 at the end. Raises ``BodyError`` when it breaks off."""

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None:
        """Give the connection back or drop it."""
