"""``multipart/byteranges`` bodies, byte-exact as the peer writes them (spec: public-api.md §9).

Each part is ``--B CRLF Content-Type CRLF Content-Range CRLF CRLF data CRLF``; the body ends ``--B--``
without a line break. Only framing is known here; where the bytes come from is the caller's.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator

from swift.base.ranges import ByteRanges, Span


def new_boundary() -> str:
    """Return 32 random hex digits."""
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

    def pieces(self) -> Iterator[bytes | Span]:
        """Yield the body's framing, and spans where their bytes belong."""
        for head, span in self._parts:
            yield head
            yield span
            yield b"\r\n"
        yield self._end

    def pieces_after(self, sent: int) -> Iterator[bytes | Span]:
        """Yield the ``pieces`` that remain after ``sent`` bytes of the body."""
        for piece in self.pieces():
            size = piece.length if isinstance(piece, Span) else len(piece)
            skipped = min(sent, size)
            sent -= skipped
            if skipped == size:
                continue
            yield Span(piece.start + skipped, piece.stop) if isinstance(piece, Span) else piece[skipped:]

    def body(self, read: Callable[[Span], Iterable[bytes]]) -> Iterator[bytes]:
        """Yield the body; ``read`` gives the bytes of one span."""
        for piece in self.pieces():
            if isinstance(piece, Span):
                yield from read(piece)
            else:
                yield piece


_FIRST_HEAD = re.compile(
    rb"--([0-9A-Za-z'()+_,./:=?-]{1,70})\r\nContent-Type: ([^\r\n]*)\r\n"
    rb"Content-Range: bytes \d{1,20}-\d{1,20}/(\d{1,20})\r\n\r\n"
)


def parse_layout(beginning: bytes, ranges: ByteRanges) -> Multipart | None:
    """Return the layout of a body that begins like this and answers ``ranges``.

    None when the beginning is too short, or the ranges do not lead to several parts.
    """
    match = _FIRST_HEAD.match(beginning)
    if match is None:
        return None
    boundary, content_type, total = match[1].decode(), match[2].decode("latin-1"), int(match[3])
    spans = ranges.resolve(total)
    return Multipart(spans, total, content_type, boundary) if len(spans) > 1 else None
