"""Names of buckets and keys, and the ones that a request names (spec: middleware.md §19, §20)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.base.entity import API_VERSIONS, RESERVED, EntityPath, NotUTF8
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.s3.api.router import MARKS
from swift.s3.errors import S3Error

KEY_BYTES_MAX = 1024
#: What the container of a bucket's parts is called after it.
SEGMENTS = "+segments"
_parts_home = re.compile(r"([^+/]+)(?:\+[A-Z][A-Z0-9_]{0,63})?\+segments").fullmatch
_dns = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?").fullmatch
_loose = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?").fullmatch
_address = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}").fullmatch
_NEVER = ("..", ".-", "-.")
DNS_MAX, LOOSE_MAX, NAME_MIN = 63, 255, 3


def segments_of(bucket: str, kind: str = "") -> str:
    """Return the container of a bucket's parts.

    Of a storage class that is not the bucket's there is another one.
    """
    return f"{bucket}+{kind}{SEGMENTS}" if kind else bucket + SEGMENTS


def bucket_of(container: str) -> str:
    """Return the bucket to which a container of parts belongs; the name itself of any other container."""
    found = _parts_home(container)
    return container if found is None else found[1]


def own_parts(bucket: str, manifest: Iterable[JsonObject]) -> list[tuple[str, str]]:
    """Return container and name of the bucket's own parts in a stored manifest."""
    places = (str(entry.get("name", "")).lstrip("/").partition("/") for entry in manifest)
    return [(home, name) for home, _, name in places if home != bucket and bucket_of(home) == bucket]


def is_bucket_name(name: str, *, dns: bool) -> bool:
    """Return True if a container of this name is a bucket."""
    most = DNS_MAX if dns else LOOSE_MAX
    if not NAME_MIN <= len(name) <= most or (_dns if dns else _loose)(name) is None:
        return False
    return not any(word in name for word in _NEVER) and _address(name) is None


def is_text(value: str) -> bool:
    """Return True if a Latin-1 view of bytes is UTF-8."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in utf8_value(value))


# --- targets of requests ------------------------------------------------------------------------------

#: What stands between the name of an account and that of a bucket of it: ``/AUTH_test:photos/key``.
ACCOUNT_MARK = ":"


class S3Target(NamedTuple):
    """Bucket and key as text, either may be empty; ``account`` is the bucket's if the request says it."""

    bucket: str
    key: str
    account: str = ""


def host_bucket_of(request: Request, domains: tuple[str, ...]) -> str:
    """Return the bucket in front of one of our domains, in lower case; empty when the host names none."""
    if not domains:
        return ""
    host = request.headers.get("host", "").rpartition(":")
    name = (host[0] if host[1] and host[2].isdigit() else "".join(host)).lower()
    for domain in domains:
        bucket, dot, rest = name[: -len(domain)], name[-len(domain) - 1 : -len(domain)], name[-len(domain) :]
        if rest == domain and dot == "." and bucket[:-1]:
            return bucket[:-1]
    return ""


def target_of(request: Request, host_bucket: str) -> S3Target:
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
    account, colon, name = bucket.partition(ACCOUNT_MARK)
    return S3Target(name, key, account) if colon and account else S3Target(bucket, key)


def _invalid_uri(request: Request, text: str | None = None) -> S3Error:
    return S3Error("InvalidURI", text, details={"Uri": request.raw_path})


def allows_anonymous(request: Request, host_bucket: str, account: str) -> bool:
    """Return True if a request without a signature is one for a bucket: its host, or its path, names one.

    ``account`` is whose buckets are meant where nothing says whose; empty: no account.
    """
    if host_bucket:
        return bool(account)
    first = request.lossy_path.split("/", 2)[1:2]
    if not first or first[0] in _SWIFTS:
        return False
    if ACCOUNT_MARK in first[0]:
        owner, _, bucket = first[0].partition(ACCOUNT_MARK)
        return bool(owner) and is_bucket_name(bucket, dns=True)
    return bool(account) and is_bucket_name(first[0], dns=True)


def only_s3_means(request: Request) -> bool:
    """Return True if no other API has such a request: a sub-resource of S3, or a POST to a bucket.

    A request with a token of Swift is Swift's.
    """
    if "x-auth-token" in request.headers or "x-storage-token" in request.headers:
        return False
    bucket, _slash, key = request.lossy_path.removeprefix("/").partition("/")
    if bucket in _SWIFTS or not is_bucket_name(bucket, dns=True):
        return False
    return (request.method == "POST" and not key) or not MARKS.isdisjoint(request.params)


#: First words of paths that are not of buckets.
_SWIFTS = frozenset((*API_VERSIONS, "auth", "info", "endpoints", "recon", "healthcheck", "crossdomain.xml"))


# --- the registry of the lifecycle daemon -------------------------------------------------------------

#: A hidden account with an empty object for each bucket that has rules, inventories or parts.
REGISTRY_ACCOUNT, REGISTRY_CONTAINER = ".s3_lifecycle", "buckets"
REGISTRY = EntityPath(REGISTRY_ACCOUNT, REGISTRY_CONTAINER)


def registry_path(account: str, bucket: str) -> EntityPath:
    """Return the path at which a bucket is registered."""
    return REGISTRY._replace(obj=f"{account}/{bucket}")
