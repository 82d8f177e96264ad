"""Which bucket and key a request names: by its path, or by host and path (spec: middleware.md §19)."""

from __future__ import annotations

from typing import NamedTuple

from swift.base.entity import RESERVED, NotUTF8
from swift.http.request import Request
from swift.middleware.s3api.errors import S3Error


class Target(NamedTuple):
    """Bucket and key as text, either may be empty."""

    bucket: str
    key: str


def host_bucket_of(request: Request, domains: tuple[str, ...]) -> str:
    """The bucket in front of one of our domains, in lower case; empty when the host names none."""
    if not domains:
        return ""
    host = request.headers.get("host", "").rpartition(":")
    name = (host[0] if host[1] and host[2].isdigit() else "".join(host)).lower()
    for domain in domains:
        bucket, dot, rest = name[: -len(domain)], name[-len(domain) - 1 : -len(domain)], name[-len(domain) :]
        if rest == domain and dot == "." and bucket[:-1]:
            return bucket[:-1]
    return ""


def target_of(request: Request, host_bucket: str) -> Target:
    """What a request is about; raises ``S3Error``."""
    try:
        path = request.path
    except NotUTF8:
        raise S3Error("InvalidURI")
    if RESERVED in path:
        # Nobody outside may name what filters hide.
        raise S3Error("InvalidURI", "Names must not have NUL characters.")
    if not path.startswith("/"):
        raise S3Error("InvalidURI")
    if host_bucket:
        return Target(host_bucket, path[1:])
    bucket, _, key = path[1:].partition("/")
    if key and not bucket:
        raise S3Error("InvalidBucketName", details={"BucketName": ""})
    return Target(bucket, key)
