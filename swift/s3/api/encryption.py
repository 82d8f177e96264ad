"""Server-side encryption of S3: the filter ``encryption``, and keys of customers (SSE-C).

The filter encrypts everything with keys of the cluster, which S3 calls AES256, whether requested or not.
This module encrypts with a customer's key. It stores a random initialization vector and a fingerprint of
the key, never the key, so an object whose key is lost is lost. Each part of a multipart object has an
initialization vector of its own, so that a part that is sent again shares no key stream with the one it
replaces.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from hashlib import md5, sha256
from types import ModuleType
from typing import NamedTuple

from swift.gateway.subrequest import drained
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import SourceBodyError, TransformedBody, TransformedRequestBody
from swift.s3.core.call import Call, Handler, no_content, version_query, xml_response
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.payload import S3Upload
from swift.s3.core.session import Session
from swift.s3.core.xml import Group, RepeatedGroup, Text, Value, text_of, tree_of, trees_of
from swift.s3.policy.authorize import require_owner

SSE_HEADER = "x-amz-server-side-encryption"
_SSE_PREFIX = f"{SSE_HEADER}-"
CUSTOMER_PREFIX, SOURCE_CUSTOMER_PREFIX = (
    f"{SSE_HEADER}-customer-",
    f"x-amz-copy-source-{SSE_HEADER.removeprefix('x-amz-')}-customer-",
)
AES256 = "AES256"
#: Metadata of objects with a customer's key: the initialization vector and the key's fingerprint.
KEY_METADATA = fields.SYSMETA_S3_SSE_C
#: Follows them in the metadata of multipart objects, whose parts have initialization vectors of their own.
_PARTS_MARK = "parts"
_KEY_BYTES, _IV_BYTES = 32, 16
_HMAC_PURPOSE = b"swift s3api sse-c"


class CustomerKey(NamedTuple):
    """A customer's key in the headers of a request."""

    key: bytes
    #: The base64 of the key's MD5, by which clients refer to it.
    md5_base64: str

    @property
    def response_headers(self) -> HeaderMap:
        """The headers of responses about the key."""
        return {f"{CUSTOMER_PREFIX}algorithm": AES256, f"{CUSTOMER_PREFIX}key-md5": self.md5_base64}

    def fingerprint(self, start: bytes) -> str:
        """Return the fingerprint of the key for an initialization vector."""
        return b64encode(hmac.digest(self.key, _HMAC_PURPOSE + start, sha256)).decode("ascii")


def parse_customer_key(headers: HeaderMap, prefix: str = CUSTOMER_PREFIX) -> CustomerKey | None:
    """Return the customer's key in a request's headers, None without one; raise ``S3Error``."""
    algorithm, text, name = (
        headers.get(f"{prefix}algorithm"),
        headers.get(f"{prefix}key"),
        headers.get(f"{prefix}key-md5"),
    )
    if algorithm is text is name is None:
        return None
    if algorithm is None or text is None or name is None:
        raise _invalid_argument("Requests with customer keys need the algorithm, the key and the key's MD5.")
    if algorithm != AES256:
        raise S3Error("InvalidEncryptionAlgorithmError", details={"ArgumentName": f"{prefix}algorithm"})
    try:
        key = b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise _invalid_argument("The secret key was invalid for the specified algorithm.")
    digest = b64encode(md5(key, usedforsecurity=False).digest()).decode("ascii")
    if not hmac.compare_digest(digest.encode(), name.encode("utf-8", "replace")):
        raise _invalid_argument(
            "The calculated MD5 hash of the key did not match the hash that was provided."
        )
    return CustomerKey(key, digest)


def _invalid_argument(text: str) -> S3Error:
    return S3Error("InvalidArgument", text)


# --- keys of the cluster ------------------------------------------------------------------------------


def cluster_encryption_headers(call: Call) -> HeaderMap:
    """Return the response headers of a write about the cluster's encryption; raise ``S3Error``."""
    requested = call.headers.get(SSE_HEADER)
    for name in call.headers:
        if name.startswith(_SSE_PREFIX) and not name.startswith(CUSTOMER_PREFIX):
            raise S3Error("NotImplemented", f"{name} is not implemented.", details={"Header": name})
    if requested is not None:
        validate_algorithm(call, requested)
    return {SSE_HEADER: AES256} if call.features.encryption else {}


def validate_algorithm(call: Call, requested: str) -> None:
    """Raise ``S3Error`` for algorithms that the cluster does not support."""
    if requested in ("aws:kms", "aws:kms:dsse"):
        raise S3Error("NotImplemented", f"Server-side encryption with {requested} is not supported.")
    if requested != AES256:
        raise S3Error("InvalidEncryptionAlgorithmError", details={"ArgumentName": SSE_HEADER})
    if not call.features.encryption:
        raise S3Error("NotImplemented", "Server-side encryption is not supported.")


# --- the default of a bucket ----------------------------------------------------------------------------

