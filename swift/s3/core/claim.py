"""Claims: signatures as received, their dates, and headers moved into the query (spec: middleware.md
§22.1).
"""

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
from swift.s3.core.errors import S3Error, argument_error
from swift.s3.core.router import PRESIGNED_HEADERS

_match_amz_date = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII).fullmatch
_MISSING_DATE_TEXT = "AWS authentication requires a valid Date or x-amz-date header"


def missing_date_error() -> S3Error:
    """Return the error for a request without a readable date."""
    return S3Error("AccessDenied", _MISSING_DATE_TEXT, reason="invalid_date")


def _parse_amz_date(stamp: str) -> int | None:
    match = _match_amz_date(stamp)
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
parse_amz_date = lru_cache(256)(_parse_amz_date)


def parse_request_date(text: str) -> int | None:
    """Return the Unix second of a date in HTTP, e-mail or ISO format; None for other text."""
    found = parse_amz_date(text)
    if found is not None:
        return found
    try:
        parsed = parsedate_tz(text)
        return None if parsed is None or parsed[0] < 1970 else int(mktime_tz(parsed))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def parse_iso_date(text: str) -> int | None:
    """Return the Unix second of ``2026-01-02T03:04:05.000Z``; None for other text."""
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def iso_time(seconds: float) -> str:
    """Return a Unix second as ``2026-01-02T03:04:05Z``."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))


def amz_date_of_request(headers: Mapping[str, str]) -> tuple[str, int]:
    """Return the date of a request in version 4's format and its Unix second; raise ``S3Error``."""
    text = headers.get("x-amz-date") or headers.get("date") or ""
    seconds = parse_request_date(text)
    if seconds is None:
        raise missing_date_error()
    if parse_amz_date(text) is not None:
        return text, seconds
    return strftime("%Y%m%dT%H%M%SZ", gmtime(seconds)), seconds


def validate_clock_skew(seconds: int, now: float, skew_s: int) -> None:
    """Raise ``S3Error`` if a request's date differs from the clock by more than ``skew_s``."""
    if abs(now - seconds) > skew_s:
        raise S3Error("RequestTimeTooSkewed", reason="date_skew")


# --- claims -------------------------------------------------------------------------------------------
# The S3 filter knows no secrets: it passes a ``Claim`` on, and the authentication filter calls
# ``verify``. The secret and the signing keys that verify the chunks of a body are kept here and
# nowhere else.

UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
STREAMING_PREFIX = "STREAMING-"
SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_CHUNKS_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

_STREAMS = frozenset((SIGNED_CHUNKS, SIGNED_CHUNKS_TRAILER, UNSIGNED_TRAILER))
_ASYMMETRIC_STREAMS = frozenset(
    ("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER")
)
_is_sha256 = re.compile(r"[0-9a-f]{64}", re.ASCII | re.IGNORECASE).fullmatch

#: (secret, date, region, service) → an HMAC with the key of that day, to be copied.
_signers: dict[tuple[str, str, str, str], hmac.HMAC] = {}
_SIGNERS_MAX = 1024


class Claim:
    """The access key and signature of a request, and the string that was signed."""

    __slots__ = (
        *("access_key", "signature", "string_to_sign", "alternative_strings_to_sign", "content_sha256"),
        "is_presigned",
        "session_token",
        "_verified",
    )

    def __init__(
        self,
        access_key: str,
        signature: str,
        string_to_sign: bytes,
        *alternative_strings_to_sign: bytes,
        content_sha256: str = "",
        is_presigned: bool,
    ):
        self.access_key = access_key
        self.signature = signature
        self.string_to_sign = string_to_sign
        #: Other texts that clients sign for the same request.
        self.alternative_strings_to_sign = alternative_strings_to_sign
        #: The promise about the body: a SHA-256 in lower-case hex, a word above, or empty for none.
        self.content_sha256 = content_sha256.lower() if _is_sha256(content_sha256) else content_sha256
        self.is_presigned = is_presigned
        #: The token of a temporary access key, which the signature covers; empty for none.
        self.session_token = ""
        #: The last secret that was tried, and True if it verified the signature.
        self._verified: tuple[str, bool] | None = None

    def verify(self, secret: str) -> bool:
        """Return True if the secret produces the signature; compares in constant time."""
        if self._verified is not None and hmac.compare_digest(self._verified[0].encode(), secret.encode()):
            return self._verified[1]
        stated = self.signature.encode("latin-1", "replace")
        good = False
        for text in (self.string_to_sign, *self.alternative_strings_to_sign):
            good |= hmac.compare_digest(self._sign(secret, text).encode("ascii"), stated)
        self._verified = secret, good
        return good

    @property
    def _secret(self) -> str | None:
        """The secret, once it has verified the signature."""
        return self._verified[0] if self._verified is not None and self._verified[1] else None

    def _sign(self, secret: str, text: bytes) -> str:
        """Return the signature of a string with a secret."""
        digest = hmac.digest(secret.encode("utf-8"), text, sha1)
        return b64encode(digest).decode("ascii")

    @property
    def error_details(self) -> Mapping[str, object]:
        """The elements of the error for a wrong signature, by which a client can find its mistake."""
        return {
            "AWSAccessKeyId": self.access_key,
            "StringToSign": self.string_to_sign.decode("utf-8", "replace"),
            "SignatureProvided": self.signature,
            "StringToSignBytes": _spaced_hex(self.string_to_sign),
        }

    def sign_chunk(self, kind: str, previous: str, digests: str) -> str | None:
        """Return the signature of a chunk of the body; None if the secret is unknown."""
        return None

    def condition_values(self, now: float) -> Mapping[str, str]:
        """Return the signature's values for policy conditions at a Unix second."""
        if not self.access_key:
            return {}
        kind = "REST-QUERY-STRING" if self.is_presigned else "REST-HEADER"
        return {"s3:authtype": kind, "s3:signatureversion": "AWS"}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.access_key!r}>"


