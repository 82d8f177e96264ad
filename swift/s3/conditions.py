"""Conditions of writes and copies; the store judges them in one step with the write (decision 0011)."""

from __future__ import annotations

from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.account import Account
from swift.s3.errors import S3Error
from swift.s3.metadata import CONDITIONS, ETAG_PLACES, WRITE_ETAG_PLACES, drop_dates

_SOURCE = "x-amz-copy-source-"
#: Conditions of writes that nobody judges, those of AWS's directory buckets among them.
_UNJUDGED = (
    *("if-modified-since", "if-unmodified-since", "x-amz-if-match-size"),
    *("x-amz-if-match-last-modified-time", "x-amz-if-match-initiated-time"),
)


def writing_conditions(headers: HeaderMap) -> HeaderMap:
    """If-Match and If-None-Match of a write; raises ``S3Error`` for what the store cannot judge."""
    found: HeaderMap = {n: headers[n] for n in ("if-match", "if-none-match") if n in headers}
    if len(found) > 1 or found.get("if-none-match", "*").strip() != "*":
        # Nothing must not be there: the store judges no other ETag of a write.
        raise S3Error("NotImplemented", details={"Header": "If-None-Match"})
    for name in _UNJUDGED:
        if name in headers:
            raise S3Error("NotImplemented", details={"Header": name})
    if found:
        found[fields.BACKEND_ETAG_IS_AT] = WRITE_ETAG_PLACES
    return found


def source_conditions(headers: HeaderMap) -> HeaderMap:
    """The conditions that a copy has on its source, as those of a GET."""
    found = {name: headers[_SOURCE + name] for name in CONDITIONS if _SOURCE + name in headers}
    drop_dates(found)
    found[fields.BACKEND_ETAG_IS_AT] = ETAG_PLACES
    return found


def unmet(account: Account, bucket: str, key: str, conditions: HeaderMap) -> S3Error:
    """What a refused condition of a write is: If-Match of nothing is a missing key."""
    if "if-match" in conditions and account.head(bucket, key).status == 404:
        return S3Error("NoSuchKey", details={"Key": key})
    name = "If-Match" if "if-match" in conditions else "If-None-Match"
    return S3Error("PreconditionFailed", details={"Condition": name})