ENCRYPTION_CONFIGURATION = Group(
    "ServerSideEncryptionConfiguration",
    RepeatedGroup(
        "Rule",
        Group("ApplyServerSideEncryptionByDefault", Text("SSEAlgorithm"), Text("KMSMasterKeyID")),
        Text("BucketKeyEnabled"),
        required=True,
    ),
)


def get_encryption(call: Call) -> Response:
    """GetBucketEncryption."""
    call.session.bucket_info(call.bucket)
    if not call.features.encryption:
        raise S3Error("ServerSideEncryptionConfigurationNotFoundError", details={"BucketName": call.bucket})
    rule: Value = {
        "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": AES256},
        "BucketKeyEnabled": "false",
    }
    return xml_response(ENCRYPTION_CONFIGURATION, {"Rule": [rule]})


def put_encryption(call: Call) -> Response:
    """PutBucketEncryption: accepts only the encryption that the cluster does anyway."""
    rules = trees_of(call.parse_body(ENCRYPTION_CONFIGURATION).get("Rule"))
    if len(rules) != 1 or "ApplyServerSideEncryptionByDefault" not in rules[0]:
        raise S3Error("MalformedXML")
    require_owner(call)
    default = tree_of(rules[0]["ApplyServerSideEncryptionByDefault"])
    algorithm = text_of(default.get("SSEAlgorithm"))
    if algorithm == AES256 and "KMSMasterKeyID" in default:
        text = "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms"
        raise S3Error("InvalidArgument", text)
    validate_algorithm(call, algorithm)
    return Response(200)


def delete_encryption(call: Call) -> Response:
    """DeleteBucketEncryption: has no effect, as the cluster's encryption does not depend on buckets."""
    require_owner(call)
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketEncryption": get_encryption,
    "PutBucketEncryption": put_encryption,
    "DeleteBucketEncryption": delete_encryption,
}


# --- keys of customers --------------------------------------------------------------------------------


def encrypt_upload(call: Call, upload: S3Upload) -> HeaderMap:
    """Encrypt an upload with the customer's key, if there is one, and return the metadata to store.

    Raise ``S3Error``. The response headers are those of ``encryption_response_headers``.
    """
    key = parse_customer_key(call.headers)
    if key is None:
        return {}
    if SSE_HEADER in call.headers:
        raise _conflicting_keys_error()
    if upload.headers.pop("etag", None) is not None:
        raise S3Error("NotImplemented", "With a customer's key send a checksum, not Content-MD5.")
    cipher = _import_cipher()
    start = cipher.new_iv()
    upload.body = TransformedRequestBody(upload.body, cipher.KeyStream(key.key, start).update)
    return {KEY_METADATA: _key_metadata(key, start)}


def _conflicting_keys_error() -> S3Error:
    return _invalid_argument("Encryption with the cluster's and with a customer's key exclude each other.")


def _key_metadata(key: CustomerKey, start: bytes) -> str:
    return f"{b64encode(start).decode('ascii')} {key.fingerprint(start)}"


def _parse_iv(key: CustomerKey, stored: str) -> bytes | None:
    """Return the initialization vector in stored metadata; None if it belongs to another key."""
    text, known = [*stored.split(" "), ""][:2]
    start = b64decode(text)
    is_known = len(start) == _IV_BYTES and hmac.compare_digest(
        key.fingerprint(start).encode(), known.encode()
    )
    return start if is_known else None


def upload_key_metadata(call: Call) -> HeaderMap:
    """Return the metadata of a multipart upload with a customer's key; raise ``S3Error``."""
    key = parse_customer_key(call.headers)
    if key is None:
        return {}
    if SSE_HEADER in call.headers:
        raise _conflicting_keys_error()
    return {KEY_METADATA: _key_metadata(key, _import_cipher().new_iv())}


def validate_part_key(call: Call, marker: HeaderMap) -> None:
    """Raise ``S3Error`` unless a part has the customer's key of its upload."""
    key, stored = parse_customer_key(call.headers), marker.get(KEY_METADATA)
    if stored is None and key is not None:
        raise invalid_request(
            "The multipart upload initiate did not request encryption. Please resend the "
            "request without sending encryption parameters."
        )
    if stored is not None and key is None:
        raise invalid_request(
            "The multipart upload initiate requested encryption. Subsequent part requests "
            "must include the appropriate encryption parameters."
        )
    if stored is not None and key is not None and _parse_iv(key, stored) is None:
        raise invalid_request("The provided encryption parameters did not match the ones used originally.")


def completed_key_metadata(marker: HeaderMap) -> HeaderMap:
    """Return the metadata of an object whose parts have initialization vectors of their own."""
    stored = marker.get(KEY_METADATA)
    return {} if stored is None else {KEY_METADATA: f"{stored} {_PARTS_MARK}"}


def encryption_response_headers(call: Call) -> HeaderMap:
    """Return the response headers of a write about its encryption; raise ``S3Error``."""
    key = parse_customer_key(call.headers)
    return cluster_encryption_headers(call) if key is None else key.response_headers


