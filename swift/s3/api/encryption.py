"""Encryption in S3's words: what the filter ``encryption`` does, and keys that customers bring (SSE-C).

With the filter everything is encrypted with keys of the cluster, AES256 as S3 calls it, whether a client
asks for it or not. A customer's key encrypts the body here, on its way to the rest of the pipeline; beside
the object there is only a random beginning of the key stream, and a sum by which the key is known again.
The key is never stored, so an object whose key is lost is lost. Each part of a multipart object has a
beginning of its own, so that a part that is sent again shares no key stream with what it replaces.
"""

from __future__ import annotations

import hmac
import json
from base64 import b64decode, b64encode
from hashlib import md5, sha256
from types import ModuleType
from typing import NamedTuple

from swift.gateway.subrequest import drained
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import SourceBodyError, TransformedBody, TransformedRequestBody
from swift.s3.api.call import Call
from swift.s3.api.payload import S3Upload
from swift.s3.api.put import version_query
from swift.s3.auth.session import Session
from swift.s3.errors import S3Error

HEADER = "x-amz-server-side-encryption"
CUSTOMER, SOURCE = f"{HEADER}-customer-", f"x-amz-copy-source-{HEADER.removeprefix('x-amz-')}-customer-"
_WORDS = ("algorithm", "key", "key-md5")
AES = "AES256"
#: Metadata of what is encrypted with a customer's key: the beginning of the key stream, and the key's sum.
STORED = fields.SYSMETA_S3_SSE_C
#: Behind those of a multipart object: its parts have beginnings of their own.
_OF_PARTS = "parts"
_KEY_BYTES, _IV_BYTES = 32, 16
_PURPOSE = b"swift s3api sse-c"


class CustomerKey(NamedTuple):
    """A key that a request brings."""

    key: bytes
    #: How clients name it: the base64 of its MD5.
    name: str

    @property
    def answer_headers(self) -> HeaderMap:
        """The headers of answers about the key."""
        return {f"{CUSTOMER}algorithm": AES, f"{CUSTOMER}key-md5": self.name}

    def sum(self, start: bytes) -> str:
        """Return the sum by which the key is recognized."""
        return b64encode(hmac.digest(self.key, _PURPOSE + start, sha256)).decode("ascii")


def customer_key(headers: HeaderMap, prefix: str = CUSTOMER) -> CustomerKey | None:
    """Return the key that a request brings, None when it brings none; raise ``S3Error``."""
    algorithm, text, name = (headers.get(prefix + word) for word in _WORDS)
    if algorithm is text is name is None:
        return None
    if algorithm is None or text is None or name is None:
        raise _argument("Requests with keys of customers must say algorithm, key and the key's MD5.")
    if algorithm != AES:
        raise S3Error("InvalidEncryptionAlgorithmError", details={"ArgumentName": f"{prefix}algorithm"})
    try:
        key = b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise _argument("The secret key was invalid for the specified algorithm.")
    digest = b64encode(md5(key, usedforsecurity=False).digest()).decode("ascii")
    if not hmac.compare_digest(digest.encode(), name.encode("utf-8", "replace")):
        raise _argument("The calculated MD5 hash of the key did not match the hash that was provided.")
    return CustomerKey(key, digest)


def _argument(text: str) -> S3Error:
    return S3Error("InvalidArgument", text)


# --- keys of the cluster ------------------------------------------------------------------------------


def managed_headers(call: Call) -> HeaderMap:
    """Return the headers of a write's answer about the cluster's keys; raise ``S3Error``."""
    requested = call.headers.get(HEADER)
    for name in call.headers:
        if name.startswith(f"{HEADER}-") and not name.startswith(CUSTOMER):
            raise S3Error("NotImplemented", f"{name} is not implemented.", details={"Header": name})
    if requested is not None:
        check_algorithm(call, requested)
    return {HEADER: AES} if call.features.encryption else {}


