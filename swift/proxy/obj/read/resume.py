"""Object bodies that resume at the next node after a break (spec: proxy.md §10)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from swift.base.digits import is_digits
from swift.base.etag import unquote_etag
from swift.base.ranges import ByteRanges, Span, remaining_range
from swift.cluster.placement import NodeIterator, OpenStreams
from swift.cluster.transport import (
    BackendResponse,
    TransportError,
)
from swift.http.body import BodyError, InMemoryBody, ResponseBody
from swift.proxy.backend import Backends
from swift.proxy.reading import ReadPlan
from swift.ring.device import Node
from swift.wire.byteranges import parse_layout

#: Bytes that are kept of a multipart body: enough for the head of its first part.
FIRST_BYTES_KEPT = 1024
_CONTENT_RANGE = re.compile(r"bytes (\d{1,20})-(\d{1,20})/\d{1,20}\Z")


class ResumableBody(ResponseBody):
    """An object's bytes from the first source and, after a break, from the next ones.

    The rest of several ranges is fetched one by one, with the multipart framing of the first source.
    """

    def __init__(
        self,
        backends: Backends,
        plan: ReadPlan,
        nodes: NodeIterator,
        source: tuple[BackendResponse, Node],
        streams: OpenStreams,
    ):
        self._backends = backends
        self._plan = plan
        self._nodes = nodes
        self._streams = streams
        response, self._node = source
        streams.begin(self._node)
        self._is_closed = False
        self._body: ResponseBody = response.stream
        self._etag = unquote_etag(response.headers.get("etag", ""))
        self._content_range = response.headers.get("content-range")
        self._is_multipart = response.headers.get("content-type", "").startswith("multipart/byteranges")
        self.length = response.stream.length
        self._sent = 0
        #: The first bytes of a multipart body, which show its layout.
        self._first_bytes = b""
        self._rest: Iterator[bytes | Span] | None = None
        self._framing = b""

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with what is there; 0 at the end; raises ``BodyError``."""
        while True:
            if self._framing:
                size = min(len(buffer), len(self._framing))
                buffer[:size] = self._framing[:size]
                self._framing = self._framing[size:]
                self._sent += size
                return size
            try:
                size = self._body.read_into(buffer)
                self._sent += size
                if self._is_multipart and len(self._first_bytes) < FIRST_BYTES_KEPT and self._rest is None:
                    self._first_bytes += bytes(buffer[: min(size, FIRST_BYTES_KEPT)])
            except TransportError as error:
                self._change_source(error)
                continue
            if size or self._rest is None:
                return size
            if not self._next_part(chain((self._node,), self._nodes)):
                return 0

    def splice_into(self, pipe: int, size: int) -> int:
        """See ``ResponseBody``. Multipart bodies cannot be spliced: their first bytes are kept."""
        if self._is_multipart:
            return 0
        try:
            moved = self._body.splice_into(pipe, size)
        except TransportError as error:
            self._change_source(error)
            return self.splice_into(pipe, size)
        self._sent += moved
        return moved

    def _change_source(self, error: TransportError) -> None:
        """Go on at another node; raises ``BodyError`` when there is none."""
        self._backends.record_failure(self._node, error, self._plan.headers)
        if not self._resume():
            raise BodyError(f"no other source after {self._sent} bytes")

    def _resume(self) -> bool:
        if self._plan.newest:
            return False
        if not self._is_multipart:
            return self._open(remaining_range(self._content_range, self._sent), self._nodes)
        ranges = ByteRanges.parse(self._plan.headers.get("range", "")) or ByteRanges()
        layout = parse_layout(self._first_bytes, ranges)
        if layout is None or layout.length != self.length:
            return False
        self._rest = layout.pieces_after(self._sent)
        return self._next_part(self._nodes)

    def _next_part(self, nodes: Iterable[Node]) -> bool:
        """Go on with the next piece of several parts; return False at the end.

        Raises ``BodyError``.
        """
        assert self._rest is not None
        piece = next(self._rest, None)
        while isinstance(piece, bytes):
            self._framing += piece
            piece = next(self._rest, None)
        if piece is None:
            self._body = InMemoryBody(b"")
            return bool(self._framing)
        wanted = f"bytes={piece.start}-{piece.stop - 1}"
        if not self._open(wanted, nodes):
            raise BodyError(f"no other source for {wanted}")
        return True

    def _open(self, byte_range: str, nodes: Iterable[Node]) -> bool:
        """Read these bytes from the first of the nodes that has the same object."""
        for node in nodes:
            response = self._backends.stream_response(self._plan.request_rest(node, byte_range))
            if response is None:
                continue
            if response.status == 206 and unquote_etag(response.headers.get("etag", "")) == self._etag:
                if not self._is_closed:
                    self._streams.end(self._node)
                    self._streams.begin(node)
                self._body, self._node = response.stream, node
                return True
            response.stream.close()
        return False

    def close(self) -> None:
        """Let the source go."""
        if not self._is_closed:
            self._is_closed = True
            self._streams.end(self._node)
        self._body.close()


def span_of(response: BackendResponse) -> Span | None:
    """Return the span of a response in its object; None for several ranges, or none."""
    length = response.headers.get("content-length", "")
    if response.status == 200 and is_digits(length):
        return Span(0, int(length))
    match = (
        _CONTENT_RANGE.match(response.headers.get("content-range", "")) if response.status == 206 else None
    )
    return Span(int(match[1]), int(match[2]) + 1) if match else None
