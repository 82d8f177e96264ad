"""Orphan cleanup: parts that no object needs, and the parts that objects refer to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import md5
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.api.metadata import is_large
from swift.s3.api.uploads import marker_of, number_of
from swift.s3.config.lifecyclerules import DAY_S
from swift.s3.daemons.expiration import CHANGED, ENDED, KEPT, LOCKED, version_id_query
from swift.s3.daemons.walk import MARKER_TYPE, RegisteredBucket, page_of, remove_parts, time_of
from swift.s3.names import bucket_of, own_parts, segments_of

#: Seconds by which an object may seem to be written later than its row.
_ROUNDING_S = 0.001
_PAGE_SIZE = 1000
#: A bucket that has one of these keeps former versions of its objects in another container by Swift's API.
_ARCHIVES = ("x-versions-location", "x-history-location", fields.SYSMETA_VERSIONS_LOCATION)


def references(
    client: InternalClient, bucket: EntityPath, key: str, upload_id: str, *, page_size: int = _PAGE_SIZE
) -> set[tuple[str, str]] | None:
    """Return container and name of each part of an upload that an object or version of a key names.

    None if the listing and the nodes disagree, or versions are where they cannot be listed. Raises
    ``UnexpectedAnswer``.
    """
    headers = client.head(bucket) or {}
    has_versions = "x-versions-enabled" in headers
    if any(headers.get(name) for name in _ARCHIVES):
        return None
    if headers.get(fields.SYSMETA_VERSIONS_CONTAINER) and not has_versions:
        # The pipeline shows no versions.
        return None
    rows = list(_rows(client, bucket, key, page_size, has_versions=has_versions))
    path = bucket._replace(obj=key)
    current = _head(client, path)
    if (current is None) == any(_is_object(row) for row in rows):
        return None
    found = [("", current)] if current is not None else []
    for row in rows:
        if row.get("content_type") == MARKER_TYPE:
            continue
        version = str(row.get("version_id", ""))
        query = version_id_query(version) if version else ""
        seen = _head(client, path, query)
        if seen is None or _is_older(seen, row):
            return None
        found.append((query, seen))
    named: set[tuple[str, str]] = set()
    for query, seen in found:
        said = seen.get(fields.SYSMETA_S3_UPLOAD_ID)
        # A manifest that came by another way does not say its upload.
        if said == upload_id or (said is None and is_large(seen)):
            parts = _parts(client, path, query)
            if parts is None:
                return None
            named.update(parts)
    return named


def _rows(
    client: InternalClient, bucket: EntityPath, key: str, page_size: int, *, has_versions: bool
) -> Iterator[JsonObject]:
    """Return the rows of an object and its versions."""
    flags = "&versions=true" if has_versions else ""
    marker = version = ""
    while True:
        query = {"prefix": key, "marker": marker, "version_marker": version}
        rows = page_of(client, bucket, page_size, flags=flags, **query)
        own = [row for row in rows if row.get("name") == key]
        yield from own
        if not flags or len(own) < len(rows) or not rows:
            return
        marker, version = key, str(rows[-1].get("version_id", "null"))


def _is_object(row: JsonObject) -> bool:
    """Return True if a row is of what the object is now."""
    return bool(row.get("is_latest", True)) and row.get("content_type") != MARKER_TYPE


def _manifest_query(query: str) -> str:
    return f"{query}{'&' if query else ''}multipart-manifest=get"


def _head(client: InternalClient, path: EntityPath, query: str = "") -> HeaderMap | None:
    asked = client.ask("HEAD", path, {"x-newest": "true"}, query=_manifest_query(query), accept=(2, 404))
    with asked as found:
        return dict(found.headers) if found.is_success else None


def _parts(client: InternalClient, path: EntityPath, query: str) -> list[tuple[str, str]] | None:
    """Return the parts that a manifest names; None if it is none any more."""
    asked = client.ask("GET", path, {"x-newest": "true"}, query=_manifest_query(query), accept=(2, 404))
    with asked as response:
        if response.status != 200:
            return None
        try:
            return own_parts(str(path.container), json.loads(response.read_body()))
        except (ValueError, TypeError, AttributeError):
            return None


def _is_older(seen: HeaderMap, row: JsonObject) -> bool:
    """Return True if what the nodes have is older than what the listing shows."""
    try:
        return (
            Timestamp(seen.get("x-timestamp", "")).seconds + _ROUNDING_S
            < time_of(str(row["last_modified"])).seconds
        )
    except InvalidTimestamp:
        return True


# --- the cleanup --------------------------------------------------------------------------------------
# An overwrite does not ask what it overwrites, and a proxy may die between any two steps of an
# upload. So the daemon looks, once in a week, at parts that are a week old. It removes those that no
# upload has and no version of their object names (``references``), also where the bucket is gone.

#: Days between two looks at a bucket.
DAYS = 7


class OrphanCandidate(NamedTuple):
    """Parts that may belong to nothing."""

    entry: RegisteredBucket
    segments: EntityPath
    key: str
    upload_id: str


class OrphanCleanup:
    """Finds them, and ends one after another; raises ``UnexpectedAnswer``."""

    def __init__(self, client: InternalClient, now: Callable[[], float], page_size: int, age_s: float):
        self._client = client
        self._now = now
        self._age_s = age_s
        self._page_size = page_size

    # --- finding --------------------------------------------------------------------------------------

    def containers(self, entry: RegisteredBucket) -> list[EntityPath]:
        """Return the containers of parts of a bucket."""
        rows = self._client.containers(entry.account, prefix=f"{entry.bucket}+")
        names = (str(row["name"]) for row in rows)
        found = [name for name in names if bucket_of(name) == entry.bucket]
        return [EntityPath(entry.account, name) for name in found]

    def is_day(self, entry: RegisteredBucket) -> bool:
        """Return True if a bucket is looked at today: once in ``DAYS``, or always if parts age faster."""
        if self._age_s < DAY_S:
            return True
        digest = md5(entry.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        return (int(self._now() // DAY_S) - digest[0]) % DAYS == 0

    def find(self, entry: RegisteredBucket, containers: Sequence[EntityPath]) -> Iterator[OrphanCandidate]:
        """Return uploads whose parts have been there for long enough; an object may name them."""
        before_s = self._now() - self._age_s
        for segments in containers:
            last, marker = ("", ""), ""
            while rows := page_of(self._client, segments, self._page_size, marker=marker):
                for row in rows:
                    start, _, number = str(row["name"]).rpartition("/")
                    key, _, upload_id = start.rpartition("/")
                    is_old = time_of(str(row["last_modified"])).seconds < before_s
                    if key and is_old and number_of(number) is not None and (key, upload_id) != last:
                        last = (key, upload_id)
                        yield OrphanCandidate(entry, segments, key, upload_id)
                marker = str(rows[-1]["name"])

    # --- ending ---------------------------------------------------------------------------------------

    def end(self, unit: OrphanCandidate) -> str:
        """Remove the parts of an upload that no version of its object names."""
        bucket = unit.entry.path
        marks = EntityPath(bucket.account, segments_of(unit.entry.bucket))
        if self._client.head(marks._replace(obj=marker_of(unit.key, unit.upload_id))) is not None:
            # The upload is going on.
            return KEPT
        named = references(self._client, bucket, unit.key, unit.upload_id, page_size=self._page_size)
        if named is None:
            return CHANGED
        statuses = remove_parts(self._client, unit.segments, unit.key, unit.upload_id, named)
        if not statuses:
            return KEPT
        return LOCKED if 403 in statuses else ENDED
