"""Bodies made of many pieces: the bytes of one large object from the responses of its segments.

``SegmentedBody`` sends the pieces one after the other. Shortly before one ends the next is opened in the
background, so that the stream does not pause; more than one ahead is never open, unless it may hold some in
memory (``http.readahead``). It refuses to know where segments come from; the caller gives the pieces, as
lazily as it likes, and a function that opens one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from swift import green
from swift.base.digits import is_digits
from swift.http.body import CHUNK_BYTES, BodyError, ResponseBody, body_of
from swift.http.readahead import ReadAhead, release
from swift.http.response import Response

S = TypeVar("S")

#: The next segment is opened when no more than this is left of the current one: what a fast client takes in
#: the time that opening takes.
AHEAD_BYTES = 4 << 20


class _Ahead:
    """The next piece, being opened in the background."""

    __slots__ = ("_ready", "_answer", "_error", "_abandoned")

    def __init__(self, take: Callable[[], Response | None]):
        self._ready = green.Event()
        self._answer: Response | None = None
        self._error: Exception | None = None
        self._abandoned = False
        green.spawn_detached(self._run, take)

    def _run(self, take: Callable[[], Response | None]) -> None:
        try:
            self._answer = take()
        except Exception as error:
            # The next read raises it.
            self._error = error
        self._ready.set()
        if self._abandoned:
            release(self._answer, 0)

    def get(self) -> Response | None:
        """The opened piece; None when there is none; raises what opening raised."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._answer

    def abandon(self) -> None:
        """Release what is, or will be, opened."""
        self._abandoned = True
        if self._ready.is_set:
            release(self._answer, 0)


class SegmentedBody(ResponseBody, Generic[S]):
    """The concatenation of ``pieces``: bytes as they are, and the bodies of segments.

    ``open_segment`` returns a response with exactly the wanted bytes or raises ``BodyError``, and so may the
    iteration of ``pieces``. ``start`` opens the first segment, so that its failure can still become a status.
    """

    def __init__(
        self,
        pieces: Iterable[bytes | S],
        open_segment: Callable[[S], Response],
        length: int | None,
        *,
        memory: int = 0,
    ):
        self._rest = iter(pieces)
        self._open = open_segment
        #: Reads several pieces at once, where so many bytes may be held.
        self._reading = ReadAhead(self._take, memory) if memory else None
        #: What ``start`` has opened.
        self._opened: deque[Response] = deque()
        self._ahead: _Ahead | None = None
        self._current: Response | None = None
        self._body: ResponseBody = body_of(b"")
        #: Bytes taken from the open piece, and how many it has when that is known.
        self._taken = 0
        self._size: int | None = None
        self._closed = False
        self.length = length

    def start(self) -> None:
        """Open everything up to the first segment; raises ``BodyError``."""
        for piece in self._rest:
            if isinstance(piece, bytes):
                self._opened.append(Response(200, {}, piece))
            else:
                self._opened.append(self._open(piece))
                return

    def _take(self) -> Response | None:
        piece = next(self._rest, None)
        if piece is None:
            return None
        return Response(200, {}, piece) if isinstance(piece, bytes) else self._open(piece)

    def _next(self) -> bool:
        """Go on with the next piece; False at the end. Raises ``BodyError``."""
        self._finish()
        if self._closed:
            return False
        ahead, self._ahead = self._ahead, None
        if self._opened:
            response: Response | None = self._opened.popleft()
        else:
            response = self._following(ahead)
        if response is None:
            self._closed = True
            return False
        self._current = response
        self._body = body_of(response.body)
        announced = response.headers.get("content-length", "")
        known = self._body.length
        self._size = known if known is not None or not is_digits(announced) else int(announced)
        self._look_ahead()
        return True

    def _following(self, ahead: _Ahead | None) -> Response | None:
        """The next piece, None at the end; raises what opening it raised."""
        if self._reading is not None:
            return self._reading.get()
        return self._take() if ahead is None else ahead.get()

    def _finish(self) -> None:
        """Let the piece go that was read to its end."""
        current, self._current = self._current, None
        if current is not None:
            complete = self._size is None or self._taken == self._size
            current.discard()
            current.ended(self._taken, complete)
            if not complete:
                raise BodyError(f"a segment gave {self._taken} of {self._size} bytes")
        self._taken = 0

    def _look_ahead(self) -> None:
        if self._ahead is not None or self._opened or self._size is None:
            return
        if self._size - self._taken > AHEAD_BYTES:
            return
        if self._reading is not None:
            self._reading.want()
        else:
            self._ahead = _Ahead(self._take)

    def _count(self, size: int) -> None:
        self._taken += size
        if self._size is not None and self._taken > self._size:
            raise BodyError(f"a segment gives more than {self._size} bytes")
        self._look_ahead()

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with what is there; 0 at the end; raises ``BodyError``."""
        while self._is_at_piece():
            size = self._body.read_into(buffer)
            if size:
                self._count(size)
                return size
            if not self._next():
                break
        return 0

    def _is_at_piece(self) -> bool:
        """Return True if a piece is open that has more bytes, after going on to the next if need be."""
        while self._current is None or self._taken == self._size:
            if not self._next():
                return False
        return True

    def splice_into(self, pipe: int, size: int) -> int:
        """See ``ResponseBody``. What cannot be spliced is written to the pipe, so that the rest can be."""
        if self._is_at_piece():
            moved = self._body.splice_into(pipe, size)
            if moved:
                self._count(moved)
                return moved
        data = self.read(min(size, CHUNK_BYTES))
        return os.write(pipe, data) if data else 0

    def close(self) -> None:
        """Let go of what is open."""
        self._closed = True
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.abandon()
        if self._reading is not None:
            self._reading.close()
        while self._opened:
            release(self._opened.popleft(), 0)
        current, self._current = self._current, None
        release(current, self._taken)
