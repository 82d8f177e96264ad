"""Version 4 signatures, in a header or in the query (spec: middleware.md §22.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, unquote_plus, unquote_to_bytes

from swift.base.digits import is_digits
from swift.http import environkeys
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.s3.core.claim import (
    UNSIGNED_PAYLOAD,
    V4_QUERY_HEADERS,
    ClaimV4,
    add_headers_from_query,
    amz_date_of_request,
    iso_time,
    parse_amz_date,
    validate_clock_skew,
    validate_content_sha256,
)
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.settings import S3Settings

ALGORITHM = "AWS4-HMAC-SHA256"
EXPIRES_MAX_S = 604800
_CONTENT_SHA256 = "x-amz-content-sha256"
#: The parameters of a presigned URL.
_QUERY_PARAMETERS = (
    *("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature"),
    *("X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Expires"),
)
#: With any other header of S3 a stolen signature would do other things. The signature covers the first two;
#: the others have no effect, and CloudFront adds the last one.
_MAY_BE_UNSIGNED = frozenset((_CONTENT_SHA256, "x-amz-date", "x-amz-user-agent", "x-amz-cf-id"))
_is_plain_path = re.compile(r"[A-Za-z0-9_.~/-]*").fullmatch
_is_plain_query = re.compile(r"[A-Za-z0-9_.~=&-]*").fullmatch
_collapse_spaces = re.compile(r"\s{2,}").sub


class Credential(NamedTuple):
    """The access key, date, region and service of a credential."""

    access_key: str
    date: str
    region: str
    service: str


#: The services whose requests have a global region, or that of the client's configuration.
QUERY_SERVICES = frozenset(("iam", "sts"))


def claim_from_header(request: Request, value: str, settings: S3Settings, now: float) -> ClaimV4:
    """Return the claim of an Authorization header; raise ``S3Error``."""
    fields = _parse_authorization(value[len(ALGORITHM) :])
    stamp, seconds = amz_date_of_request(request.headers)
    credential = parse_credential(fields["Credential"], stamp, settings, _HEADER_ERRORS)
    validate_clock_skew(seconds, now, settings.allowable_clock_skew)
    content_sha256 = request.headers.get("x-amz-content-sha256")
    if content_sha256 is None:
        raise invalid_request("Missing required header for this request: x-amz-content-sha256")
    content_sha256 = validate_content_sha256(content_sha256)
    signed = fields["SignedHeaders"].split(";")
    _validate_signed_headers(request.headers, signed)
    canonical = _canonical_request(request, request.query, signed, content_sha256)
    return ClaimV4(
        credential.access_key,
        fields["Signature"],
        stamp=stamp,
        region=credential.region,
        canonical_request=canonical,
        content_sha256=content_sha256,
        is_presigned=False,
    )


def claim_from_query_api(request: Request, body: bytes, settings: S3Settings, now: float) -> ClaimV4:
    """Return the claim of a signed request of the query protocol; raise ``S3Error``.

    Its clients need not send the hash of the body, which the signature covers.
    """
    value = request.headers.get("authorization", "")
    fields = _parse_authorization(value.removeprefix(ALGORITHM))
    stamp, seconds = amz_date_of_request(request.headers)
    services = QUERY_SERVICES | _S3
    credential = parse_credential(fields["Credential"], stamp, settings, _HEADER_ERRORS, services)
    validate_clock_skew(seconds, now, settings.allowable_clock_skew)
    signed = fields["SignedHeaders"].split(";")
    _validate_signed_headers(request.headers, signed)
    content_sha256 = sha256(body).hexdigest()
    return ClaimV4(
        credential.access_key,
        fields["Signature"],
        stamp=stamp,
        region=credential.region,
        canonical_request=_canonical_request(request, request.query, signed, content_sha256),
        content_sha256=content_sha256,
        is_presigned=False,
        service=credential.service,
    )


def claim_from_query(request: Request, settings: S3Settings, now: float) -> ClaimV4:
    """Return the claim of a presigned URL; raise ``S3Error``."""
    params = request.params
    missing = [name for name in _QUERY_PARAMETERS if not params.get(name)]
    if missing:
        text = f"Query-string authentication version 4 requires {', '.join(_QUERY_PARAMETERS)}; missing: "
        raise S3Error(_QUERY_ERRORS.code, text + ", ".join(missing), reason="invalid_query_auth")
    if params["X-Amz-Algorithm"] != ALGORITHM:
        raise S3Error(_QUERY_ERRORS.code, f'X-Amz-Algorithm only supports "{ALGORITHM}"')
    stamp = params["X-Amz-Date"]
    seconds = parse_amz_date(stamp)
    if seconds is None:
        text = "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\""
        raise S3Error(_QUERY_ERRORS.code, text, reason="invalid_date")
    credential = parse_credential(params["X-Amz-Credential"], stamp, settings, _QUERY_ERRORS)
    _validate_expiry(params["X-Amz-Expires"], seconds, now, settings)
    signed = params["X-Amz-SignedHeaders"].split(";")
    content_sha256 = _presigned_content_sha256(request, signed)
    _validate_signed_headers(request.headers, signed)
    query = "&".join(
        pair for pair in request.query.split("&") if unquote_plus(pair.partition("=")[0]) != "X-Amz-Signature"
    )
    claim = ClaimV4(
        credential.access_key,
        params["X-Amz-Signature"],
        stamp=stamp,
        region=credential.region,
        canonical_request=_canonical_request(request, query, signed, content_sha256),
        content_sha256=content_sha256,
        is_presigned=True,
    )
    add_headers_from_query(request, V4_QUERY_HEADERS, is_signed=True)
    return claim


def _presigned_content_sha256(request: Request, signed: Sequence[str]) -> str:
    """Return the content hash that a presigned URL declares; raise ``S3Error``.

    A GET or HEAD has no body, so a hash that is not among its signed headers does not count.
    """
    value = request.headers.get(_CONTENT_SHA256)
    if request.method in ("GET", "HEAD"):
        value = value if _CONTENT_SHA256 in signed else None
    else:
        value = request.params.get("X-Amz-Content-SHA256") or value
    return UNSIGNED_PAYLOAD if value is None else validate_content_sha256(value, may_be_any=True)


def _parse_authorization(text: str) -> dict[str, str]:
    """Return ``Credential=…, SignedHeaders=…, Signature=…`` as a dictionary; raise ``S3Error``."""
    # All but the signature at the end is the same for many requests.
    start, _, end = text.rpartition(",")
    fields = {**_parse_known_fields(start), **_parse_fields(end)}
    for name in ("Credential", "SignedHeaders", "Signature"):
        if not fields.get(name):
            raise _HEADER_ERRORS.make(f"missing {name}.", reason="invalid_header_auth")
    return fields


def _parse_fields(text: str) -> dict[str, str]:
    fields = {}
    for item in text.split(","):
        name, equals, value = item.strip().partition("=")
        if equals:
            fields[name] = value
        elif item.strip():
            raise _HEADER_ERRORS.make(
                f'the component "{item.strip()}" has no value.', reason="invalid_header_auth"
            )
    return fields


_parse_known_fields = lru_cache(maxsize=256)(_parse_fields)


class CredentialErrors(NamedTuple):
    """The code and the first words of errors about a credential in one place of a request."""

    code: str
    prefix: str

    def make(self, text: str, *, reason: str = "", **details: str) -> S3Error:
        """Return the error for an invalid credential."""
        start = f"{self.prefix}; " if self.prefix else ""
        return S3Error(self.code, start + text, details=details, reason=reason)


_HEADER_ERRORS = CredentialErrors("AuthorizationHeaderMalformed", "The authorization header is malformed")
_QUERY_ERRORS = CredentialErrors(
    "AuthorizationQueryParametersError", "Error parsing the X-Amz-Credential parameter"
)
FORM_ERRORS = CredentialErrors("InvalidArgument", "")


_S3 = frozenset(("s3",))


def parse_credential(
    text: str, stamp: str, settings: S3Settings, place: CredentialErrors, services: frozenset[str] = _S3
) -> Credential:
    """Return the parts of a credential for a request of this date; raise ``S3Error``."""
    return _parse_credential(text, stamp[:8], settings.location, place, services)


@lru_cache(maxsize=1024)
def _parse_credential(
    text: str, day: str, location: str, place: CredentialErrors, services: frozenset[str]
) -> Credential:
    parts = utf8_value(text).split("/")
    if len(parts) != 5 or not parts[0]:
        text = 'the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".'
        raise place.make(text, reason="invalid_credential")
    access_key, date, region, service, end = parts
    if end != "aws4_request":
        raise place.make(f'incorrect terminal "{end}". This endpoint uses "aws4_request".')
    if service not in services:
        raise place.make(f'incorrect service "{service}". This endpoint belongs to "s3".')
    if service == "s3" and region not in (location, location.lower()):
        raise place.make(f"the region '{region}' is wrong; expecting '{location}'", Region=location)
    if date != day:
        raise S3Error(
            place.code, f'Invalid credential date "{date}". This date is not the same as X-Amz-Date: "{day}".'
        )
    return Credential(access_key, date, region, service)


def _validate_expiry(text: str, seconds: int, now: float, settings: S3Settings) -> None:
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


def _validate_signed_headers(headers: Mapping[str, str], signed: Sequence[str]) -> None:
    """Raise ``S3Error`` for unsigned headers that must be signed: the host and all that S3 interprets."""
    missing = [
        name for name in headers.keys() - signed if name.startswith("x-amz-") and name not in _MAY_BE_UNSIGNED
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


def canonical_query(query: str) -> str:
    """Return the query parameters in canonical quoting and order."""
    if not query:
        return ""
    pairs = []
    for pair in query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            if _is_plain_query(pair) is None:
                name, value = _requote(name), _requote(value)
            pairs.append((name, value))
    pairs.sort()
    return "&".join(f"{name}={value}" for name, value in pairs)


def _requote(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ").encode("latin-1", "replace")), safe="-_.~")


def canonical_path(raw_path: str) -> str:
    """Return the path in canonical quoting."""
    if _is_plain_path(raw_path):
        return raw_path
    return quote(unquote_to_bytes(raw_path.encode("latin-1", "replace")), safe="/-_.~")


def _canonical_request(request: Request, query: str, signed: list[str], content_sha256: str) -> bytes:
    headers, replaced = request.headers, request.env.get(environkeys.REPLACED_HEADERS)
    if replaced:
        headers = {**headers, **replaced}
    lines = [request.method, canonical_path(request.raw_path), canonical_query(query)]
    for name in signed:
        value = headers.get(name, "").strip()
        lines.append(f"{name}:{_collapse_spaces(' ', value) if '  ' in value else value}")
    lines += ["", ";".join(signed), content_sha256]
    return "\n".join(lines).encode("latin-1", "replace")
