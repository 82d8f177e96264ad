"""The body of an upload, held to everything that its sender promised of it (spec: middleware.md §22.1).

Nothing is kept: bytes are looked at while they pass, and the last ones are handed on only when all promises
were kept. So the upload of a body that is not what it should be comes to nothing.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from hashlib import md5, sha256

from swift.base.digits import is_digits
from swift.http.body import BytesBody, RequestBody
from swift.http.headers import HeaderMap
from swift.http.transform import WrappedRequestBody
from swift.s3.api.checksums import (
    Algorithm,
    RunningChecksum,
    StatedChecksum,
    decoded,
    encoded,
    stated_checksum,
)
from swift.s3.auth.chunked import ChunkedPayload
from swift.s3.auth.claim import STREAMING, UNSIGNED, Claim
from swift.s3.errors import RefusedBody, S3Error

_READ_BYTES = 65536
#: A body up to this size is read before it is sent on, where that saves a second stage.
_AT_ONCE_BYTES = 65536


class CheckedBody(WrappedRequestBody):
    """A body of which a SHA-256, a checksum or both were promised; raises ``RefusedBody``."""

    __slots__ = ("_sha", "_promise", "_sum", "_got", "_done", "checksum")

    def __init__(self, source: RequestBody, digest: str | None, promise: StatedChecksum | None):
        super().__init__(source)
        self._sha = None if digest is None else (sha256(), digest)
        self._promise = promise
        self._sum: RunningChecksum | None = None if promise is None else promise.algorithm.start()
        self._got = 0
        self._done = False
        #: The checksum in base64, once all was read.
        self.checksum = ""
        if self.length == 0:
            self._end()

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_READ_BYTES), b""))
        data = self._source.read(size)
        self._look(data)
        return data

    def read_into(self, view: memoryview) -> int:
        """See ``RequestBody``."""
        size = self._source.read_into(view)
        self._look(view[:size])
        return size

    def _look(self, data: bytes | memoryview) -> None:
        if data:
            self._got += len(data)
            if self._sha is not None:
                self._sha[0].update(data)
            if self._sum is not None:
                self._sum.update(data)
            if self._got == self.length:
                self._end()
        elif self.length is None:
            self._end()

    def _end(self) -> None:
        if self._done:
            return
        self._done = True
        if self._sha is not None:
            running, expected = self._sha
            if not hmac.compare_digest(running.hexdigest(), expected):
                details = {
                    "ClientComputedContentSHA256": expected,
                    "S3ComputedContentSHA256": running.hexdigest(),
                }
                raise RefusedBody(S3Error("XAmzContentSHA256Mismatch", details=details))
        if self._promise is not None and self._sum is not None:
            self.checksum = encoded(self._sum.digest())
            self._check_stated(self._promise)

    def _check_stated(self, promise: StatedChecksum) -> None:
        expected, name = promise.text, promise.algorithm.header
        if expected is None:
            expected = self._source.trailers.get(name)
            if expected is None:
                raise RefusedBody(S3Error("MalformedTrailerError"))
            if decoded(promise.algorithm, expected.strip()) is None:
                text = f"Value for {name} trailing header is invalid."
                raise RefusedBody(S3Error("InvalidRequest", text))
        if expected and expected != self.checksum:
            text = f"The {promise.algorithm.name} you specified did not match the calculated checksum."
            raise RefusedBody(S3Error("BadDigest", text))


class _Watched(WrappedRequestBody):
    """A body that remembers why it was refused: others turn that into a status before we hear of it."""

    __slots__ = ("problem",)

    def __init__(self, source: RequestBody):
        super().__init__(source)
        self.problem: S3Error | None = None

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``."""
        try:
            return self._source.read(size)
        except RefusedBody as error:
            self.problem = error.problem
            raise

    def read_into(self, view: memoryview) -> int:
        """See ``RequestBody``."""
        try:
            return self._source.read_into(view)
        except RefusedBody as error:
            self.problem = error.problem
            raise


class S3Upload:
    """The body of an upload and the headers that go with it to the rest of the pipeline."""

    def __init__(
        self, source: RequestBody, body: RequestBody, headers: HeaderMap, promise: StatedChecksum | None
    ):
        self._checked = body if isinstance(body, CheckedBody) else None
        self.body = body if body is source or isinstance(body, BytesBody) else _Watched(body)
        self.headers = headers
        self.promise = promise

    @property
    def checksum(self) -> str:
        """The checksum that was promised, in base64, once the body was read."""
        if self._checked is not None:
            return self._checked.checksum
        return (self.promise.text or "") if self.promise is not None else ""

    def raise_problem(self) -> None:
        """Raise the ``S3Error`` for which the body was refused, if it was."""
        if isinstance(self.body, _Watched) and self.body.problem is not None:
            raise self.body.problem


