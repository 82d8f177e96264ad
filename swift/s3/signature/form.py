"""Who signed the policy of a browser's form, in either version (spec: middleware.md §22.1)."""

from __future__ import annotations

from collections.abc import Mapping

from swift.s3.errors import S3Error
from swift.s3.settings import S3Settings
from swift.s3.signature.claim import Claim, ClaimV4, check_access_key
from swift.s3.signature.dates import stamp_seconds
from swift.s3.signature.v4 import ALGORITHM, FORM, credential_of

_KIND = {"s3:authtype": "POST"}


class FormClaim(Claim):
    """A signature of version 2."""

    __slots__ = ()

    def facts(self, now: float) -> Mapping[str, str]:
        """See ``Claim``."""
        return {**super().facts(now), **_KIND}


class FormClaimV4(ClaimV4):
    """A signature of version 4: of the policy itself, and of no request."""

    __slots__ = ()

    def __init__(self, access_key: str, signature: str, policy: bytes, *, stamp: str, region: str):
        super().__init__(
            access_key, signature, stamp=stamp, region=region, canonical=b"", payload="", is_presigned=False
        )
        self.string_to_sign = policy

    def facts(self, now: float) -> Mapping[str, str]:
        """See ``Claim``."""
        return {**super().facts(now), **_KIND}


def claim_of_form(fields: Mapping[str, str], settings: S3Settings) -> Claim | None:
    """What the fields of a form claim, None when nobody signed it; raises ``S3Error``."""
    policy = fields.get("policy", "").encode("utf-8")
    if "x-amz-credential" in fields or "x-amz-signature" in fields:
        return _of_v4(fields, policy, settings)
    if "awsaccesskeyid" not in fields and "signature" not in fields:
        if policy:
            raise _missing("AWSAccessKeyId")
        return None
    for name, shown in (
        ("awsaccesskeyid", "AWSAccessKeyId"),
        ("signature", "signature"),
        ("policy", "policy"),
    ):
        if not fields.get(name):
            raise _missing(shown)
    check_access_key(fields["awsaccesskeyid"])
    return FormClaim(fields["awsaccesskeyid"], fields["signature"], policy, is_presigned=False)


def _of_v4(fields: Mapping[str, str], policy: bytes, settings: S3Settings) -> Claim:
    for name in ("policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"):
        if not fields.get(name):
            raise _missing(name)
    if fields["x-amz-algorithm"] != ALGORITHM:
        raise S3Error("InvalidArgument", f"Only {ALGORITHM} is supported")
    stamp = fields["x-amz-date"]
    if stamp_seconds(stamp) is None:
        raise S3Error("InvalidArgument", "X-Amz-Date must be formated via ISO8601 Long format")
    credential = credential_of(fields["x-amz-credential"], stamp, settings, FORM)
    check_access_key(credential.access_key)
    signature = fields["x-amz-signature"]
    return FormClaimV4(credential.access_key, signature, policy, stamp=stamp, region=credential.region)


def _missing(name: str) -> S3Error:
    text = (
        f"Bucket POST must contain a field named '{name}'.  If it is specified, please check the order of "
        "the fields."
    )
    return S3Error("InvalidArgument", text, details={"ArgumentName": name, "ArgumentValue": ""})
