"""Whether a request is one of S3, and who signed it (spec: middleware.md §19, §22.1)."""

from __future__ import annotations

from collections.abc import Mapping

from swift.http.request import Request
from swift.s3.errors import S3Error
from swift.s3.settings import S3Settings
from swift.s3.signature import v2, v4
from swift.s3.signature.claim import Claim, check_access_key


def is_signed(request: Request) -> bool:
    """Whether a request is for the S3 API: it brings a signature, or at least an Authorization header."""
    if "authorization" in request.headers:
        return True
    query = request.query
    if "Amz-" not in query and "AWSAccessKeyId" not in query:
        return False
    return "AWSAccessKeyId" in request.params or _is_v4_link(request.params)


def _is_v4_link(params: Mapping[str, str]) -> bool:
    return "X-Amz-Credential" in params or "X-Amz-Signature" in params


def identify(request: Request, host_bucket: str, settings: S3Settings, now: float) -> Claim:
    """The claim of a signed request; raises ``S3Error`` for what is no signature, and for old ones.

    ``host_bucket`` is the bucket that the host names, if it does.
    """
    value = request.headers.get("authorization")
    params = request.params
    if value is not None and (_is_v4_link(params) or "AWSAccessKeyId" in params):
        raise S3Error("InvalidArgument", "Only one auth mechanism allowed", reason="two_mechanisms")
    if value is None:
        if _is_v4_link(params):
            claim: Claim = v4.from_query(request, settings, now)
        else:
            claim = v2.from_query(request, host_bucket, now)
    elif value.startswith(v4.ALGORITHM + " "):
        claim = v4.from_header(request, value, settings, now)
    elif value.startswith("AWS "):
        claim = v2.from_header(request, value, host_bucket, settings, now)
    else:
        raise S3Error("AccessDenied", reason="unknown_auth")
    check_access_key(claim.access_key)
    return claim
