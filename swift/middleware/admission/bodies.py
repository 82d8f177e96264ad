"""Bodies that draw what they move from a grant, and wait when their class owes; bytes are not copied for
it."""

from __future__ import annotations

from collections.abc import Callable

from swift.http.body import RequestBody, ResponseBody
from swift.http.transform import WrappedRequest

#: Counts bytes that were moved, and waits as long as must be.
Draw = Callable[[int], None]


class MeteredDownload(ResponseBody):
    """A response body; ``draw`` is called after each piece. Closes the body below it."""

    __slots__ = ("length", "_source", "_draw")

    def __init__(self, source: ResponseBody, draw: Draw):
        self._source = source
        self.length = source.length
        self._draw = draw

    def read_into(self, buffer: memoryview) -> int:
        """See ``ResponseBody``."""
        size = self._source.read_into(buffer)
        if size:
            self._draw(size)
        return size

    def splice_into(self, pipe: int, size: int) -> int:
        """See ``ResponseBody``."""
        moved = self._source.splice_into(pipe, size)
        if moved:
            self._draw(moved)
        return moved

    def close(self) -> None:
        """Release the body below."""
        self._source.close()


class MeteredUpload(WrappedRequest):
    """A request body; ``draw`` is called after each piece."""

    __slots__ = ("_draw",)

    def __init__(self, source: RequestBody, draw: Draw):
        super().__init__(source)
        self._draw = draw

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``."""
        data = self._source.read(size)
        if data:
            self._draw(len(data))
        return data

    def read_into(self, view: memoryview) -> int:
        """See ``RequestBody``."""
        size = self._source.read_into(view)
        if size:
            self._draw(size)
        return size
