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

from swift.base.digits import is_digits
from swift.http.body import CHUNK_BYTES, BodyError, ResponseBody, as_response_body
from swift.http.readahead import ReadAhead, release_response
from swift.http.response import Response

S = TypeVar("S")

#: The next segment is opened when no more than this is left of the current one: what a fast client takes in
#: the time that opening takes.
PREFETCH_BELOW_BYTES = 4 << 20


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
        self._remaining_pieces = iter(pieces)
        self._open = open_segment
        self._read_ahead = ReadAhead(self._open_next, memory)
        #: The response that ``start`` opened.
        self._opened: deque[Response] = deque()
        self._current: Response | None = None
        self._body: ResponseBody = as_response_body(b"")
        #: Bytes taken from the open piece, and how many it has when that is known.
        self._taken = 0
        self._size: int | None = None
        self._closed = False
        self.length = length

    def start(self) -> None:
        """Open everything up to the first segment; raises ``BodyError``."""
        for piece in self._remaining_pieces:
            if isinstance(piece, bytes):
                self._opened.append(Response(200, {}, piece))
            else:
                self._opened.append(self._open(piece))
                return

    def _open_next(self) -> Response | None:
        piece = next(self._remaining_pieces, None)
        if piece is None:
            return None
        return Response(200, {}, piece) if isinstance(piece, bytes) else self._open(piece)

    def _advance(self) -> bool:
        """Go on with the next piece; return False at the end. Raises ``BodyError``."""
        self._finish_current()
        if self._closed:
            return False
        response = self._opened.popleft() if self._opened else self._read_ahead.get()
        if response is None:
            self._closed = True
            return False
        self._current = response
        self._body = as_response_body(response.body)
        announced = response.headers.get("content-length", "")
        known = self._body.length
        self._size = known if known is not None or not is_digits(announced) else int(announced)
        self._prefetch()
        return True

    def _finish_current(self) -> None:
        """Let the piece go that was read to its end."""
        current, self._current = self._current, None
        if current is not None:
            complete = self._size is None or self._taken == self._size
            current.discard()
            current.report_end(self._taken, complete)
            if not complete:
                raise BodyError(f"a segment sent {self._taken} of {self._size} bytes")
        self._taken = 0

    def _prefetch(self) -> None:
        if not self._opened and self._size is not None and self._size - self._taken <= PREFETCH_BELOW_BYTES:
            self._read_ahead.prefetch()

    def _count_sent(self, size: int) -> None:
        self._taken += size
        if self._size is not None and self._taken > self._size:
            raise BodyError(f"a segment sent more than {self._size} bytes")
        self._prefetch()

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with what is there; 0 at the end; raises ``BodyError``."""
        while self._has_open_segment():
            size = self._body.read_into(buffer)
            if size:
                self._count_sent(size)
                return size
            if not self._advance():
                break
        return 0

    def _has_open_segment(self) -> bool:
        """Return True if a piece is open that has more bytes, after going on to the next if need be."""
        while self._current is None or self._taken == self._size:
            if not self._advance():
                return False
        return True

    def splice_into(self, pipe: int, size: int) -> int:
        """See ``ResponseBody``. What cannot be spliced is written to the pipe, so that the rest can be."""
        if self._has_open_segment():
            moved = self._body.splice_into(pipe, size)
            if moved:
                self._count_sent(moved)
                return moved
        data = self.read(min(size, CHUNK_BYTES))
        return os.write(pipe, data) if data else 0

    def close(self) -> None:
        """Let go of what is open."""
        self._closed = True
        self._read_ahead.close()
        while self._opened:
            release_response(self._opened.popleft(), 0)
        current, self._current = self._current, None
        release_response(current, self._taken)
        # It may hold the whole segment.
        self._body = as_response_body(b"")
