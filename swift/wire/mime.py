"""The MIME documents of a multi-stage PUT, sans-IO (spec: object-server.md §10).

A stream is ``--B CRLF headers CRLF CRLF data CRLF --B`` and then CRLF before another document or ``--`` at
the end. Bytes go in by ``feed`` in any cut, events come out. The end of a chunked body means nothing here: a
stream may continue in the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swift.base.errors import InvalidValue

HEADERS_BYTES_MAX = 65536
BOUNDARY_BYTES_MAX = 256


class BadMime(InvalidValue):
    """The stream is not a sequence of MIME documents."""


@dataclass(frozen=True, slots=True)
class DocumentBegins:
    """Headers of a document, names in lower case."""

    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class DocumentData:
    """Some bytes of the current document."""

    data: bytes


@dataclass(frozen=True, slots=True)
class DocumentEnds:
    """The current document is complete; ``last`` when no other follows."""

    last: bool


Event = DocumentBegins | DocumentData | DocumentEnds


class MimeParser:
    """Cuts a byte stream into documents."""

    def __init__(self, boundary: str):
        mark = boundary.encode("latin-1", "replace")
        if not mark or len(mark) > BOUNDARY_BYTES_MAX:
            raise BadMime("bad MIME boundary")
        self._opening = b"--" + mark + b"\r\n"
        self._delimiter = b"\r\n--" + mark
        self._buffer = b""
        self._step: Callable[[list[Event]], bool] = self._read_opening
        self._finished = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that these bytes complete.

        Raises ``BadMime``. Bytes after the end are ignored.
        """
        self._buffer = self._buffer + data if self._buffer else data
        events: list[Event] = []
        while not self._finished and self._step(events):
            pass
        return events

    def take(self, size: int) -> bytes:
        """Return up to ``size`` unreleased bytes of the current document; the caller knows its length."""
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _read_opening(self, _events: list[Event]) -> bool:
        opening = self._opening
        head = self._buffer[: len(opening)]
        if not opening.startswith(head):
            raise BadMime("no MIME boundary where a document should begin")
        if len(head) < len(opening):
            return False
        self._buffer = self._buffer[len(opening) :]
        self._step = self._read_headers
        return True

    def _read_headers(self, events: list[Event]) -> bool:
        if self._buffer.startswith(b"\r\n"):
            end, skip = 0, 2
        else:
            end, skip = self._buffer.find(b"\r\n\r\n"), 4
        if end < 0:
            if len(self._buffer) > HEADERS_BYTES_MAX:
                raise BadMime("MIME headers are too long")
            return False
        events.append(DocumentBegins(_parse_headers(self._buffer[:end])))
        self._buffer = self._buffer[end + skip :]
        self._step = self._read_data
        return True

    def _read_data(self, events: list[Event]) -> bool:
        delimiter = self._delimiter
        at = self._buffer.find(delimiter)
        if at < 0:
            # All but what may be the beginning of a delimiter is data.
            keep = self._buffer.rfind(b"\r", max(0, len(self._buffer) - len(delimiter) + 1))
            ready = len(self._buffer) if keep < 0 else keep
            if ready:
                events.append(DocumentData(self._buffer[:ready]))
                self._buffer = self._buffer[ready:]
            return False
        after = self._buffer[at + len(delimiter) : at + len(delimiter) + 2]
        if len(after) < 2:
            return False
        if after not in (b"\r\n", b"--"):
            raise BadMime("bad MIME boundary")
        if at:
            events.append(DocumentData(self._buffer[:at]))
        self._buffer = self._buffer[at + len(delimiter) + 2 :]
        self._finished = after == b"--"
        events.append(DocumentEnds(self._finished))
        self._step = self._read_headers
        return True


def _parse_headers(block: bytes) -> dict[str, str]:
    headers = {}
    for line in block.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            if line:
                raise BadMime("a MIME header line has no colon")
            continue
        headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
    return headers