class ClaimV4(Claim):
    """A version 4 signature."""

    __slots__ = ("date", "region", "service", "stamp", "canonical_request")

    def __init__(
        self,
        access_key: str,
        signature: str,
        *,
        stamp: str,
        region: str,
        canonical_request: bytes,
        content_sha256: str,
        is_presigned: bool,
        service: str = "s3",
    ):
        self.stamp = stamp
        self.date = stamp[:8]
        self.region = region
        self.service = service
        self.canonical_request = canonical_request
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{self.scope}\n{sha256(canonical_request).hexdigest()}"
        super().__init__(
            access_key,
            signature,
            text.encode("ascii", "replace"),
            content_sha256=content_sha256,
            is_presigned=is_presigned,
        )

    @property
    def scope(self) -> str:
        """The credential scope: date, region, service and ``aws4_request``."""
        return f"{self.date}/{self.region}/{self.service}/aws4_request"

    def _sign(self, secret: str, text: bytes) -> str:
        name = secret, self.date, self.region, self.service
        signer = _signers.get(name)
        if signer is None:
            key = ("AWS4" + secret).encode("utf-8")
            for word in (*name[1:], "aws4_request"):
                key = hmac.digest(key, word.encode("utf-8"), sha256)
            if len(_signers) >= _SIGNERS_MAX:
                _signers.clear()
            signer = _signers[name] = hmac.new(key, digestmod=sha256)
        running = signer.copy()
        running.update(text)
        return running.hexdigest()

    @property
    def error_details(self) -> Mapping[str, object]:
        """The elements of the error, with the canonical request."""
        return {
            **super().error_details,
            "CanonicalRequest": self.canonical_request.decode("utf-8", "replace"),
            "CanonicalRequestBytes": _spaced_hex(self.canonical_request),
        }

    def sign_chunk(self, kind: str, previous: str, digests: str) -> str | None:
        """Return the signature of a chunk; ``digests`` are the lines after the previous signature."""
        secret = self._secret
        if secret is None:
            return None
        text = f"{kind}\n{self.stamp}\n{self.scope}\n{previous}\n{digests}"
        return self._sign(secret, text.encode("latin-1", "replace"))

    def condition_values(self, now: float) -> Mapping[str, str]:
        """Return the signature's values, with its version and age."""
        signed = parse_amz_date(self.stamp)
        age = {} if signed is None else {"s3:signatureage": str(max(0, int((now - signed) * 1000)))}
        return {**super().condition_values(now), "s3:signatureversion": "AWS4-HMAC-SHA256", **age}


def is_sha256(value: str) -> bool:
    """Return True for a SHA-256 in hex."""
    return _is_sha256(value) is not None


def validate_content_sha256(value: str, *, may_be_any: bool = False) -> str:
    """Return the value of x-amz-content-sha256; raise ``S3Error`` if it is invalid.

    With ``may_be_any`` another text is kept, for version 2 and presigned URLs: no body has that hash.
    """
    if value == UNSIGNED_PAYLOAD or value in _STREAMS or _is_sha256(value):
        return value
    if may_be_any and value and not value.startswith(STREAMING_PREFIX):
        return value
    if value in _ASYMMETRIC_STREAMS:
        raise S3Error("NotImplemented", f"{value} is not implemented.")
    known = f"{UNSIGNED_PAYLOAD}, {UNSIGNED_TRAILER}, {SIGNED_CHUNKS}, {SIGNED_CHUNKS_TRAILER}"
    text = f"x-amz-content-sha256 must be {known} or a valid sha256 value."
    raise argument_error("x-amz-content-sha256", value, text)


def validate_access_key(key: str) -> None:
    """Raise ``S3Error`` for an access key that cannot be part of a path."""
    if not key or "/" in key or not key.isprintable():
        raise S3Error("InvalidAccessKeyId", details={"AWSAccessKeyId": key})


def anonymous_claim() -> Claim:
    """Return the claim of a request without a signature."""
    return Claim("", "", b"", is_presigned=False)


def _spaced_hex(data: bytes) -> str:
    return data.hex(" ")


# --- headers that links move --------------------------------------------------------------------------
# Version 4 signs the whole query, so the headers are taken after the text that was signed is made.
# Version 2 signs headers wherever they are, so they are taken before.

#: Version 2 signs these two of the standard headers, and those of S3.
V2_QUERY_HEADERS = frozenset(("content-md5", "content-type"))
V4_QUERY_HEADERS = PRESIGNED_HEADERS
_SIGNATURE_PARAMETERS = frozenset(
    (
        *("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signature"),
        *("x-amz-signedheaders", "x-amz-content-sha256"),
    )
)


def add_headers_from_query(request: Request, standard: Container[str], *, is_signed: bool) -> None:
    """Add ``x-amz-`` and ``standard`` headers that a presigned URL has in its query; raise ``S3Error``.

    With ``is_signed`` the signature covers the query: its standard headers replace those that were sent.
    """
    for name, value in request.params.items():
        lower = lower_name(name)
        is_standard = lower in standard
        if not is_standard and (not lower.startswith("x-amz-") or lower in _SIGNATURE_PARAMETERS):
            continue
        if has_control_characters(name + value):
            raise S3Error("InvalidArgument", "A parameter has characters that no header has.")
        text = utf8_value(value).encode("utf-8", "surrogateescape").decode("latin-1")
        if is_standard and is_signed:
            request.headers[lower] = text
        else:
            request.headers.setdefault(lower, text)
