"""The lines of SSYNC, both directions, sans I/O (spec: replication.md §3).

A conversation is two byte streams of CRLF lines. The sender offers objects (``Offer``), the receiver says
what it wants of them (``Want``), the sender then sends that as subrequests (``Subrequest``) whose bodies
follow their heads without framing. ``LineReader`` cuts a stream into lines and bodies wherever its pieces
were cut; ``WantsReader`` and ``UpdatesReader`` are what a sender feeds the answers to.

It refuses to know sockets, chunked coding, timeouts, and what an offer means for files on a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from swift.base.digits import is_digits
from swift.base.errors import SwiftError
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.base.truth import is_true
from swift.http import fields
from swift.http.headers import HeaderMap, lower_name, title_case

MISSING_START = ":MISSING_CHECK: START"
MISSING_END = ":MISSING_CHECK: END"
UPDATES_START = ":UPDATES: START"
UPDATES_END = ":UPDATES: END"
ERROR_PREFIX = ":ERROR:"

#: Longer lines are no lines of this protocol.
LINE_BYTES_MAX = 65536
#: Digits of the size of a body.
LENGTH_DIGITS_MAX = 20
#: Header lines of one subrequest; objects carry fewer.
HEADERS_MAX = 1000
#: Characters of the head of one subrequest: four times the limit of an HTTP head.
HEAD_CHARS_MAX = 1 << 18

#: Blanks that may surround names and values. Python would take bytes of UTF-8 letters for blanks as well.
_BLANKS = " \t"

METHODS = frozenset(("PUT", "POST", "DELETE"))


class SsyncError(SwiftError):
    """A violation of the protocol by the other side; the text describes it."""


class SsyncEnded(SsyncError):
    """The stream ended where more was to come: the other side hung up."""


class SsyncRefused(SsyncError):
    """The receiver ended the session with ``:ERROR:``; ``status`` is its number, 0 when it had none."""

    def __init__(self, status: int, text: str):
        super().__init__(f"the receiver said {status} {text}")
        self.status = status


def encode_line(text: str) -> bytes:
    """Return a line as it goes over the wire."""
    return text.encode("latin-1") + b"\r\n"


def error_line(status: int, message: str | bytes) -> bytes:
    """Return the receiver's last words; after them it closes the connection."""
    return f"{ERROR_PREFIX} {status} {message!r}\n".encode("utf-8", "backslashreplace")


# --- the missing check --------------------------------------------------------------------------------


class Offer(NamedTuple):
    """One object that a sender has: when its data or tombstone, metadata and content type are from."""

    hash: str
    data: Timestamp
    #: Equal to ``data`` when nothing newer was posted.
    meta: Timestamp
    ctype: Timestamp
    #: Erasure coding: whether the offered archive is durable.
    durable: bool = True

    @classmethod
    def of(
        cls,
        object_hash: str,
        data: Timestamp,
        meta: Timestamp | None = None,
        ctype: Timestamp | None = None,
        *,
        durable: bool = True,
    ) -> Offer:
        """Return an offer whose missing times are those of the data."""
        return cls(object_hash, data, meta or data, ctype or data, durable)

    def encode(self) -> str:
        """Return the line, without its end. A content type is never sent without metadata."""
        options = []
        if self.meta != self.data:
            options.append(f"m:{_encode_delta(self.data, self.meta)}")
            if self.ctype != self.data:
                options.append(f"t:{_encode_delta(self.data, self.ctype)}")
        if not self.durable:
            options.append("durable:False")
        text = f"{quote(self.hash)} {quote(self.data.internal)}"
        return f"{text} {','.join(options)}" if options else text

    @classmethod
    def parse(cls, text: str) -> Offer:
        """Read a line; unknown options are ignored. Raises ``SsyncError``."""
        parts = text.split()
        if len(parts) < 2:
            raise SsyncError(f"a missing check line needs a hash and a timestamp: {text!r}")
        try:
            data = Timestamp(unquote(parts[1]))
            options = _options(parts[2]) if len(parts) > 2 else {}
            meta = _decode_delta(data, options["m"]) if "m" in options else data
            ctype = _decode_delta(data, options["t"]) if "t" in options else data
        except (InvalidTimestamp, ValueError):
            raise SsyncError(f"malformed missing check line: {text!r}")
        durable = is_true(options["durable"]) if "durable" in options else True
        return cls(unquote(parts[0]), data, meta, ctype, durable)


