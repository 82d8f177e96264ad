"""Signatures of version 4, in a header or in the query (spec: middleware.md §22.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote_plus, unquote_to_bytes

from swift.base.digits import is_digits
from swift.http import environkeys
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.s3.auth.claim import (
    SIGNED_BY_V4,
    UNSIGNED,
    ClaimV4,
    check_skew,
    checked_payload,
    iso_time,
    no_date,
    stamp_of,
    stamp_seconds,
    take_moved_headers,
)
from swift.s3.errors import S3Error
from swift.s3.settings import S3Settings

ALGORITHM = "AWS4-HMAC-SHA256"
EXPIRES_MAX_S = 604800
#: Headers that must be signed where they are sent: with them a stolen signature would do other things.
_SIGNED_PREFIXES = ("x-amz-copy", "x-amz-acl", "x-amz-grant", "x-amz-meta-", "x-amz-tagging", "x-amz-object-")
_SIGNED_NAMES = frozenset(
    (
        *("x-amz-metadata-directive", "x-amz-storage-class", "x-amz-website-redirect-location"),
        *("x-amz-mfa", "x-amz-bypass-governance-retention", "x-amz-server-side-encryption"),
    )
)
_PAYLOAD = "x-amz-content-sha256"
#: Headers that the holder of a link may add: the first is part of what is signed, others mean nothing.
_UNSIGNED_OF_LINKS = frozenset((_PAYLOAD, "x-amz-date", "x-amz-user-agent"))
_is_plain_path = re.compile(r"[A-Za-z0-9_.~/-]*").fullmatch
_is_plain_query = re.compile(r"[A-Za-z0-9_.~=&-]*").fullmatch
_spaces = re.compile(r"\s{2,}").sub


class Credential(NamedTuple):
    """The scope of a signature."""

    access_key: str
    date: str
    region: str


def from_header(request: Request, value: str, settings: S3Settings, now: float) -> ClaimV4:
    """Return the claim of an Authorization header; raise ``S3Error``."""
    words = _words(value[len(ALGORITHM) :])
    stamp, seconds = stamp_of(request.headers)
    credential = credential_of(words["Credential"], stamp, settings, _HEADER)
    check_skew(seconds, now, settings.allowable_clock_skew)
    payload = request.headers.get("x-amz-content-sha256")
    if payload is None:
        raise S3Error("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    payload = checked_payload(payload)
    signed = words["SignedHeaders"].split(";")
    _check_signed(request.headers, signed)
    canonical = _canonical(request, request.query, signed, payload)
    return ClaimV4(
        credential.access_key,
        words["Signature"],
        stamp=stamp,
        region=credential.region,
        canonical=canonical,
        payload=payload,
        is_presigned=False,
    )


def from_query(request: Request, settings: S3Settings, now: float) -> ClaimV4:
    """Return the claim of a presigned URL; raise ``S3Error``."""
    params = request.params
    algorithm = params.get("X-Amz-Algorithm", "")
    if algorithm != ALGORITHM:
        details = {"ArgumentName": "X-Amz-Algorithm", "ArgumentValue": algorithm}
        raise S3Error("InvalidArgument", details=details)
    stamp = params.get("X-Amz-Date", "")
    seconds = stamp_seconds(stamp)
    if seconds is None:
        raise no_date()
    if not params.get("X-Amz-Signature") or "X-Amz-Expires" not in params:
        raise S3Error("AccessDenied", reason="invalid_query_auth")
    credential = credential_of(params.get("X-Amz-Credential", ""), stamp, settings, _QUERY)
    if "X-Amz-SignedHeaders" not in params:
        raise S3Error(_HEADER.code)
    _check_expiry(params["X-Amz-Expires"], seconds, now, settings)
    signed = params["X-Amz-SignedHeaders"].split(";")
    payload = _link_payload(request, signed)
    _check_signed(request.headers, signed, is_link=True)
    query = "&".join(
        pair for pair in request.query.split("&") if unquote_plus(pair.partition("=")[0]) != "X-Amz-Signature"
    )
    claim = ClaimV4(
        credential.access_key,
        params["X-Amz-Signature"],
        stamp=stamp,
        region=credential.region,
        canonical=_canonical(request, query, signed, payload),
        payload=payload,
        is_presigned=True,
    )
    take_moved_headers(request, SIGNED_BY_V4, is_signed=True)
    return claim


def _link_payload(request: Request, signed: Sequence[str]) -> str:
    """Return what a presigned URL says of the body; raises ``S3Error``.

    A GET or HEAD has none, so that a hash which is not among the signed headers says nothing.
    """
    value = request.headers.get(_PAYLOAD)
    if request.method in ("GET", "HEAD"):
        value = value if _PAYLOAD in signed else None
    else:
        value = request.params.get("X-Amz-Content-SHA256") or value
    return UNSIGNED if value is None else checked_payload(value)


def _words(text: str) -> dict[str, str]:
    """Return ``Credential=…, SignedHeaders=…, Signature=…`` by name; raise ``S3Error``."""
    words = {}
    for item in text.split(","):
        name, equals, value = item.strip().partition("=")
        if equals:
            words[name] = value
    if not words.get("Credential") or not words.get("Signature"):
        raise S3Error("AccessDenied", reason="invalid_header_auth")
    if not words.get("SignedHeaders"):
        raise S3Error(_HEADER.code, reason="missing")
    return words


class CredentialPlace(NamedTuple):
    """The place of a credential: the code and the first words of errors about it."""

    code: str
    start: str
    #: The code for what is no credential.
    malformed: str

    def refused(self, text: str, *, reason: str = "", **details: str) -> S3Error:
        """Return the answer to a credential that is none."""
        start = f"{self.start}; " if self.start else ""
        return S3Error(self.code, start + text, details=details, reason=reason)


_HEADER = CredentialPlace(
    "AuthorizationHeaderMalformed", "The authorization header is malformed", "AccessDenied"
)
_QUERY = CredentialPlace(
    "AuthorizationQueryParametersError", "Error parsing the X-Amz-Credential parameter", "AccessDenied"
)
FORM = CredentialPlace("InvalidArgument", "", "InvalidArgument")


def credential_of(text: str, stamp: str, settings: S3Settings, place: CredentialPlace) -> Credential:
    """Return the parts of a credential for a request of this date; raise ``S3Error``."""
    return _credential(text, stamp[:8], settings.location, place)


@lru_cache(maxsize=1024)
def _credential(text: str, day: str, location: str, place: CredentialPlace) -> Credential:
    parts = utf8_value(text).split("/")
    if len(parts) != 5 or not parts[0]:
        raise S3Error(place.malformed, reason="invalid_credential")
    access_key, date, region, service, end = parts
    if end != "aws4_request":
        raise place.refused(f'incorrect terminal "{end}". This endpoint uses "aws4_request".')
    if service != "s3":
        raise place.refused(f'incorrect service "{service}". This endpoint belongs to "s3".')
    if region not in (location, location.lower()):
        raise place.refused(f"the region '{region}' is wrong; expecting '{location}'", Region=location)
    if date != day:
        raise S3Error(
            place.code, f'Invalid credential date "{date}". This date is not the same as X-Amz-Date: "{day}".'
        )
    return Credential(access_key, date, region)


def _check_expiry(text: str, seconds: int, now: float, settings: S3Settings) -> None:
    code = "AuthorizationQueryParametersError"
    if text.startswith("-") and is_digits(text[1:]):
        raise S3Error(code, "X-Amz-Expires must be non-negative")
    if not is_digits(text) or len(text) > 18:
        raise S3Error(code, "X-Amz-Expires should be a number")
    if int(text) > EXPIRES_MAX_S:
        raise S3Error(
            code,
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires "
            f"must be less than {EXPIRES_MAX_S} seconds",
        )
    if seconds + int(text) < now:
        times = {"Expires": iso_time(seconds + int(text)), "ServerTime": iso_time(now)}
        raise S3Error(
            "AccessDenied", "Request has expired", details={"X-Amz-Expires": text, **times}, reason="expired"
        )
    if seconds - settings.allowable_clock_skew > now:
        raise S3Error("AccessDenied", "Request is not yet valid", reason="not_yet_valid")


def _check_signed(headers: Mapping[str, str], signed: Sequence[str], *, is_link: bool = False) -> None:
    """Raise ``S3Error`` for headers that must be signed: of a link all that S3 understands."""
    missing = [
        name
        for name in headers
        if name.startswith("x-amz-")
        and name not in signed
        and (is_link and name not in _UNSIGNED_OF_LINKS or _changes_meaning(name))
    ]
    if "host" not in signed:
        missing.append("host")
    if missing:
        text = "There were headers present in the request which were not signed"
        raise S3Error(
            "AccessDenied",
            text,
            details={"HeadersNotSigned": ", ".join(sorted(missing))},
            reason="headers_not_signed",
        )


def _changes_meaning(name: str) -> bool:
    return name.startswith(_SIGNED_PREFIXES) or name in _SIGNED_NAMES


def canonical_query(query: str) -> str:
    """Return the parameters quoted in one way and sorted."""
    if not query:
        return ""
    pairs = []
    for pair in query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            if _is_plain_query(pair) is None:
                name, value = _requoted(name), _requoted(value)
            pairs.append((name, value))
    pairs.sort()
    return "&".join(f"{name}={value}" for name, value in pairs)


def _requoted(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ").encode("latin-1", "replace")), safe="-_.~")


def canonical_path(raw_path: str) -> str:
    """Return the path quoted in one way."""
    if _is_plain_path(raw_path):
        return raw_path
    return quote(unquote_to_bytes(raw_path.encode("latin-1", "replace")), safe="/-_.~")


def _canonical(request: Request, query: str, signed: list[str], payload: str) -> bytes:
    headers, replaced = request.headers, request.env.get(environkeys.REPLACED_HEADERS)
    if replaced:
        headers = {**headers, **replaced}
    lines = [request.method, canonical_path(request.raw_path), canonical_query(query)]
    for name in signed:
        value = headers.get(name, "").strip()
        lines.append(f"{name}:{_spaces(' ', value) if '  ' in value else value}")
    lines += ["", ";".join(signed), payload]
    return "\n".join(lines).encode("latin-1", "replace")