def check_algorithm(call: Call, requested: str) -> None:
    """Raise ``S3Error`` for what the cluster does not do."""
    if requested in ("aws:kms", "aws:kms:dsse"):
        raise S3Error("NotImplemented", "There are no keys of a key service here.")
    if requested != AES:
        raise S3Error("InvalidEncryptionAlgorithmError", details={"ArgumentName": HEADER})
    if not call.features.encryption:
        raise S3Error("NotImplemented", "Server-side encryption is not supported.")


# --- keys of customers --------------------------------------------------------------------------------


def encrypt(call: Call, upload: S3Upload) -> HeaderMap:
    """Have an upload encrypted with the customer's key, if it brings one; what is stored beside it.

    Raises ``S3Error``. What the answer says is ``write_headers``.
    """
    key = customer_key(call.headers)
    if key is None:
        return {}
    if HEADER in call.headers:
        raise _both()
    if upload.headers.pop("etag", None) is not None:
        raise S3Error("NotImplemented", "With a customer's key send a checksum, not Content-MD5.")
    cipher = _cipher()
    start = cipher.new_iv()
    upload.body = TransformedRequestBody(upload.body, cipher.KeyStream(key.key, start).update)
    return {STORED: _known_by(key, start)}


def _both() -> S3Error:
    return _argument("Encryption with the cluster's and with a customer's key exclude each other.")


def _known_by(key: CustomerKey, start: bytes) -> str:
    return f"{b64encode(start).decode('ascii')} {key.sum(start)}"


def _start_of(key: CustomerKey, stored: str) -> bytes | None:
    """Return the beginning of the key stream that metadata keeps; None when it was another key's."""
    text, known = [*stored.split(" "), ""][:2]
    start = b64decode(text)
    is_known = len(start) == _IV_BYTES and hmac.compare_digest(key.sum(start).encode(), known.encode())
    return start if is_known else None


def upload_headers(call: Call) -> HeaderMap:
    """Return the metadata of an upload whose parts come with a customer's key; raise ``S3Error``."""
    key = customer_key(call.headers)
    if key is None:
        return {}
    if HEADER in call.headers:
        raise _both()
    return {STORED: _known_by(key, _cipher().new_iv())}


def check_part_key(call: Call, marker: HeaderMap) -> None:
    """Raise ``S3Error`` when a part does not come with the key that its upload was begun with."""
    key, stored = customer_key(call.headers), marker.get(STORED)
    if stored is None and key is not None:
        raise S3Error(
            "InvalidRequest",
            "The multipart upload initiate did not request encryption. Please resend the request without "
            "sending encryption parameters.",
        )
    if stored is not None and key is None:
        raise S3Error(
            "InvalidRequest",
            "The multipart upload initiate requested encryption. Subsequent part requests must include the "
            "appropriate encryption parameters.",
        )
    if stored is not None and key is not None and _start_of(key, stored) is None:
        raise S3Error(
            "InvalidRequest", "The provided encryption parameters did not match the ones used originally."
        )


def completed_headers(marker: HeaderMap) -> HeaderMap:
    """Return the metadata of an object whose parts have key streams of their own."""
    stored = marker.get(STORED)
    return {} if stored is None else {STORED: f"{stored} {_OF_PARTS}"}


def write_headers(call: Call) -> HeaderMap:
    """Return the headers of a write's answer about its encryption; raise ``S3Error``."""
    key = customer_key(call.headers)
    return managed_headers(call) if key is None else key.answer_headers


def decrypt(
    call: Call, response: Response, source: Encrypted | None = None, prefix: str = CUSTOMER
) -> HeaderMap:
    """Put the plain body into an answer about what a customer's key encrypted; what it says of the key.

    ``source`` is what the answer is of, without one the object that the call names. Raises ``S3Error``, after
    which the answer is released.
    """
    try:
        return _decrypt(call, response, source, prefix)
    except S3Error:
        drained(response)
        raise


def _decrypt(call: Call, response: Response, source: Encrypted | None, prefix: str) -> HeaderMap:
    known = _known_key(call, response.headers, prefix)
    if known is None:
        return {}
    key, start = known
    if response.status in (200, 206) and call.request.method != "HEAD":
        offset = _first_byte(response.headers) if response.status == 206 else 0
        stored = response.headers[STORED]
        if stored.endswith(f" {_OF_PARTS}"):
            found = source or Encrypted(call.session, call.bucket, call.key, version_query(call))
            update = _PartStreams(found, key, stored, offset).update
        else:
            update = _cipher().KeyStream(key.key, start, offset).update
        response.body = TransformedBody(response.body, update)
    return key.answer_headers


