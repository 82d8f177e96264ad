"""The parts that an object and its versions name.

A node that is away, or a row that is late, must never make a part look forgotten that is not. So the answer
is only given where the listing of the bucket and the objects' own nodes agree on what there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.lifecycle.ending import version_query
from swift.s3.lifecycle.registry import time_of
from swift.s3.lifecycle.walk import MARKER_TYPE, page_of
from swift.s3.metadata import is_large
from swift.s3.names import own_parts

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
        query = version_query(version) if version else ""
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
    """The rows of an object and its versions."""
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
    """The parts that a manifest names; None if it is none any more."""
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
