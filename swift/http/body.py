"""Bodies of requests and responses.

A response body is ``bytes`` (one write together with the head) or a ``ResponseBody``. That base can be read
in several ways, each with a default in terms of another, so that a new kind implements the natural one and
works everywhere. The ways are pieces (``__iter__``; a piece may be a file range, sent by sendfile), a buffer
to be filled (``read_into``), bytes (``read``, ``read_all``), and a pipe (``splice_into``). All bodies are
used through this base. An observer of a body's end subscribes to the response's ``on_end``.

A request body is a ``RequestBody``. Bodies around other bodies are in ``http.transform``: transformed,
observed, or forwarded from a response to another request.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from swift.base.errors import SwiftError

#: Default size of a read, bytes.
CHUNK_BYTES = 65536
#: Bytes of a file in memory when it cannot be sent as a file.
FILE_CHUNK_BYTES = 1 << 20


class BodyError(SwiftError):
    """A body could not be read to its end; ``status`` is the response if the client caused it."""

    status = 499


class ClientDisconnected(BodyError):
    """The sender closed its connection before the announced end (499)."""


class BodyTimeout(BodyError):
    """The sender sent nothing for the client timeout (408)."""

    status = 408


class BadFraming(BodyError):
    """The chunked framing is malformed (400)."""

    status = 400


# --- request bodies ---------------------------------------------------------------------------------


class RequestBody(ABC):
    """The body of a request as handlers read it; subclasses implement ``read`` and count ``received``."""

    __slots__ = ()

    #: Announced bytes, or None when the body is chunked.
    length: int | None
    #: Bytes handed out so far.
    received: int

    @abstractmethod
    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes (all that is left when negative); empty at the end.

        Raises ``ClientDisconnected``, ``BodyTimeout`` or ``BadFraming``.
        """

    def read_into(self, view: memoryview) -> int:
        """Put at least a byte into ``view`` and return how many; 0 at the end. Raises like ``read``."""
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    @property
    def trailers(self) -> dict[str, str]:
        """The trailers of a chunked body that was read to its end; none where there are none."""
        return {}

    def send_continue(self, headers: dict[str, str]) -> None:  # noqa: B027
        """Send ``100 Continue`` with these extra headers now, if the client waits for it.

        May be called again for a multi-stage body (object-server.md §10); afterwards ``begin_next_body``
        continues with the following chunked body. Does nothing where no client waits.
        """

    def begin_next_body(self) -> None:  # noqa: B027
        """Begin to read another chunked body of the same request (object-server.md §10)."""


_PIECE_BYTES = 65536


