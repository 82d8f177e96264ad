"""Encryption in S3's words: what the filter ``encryption`` does, and keys that customers bring (SSE-C).

With the filter everything is encrypted with keys of the cluster, AES256 as S3 calls it, whether a client asks
for it or not. A customer's key encrypts the body here, on its way to the rest of the pipeline; beside the
object there is only a random beginning of the key stream, and a sum by which the key is known again. The key
is never stored, so whoever loses it loses the object.
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
from swift.http.transform import Mapped, MappedRequest
from swift.middleware.s3api.call import Call
from swift.middleware.s3api.errors import S3Error
from swift.middleware.s3api.payload import Upload

HEADER = "x-amz-server-side-encryption"
CUSTOMER, SOURCE = f"{HEADER}-customer-", f"x-amz-copy-source-{HEADER.removeprefix('x-amz-')}-customer-"
_WORDS = ("algorithm", "key", "key-md5")
AES = "AES256"
#: Metadata of what is encrypted with a customer's key: the beginning of the key stream, and the key's sum.
STORED = fields.SYSMETA_S3_OBJECT + "sse-c"
_KEY_BYTES, _IV_BYTES = 32, 16
_PURPOSE = b"swift s3api sse-c"


class CustomerKey(NamedTuple):
    """A key that a request brings."""

    key: bytes
    #: How clients name it: the base64 of its MD5.
    name: str

    @property
    def told(self) -> HeaderMap:
        """What answers say of it."""
        return {f"{CUSTOMER}algorithm": AES, f"{CUSTOMER}key-md5": self.name}

    def sum(self, start: bytes) -> str:
        """By what it is known again."""
        return b64encode(hmac.digest(self.key, _PURPOSE + start, sha256)).decode("ascii")


def customer_key(headers: HeaderMap, prefix: str = CUSTOMER) -> CustomerKey | None:
    """The key that a request brings, None when it brings none; raises ``S3Error``."""
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
    """What the answer to a write says of encryption with the cluster's keys; raises ``S3Error``."""
    wanted = call.headers.get(HEADER)
    for name in call.headers:
        if name.startswith(f"{HEADER}-") and not name.startswith(CUSTOMER):
            raise S3Error("NotImplemented", f"{name} is not implemented.", details={"Header": name})
    if wanted is not None:
        check_algorithm(call, wanted)
    return {HEADER: AES} if call.features.encryption else {}


def check_algorithm(call: Call, wanted: str) -> None:
    """Raise ``S3Error`` for what the cluster does not do."""
    if wanted in ("aws:kms", "aws:kms:dsse"):
        raise S3Error("NotImplemented", "There are no keys of a key service here.")
    if wanted != AES:
        raise S3Error("InvalidEncryptionAlgorithmError", details={"ArgumentName": HEADER})
    if not call.features.encryption:
        raise S3Error("NotImplemented", "Encryption is not enabled here.")


# --- keys of customers --------------------------------------------------------------------------------


def encrypt(call: Call, upload: Upload) -> HeaderMap:
    """Have an upload encrypted with the customer's key, if it brings one; what is stored beside it.

    Raises ``S3Error``. What the answer says is ``write_headers``.
    """
    key = customer_key(call.headers)
    if key is None:
        return {}
    if HEADER in call.headers:
        raise _argument("Encryption with the cluster's and with a customer's key exclude each other.")
    if upload.headers.pop("etag", None) is not None:
        raise S3Error("NotImplemented", "With a customer's key send a checksum, not Content-MD5.")
    cipher = _cipher()
    start = cipher.new_iv()
    upload.body = MappedRequest(upload.body, cipher.Stream(key.key, start).update)
    return {STORED: f"{b64encode(start).decode('ascii')} {key.sum(start)}"}


def refuse_customer_keys(headers: HeaderMap) -> None:
    """Raise ``S3Error`` for a key of a customer where parts would need it."""
    if customer_key(headers) is not None:
        raise S3Error("NotImplemented", "Keys of customers are not for multipart uploads here.")


def write_headers(call: Call) -> HeaderMap:
    """What the answer to a write says of its encryption; raises ``S3Error``."""
    key = customer_key(call.headers)
    return managed_headers(call) if key is None else key.told


def decrypt(call: Call, response: Response, prefix: str = CUSTOMER) -> HeaderMap:
    """Put the plain body into an answer about what a customer's key encrypted; what it says of the key.

    Raises ``S3Error``, after which the answer is released.
    """
    try:
        return _decrypt(call, response, prefix)
    except S3Error:
        drained(response)
        raise


def _decrypt(call: Call, response: Response, prefix: str) -> HeaderMap:
    key, stored = customer_key(call.headers, prefix), response.headers.get(STORED)
    if stored is None:
        if key is not None:
            raise S3Error("InvalidRequest", "The object is not encrypted with a key of a customer.")
        return {}
    if key is None:
        raise S3Error(
            "InvalidRequest",
            "The object was stored using a form of Server Side Encryption. The correct parameters must be "
            "provided to retrieve the object.",
        )
    text, _, known = stored.partition(" ")
    start = b64decode(text)
    if len(start) != _IV_BYTES or not hmac.compare_digest(key.sum(start).encode(), known.encode()):
        raise S3Error("AccessDenied")
    if response.status in (200, 206):
        offset = _first_byte(response.headers) if response.status == 206 else 0
        response.body = Mapped(response.body, _cipher().Stream(key.key, start, offset).update)
    return key.told


def _cipher() -> ModuleType:
    """The cipher, which needs a library that the API does not need otherwise; raises ``S3Error``."""
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