def decrypt_response(
    call: Call, response: Response, source: EncryptedObject | None = None, prefix: str = CUSTOMER_PREFIX
) -> HeaderMap:
    """Decrypt the body of a response with the customer's key and return the headers about the key.

    ``source`` is the response's object, by default that of the call. Raise ``S3Error`` and release the
    response.
    """
    try:
        return _decrypt(call, response, source, prefix)
    except S3Error:
        drained(response)
        raise


def _decrypt(call: Call, response: Response, source: EncryptedObject | None, prefix: str) -> HeaderMap:
    known = _require_matching_key(call, response.headers, prefix)
    if known is None:
        return {}
    key, start = known
    if response.status in (200, 206) and call.request.method != "HEAD":
        offset = _range_start(response.headers) if response.status == 206 else 0
        stored = response.headers[KEY_METADATA]
        if stored.endswith(f" {_PARTS_MARK}"):
            found = source or EncryptedObject(call.session, call.bucket, call.key, version_query(call))
            update = _PartDecryptor(found, key, stored, offset).update
        else:
            update = _import_cipher().KeyStream(key.key, start, offset).update
        response.body = TransformedBody(response.body, update)
    return key.response_headers


def validate_object_key(call: Call, headers: HeaderMap) -> None:
    """Raise ``S3Error`` unless the request has the customer's key that an object needs."""
    _require_matching_key(call, headers, CUSTOMER_PREFIX)


def _require_matching_key(call: Call, headers: HeaderMap, prefix: str) -> tuple[CustomerKey, bytes] | None:
    """Return the customer's key and initialization vector of an object; None if it needs no key."""
    key, stored = parse_customer_key(call.headers, prefix), headers.get(KEY_METADATA)
    if stored is None:
        if key is not None:
            raise invalid_request("The object is not encrypted with a key of a customer.")
        return None
    if key is None:
        raise invalid_request(
            "The object was stored using a form of Server Side Encryption. The correct "
            "parameters must be provided to retrieve the object."
        )
    start = _parse_iv(key, stored)
    if start is None:
        raise S3Error("AccessDenied")
    return key, start


class EncryptedObject(NamedTuple):
    """An object encrypted with a customer's key, and the session that reads it."""

    session: Session
    bucket: str
    key: str
    #: The query that selects a version; empty for the current one.
    query: str = ""


class _PartDecryptor:
    """Decrypts the parts of an object one after the other, from an offset of the object on.

    Each part's initialization vector is read from its metadata when the previous part ends.
    """

    def __init__(self, source: EncryptedObject, key: CustomerKey, stored: str, offset: int):
        """Read the manifest and begin the part at the offset; raise ``S3Error``."""
        self._source = source
        self._key = key
        response, entries = source.session.read_manifest(source.bucket, source.key, source.query)
        if not response.is_success or response.headers.get(KEY_METADATA) != stored:
            # It was overwritten a moment ago.
            raise S3Error("ServiceUnavailable")
        self._parts = [(str(entry["name"]), int(entry["bytes"])) for entry in entries]
        self._next_part = 0
        while self._next_part < len(self._parts) and offset >= self._parts[self._next_part][1]:
            offset -= self._parts[self._next_part][1]
            self._next_part += 1
        self._part_left = 0
        if self._next_part < len(self._parts):
            self._begin_part(offset)

    def _begin_part(self, offset: int = 0) -> None:
        """Begin the next part at an offset in it; raise ``S3Error``."""
        name, size = self._parts[self._next_part]
        self._next_part += 1
        container, _, part = name.lstrip("/").partition("/")
        head = self._source.session.head(container, part)
        start = _parse_iv(self._key, head.headers.get(KEY_METADATA, ""))
        if not head.is_success or start is None:
            raise S3Error("ServiceUnavailable")
        self._stream = _import_cipher().KeyStream(self._key.key, start, offset)
        self._part_left = size - offset

    def update(self, data: bytes) -> bytes:
        """Return the next bytes decrypted; raise ``SourceBodyError`` if a part cannot be read."""
        plain, view = [], memoryview(data)
        while view:
            while not self._part_left:
                try:
                    self._begin_part()
                except (S3Error, IndexError):
                    raise SourceBodyError("a part of what a customer's key encrypted is missing")
            piece = view[: self._part_left]
            plain.append(self._stream.update(piece))
            self._part_left -= len(piece)
            view = view[len(piece) :]
        return b"".join(plain)


def _import_cipher() -> ModuleType:
    """Return the cipher module, whose library is optional; raise ``S3Error`` without it."""
    try:
        from swift.middleware.encryption import cipher
    except ImportError:
        raise S3Error("NotImplemented", "There is no library for encryption here.")
    return cipher


def _range_start(headers: HeaderMap) -> int:
    first = headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
    if not (first.isascii() and first.isdigit()):
        raise S3Error("NotImplemented", "Only one range at a time can be read of objects with customer keys.")
    return int(first)