def read_up_to(body: RequestBody, limit: int) -> bytes:
    """Return the body, up to ``limit`` bytes of it; raises like ``read``, which may return fewer."""
    pieces, left = [], limit
    while left and (piece := body.read(min(left, _PIECE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


class BytesBody(RequestBody):
    """A request body that is already in memory."""

    __slots__ = ("length", "received", "_data")

    def __init__(self, data: bytes = b"", *, chunked: bool = False):
        self.length: int | None = None if chunked else len(data)
        self.received = 0
        self._data = data

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, all when negative."""
        start = self.received
        stop = len(self._data) if size < 0 else min(len(self._data), start + size)
        self.received = stop
        return self._data if start == 0 and stop == len(self._data) else self._data[start:stop]


# --- response bodies --------------------------------------------------------------------------------


class ResponseBody:
    """A body that is sent as it comes. It is read once, in one of its ways, and closed by its sender.

    A subclass implements ``__iter__`` or ``read_into`` (TypeError when its class is made without). Reading
    raises ``BodyError`` when the body breaks off. ``splice_into``, ``read_into`` and ``read`` may be mixed.
    """

    __slots__ = ("_pieces",)

    #: Bytes of the whole body, or None when unknown.
    length: int | None
    #: True if the class fills buffers itself, which is cheaper than reading pieces.
    fills_buffers: ClassVar[bool] = False

    #: The reader of the default ``read_into``; unset before the first call.
    _pieces: _PieceReader

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        cls.fills_buffers = cls.read_into is not ResponseBody.read_into
        if not cls.fills_buffers and cls.__iter__ is ResponseBody.__iter__:
            raise TypeError(f"{cls.__name__} has neither __iter__ nor read_into")

    def __iter__(self) -> Iterator[bytes | FileBody]:
        """Yield the pieces: bytes, or file ranges that stay open until the next piece is requested."""
        buffer = memoryview(bytearray(CHUNK_BYTES))
        while size := self.read_into(buffer):
            yield bytes(buffer[:size])

    def read_into(self, buffer: memoryview) -> int:
        """Read at least one byte into ``buffer`` and return the number of bytes; 0 at the end."""
        try:
            pieces = self._pieces
        except AttributeError:
            pieces = self._pieces = _PieceReader(self)
        return pieces.read_into(buffer)

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, one at least; empty at the end. Cut to size, so for small reads."""
        buffer = memoryview(bytearray(size))
        return bytes(buffer[: self.read_into(buffer)])

    def read_all(self) -> bytes:
        """Read everything that is left; for bodies that are known to be small."""
        return b"".join(iter_body_bytes(self))

    def splice_into(self, pipe: int, size: int) -> int:
        """Wait for bytes, move up to ``size`` into an empty pipe and return how many.

        Return 0 if the next bytes must be read with ``read_into``, as of all bodies without a socket.
        """
        return 0

    @property
    def remaining_bytes(self) -> bytes | None:
        """All bytes that are left when they are in memory and nothing needs to be closed, else None."""
        return None

    def close(self) -> None:
        """Release the resources of the body; harmless when they were released before."""


class FileBody(ResponseBody):
    """``length`` bytes of an open file from ``offset`` on, sent by sendfile.

    Takes ownership of ``fd``: ``close`` runs ``on_close`` (which closes the descriptor) exactly once.
    """

    __slots__ = ("fd", "offset", "length", "_on_close")

    def __init__(self, fd: int, offset: int, length: int, on_close: Callable[[], None]):
        self.fd = fd
        self.offset = offset
        self.length: int = length
        self._on_close: Callable[[], None] | None = on_close

    def __iter__(self) -> Iterator[bytes | FileBody]:
        yield self

    def close(self) -> None:
        """Release the file."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()


class InMemoryBody(ResponseBody):
    """A body that is in memory, read piece by piece."""

    __slots__ = ("length", "remaining_bytes")

    def __init__(self, data: bytes):
        self.length: int | None = len(data)
        #: The bytes that were not read yet.
        self.remaining_bytes: bytes = data

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, empty at the end."""
        data, self.remaining_bytes = self.remaining_bytes[:size], self.remaining_bytes[size:]
        return data

    def read_into(self, buffer: memoryview) -> int:
        """Fill a buffer; 0 at the end."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def __iter__(self) -> Iterator[bytes]:
        data, self.remaining_bytes = self.remaining_bytes, b""
        return iter((data,) if data else ())


class IterableBody(ResponseBody):
    """A body over any iterable of pieces; ``on_close`` releases what the iterable needs, exactly once."""

    __slots__ = ("length", "_iterable", "_on_close")

    def __init__(
        self,
        pieces: Iterable[bytes | FileBody],
        length: int | None = None,
        on_close: Callable[[], None] | None = None,
    ):
        self.length = length
        self._iterable = pieces
        self._on_close = on_close

    def __iter__(self) -> Iterator[bytes | FileBody]:
        return iter(self._iterable)

    def close(self) -> None:
        """Run ``on_close``."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()


class _PieceReader:
    """Fills buffers from pieces."""

    __slots__ = ("_chunks", "_rest")

    def __init__(self, body: ResponseBody):
        self._chunks = iter_body_bytes(body)
        self._rest = memoryview(b"")

    def read_into(self, buffer: memoryview) -> int:
        """See ``ResponseBody``."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def length_header(body: RequestBody) -> dict[str, str]:
    """Return the header that declares the length of a body, or that it is unknown."""
    return {"transfer-encoding": "chunked"} if body.length is None else {"content-length": str(body.length)}


def as_response_body(content: bytes | ResponseBody) -> ResponseBody:
    """Return a response's body as a ``ResponseBody``."""
    return InMemoryBody(content) if isinstance(content, bytes) else content


def iter_body_bytes(body: bytes | Iterable[bytes | FileBody]) -> Iterator[bytes]:
    """Yield the bytes of a response body, with file ranges read; for callers that cannot send files."""
    for piece in (body,) if isinstance(body, bytes) else body:
        if not isinstance(piece, FileBody):
            yield piece
            continue
        offset, end = piece.offset, piece.offset + piece.length
        while offset < end:
            try:
                data = os.pread(piece.fd, min(end - offset, FILE_CHUNK_BYTES), offset)
            except OSError as error:
                raise BodyError(f"the file cannot be read: {error.strerror}")
            if not data:
                raise BodyError(f"the file ended {end - offset} bytes early")
            offset += len(data)
            yield data
