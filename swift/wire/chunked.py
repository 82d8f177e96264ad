"""Chunked transfer coding, sans I/O (RFC 9112 §7.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swift.http.body import BadFraming
from swift.http.headers import HeaderMap, lower_name, title_case

#: A chunk size line (with extensions) longer than this is refused.
SIZE_LINE_MAX = 256
#: All trailer lines together.
TRAILERS_MAX = 8192

LAST_CHUNK = b"0\r\n\r\n"

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?\Z")


def last_chunk(trailers: Mapping[str, str]) -> bytes:
    """Return the end of a body with trailers; raises ValueError when one would smuggle in another line."""
    lines = [f"{title_case(name)}: {value}\r\n" for name, value in trailers.items()]
    block = "".join(lines)
    if block.count("\n") != len(lines) or block.count("\r") != len(lines):
        raise ValueError("a trailer contains a line break")
    return f"0\r\n{block}\r\n".encode("latin-1")


def chunk_head(size: int) -> bytes:
    """Return the line before ``size`` bytes of data, which CRLF must follow."""
    return b"%x\r\n" % size


class ChunkDecoder:
    """Decodes a chunked body piece by piece.

    ``feed`` returns the data found and how much of the input was used; ``finished`` is set once the
    last chunk and its ``trailers`` are consumed, leaving what follows (a pipelined request) alone.
    Data of a chunk may bypass ``feed``: up to ``chunk_bytes_left`` bytes, reported by ``count_received``.
    Once the framing was malformed the end of the data is unknown: ``feed`` raises from then on.
    """

    __slots__ = ("finished", "trailers", "_left", "_state", "_line", "_trailer_bytes", "_broken")

    def __init__(self) -> None:
        self.finished = False
        #: By lower-case name, once finished; of repeated ones the last.
        self.trailers: HeaderMap = {}
        self._left = 0
        self._state = "size"
        self._line = b""
        self._trailer_bytes = 0
        self._broken = False

    @property
    def chunk_bytes_left(self) -> int:
        """Number of next bytes that are certainly data of the current chunk."""
        return self._left if self._state == "data" else 0

    def count_received(self, size: int) -> None:
        """Count ``size`` bytes of data, at most ``chunk_bytes_left``, that were received without ``feed``."""
        self._left -= size
        if not self._left:
            self._state = "data-end"

    def feed(self, data: bytes) -> tuple[list[bytes], int]:
        """Decode ``data``; (pieces, bytes consumed). Raises ``BadFraming``."""
        if self._broken:
            raise BadFraming("the framing was malformed before")
        pieces: list[bytes] = []
        position, size = 0, len(data)
        try:
            while position < size and not self.finished:
                if self._state == "data":
                    take = min(self._left, size - position)
                    pieces.append(data[position : position + take])
                    position += take
                    self.count_received(take)
                    continue
                position = self._read_line(data, position)
        except BadFraming:
            self._broken = True
            raise
        return pieces, position

    def _read_line(self, data: bytes, position: int) -> int:
        end = data.find(b"\n", position)
        limit = TRAILERS_MAX if self._state == "trailer" else SIZE_LINE_MAX
        stop = len(data) if end < 0 else end + 1
        if len(self._line) + stop - position > limit:
            raise BadFraming("chunk line too long")
        self._line += data[position:stop]
        if end >= 0:
            line, self._line = self._line, b""
            if not line.endswith(b"\r\n"):
                raise BadFraming("bare line feed in chunked body")
            self._take_line(line[:-2])
        return stop

    def _take_line(self, line: bytes) -> None:
        if self._state == "size":
            match = _SIZE.match(line)
            if match is None:
                raise BadFraming("malformed chunk size")
            self._left = int(match[1], 16)
            self._state = "data" if self._left else "trailer"
        elif self._state == "data-end":
            if line:
                raise BadFraming("chunk data longer than its size")
            self._state = "size"
        elif line:
            self._trailer_bytes += len(line)
            if self._trailer_bytes > TRAILERS_MAX:
                raise BadFraming("trailers too long")
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                self.trailers[lower_name(name)] = value.strip(" \t")
        else:
            self.finished = True
