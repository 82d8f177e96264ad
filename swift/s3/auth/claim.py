"""Claims: signatures as they came, their dates, and headers that a link moved (spec: middleware.md §22.1)."""

from __future__ import annotations

import calendar
import hmac
import re
from base64 import b64encode
from collections.abc import Container, Mapping
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from functools import lru_cache
from hashlib import sha1, sha256
from time import gmtime, strftime

from swift.http.headers import has_control_characters, lower_name, utf8_value
from swift.http.request import Request
from swift.s3.api.router import LINK_HEADERS
from swift.s3.errors import S3Error

_stamp = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII).fullmatch
_NO_DATE = "AWS authentication requires a valid Date or x-amz-date header"


def no_date() -> S3Error:
    """Return the answer to a request without a date that can be read."""
    return S3Error("AccessDenied", _NO_DATE, reason="invalid_date")


def _seconds(stamp: str) -> int | None:
    match = _stamp(stamp)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    if year < 1970 or second > 60:
        return None
    try:
        # A leap second counts as the first one after it.
        moment = datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
    return calendar.timegm(moment.timetuple()) + second


#: Unix second of ``20260102T030405Z``; None for anything else.
stamp_seconds = lru_cache(256)(_seconds)


def date_seconds(text: str) -> int | None:
    """Return Unix second of a date as mail and HTTP write it, or as ISO does; None when it is neither."""
    found = stamp_seconds(text)
    if found is not None:
        return found
    try:
        parsed = parsedate_tz(text)
        return None if parsed is None or parsed[0] < 1970 else int(mktime_tz(parsed))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def iso_seconds(text: str) -> int | None:
    """Return Unix second of ``2026-01-02T03:04:05.000Z``; None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def iso_time(seconds: float) -> str:
    """Return ``2026-01-02T03:04:05Z``."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))


def stamp_of(headers: Mapping[str, str]) -> tuple[str, int]:
    """Return the date of a request as version 4 writes it, and its Unix second; raise ``S3Error``."""
    text = headers.get("x-amz-date") or headers.get("date") or ""
    seconds = date_seconds(text)
    if seconds is None:
        raise no_date()
    if stamp_seconds(text) is not None:
        return text, seconds
    return strftime("%Y%m%dT%H%M%SZ", gmtime(seconds)), seconds


def check_skew(seconds: int, now: float, skew_s: int) -> None:
    """Raise ``S3Error`` when a clock differs by more."""
    if abs(now - seconds) > skew_s:
        raise S3Error("RequestTimeTooSkewed", reason="date_skew")


# --- claims -------------------------------------------------------------------------------------------
# The S3 filter knows no secrets: it hands a ``Claim`` on, and the authentication filter asks
# ``check``. What the secret gives besides, the key that signs the chunks of a body, is kept here and
# nowhere else.

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
        """Return True if the signature is the one that ``secret`` gives; in constant time."""
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
        """The elements of the answer to a wrong signature, so that a client can be corrected."""
        return {
            "AWSAccessKeyId": self.access_key,
            "StringToSign": self.string_to_sign.decode("utf-8", "replace"),
            "SignatureProvided": self.signature,
            "StringToSignBytes": _spaced(self.string_to_sign),
        }

    def chunk_signature(self, kind: str, previous: str, digests: str) -> str | None:
        """Return the signature of a chunk of the body; None without a secret."""
        return None

    def condition_values(self, now: float) -> Mapping[str, str]:
        """Return the values of the signature for conditions of policies at a Unix second."""
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
        """The scope of the key."""
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

    def condition_values(self, now: float) -> Mapping[str, str]:
        """See ``Claim``."""
        signed = stamp_seconds(self.stamp)
        age = {} if signed is None else {"s3:signatureage": str(max(0, int((now - signed) * 1000)))}
        return {**super().condition_values(now), "s3:signatureversion": "AWS4-HMAC-SHA256", **age}


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
    """Return the claim of a request without a signature."""
    return Claim("", "", b"", is_presigned=False)


def _spaced(data: bytes) -> str:
    return data.hex(" ")


# --- headers that links move --------------------------------------------------------------------------
# Version 4 signs the whole query, so the headers are taken after the text that was signed is made.
# Version 2 signs headers wherever they are, so they are taken before.

#: Version 2 signs these two of the standard headers, and those of S3.
SIGNED_BY_V2 = frozenset(("content-md5", "content-type"))
SIGNED_BY_V4 = LINK_HEADERS
_OF_SIGNATURE = frozenset(
    (
        *("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signature"),
        *("x-amz-signedheaders", "x-amz-content-sha256"),
    )
)


def take_moved_headers(request: Request, standard: Container[str], *, is_signed: bool) -> None:
    """Add headers of S3, and ``standard`` ones, from the query; raise ``S3Error`` for invalid ones.

    With ``is_signed`` the signature covers the query: a standard header of it replaces one that was sent.
    """
    for name, value in request.params.items():
        lower = lower_name(name)
        is_standard = lower in standard
        if not is_standard and (not lower.startswith("x-amz-") or lower in _OF_SIGNATURE):
            continue
        if has_control_characters(name + value):
            raise S3Error("InvalidArgument", "A parameter has characters that no header has.")
        text = utf8_value(value).encode("utf-8", "surrogateescape").decode("latin-1")
        if is_standard and is_signed:
            request.headers[lower] = text
        else:
            request.headers.setdefault(lower, text)
