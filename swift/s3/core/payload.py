"""The body of an upload, verified against all its declarations (spec: middleware.md §22.1).

The body is verified as it is read, without buffering it. Its last bytes are passed on only if it is valid,
so no invalid body is stored.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from hashlib import md5, sha256

from swift.base.digits import is_digits
from swift.http.body import BytesBody, RequestBody, length_header
from swift.http.headers import HeaderMap
from swift.http.transform import WrappedRequestBody
from swift.s3.core.checksums import (
    Algorithm,
    DeclaredChecksum,
    RunningChecksum,
    decode_checksum,
    encode_checksum,
    parse_declared_checksum,
)
from swift.s3.core.chunked import ChunkedPayload
from swift.s3.core.claim import STREAMING_PREFIX, UNSIGNED_PAYLOAD, Claim, is_sha256
from swift.s3.core.errors import RejectedBody, S3Error, argument_error, invalid_request

_READ_BYTES = 65536
#: A body up to this size is read first if its checksum can then be sent with the headers.
_PREREAD_BYTES_MAX = 65536


class VerifiedBody(WrappedRequestBody):
    """A body that is verified against a SHA-256, a checksum or both; raises ``RejectedBody``.

    ``content_md5`` is looked at before a SHA-256 that is none, which rejects the body in any case.
    """

    __slots__ = (
        "_sha256_check",
        "_md5_check",
        "_declared",
        "_running_checksum",
        "_received_bytes",
        "_is_verified",
        "checksum",
    )

    def __init__(
        self,
        source: RequestBody,
        digest: str | None,
        declared: DeclaredChecksum | None,
        content_md5: str | None = None,
    ):
        super().__init__(source)
        is_hash = digest is None or is_sha256(digest)
        self._md5_check = (
            None if is_hash or content_md5 is None else (md5(usedforsecurity=False), content_md5)
        )
        self._sha256_check = None if digest is None else (sha256(), digest)
        self._declared = declared
        self._running_checksum: RunningChecksum | None = (
            None if declared is None else declared.algorithm.start()
        )
        self._received_bytes = 0
        self._is_verified = False
        #: The checksum in base64, once all was read.
        self.checksum = ""
        if self.length == 0:
            self._verify()

    def read(self, size: int = -1) -> bytes:
        """Return bytes and add them to the digests; raise ``RejectedBody``."""
        data = self._source.read(size)
        self._update(data)
        if size < 0 and data:
            # The end of a body of unknown length.
            self._update(b"")
        return data

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer and add its bytes to the digests; raise ``RejectedBody``."""
        size = self._source.read_into(view)
        self._update(view[:size])
        return size

    def _update(self, data: bytes | memoryview) -> None:
        if data:
            self._received_bytes += len(data)
            if self._sha256_check is not None:
                self._sha256_check[0].update(data)
            if self._md5_check is not None:
                self._md5_check[0].update(data)
            if self._running_checksum is not None:
                self._running_checksum.update(data)
            if self._received_bytes == self.length:
                self._verify()
        elif self.length is None:
            self._verify()

    def _verify(self) -> None:
        if self._is_verified:
            return
        self._is_verified = True
        if self._md5_check is not None and self._md5_check[0].hexdigest() != self._md5_check[1]:
            raise RejectedBody(S3Error("BadDigest"))
        if self._sha256_check is not None:
            running, expected = self._sha256_check
            if not hmac.compare_digest(running.hexdigest().encode(), expected.encode("latin-1", "replace")):
                details = {
                    "ClientComputedContentSHA256": expected,
                    "S3ComputedContentSHA256": running.hexdigest(),
                }
                raise RejectedBody(S3Error("XAmzContentSHA256Mismatch", details=details))
        if self._declared is not None and self._running_checksum is not None:
            self.checksum = encode_checksum(self._running_checksum.digest())
            self._verify_declared(self._declared)

    def _verify_declared(self, declared: DeclaredChecksum) -> None:
        expected, name = declared.text, declared.algorithm.header
        if expected is None:
            expected = self._source.trailers.get(name)
            if expected is None:
                raise RejectedBody(S3Error("MalformedTrailerError"))
            if decode_checksum(declared.algorithm, expected.strip()) is None:
                text = f"Value for {name} trailing header is invalid."
                raise RejectedBody(invalid_request(text))
        if expected and expected != self.checksum:
            text = f"The {declared.algorithm.name} you specified did not match the calculated checksum."
            raise RejectedBody(S3Error("BadDigest", text))


