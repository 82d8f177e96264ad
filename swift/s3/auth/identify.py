"""Claims of requests and of form policies (spec: middleware.md §19, §22.1)."""

from __future__ import annotations

from collections.abc import Mapping

from swift.http.request import Request
from swift.s3.auth import v2, v4
from swift.s3.auth.v4 import ALGORITHM, FORM_ERRORS, parse_credential
from swift.s3.core.claim import Claim, ClaimV4, parse_amz_date, validate_access_key
from swift.s3.core.errors import S3Error, argument_error
from swift.s3.core.settings import S3Settings


def is_signed(request: Request) -> bool:
    """Return True if a request has a signature or any Authorization header."""
    if "authorization" in request.headers:
        return True
    query = request.query
    if "Amz-" not in query and "AWSAccessKeyId" not in query:
        return False
    return "AWSAccessKeyId" in request.params or _is_v4_presigned(request.params)


def _is_v4_presigned(params: Mapping[str, str]) -> bool:
    return any(name in params for name in ("X-Amz-Credential", "X-Amz-Signature", "X-Amz-Algorithm"))


def claim_from_request(request: Request, host_bucket: str, settings: S3Settings, now: float) -> Claim:
    """Return the claim of a signed request; raise ``S3Error`` for invalid and expired signatures.

    ``host_bucket`` is the bucket that the host names; empty for none.
    """
    value = request.headers.get("authorization")
    params = request.params
    if value is not None and params and (_is_v4_presigned(params) or "AWSAccessKeyId" in params):
        raise S3Error("InvalidArgument", "Only one auth mechanism allowed", reason="two_mechanisms")
    if value is None:
        if _is_v4_presigned(params):
            claim: Claim = v4.claim_from_query(request, settings, now)
        else:
            claim = v2.claim_from_query(request, host_bucket, now)
    elif value.startswith(v4.ALGORITHM + " "):
        claim = v4.claim_from_header(request, value, settings, now)
    elif value.startswith("AWS "):
        claim = v2.claim_from_header(request, value, host_bucket, settings, now)
    else:
        raise S3Error("AccessDenied", reason="unknown_auth")
    validate_access_key(claim.access_key)
    claim.session_token = request.headers.get(SESSION_TOKEN_HEADER, "")
    return claim


#: The token of a temporary access key; presigned URLs and forms have it as well.
SESSION_TOKEN_HEADER = "x-amz-security-token"

# --- forms --------------------------------------------------------------------------------------------

_FORM_CONDITION_VALUES = {"s3:authtype": "POST"}


class FormClaim(Claim):
    """A version 2 signature of a form's policy."""

    __slots__ = ()

    def condition_values(self, now: float) -> Mapping[str, str]:
        """Return the values of the signature, with the type of a form."""
        return {**super().condition_values(now), **_FORM_CONDITION_VALUES}


class FormClaimV4(ClaimV4):
    """A version 4 signature of a form's policy."""

    __slots__ = ()

    def __init__(self, access_key: str, signature: str, policy: bytes, *, stamp: str, region: str):
        super().__init__(
            access_key,
            signature,
            stamp=stamp,
            region=region,
            canonical_request=b"",
            content_sha256="",
            is_presigned=False,
        )
        self.string_to_sign = policy

    def condition_values(self, now: float) -> Mapping[str, str]:
        """Return the values of the signature, with the type of a form."""
        return {**super().condition_values(now), **_FORM_CONDITION_VALUES}


def claim_from_form(fields: Mapping[str, str], settings: S3Settings) -> Claim | None:
    """Return the claim of a form's fields; None without a signature; raise ``S3Error``."""
    claim = _claim_from_form(fields, settings)
    if claim is not None:
        claim.session_token = fields.get(SESSION_TOKEN_HEADER, "")
    return claim


def _claim_from_form(fields: Mapping[str, str], settings: S3Settings) -> Claim | None:
    policy = fields.get("policy", "").encode("utf-8")
    if "x-amz-credential" in fields or "x-amz-signature" in fields:
        return _claim_from_v4_form(fields, policy, settings)
    if "awsaccesskeyid" not in fields and "signature" not in fields:
        if policy:
            raise _missing_field_error("AWSAccessKeyId")
        return None
    for name, display_name in (
        ("awsaccesskeyid", "AWSAccessKeyId"),
        ("signature", "signature"),
        ("policy", "policy"),
    ):
        if not fields.get(name):
            raise _missing_field_error(display_name)
    validate_access_key(fields["awsaccesskeyid"])
    return FormClaim(fields["awsaccesskeyid"], fields["signature"], policy, is_presigned=False)


def _claim_from_v4_form(fields: Mapping[str, str], policy: bytes, settings: S3Settings) -> Claim:
    for name in ("policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"):
        if not fields.get(name):
            raise _missing_field_error(name)
    if fields["x-amz-algorithm"] != ALGORITHM:
        raise S3Error("InvalidArgument", f"Only {ALGORITHM} is supported")
    stamp = fields["x-amz-date"]
    if parse_amz_date(stamp) is None:
        raise S3Error("InvalidArgument", "X-Amz-Date must be formated via ISO8601 Long format")
    credential = parse_credential(fields["x-amz-credential"], stamp, settings, FORM_ERRORS)
    validate_access_key(credential.access_key)
    signature = fields["x-amz-signature"]
    return FormClaimV4(credential.access_key, signature, policy, stamp=stamp, region=credential.region)


def _missing_field_error(name: str) -> S3Error:
    text = (
        f"Bucket POST must contain a field named '{name}'.  If it is specified, please check the order of "
        "the fields."
    )
    return argument_error(name, "", text)
