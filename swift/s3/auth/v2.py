"""Version 2 signatures, in a header or in the query (spec: middleware.md §22.1)."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote_plus

from swift.base.digits import is_digits
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.s3.core.claim import (
    SIGNED_CHUNKS,
    SIGNED_CHUNKS_TRAILER,
    V2_QUERY_HEADERS,
    Claim,
    add_headers_from_query,
    missing_date_error,
    parse_request_date,
    validate_clock_skew,
    validate_content_sha256,
)
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.router import SUB_RESOURCES
from swift.s3.core.settings import S3Settings

EXPIRES_MAX = 1 << 31
#: Sub-resources that AWS has added since version 2; SDKs do not sign them with it.
_UNSIGNED_BY_SDKS = frozenset(
    (
        *("attributes", "encryption", "intelligent-tiering", "legal-hold", "ownershipControls"),
        *("policyStatus", "publicAccessBlock", "retention"),
    )
)


def claim_from_header(
    request: Request, value: str, host_bucket: str, settings: S3Settings, now: float
) -> Claim:
    """Return the claim of an Authorization header ``AWS key:signature``; raise ``S3Error``."""
    access_key, colon, signature = value[len("AWS ") :].strip().rpartition(":")
    if not colon or not access_key:
        raise S3Error("AccessDenied", reason="invalid_header_auth")
    headers = request.headers
    dated = headers.get("x-amz-date")
    seconds = parse_request_date(dated or headers.get("date", ""))
    if seconds is None:
        raise missing_date_error()
    validate_clock_skew(seconds, now, settings.allowable_clock_skew)
    date = "" if dated is not None else headers.get("date", "")
    return _make_claim(request, access_key, signature, date, host_bucket, is_presigned=False)


def claim_from_query(request: Request, host_bucket: str, now: float) -> Claim:
    """Return the claim of a presigned URL; raise ``S3Error``."""
    add_headers_from_query(request, V2_QUERY_HEADERS, is_signed=False)
    params = request.params
    access_key, signature = params.get("AWSAccessKeyId", ""), params.get("Signature", "")
    expires = params.get("Expires", "")
    if not access_key or not signature or not expires:
        raise S3Error("AccessDenied", reason="invalid_query_auth")
    if not is_digits(expires) or len(expires) > 10:
        raise S3Error("AccessDenied", reason="invalid_expires")
    if int(expires) >= EXPIRES_MAX:
        text = f"Invalid date (should be seconds since epoch): {expires}"
        raise S3Error("AccessDenied", text, reason="invalid_expires")
    if int(expires) < now:
        raise S3Error("AccessDenied", "Request has expired", reason="expired")
    return _make_claim(request, access_key, signature, expires, host_bucket, is_presigned=True)


def _make_claim(
    request: Request, access_key: str, signature: str, date: str, host_bucket: str, *, is_presigned: bool
) -> Claim:
    headers = request.headers
    lines = [request.method, headers.get("content-md5", ""), headers.get("content-type", ""), date]
    lines += [f"{name}:{headers[name].strip()}" for name in sorted(headers) if name.startswith("x-amz-")]
    path = request.raw_path
    if host_bucket:
        path = f"/{host_bucket}{path}"
    resources = sorted(filter(None, map(_signed_sub_resource, request.query.split("&"))))
    queries = [_sub_resource_query(resources)]
    signed = [text for text in resources if text.partition("=")[0] not in _UNSIGNED_BY_SDKS]
    if signed != resources and not is_presigned and request.method in ("GET", "HEAD"):
        # The holder of a link must not turn it into another request. An intercepted write must not
        # be repeated as another one, such as PutPublicAccessBlock.
        queries.append(_sub_resource_query(signed))
    paths = [path]
    if not host_bucket and path.count("/") == 1 and path != "/":
        # SDKs sign the path of a bucket with a slash that they do not send.
        paths.append(f"{path}/")
    ends = [name + query for query in queries for name in paths]
    texts = ["\n".join([*lines, end]).encode("latin-1", "replace") for end in ends]
    content_sha256 = _content_sha256(request)
    return Claim(
        utf8_value(access_key), signature, *texts, content_sha256=content_sha256, is_presigned=is_presigned
    )


def _sub_resource_query(resources: Sequence[str]) -> str:
    return f"?{'&'.join(resources)}" if resources else ""


def _content_sha256(request: Request) -> str:
    """Return the signed header x-amz-content-sha256; empty for none; raise ``S3Error``.

    It does not count for a GET or HEAD, and signed chunks need a version 4 signature.
    """
    value = request.headers.get("x-amz-content-sha256")
    if value is None or request.method in ("GET", "HEAD"):
        return ""
    content_sha256 = validate_content_sha256(value, may_be_any=True)
    if content_sha256 in (SIGNED_CHUNKS, SIGNED_CHUNKS_TRAILER):
        raise invalid_request("Signed chunks need a signature of version 4.")
    return content_sha256


def _signed_sub_resource(pair: str) -> str:
    name, equals, value = pair.partition("=")
    name = unquote_plus(name)
    if name not in SUB_RESOURCES:
        return ""
    return f"{name}={unquote_plus(value, 'latin-1')}" if equals and value else name
