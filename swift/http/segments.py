"""Bodies made of many pieces: the bytes of one large object from the responses of its segments.

``SegmentedBody`` pulls the next response only when the one before is used up, so one segment is open at a
time. It refuses to know where segments come from; the caller gives a function that opens one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from swift.http.body import ResponseBody, body_of
from swift.http.response import Response

S = TypeVar("S")


class SegmentedBody(ResponseBody, Generic[S]):
    """The concatenated bodies of segments.

    ``open_segment`` returns a response with exactly the wanted bytes or raises ``BodyError``; the first
    segment is opened by ``start``, so that its failure can still become a status.
    """

    def __init__(self, segments: Sequence[S], open_segment: Callable[[S], Response], length: int | None):
        self._segments = list(segments)
        self._open = open_segment
        self._current: Response | None = None
        self._body: ResponseBody = body_of(b"")
        #: Bytes taken from the open segment.
        self._taken = 0
        self.length = length

    def start(self) -> None:
        """Open the first segment; raises ``BodyError``."""
        if self._segments and self._current is None:
            self._next()

    def _next(self) -> bool:
        if self._current is not None:
            self._current.discard()
            self._current.ended(self._taken, True)
            self._current = None
        self._taken = 0
        if not self._segments:
            return False
        self._current = self._open(self._segments.pop(0))
        self._body = body_of(self._current.body)
        return True

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with what is there; 0 at the end; raises ``BodyError``."""
        while True:
            if self._current is None and not self._next():
                return 0
            size = self._body.read_into(buffer)
            self._taken += size
            if size or not self._next():
                return size

    def close(self) -> None:
        """Let go of the open segment."""
        self._segments = []
        if self._current is not None:
            self._current.discard()
            self._current.ended(self._taken, False)
            self._current = None
