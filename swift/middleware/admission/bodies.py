"""Bodies whose bytes are counted, and which wait when their class is in debt; bytes are not copied for it."""

from __future__ import annotations

from collections.abc import Callable

from swift.http.body import RequestBody, ResponseBody
from swift.http.transform import WrappedRequestBody

#: Counts bytes that were moved, and waits as long as must be.
CountBytes = Callable[[int], None]


class MeteredDownload(ResponseBody):
    """A response body; ``count_bytes`` is called after each piece. Closes the body below it."""

    __slots__ = ("length", "_source", "_count_bytes")

    def __init__(self, source: ResponseBody, count_bytes: CountBytes):
        self._source = source
        self.length = source.length
        self._count_bytes = count_bytes

    def read_into(self, buffer: memoryview) -> int:
        """Fill a buffer and count its bytes."""
        size = self._source.read_into(buffer)
        if size:
            self._count_bytes(size)
        return size

    def splice_into(self, pipe: int, size: int) -> int:
        """Move bytes into a pipe and count them."""
        moved = self._source.splice_into(pipe, size)
        if moved:
            self._count_bytes(moved)
        return moved

    def close(self) -> None:
        """Release the body below."""
        self._source.close()


class MeteredUpload(WrappedRequestBody):
    """A request body; ``count_bytes`` is called after each piece."""

    __slots__ = ("_count_bytes",)

    def __init__(self, source: RequestBody, count_bytes: CountBytes):
        super().__init__(source)
        self._count_bytes = count_bytes

    def read(self, size: int = -1) -> bytes:
        """Return bytes and count them."""
        data = self._source.read(size)
        if data:
            self._count_bytes(len(data))
        return data

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer and count its bytes."""
        size = self._source.read_into(view)
        if size:
            self._count_bytes(size)
        return size