class _ErrorRecordingBody(WrappedRequestBody):
    """Records the reason of a rejection, which other filters reduce to a status."""

    __slots__ = ("s3_error",)

    def __init__(self, source: RequestBody):
        super().__init__(source)
        self.s3_error: S3Error | None = None

    def read(self, size: int = -1) -> bytes:
        """Return bytes; note the error of a rejected body."""
        try:
            return self._source.read(size)
        except RejectedBody as error:
            self.s3_error = error.s3_error
            raise

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer; note the error of a rejected body."""
        try:
            return self._source.read_into(view)
        except RejectedBody as error:
            self.s3_error = error.s3_error
            raise


class S3Upload:
    """The body of an upload and the headers to send with it to the rest of the pipeline."""

    def __init__(
        self, source: RequestBody, body: RequestBody, headers: HeaderMap, declared: DeclaredChecksum | None
    ):
        self._verified_body = body if isinstance(body, VerifiedBody) else None
        self.body = body if body is source or isinstance(body, BytesBody) else _ErrorRecordingBody(body)
        self.headers = headers
        self.declared_checksum = declared

    @property
    def checksum(self) -> str:
        """The declared checksum in base64, after the body was read."""
        if self._verified_body is not None:
            return self._verified_body.checksum
        return (self.declared_checksum.text or "") if self.declared_checksum is not None else ""

    def raise_body_error(self) -> None:
        """Raise the ``S3Error`` for which the body was rejected, if it was."""
        if isinstance(self.body, _ErrorRecordingBody) and self.body.s3_error is not None:
            raise self.body.s3_error


def make_upload(
    source: RequestBody,
    headers: HeaderMap,
    claim: Claim,
    requested: Algorithm | None = None,
    default: Algorithm | None = None,
) -> S3Upload:
    """Return the upload of a request; raise ``S3Error`` for invalid declarations.

    A ``requested`` checksum that was not declared is computed; a declared one of another kind is an error.
    Without both the ``default`` one is computed.
    """
    declared = parse_declared_checksum(headers)
    if requested is not None and declared is not None and declared.algorithm is not requested:
        raise invalid_request(
            f"Checksum Type mismatch occurred, expected checksum Type: {requested.name}, "
            f"actual checksum Type: {declared.algorithm.name}"
        )
    body, sent = source, {}
    if claim.content_sha256.startswith(STREAMING_PREFIX):
        trailers = (declared.algorithm.header,) if declared is not None and declared.text is None else ()
        body = ChunkedPayload(source, claim, parse_decoded_length(headers), trailers)
    elif declared is not None and declared.text is None:
        raise S3Error("MalformedTrailerError")
    stored = declared
    if (
        declared is None
        and requested is None
        and source.length is not None
        and source.length <= _PREREAD_BYTES_MAX
    ):
        requested = default
    if requested is not None and declared is None:
        declared, stored = DeclaredChecksum(requested, ""), DeclaredChecksum(requested, None)
    digest = (
        claim.content_sha256
        if claim.content_sha256 and claim.content_sha256 != UNSIGNED_PAYLOAD and body is source
        else None
    )
    etag = parse_content_md5(headers)
    if digest is not None or declared is not None:
        body = VerifiedBody(body, digest, declared, etag)
    sent.update(length_header(body))
    if etag is not None:
        sent["etag"] = etag
    if stored is not declared and stored is not None and isinstance(body, VerifiedBody):
        size = body.length
        # Signed chunks are read after the signature was validated.
        if (
            size is not None
            and size <= _PREREAD_BYTES_MAX
            and not claim.content_sha256.startswith(STREAMING_PREFIX)
        ):
            # The checksum is computed at once and sent with the headers.
            data = body.read()
            return S3Upload(source, BytesBody(data), sent, DeclaredChecksum(stored.algorithm, body.checksum))
    return S3Upload(source, body, sent, stored)


def validate_body_headers(headers: HeaderMap, claim: Claim) -> None:
    """Raise ``S3Error`` for malformed headers about the body."""
    parse_content_md5(headers)
    if claim.content_sha256.startswith(STREAMING_PREFIX):
        parse_decoded_length(headers)


def validate_no_body(headers: HeaderMap, claim: Claim) -> None:
    """Validate the declarations of a request without a body; raise ``S3Error`` and ``RejectedBody``."""
    checksum = parse_declared_checksum(headers)
    if checksum is not None and checksum.text is None:
        raise S3Error("MalformedTrailerError")
    if (
        claim.content_sha256
        and claim.content_sha256 != UNSIGNED_PAYLOAD
        and not claim.content_sha256.startswith(STREAMING_PREFIX)
    ):
        # An empty body ends at once.
        VerifiedBody(BytesBody(b""), claim.content_sha256, None)


def parse_decoded_length(headers: HeaderMap) -> int:
    """Return the size of the content of an aws-chunked body; raise ``S3Error``."""
    text = headers.get("x-amz-decoded-content-length", "")
    if is_digits(text.removeprefix("-")) and text.startswith("-"):
        raise argument_error("x-amz-decoded-content-length", text)
    if not is_digits(text):
        raise S3Error("MissingContentLength")
    if len(text) > 15:
        raise S3Error("EntityTooLarge")
    return int(text)


def parse_content_md5(headers: HeaderMap) -> str | None:
    """Return Content-MD5 in hex, None without; raise ``S3Error``."""
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


def read_small_body(
    source: RequestBody, headers: HeaderMap, claim: Claim, limit: int, error: str = "MalformedXML"
) -> bytes:
    """Return a small body after verifying it; raise ``S3Error`` and ``RejectedBody``.

    ``error`` is the code for a body that exceeds the limit.
    """
    if (source.length or 0) > 2 * limit:
        raise S3Error(error if limit else "UnexpectedContent")
    upload = make_upload(source, headers, claim)
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