def upload_of(
    source: RequestBody,
    headers: HeaderMap,
    claim: Claim,
    requested: Algorithm | None = None,
    usual: Algorithm | None = None,
) -> S3Upload:
    """Return the upload that a request brings; raise ``S3Error`` for promises that cannot be kept at all.

    A checksum that is ``requested`` and was not promised is computed; one of another kind is refused. Where
    there is neither, the ``usual`` one is computed.
    """
    promise = stated_checksum(headers)
    if requested is not None and promise is not None and promise.algorithm is not requested:
        raise S3Error(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {requested.name}, actual checksum "
            f"Type: {promise.algorithm.name}",
        )
    body, sent = source, {}
    if claim.payload.startswith(STREAMING):
        trailers = (promise.algorithm.header,) if promise is not None and promise.text is None else ()
        body = ChunkedPayload(source, claim, decoded_length(headers), trailers)
    elif promise is not None and promise.text is None:
        raise S3Error("MalformedTrailerError")
    stored = promise
    if (
        promise is None
        and requested is None
        and source.length is not None
        and source.length <= _AT_ONCE_BYTES
    ):
        requested = usual
    if requested is not None and promise is None:
        promise, stored = StatedChecksum(requested, ""), StatedChecksum(requested, None)
    digest = claim.payload if claim.payload and claim.payload != UNSIGNED and body is source else None
    if digest is not None or promise is not None:
        body = CheckedBody(body, digest, promise)
    if body.length is None:
        sent["transfer-encoding"] = "chunked"
    else:
        sent["content-length"] = str(body.length)
    etag = content_md5(headers)
    if etag is not None:
        sent["etag"] = etag
    if stored is not promise and stored is not None and isinstance(body, CheckedBody):
        size = body.length
        # Chunks are read when their signer is known.
        if size is not None and size <= _AT_ONCE_BYTES and not claim.payload.startswith(STREAMING):
            # It is known at once, and goes with the head.
            data = body.read()
            return S3Upload(source, BytesBody(data), sent, StatedChecksum(stored.algorithm, body.checksum))
    return S3Upload(source, body, sent, stored)


def validate_head(headers: HeaderMap, claim: Claim) -> None:
    """Raise ``S3Error`` for statements about the body that are malformed on any request."""
    content_md5(headers)
    if claim.payload.startswith(STREAMING):
        decoded_length(headers)


def validate_no_body(headers: HeaderMap, claim: Claim) -> None:
    """Hold a request without a body to its statements; raise ``S3Error`` and ``RefusedBody``."""
    checksum = stated_checksum(headers)
    if checksum is not None and checksum.text is None:
        raise S3Error("MalformedTrailerError")
    if claim.payload and claim.payload != UNSIGNED and not claim.payload.startswith(STREAMING):
        # An empty body ends at once.
        CheckedBody(BytesBody(b""), claim.payload, None)


def decoded_length(headers: HeaderMap) -> int:
    """Return the size of what a body in aws-chunked framing stands for; raise ``S3Error``."""
    text = headers.get("x-amz-decoded-content-length", "")
    if is_digits(text.removeprefix("-")) and text.startswith("-"):
        details = {"ArgumentName": "x-amz-decoded-content-length", "ArgumentValue": text}
        raise S3Error("InvalidArgument", details=details)
    if not is_digits(text):
        raise S3Error("MissingContentLength")
    if len(text) > 15:
        raise S3Error("EntityTooLarge")
    return int(text)


def content_md5(headers: HeaderMap) -> str | None:
    """Return Content-MD5 in hex; raise ``S3Error``."""
    text = headers.get("content-md5")
    if text is None:
        return None
    try:
        digest = b64decode(text, validate=True)
    except ValueError:
        digest = b""
    if len(digest) != 16:
        raise S3Error("InvalidDigest", details={"ContentMd5": text})
    return digest.hex()


def read_document(
    source: RequestBody, headers: HeaderMap, claim: Claim, limit: int, error: str = "MalformedXML"
) -> bytes:
    """Return a small body, every promise kept; raise ``S3Error`` and ``RefusedBody``.

    ``error`` is the code for a body that exceeds the limit.
    """
    if (source.length or 0) > 2 * limit:
        raise S3Error(error if limit else "UnexpectedContent")
    upload = upload_of(source, headers, claim)
    pieces, size = [], 0
    while piece := upload.body.read(_READ_BYTES):
        size += len(piece)
        if size > limit:
            raise S3Error(error)
        pieces.append(piece)
    data = b"".join(pieces)
    expected = upload.headers.get("etag")
    if expected is not None and md5(data, usedforsecurity=False).hexdigest() != expected:
        raise S3Error("BadDigest", details={"ExpectedDigest": headers["content-md5"].strip()})
    return data
