"""Names of buckets and keys, and parsing of requests that name them (spec: middleware.md §19, §20)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.base.entity import API_VERSIONS, RESERVED, EntityPath, NotUTF8
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.identity.policy.resources import bucket_of_container
from swift.s3.core.errors import S3Error
from swift.s3.core.router import SELECTORS

KEY_BYTES_MAX = 1024
#: Suffix of a bucket's name in the name of its segments container.
SEGMENTS_SUFFIX = "+segments"
_is_dns_name = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?").fullmatch
_is_loose_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?").fullmatch
_is_ip_address = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}").fullmatch
_FORBIDDEN_SEQUENCES = ("..", ".-", "-.")
DNS_NAME_MAX, LOOSE_NAME_MAX, NAME_MIN = 63, 255, 3


def segments_container(bucket: str, storage_class: str = "") -> str:
    """Return the name of the container of a bucket's parts.

    Parts of another storage class than the bucket's have a container of their own.
    """
    return f"{bucket}+{storage_class}{SEGMENTS_SUFFIX}" if storage_class else bucket + SEGMENTS_SUFFIX


def own_parts(bucket: str, manifest: Iterable[JsonObject]) -> list[tuple[str, str]]:
    """Return container and name of each part in a manifest that is in the bucket's segments containers."""
    places = (str(entry.get("name", "")).lstrip("/").partition("/") for entry in manifest)
    return [
        (segments, name)
        for segments, _, name in places
        if segments != bucket and bucket_of_container(segments) == bucket
    ]


def is_bucket_name(name: str, *, dns: bool) -> bool:
    """Return True if the name is a valid bucket name."""
    return NAME_MIN <= len(name) <= (DNS_NAME_MAX if dns else LOOSE_NAME_MAX) and _has_bucket_form(name, dns)


@lru_cache(maxsize=4096)
def _has_bucket_form(name: str, dns: bool) -> bool:
    if (_is_dns_name if dns else _is_loose_name)(name) is None:
        return False
    return not any(word in name for word in _FORBIDDEN_SEQUENCES) and _is_ip_address(name) is None


def is_utf8(value: str) -> bool:
    """Return True if the bytes behind a Latin-1 string are valid UTF-8."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in utf8_value(value))


# --- targets of requests ------------------------------------------------------------------------------

#: Separates the account from the bucket in a path: ``/AUTH_test:photos/key``.
ACCOUNT_SEPARATOR = ":"


class S3Target(NamedTuple):
    """Bucket and key of a request, either may be empty; ``account`` is set if the request names it."""

    bucket: str
    key: str
    account: str = ""

    @classmethod
    def of(cls, bucket: str, key: str) -> S3Target:
        """Return the target for a bucket that may be qualified with an account."""
        account, colon, name = bucket.partition(ACCOUNT_SEPARATOR)
        return cls(name, key, account) if colon and account else cls(bucket, key)


def host_bucket_of(request: Request, domains: tuple[str, ...]) -> str:
    """Return the bucket in the host name below one of the domains, in lower case; empty for none."""
    if not domains:
        return ""
    host = request.headers.get("host", "").rpartition(":")
    name = (host[0] if host[1] and host[2].isdigit() else "".join(host)).lower()
    for domain in domains:
        bucket, dot, rest = name[: -len(domain)], name[-len(domain) - 1 : -len(domain)], name[-len(domain) :]
        if rest == domain and dot == "." and bucket[:-1]:
            return bucket[:-1]
    return ""


def parse_target(request: Request, host_bucket: str) -> S3Target:
    """Return the bucket and key of a request; raise ``S3Error``."""
    try:
        path = request.path
    except NotUTF8:
        raise _invalid_uri(request)
    if RESERVED in path:
        # Clients may not use reserved names.
        raise _invalid_uri(request, "Names must not have NUL characters.")
    if not path.startswith("/"):
        raise _invalid_uri(request)
    if host_bucket:
        return S3Target(host_bucket, path[1:])
    bucket, _, key = path[1:].partition("/")
    if key and not bucket:
        raise S3Error("InvalidBucketName", details={"BucketName": ""})
    return S3Target.of(bucket, key)


def _invalid_uri(request: Request, text: str | None = None) -> S3Error:
    return S3Error("InvalidURI", text, details={"Uri": request.raw_path})


def is_anonymous_bucket_request(request: Request, host_bucket: str, account: str) -> bool:
    """Return True if a request without a signature names a bucket in its host or path.

    ``account`` owns the buckets of requests that name no account; empty: there is no such account.
    """
    if host_bucket:
        return bool(account)
    first = request.lossy_path.split("/", 2)[1:2]
    if not first or first[0] in _SWIFT_PATH_PREFIXES:
        return False
    if ACCOUNT_SEPARATOR in first[0]:
        owner, _, bucket = first[0].partition(ACCOUNT_SEPARATOR)
        return bool(owner) and is_bucket_name(bucket, dns=True)
    return bool(account) and is_bucket_name(first[0], dns=True)


def is_s3_only_request(request: Request) -> bool:
    """Return True if only S3 has such a request: a sub-resource, or a POST to a bucket.

    A request with a Swift token is a Swift request.
    """
    if "x-auth-token" in request.headers or "x-storage-token" in request.headers:
        return False
    bucket, _slash, key = request.lossy_path.removeprefix("/").partition("/")
    if bucket in _SWIFT_PATH_PREFIXES or not is_bucket_name(bucket, dns=True):
        return False
    return (request.method == "POST" and not key) or not SELECTORS.isdisjoint(request.params)


#: First words of paths that are not of buckets.
_SWIFT_PATH_PREFIXES = frozenset(
    (*API_VERSIONS, "auth", "info", "endpoints", "recon", "healthcheck", "crossdomain.xml")
)


# --- the registry of the lifecycle daemon -------------------------------------------------------------

#: A hidden account with an empty object for each bucket that has rules, inventories or parts.
REGISTRY_ACCOUNT, REGISTRY_CONTAINER = ".s3_lifecycle", "buckets"
REGISTRY = EntityPath(REGISTRY_ACCOUNT, REGISTRY_CONTAINER)


def registry_path(account: str, bucket: str) -> EntityPath:
    """Return the path at which a bucket is registered."""
    return REGISTRY._replace(obj=f"{account}/{bucket}")
