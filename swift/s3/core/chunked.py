"""Bodies in the framing ``aws-chunked``: signed, unsigned, with trailers (spec: middleware.md §22.1).

    <hex size>[;chunk-signature=<hex>]\r\n<bytes>\r\n …
    0[;chunk-signature=<hex>]\r\n[name:value\r\n…]\r\n

Each signature covers the one before it, the first that of the request, so that no chunk can be left out,
moved or repeated. Blanks around the parts of a chunk's head do no harm; an extension counts only where chunks
are signed. Only announced trailers may follow. Bytes are handed on as they come, the last ones only when
everything to the end was right.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from hashlib import sha256

from swift.http.body import RequestBody
from swift.http.transform import WrappedRequestBody
from swift.s3.core.claim import SIGNED_CHUNKS_TRAILER, UNSIGNED_TRAILER, Claim
from swift.s3.core.errors import RejectedBody, S3Error

CHUNK_BYTES_MIN = 8192
_LINE_MAX = 4096
_TRAILERS_MAX = 16384
_READ_BYTES = 65536
_CHUNK_ALGORITHM = "AWS4-HMAC-SHA256-PAYLOAD"
_TRAILER_ALGORITHM = "AWS4-HMAC-SHA256-TRAILER"
_EMPTY_SHA256 = sha256(b"").hexdigest()
_TRAILER_SIGNATURE = "x-amz-trailer-signature"
_match_chunk_head = re.compile(rb"[ \t]*([0-9a-fA-F]{1,12})[ \t]*(?:;(.*))?").fullmatch


class ChunkedPayload(WrappedRequestBody):
    """The decoded content of an ``aws-chunked`` body; raises ``RejectedBody``."""

    __slots__ = (
        *(
            "_claim",
            "_is_signed",
            "_decoded_length",
            "_received",
            "_buffer",
            "_chunk_left",
            "_chunk_size",
            "_previous_signature",
            "_chunk_signature",
        ),
        *(
            "_chunk_sha256",
            "_is_finished",
            "_trailers",
            "_short_chunk_size",
            "_allowed_trailers",
            "_chunk_count",
        ),
    )

    def __init__(self, source: RequestBody, claim: Claim, announced: int, trailers: Sequence[str] = ()):
        """``announced`` is the decoded size, ``trailers`` are the names of the announced trailers."""
        super().__init__(source)
        # An empty body is read to its end too, so its length is not announced.
        self.length = announced or None
        self._claim = claim
        self._is_signed = claim.content_sha256 != UNSIGNED_TRAILER
        self._decoded_length = announced
        self._received = 0
        self._buffer = b""
        #: Bytes of this chunk that did not come yet; its signature, and the one before.
        self._chunk_left = self._chunk_size = 0
        self._previous_signature = claim.signature
        self._chunk_signature = ""
        self._chunk_sha256 = sha256()
        self._is_finished = False
        self._trailers: dict[str, str] = {}
        self._allowed_trailers = frozenset(trailers)
        if claim.content_sha256 == SIGNED_CHUNKS_TRAILER:
            self._allowed_trailers |= {_TRAILER_SIGNATURE}
        self._chunk_count = 0
        #: The size of a chunk below the least one, which must have been the last; None before one came.
        self._short_chunk_size: int | None = None

    @property
    def trailers(self) -> dict[str, str]:
        """The trailers after the last chunk, by lower-case names."""
        return self._trailers

    def read(self, size: int = -1) -> bytes:
        """Return decoded bytes; raise ``RejectedBody``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_READ_BYTES), b""))
        # Of an empty body the end is read too.
        buffer = bytearray(min(size, max(1, self._decoded_length - self._received)))
        return bytes(buffer[: self.read_into(memoryview(buffer))])

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer with decoded bytes, of several chunks if the sender has sent them.

        Raise ``RejectedBody``.
        """
        filled = 0
        while not self._is_finished and filled < len(view) and (self._buffer or not filled):
            if not self._chunk_left:
                self._begin_chunk()
                continue
            piece = view[filled : filled + self._chunk_left]
            piece = piece[: self._read_some(piece)]
            filled += len(piece)
            self._chunk_left -= len(piece)
            self._received += len(piece)
            if self._is_signed:
                self._chunk_sha256.update(piece)
            if not self._chunk_left:
                self._end_chunk()
                if self._received == self._decoded_length:
                    self._begin_chunk()
        return filled

    # chunks

    def _begin_chunk(self) -> None:
        match = _match_chunk_head(self._read_line(_LINE_MAX))
        if match is None or (self._is_signed and match[2] is None):
            raise _incomplete_body(_TERMINATED_TEXT)
        self._chunk_size = self._chunk_left = int(match[1], 16)
        self._chunk_count += 1
        if self._is_signed:
            self._chunk_signature = _parse_chunk_signature(match[2])
        self._chunk_sha256 = sha256()
        if self._short_chunk_size is not None and self._chunk_size:
            details = {"Chunk": self._chunk_count, "BadChunkSize": self._short_chunk_size}
            raise RejectedBody(S3Error("InvalidChunkSizeError", details=details))
        self._short_chunk_size = self._chunk_size if self._chunk_size < CHUNK_BYTES_MIN else None
        if self._received + self._chunk_size > self._decoded_length:
            raise self._wrong_size_error(self._received + self._chunk_size)
        if not self._chunk_size:
            self._read_trailers()

    def _end_chunk(self) -> None:
        self._verify_chunk_signature()
        if self._read_line(2):
            raise _incomplete_body(_TERMINATED_TEXT)

    def _verify_chunk_signature(self) -> None:
        if not self._is_signed:
            return
        expected = self._claim.sign_chunk(
            _CHUNK_ALGORITHM, self._previous_signature, f"{_EMPTY_SHA256}\n{self._chunk_sha256.hexdigest()}"
        )
        if expected is None:
            text = "The chunks of a body can only be checked by who knows the secret key."
            raise RejectedBody(S3Error("NotImplemented", text))
        if not hmac.compare_digest(expected.encode("ascii"), self._chunk_signature.encode("latin-1")):
            details = {"AWSAccessKeyId": self._claim.access_key}
            raise RejectedBody(S3Error("SignatureDoesNotMatch", details=details, reason="chunk"))
        self._previous_signature = self._chunk_signature

    def _read_trailers(self) -> None:
        """Read the trailers after the last, empty chunk."""
        self._verify_chunk_signature()
        if self._received != self._decoded_length:
            raise self._wrong_size_error(self._received)
        lines: list[tuple[str, str]] = []
        left = _TRAILERS_MAX
        while line := self._read_line(left, may_end=True):
            left -= len(line)
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or left <= 0:
                raise RejectedBody(S3Error("MalformedTrailerError"))
            lines.append((name.strip(), value.strip()))
        self._validate_trailer_names([name for name, _ in lines])
        self._trailers = dict(lines)
        stated = self._trailers.pop(_TRAILER_SIGNATURE, None)
        if self._claim.content_sha256 == SIGNED_CHUNKS_TRAILER:
            self._verify_trailer_signature(lines, stated)
        while self._source.read(_READ_BYTES):
            # Nothing may follow, but an empty line does no harm.
            continue
        self._is_finished = True

    def _validate_trailer_names(self, names: Sequence[str]) -> None:
        """Raise ``RejectedBody`` for trailers that were not announced."""
        if (names and not self._allowed_trailers) or (
            not names and _TRAILER_SIGNATURE in self._allowed_trailers
        ):
            raise _incomplete_body(_TERMINATED_TEXT)
        if not self._allowed_trailers.issuperset(names):
            raise RejectedBody(S3Error("MalformedTrailerError"))

    def _verify_trailer_signature(self, lines: list[tuple[str, str]], stated: str | None) -> None:
        text = "".join(f"{name}:{value}\n" for name, value in lines if name != _TRAILER_SIGNATURE)
        digest = sha256(text.encode("latin-1")).hexdigest()
        expected = self._claim.sign_chunk(_TRAILER_ALGORITHM, self._previous_signature, digest)
        if (
            stated is None
            or expected is None
            or not hmac.compare_digest(expected.encode("ascii"), stated.lower().encode("latin-1"))
        ):
            details = {"AWSAccessKeyId": self._claim.access_key}
            raise RejectedBody(S3Error("SignatureDoesNotMatch", details=details, reason="trailer"))

    # bytes

    def _read_some(self, view: memoryview) -> int:
        """Fill a buffer with at least one byte; return how many."""
        if self._buffer:
            size = min(len(view), len(self._buffer))
            view[:size], self._buffer = self._buffer[:size], self._buffer[size:]
            return size
        size = self._source.read_into(view)
        if not size:
            raise _incomplete_body(_TERMINATED_TEXT)
        return size

    def _read_line(self, limit: int, *, may_end: bool = False) -> bytes:
        """Return the next line without its end; empty at the end of the body if ``may_end``."""
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > limit:
                raise _incomplete_body(_TERMINATED_TEXT)
            more = self._source.read(_READ_BYTES)
            if not more:
                if may_end and not self._buffer:
                    return b""
                raise _incomplete_body(_TERMINATED_TEXT)
            self._buffer += more
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def _wrong_size_error(self, provided: int) -> RejectedBody:
        details = {"NumberBytesExpected": self._decoded_length, "NumberBytesProvided": provided}
        return RejectedBody(S3Error("IncompleteBody", details=details))


#: The message of AWS for invalid framing.
_TERMINATED_TEXT = "The request body terminated unexpectedly"


def _incomplete_body(text: str) -> RejectedBody:
    return RejectedBody(S3Error("IncompleteBody", text))


def _parse_chunk_signature(extension: bytes) -> str:
    """Return the signature in the extension of a chunk's head; raise ``RejectedBody``.

    One that is blank, doubled or followed by other parameters makes the framing malformed.
    """
    name, _, value = extension.decode("latin-1").partition("=")
    value = value.strip()
    if name.strip() != "chunk-signature" or not value or ";" in value:
        raise _incomplete_body(_TERMINATED_TEXT)
    return value.lower()
