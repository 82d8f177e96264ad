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
from swift.s3.auth.claim import SIGNED_CHUNKS_TRAILER, UNSIGNED_TRAILER, Claim
from swift.s3.errors import RefusedBody, S3Error

CHUNK_BYTES_MIN = 8192
_LINE_MAX = 4096
_TRAILERS_MAX = 16384
_READ_BYTES = 65536
_CHUNK = "AWS4-HMAC-SHA256-PAYLOAD"
_TRAILER = "AWS4-HMAC-SHA256-TRAILER"
_NOTHING = sha256(b"").hexdigest()
_SIGNATURE_NAME = "x-amz-trailer-signature"
_head = re.compile(rb"[ \t]*([0-9a-fA-F]{1,12})[ \t]*(?:;(.*))?").fullmatch
_is_signature = re.compile(r"[0-9a-fA-F]{64}").fullmatch


class ChunkedPayload(WrappedRequestBody):
    """The content of such a body; raises ``RefusedBody``."""

    __slots__ = (
        *("_claim", "_signed", "_announced", "_got", "_buffer", "_left", "_size", "_signature", "_stated"),
        *("_sum", "_ended", "_trailers", "_short", "_expected", "_chunks"),
    )

    def __init__(self, source: RequestBody, claim: Claim, announced: int, trailers: Sequence[str] = ()):
        """``announced`` is the size of the data, ``trailers`` are the names of what may follow it."""
        super().__init__(source)
        # An empty body is read to its end too, so its length is not announced.
        self.length = announced or None
        self._claim = claim
        self._signed = claim.payload != UNSIGNED_TRAILER
        self._announced = announced
        self._got = 0
        self._buffer = b""
        #: Bytes of this chunk that did not come yet; its signature, and the one before.
        self._left = self._size = 0
        self._signature = claim.signature
        self._stated = ""
        self._sum = sha256()
        self._ended = False
        self._trailers: dict[str, str] = {}
        self._expected = frozenset(trailers)
        if claim.payload == SIGNED_CHUNKS_TRAILER:
            self._expected |= {_SIGNATURE_NAME}
        self._chunks = 0
        #: The size of a chunk below the least one, which must have been the last; None before one came.
        self._short: int | None = None

    @property
    def trailers(self) -> dict[str, str]:
        """The trailers after the last chunk, by lower-case names."""
        return self._trailers

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_READ_BYTES), b""))
        if self._ended or not size:
            return b""
        if not self._left:
            self._next_chunk()
            if self._ended:
                return b""
        data = self._some(min(size, self._left))
        self._left -= len(data)
        self._got += len(data)
        if self._signed:
            self._sum.update(data)
        if not self._left:
            self._end_chunk()
            if self._got == self._announced:
                self._next_chunk()
        return data

    # chunks

    def _next_chunk(self) -> None:
        match = _head(self._line(_LINE_MAX))
        if match is None or (self._signed and match[2] is None):
            raise _broken(_ENDED)
        self._size = self._left = int(match[1], 16)
        self._chunks += 1
        if self._signed:
            self._stated = _signature_of(match[2])
        self._sum = sha256()
        if self._short is not None and self._size:
            details = {"Chunk": self._chunks, "BadChunkSize": self._short}
            raise RefusedBody(S3Error("InvalidChunkSizeError", details=details))
        self._short = self._size if self._size < CHUNK_BYTES_MIN else None
        if self._got + self._size > self._announced:
            raise self._wrong_size(self._got + self._size)
        if not self._size:
            self._finish()

    def _end_chunk(self) -> None:
        self._check_chunk()
        if self._line(2):
            raise _broken(_ENDED)

    def _check_chunk(self) -> None:
        if not self._signed:
            return
        expected = self._claim.chunk_signature(
            _CHUNK, self._signature, f"{_NOTHING}\n{self._sum.hexdigest()}"
        )
        if expected is None:
            text = "The chunks of a body can only be checked by who knows the secret key."
            raise RefusedBody(S3Error("NotImplemented", text))
        if not hmac.compare_digest(expected, self._stated):
            raise RefusedBody(S3Error("SignatureDoesNotMatch", reason="chunk"))
        self._signature = self._stated

    def _finish(self) -> None:
        """Read what follows the last chunk, which is empty."""
        self._check_chunk()
        if self._got != self._announced:
            raise self._wrong_size(self._got)
        lines: list[tuple[str, str]] = []
        left = _TRAILERS_MAX
        while line := self._line(left, may_end=True):
            left -= len(line)
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or left <= 0:
                raise RefusedBody(S3Error("MalformedTrailerError"))
            lines.append((name.strip(), value.strip()))
        self._check_names([name for name, _ in lines])
        self._trailers = dict(lines)
        stated = self._trailers.pop(_SIGNATURE_NAME, None)
        if self._claim.payload == SIGNED_CHUNKS_TRAILER:
            self._check_trailers(lines, stated)
        while self._source.read(_READ_BYTES):
            # Nothing may follow, but an empty line does no harm.
            continue
        self._ended = True

    def _check_names(self, names: Sequence[str]) -> None:
        """Raise ``RefusedBody`` for trailers that were not announced."""
        if (names and not self._expected) or (not names and _SIGNATURE_NAME in self._expected):
            raise _broken(_ENDED)
        if not self._expected.issuperset(names):
            raise RefusedBody(S3Error("MalformedTrailerError"))

    def _check_trailers(self, lines: list[tuple[str, str]], stated: str | None) -> None:
        text = "".join(f"{name}:{value}\n" for name, value in lines if name != _SIGNATURE_NAME)
        digest = sha256(text.encode("latin-1")).hexdigest()
        expected = self._claim.chunk_signature(_TRAILER, self._signature, digest)
        if (
            stated is None
            or expected is None
            or not hmac.compare_digest(expected.encode("ascii"), stated.lower().encode("latin-1"))
        ):
            raise RefusedBody(S3Error("SignatureDoesNotMatch", reason="trailer"))

    # bytes

    def _some(self, size: int) -> bytes:
        """Return up to ``size`` bytes, one at least."""
        if self._buffer:
            data, self._buffer = self._buffer[:size], self._buffer[size:]
            return data
        data = self._source.read(size)
        if not data:
            raise _broken(_ENDED)
        return data

    def _line(self, limit: int, *, may_end: bool = False) -> bytes:
        """Return the next line without its end; empty at the end of the body if that is allowed."""
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > limit:
                raise _broken(_ENDED)
            more = self._source.read(_READ_BYTES)
            if not more:
                if may_end and not self._buffer:
                    return b""
                raise _broken(_ENDED)
            self._buffer += more
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def _wrong_size(self, provided: int) -> RefusedBody:
        details = {"NumberBytesExpected": self._announced, "NumberBytesProvided": provided}
        return RefusedBody(S3Error("IncompleteBody", details=details))


#: What AWS says of framing that is none.
_ENDED = "The request body terminated unexpectedly"


def _broken(text: str) -> RefusedBody:
    return RefusedBody(S3Error("IncompleteBody", text))


def _signature_of(extension: bytes) -> str:
    """Return the signature in the extension of a chunk's head; raise ``RefusedBody``."""
    name, _, value = extension.decode("latin-1").partition("=")
    if name.strip() != "chunk-signature" or _is_signature(value.strip()) is None:
        raise RefusedBody(S3Error("SignatureDoesNotMatch", reason="chunk"))
    return value.strip().lower()
