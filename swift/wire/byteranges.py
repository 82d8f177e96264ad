"""``multipart/byteranges`` bodies, byte-exact as the peer writes them (spec: public-api.md §9).

Each part is ``--B CRLF Content-Type CRLF Content-Range CRLF CRLF data CRLF``; the body ends ``--B--``
without a line break. Only framing is known here; where the bytes come from is the caller's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator

from swift.base.ranges import Span


def new_boundary() -> str:
    """32 random hex digits."""
    return secrets.token_hex(16)


class Multipart:
    """The framing of several spans of one body."""

    __slots__ = ("boundary", "length", "_parts", "_end")

    def __init__(self, spans: Iterable[Span], total: int, content_type: str, boundary: str | None = None):
        self.boundary = boundary or new_boundary()
        kind = content_type.encode("latin-1", "replace")
        mark = b"--" + self.boundary.encode()
        self._parts = [
            (
                mark
                + b"\r\nContent-Type: "
                + kind
                + b"\r\nContent-Range: "
                + span.content_range(total).encode()
                + b"\r\n\r\n",
                span,
            )
            for span in spans
        ]
        self._end = mark + b"--"
        #: Exact bytes of the whole body, for Content-Length.
        self.length = sum(len(head) + span.length + 2 for head, span in self._parts) + len(self._end)

    @property
    def content_type(self) -> str:
        """The value of the response's Content-Type."""
        return f"multipart/byteranges;boundary={self.boundary}"

    def body(self, read: Callable[[Span], Iterable[bytes]]) -> Iterator[bytes]:
        """The body; ``read`` gives the bytes of one span."""
        for head, span in self._parts:
            yield head
            yield from read(span)
            yield b"\r\n"
        yield self._end