def check_key(call: Call, headers: HeaderMap) -> None:
    """Raise ``S3Error`` when an object that was found is asked for without its customer's key."""
    _known_key(call, headers, CUSTOMER)


def _known_key(call: Call, headers: HeaderMap, prefix: str) -> tuple[CustomerKey, bytes] | None:
    """Return the key that an object needs, and where its stream begins; None when it needs none."""
    key, stored = customer_key(call.headers, prefix), headers.get(STORED)
    if stored is None:
        if key is not None:
            raise S3Error("InvalidRequest", "The object is not encrypted with a key of a customer.")
        return None
    if key is None:
        raise S3Error(
            "InvalidRequest",
            "The object was stored using a form of Server Side Encryption. The correct parameters must be "
            "provided to retrieve the object.",
        )
    start = _start_of(key, stored)
    if start is None:
        raise S3Error("AccessDenied")
    return key, start


class Encrypted(NamedTuple):
    """An object that a customer's key encrypts, and the session that reads it."""

    session: Session
    bucket: str
    key: str
    #: The query that asks for a version; empty for the current one.
    query: str = ""


class _PartStreams:
    """The key streams of an object's parts, one after the other, from a byte of the object on.

    Where a stream begins is in its part's metadata, which is asked for when the part before ends.
    """

    def __init__(self, source: Encrypted, key: CustomerKey, stored: str, offset: int):
        """Prepare the streams of the parts; raises ``S3Error``."""
        self._source = source
        self._key = key
        query = f"{source.query}{'&' if source.query else ''}multipart-manifest=get"
        with source.session.ask("GET", source.bucket, source.key, query=query) as response:
            if not response.is_success or response.headers.get(STORED) != stored:
                # It was overwritten a moment ago.
                raise S3Error("ServiceUnavailable")
            entries = json.loads(response.read_body())
        self._parts = [(str(entry["name"]), int(entry["bytes"])) for entry in entries]
        self._next = 0
        while self._next < len(self._parts) and offset >= self._parts[self._next][1]:
            offset -= self._parts[self._next][1]
            self._next += 1
        self._left = 0
        if self._next < len(self._parts):
            self._begin(offset)

    def _begin(self, offset: int = 0) -> None:
        """Go on with the next part, from a byte of it on; raises ``S3Error``."""
        name, size = self._parts[self._next]
        self._next += 1
        container, _, part = name.lstrip("/").partition("/")
        head = self._source.session.head(container, part)
        start = _start_of(self._key, head.headers.get(STORED, ""))
        if not head.is_success or start is None:
            raise S3Error("ServiceUnavailable")
        self._stream = _cipher().KeyStream(self._key.key, start, offset)
        self._left = size - offset

    def update(self, data: bytes) -> bytes:
        """Return the next bytes; raise ``SourceBodyError`` when a part cannot be asked for."""
        plain, view = [], memoryview(data)
        while view:
            while not self._left:
                try:
                    self._begin()
                except (S3Error, IndexError):
                    raise SourceBodyError("a part of what a customer's key encrypted is missing")
            piece = view[: self._left]
            plain.append(self._stream.update(piece))
            self._left -= len(piece)
            view = view[len(piece) :]
        return b"".join(plain)


def _cipher() -> ModuleType:
    """Return the cipher, which needs a library that the API does not need otherwise; raise ``S3Error``."""
    try:
        from swift.middleware.encryption import cipher
    except ImportError:
        raise S3Error("NotImplemented", "There is no library for encryption here.")
    return cipher


def _first_byte(headers: HeaderMap) -> int:
    first = headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
    if not (first.isascii() and first.isdigit()):
        raise S3Error("NotImplemented", "Of what a customer's key encrypted one range is given at a time.")
    return int(first)
