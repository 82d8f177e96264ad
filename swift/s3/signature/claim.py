"""A signature as it came, to be checked by whoever knows the secret (spec: middleware.md §22.1, §22.2).

The S3 filter knows no secrets: it hands a ``Claim`` on, and the authentication filter asks ``check``. What
the secret gives besides, the key that signs the chunks of a body, is kept here and nowhere else.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha1, sha256

from swift.s3.errors import S3Error
from swift.s3.signature.dates import stamp_seconds

UNSIGNED = "UNSIGNED-PAYLOAD"
STREAMING = "STREAMING-"
SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_CHUNKS_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

_STREAMS = frozenset((SIGNED_CHUNKS, SIGNED_CHUNKS_TRAILER, UNSIGNED_TRAILER))
_ASYMMETRIC_STREAMS = frozenset(
    ("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER")
)
_is_sha256 = re.compile(r"[0-9a-f]{64}", re.ASCII | re.IGNORECASE).fullmatch

#: (secret, date, region) → the key of that day.
_day_keys: dict[tuple[str, str, str], bytes] = {}
_DAY_KEYS_MAX = 1024


class Claim:
    """An access key, a signature, and the text that was signed."""

    __slots__ = (
        *("access_key", "signature", "string_to_sign", "alternatives", "payload", "is_presigned"),
        "_checked",
    )

    def __init__(
        self,
        access_key: str,
        signature: str,
        string_to_sign: bytes,
        *alternatives: bytes,
        payload: str = "",
        is_presigned: bool,
    ):
        self.access_key = access_key
        self.signature = signature
        self.string_to_sign = string_to_sign
        #: Other texts that clients sign for the same request.
        self.alternatives = alternatives
        #: The promise about the body: a SHA-256 in lower-case hex, a word above, or empty for none.
        self.payload = payload.lower() if _is_sha256(payload) else payload
        self.is_presigned = is_presigned
        #: The last secret that was tried and what came of it.
        self._checked: tuple[str, bool] | None = None

    def check(self, secret: str) -> bool:
        """Whether the signature is the one that ``secret`` gives; in constant time."""
        if self._checked is not None and hmac.compare_digest(self._checked[0].encode(), secret.encode()):
            return self._checked[1]
        stated = self.signature.encode("latin-1", "replace")
        good = False
        for text in (self.string_to_sign, *self.alternatives):
            good |= hmac.compare_digest(self._signature_of(secret, text).encode("ascii"), stated)
        self._checked = secret, good
        return good

    @property
    def _secret(self) -> str | None:
        """The secret, once it was found to be the right one."""
        return self._checked[0] if self._checked is not None and self._checked[1] else None

    def _signature_of(self, secret: str, text: bytes) -> str:
        """Return the signature that a secret gives to a text."""
        digest = hmac.digest(secret.encode("utf-8"), text, sha1)
        return b64encode(digest).decode("ascii")

    @property
    def details(self) -> Mapping[str, object]:
        """What the answer to a wrong signature says, so that a client can be corrected."""
        return {
            "AWSAccessKeyId": self.access_key,
            "StringToSign": self.string_to_sign.decode("utf-8", "replace"),
            "SignatureProvided": self.signature,
            "StringToSignBytes": _spaced(self.string_to_sign),
        }

    def chunk_signature(self, kind: str, previous: str, digests: str) -> str | None:
        """The signature of a chunk of the body; None where nobody told a secret."""
        return None

    def facts(self, now: float) -> Mapping[str, str]:
        """What conditions of policies may ask of the signature at a Unix second."""
        if not self.access_key:
            return {}
        kind = "REST-QUERY-STRING" if self.is_presigned else "REST-HEADER"
        return {"s3:authtype": kind, "s3:signatureversion": "AWS"}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.access_key!r}>"


class ClaimV4(Claim):
    """A signature of version 4."""

    __slots__ = ("date", "region", "stamp", "canonical")

    def __init__(
        self,
        access_key: str,
        signature: str,
        *,
        stamp: str,
        region: str,
        canonical: bytes,
        payload: str,
        is_presigned: bool,
    ):
        self.stamp = stamp
        self.date = stamp[:8]
        self.region = region
        self.canonical = canonical
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{self.scope}\n{sha256(canonical).hexdigest()}"
        super().__init__(
            access_key, signature, text.encode("ascii", "replace"), payload=payload, is_presigned=is_presigned
        )

    @property
    def scope(self) -> str:
        """What the key is for."""
        return f"{self.date}/{self.region}/s3/aws4_request"

    def _signature_of(self, secret: str, text: bytes) -> str:
        return hmac.digest(self._day_key(secret), text, sha256).hex()

    def _day_key(self, secret: str) -> bytes:
        name = secret, self.date, self.region
        key = _day_keys.get(name)
        if key is None:
            key = ("AWS4" + secret).encode("utf-8")
            for word in (self.date, self.region, "s3", "aws4_request"):
                key = hmac.digest(key, word.encode("utf-8"), sha256)
            if len(_day_keys) >= _DAY_KEYS_MAX:
                _day_keys.clear()
            _day_keys[name] = key
        return key

    @property
    def details(self) -> Mapping[str, object]:
        """See ``Claim``."""
        return {
            **super().details,
            "CanonicalRequest": self.canonical.decode("utf-8", "replace"),
            "CanonicalRequestBytes": _spaced(self.canonical),
        }

    def chunk_signature(self, kind: str, previous: str, digests: str) -> str | None:
        """See ``Claim``; ``digests`` are the lines after the previous signature."""
        secret = self._secret
        if secret is None:
            return None
        text = f"{kind}\n{self.stamp}\n{self.scope}\n{previous}\n{digests}"
        return hmac.digest(self._day_key(secret), text.encode("latin-1", "replace"), sha256).hex()

    def facts(self, now: float) -> Mapping[str, str]:
        """See ``Claim``."""
        signed = stamp_seconds(self.stamp)
        age = {} if signed is None else {"s3:signatureage": str(max(0, int((now - signed) * 1000)))}
        return {**super().facts(now), "s3:signatureversion": "AWS4-HMAC-SHA256", **age}


def checked_payload(value: str) -> str:
    """Return what x-amz-content-sha256 says of the body, as it was sent; raises ``S3Error`` if unknown."""
    if _is_sha256(value) or value == UNSIGNED or value in _STREAMS:
        return value
    if value in _ASYMMETRIC_STREAMS:
        raise S3Error("NotImplemented", f"{value} is not implemented.")
    raise S3Error(
        "InvalidArgument",
        "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, "
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 "
        "value.",
        details={"ArgumentName": "x-amz-content-sha256", "ArgumentValue": value},
    )


def check_access_key(key: str) -> None:
    """Raise ``S3Error`` for a key that cannot stand in a path."""
    if not key or "/" in key or not key.isprintable() or any("\ud800" <= c <= "\udfff" for c in key):
        raise S3Error("InvalidAccessKeyId", details={"AWSAccessKeyId": key})


def anonymous() -> Claim:
    """What a request without a signature claims: nothing."""
    return Claim("", "", b"", is_presigned=False)


def _spaced(data: bytes) -> str:
    return data.hex(" ")