def _encode_delta(data: Timestamp, other: Timestamp) -> str:
    delta = other.raw - data.raw
    text = f"{'-' if delta < 0 else ''}{abs(delta):x}"
    return f"{text}__{other.offset:x}" if other.offset else text


def _decode_delta(data: Timestamp, text: str) -> Timestamp:
    """Return a time encoded as ticks after ``data``, whose own offset does not count."""
    delta, _, offset = text.partition("__")
    return Timestamp.from_raw(data.raw + int(delta, 16), int(offset, 16) if offset else 0)


def _options(text: str) -> dict[str, str]:
    pairs = (item.partition(":") for item in text.split(","))
    return {key: value for key, colon, value in pairs if colon}


class Want(NamedTuple):
    """Parts of an offered object that a receiver requests."""

    hash: str
    data: bool
    meta: bool

    def encode(self) -> str:
        """Return the line, without its end."""
        return f"{quote(self.hash)} {'d' if self.data else ''}{'m' if self.meta else ''}"

    @classmethod
    def parse(cls, text: str) -> Want:
        """Parse a line; old receivers send only the hash, which requests the data. Raises ``SsyncError``."""
        parts = text.split()
        if not parts:
            raise SsyncError("an empty line is no wanted object")
        wanted = parts[1] if len(parts) > 1 else "d"
        return cls(unquote(parts[0]), "d" in wanted, "m" in wanted)


def encode_wants(wants: Iterable[Want]) -> list[bytes]:
    """Return the receiver's answer to a missing check, in the pieces that it sends."""
    lines = "\r\n".join(want.encode() for want in wants).encode("latin-1")
    # The line end after the last one goes by itself, and is there without any as well.
    return [
        piece for piece in (encode_line(MISSING_START), lines, b"\r\n", encode_line(MISSING_END)) if piece
    ]


# --- updates ------------------------------------------------------------------------------------------


class Subrequest(NamedTuple):
    """The head of one change: a method, a quoted ``/account/container/object``, lower-case headers."""

    method: str
    path: str
    headers: HeaderMap

    def encode(self) -> bytes:
        """Return the head as it goes over the wire, headers sorted by name; a body may follow."""
        names = sorted((_title_header(name), value) for name, value in self.headers.items())
        block = "".join(f"{name}: {value}\r\n" for name, value in names)
        if block.count("\n") != len(names) or block.count("\r") != len(names):
            raise SsyncError(f"a header of {self.path} contains a line break")
        return f"{self.method} {self.path}\r\n{block}\r\n".encode("latin-1")

    @property
    def body_bytes(self) -> int:
        """Number of body bytes after the head."""
        return int(self.headers.get("content-length", "0")) if self.method == "PUT" else 0

    @classmethod
    def parse(cls, first: str, header_lines: Iterable[str]) -> Subrequest:
        """Read a head; raises ``SsyncError`` for one that may not be carried out."""
        method, _, path = first.partition(" ")
        if method not in METHODS:
            raise SsyncError(f"Invalid subrequest method {method}")
        headers: HeaderMap = {}
        for text in header_lines:
            name, colon, value = text.partition(":")
            if not colon or not name.strip(_BLANKS):
                raise SsyncError(f"malformed header line in {first}: {text!r}")
            headers[lower_name(name.strip(_BLANKS))] = value.strip(_BLANKS)
        length = headers.get("content-length")
        if length is not None and not (
            length.isascii() and length.isdigit() and len(length) <= LENGTH_DIGITS_MAX
        ):
            raise SsyncError(f"malformed content-length in {first}: {length[:100]!r}")
        if method == "PUT" and length is None:
            raise SsyncError(f"No content-length sent for {first}")
        if method != "PUT" and int(length or 0):
            raise SsyncError(f"{method} subrequest with content-length {path}")
        return cls(method, path, headers)


def _title_header(name: str) -> str:
    return "ETag" if name.lower() == "etag" else title_case(lower_name(name))


def put_subrequest(path: str, metadata: Mapping[str, str], *, durable: bool = True) -> Subrequest:
    """Return a PUT of stored metadata (without ``name``); the body follows."""
    headers = {lower_name(name): value for name, value in metadata.items() if name != "name"}
    if not durable:
        headers[fields.BACKEND_NO_COMMIT] = "True"
    return Subrequest("PUT", path, headers)


def post_subrequest(path: str, metadata: Mapping[str, str]) -> Subrequest:
    """Return a POST of what a ``.meta`` holds (without ``name``)."""
    headers = {lower_name(name): value for name, value in metadata.items() if name != "name"}
    return Subrequest("POST", path, headers)


def delete_subrequest(path: str, timestamp: Timestamp) -> Subrequest:
    """Return a DELETE that leaves the tombstone of ``timestamp``."""
    return Subrequest("DELETE", path, {"x-timestamp": timestamp.internal})


# --- cutting the stream -------------------------------------------------------------------------------


class LineReader:
    """Cuts a stream into lines and counted bytes; ``pull`` gives its next piece, empty at its end."""

    def __init__(self, pull: Callable[[], bytes]):
        self._pull = pull
        self._buffer = b""
        #: Bytes of the buffer that were returned.
        self._used = 0

    def next_line(self) -> str | None:
        """Return the next line without CRLF; None at the end of the stream. Raises ``SsyncError``."""
        searched = self._used
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer) - self._used
            if searched > LINE_BYTES_MAX:
                raise SsyncError(f"a line is longer than {LINE_BYTES_MAX} bytes")
            piece = self._pull()
            if not piece:
                return None
            self._buffer, self._used = self._buffer[self._used :] + piece, 0
        start, self._used = self._used, end + 1
        if end - start >= LINE_BYTES_MAX:
            raise SsyncError(f"a line is longer than {LINE_BYTES_MAX} bytes")
        return self._buffer[start:end].removesuffix(b"\r").decode("latin-1")

    def take(self, size: int) -> bytes:
        """Return at least one and at most ``size`` bytes; empty at the end of the stream."""
        if self._used == len(self._buffer):
            self._buffer, self._used = self._pull(), 0
        data = self._buffer[self._used : self._used + size]
        self._used += len(data)
        return data

    def expect(self, wanted: str) -> None:
        """Skip a line that must come now; raises ``SsyncError`` for another one, ``SsyncEnded`` for none."""
        got = self.next_line()
        if got is None:
            raise SsyncEnded(f"the stream ended before {wanted}")
        if got.strip() != wanted:
            raise SsyncError(f"Looking for {wanted} got {encode_line(got)!r}")

    def next_subrequest(self) -> Subrequest | None:
        """Return the next head, None after the last. Raises ``SsyncError`` and ``SsyncEnded``."""
        first = self.next_line()
        if first is None:
            raise SsyncEnded("the stream ended inside the updates")
        if first.strip() == UPDATES_END:
            return None
        header_lines: list[str] = []
        size = len(first)
        while text := self.next_line():
            header_lines.append(text)
            size += len(text)
            if len(header_lines) > HEADERS_MAX or size > HEAD_CHARS_MAX:
                raise SsyncError(f"too many headers in {first}")
        if text is None:
            raise SsyncEnded(f"the stream ended inside {first}")
        return Subrequest.parse(first.strip(), header_lines)


# --- the sender's view of the answers -----------------------------------------------------------------


class _Reader:
    """Walks over a phase of the receiver's answer: its start, its lines, its end."""

    def __init__(self, start: str, end: str):
        self._start = start
        self._end = end
        self._started = False
        self.finished = False

    def feed(self, text: str) -> None:
        """Take the next line (without its end); raises ``SsyncError`` and ``SsyncRefused``."""
        text = text.strip()
        if text.startswith(ERROR_PREFIX):
            status, _, message = text.removeprefix(ERROR_PREFIX).strip().partition(" ")
            raise SsyncRefused(int(status) if is_digits(status) else 0, message)
        if not text:
            return
        if not self._started:
            if text != self._start:
                raise SsyncError(f"Looking for {self._start} got {text!r}")
            self._started = True
        elif text == self._end:
            self.finished = True
        else:
            self._take(text)

    def _take(self, text: str) -> None:
        raise SsyncError(f"unexpected line {text!r} before {self._end}")


class WantsReader(_Reader):
    """Collects the receiver's answer to a missing check."""

    def __init__(self) -> None:
        super().__init__(MISSING_START, MISSING_END)
        self.wants: dict[str, Want] = {}

    def _take(self, text: str) -> None:
        want = Want.parse(text)
        self.wants[want.hash] = want


class UpdatesReader(_Reader):
    """Waits for the receiver's word that all updates were taken."""

    def __init__(self) -> None:
        super().__init__(UPDATES_START, UPDATES_END)
