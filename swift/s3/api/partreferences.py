"""References to the parts of an upload: the listing of a bucket and the manifests of its objects.

An absent node, or a late row, must never make a needed part look unreferenced. So the parts to which an
object and its versions refer are returned only if the bucket's listing and the objects' own nodes agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.core.metadata import DELETE_MARKER_TYPE, is_large
from swift.s3.core.names import own_parts

#: Seconds by which an object may seem to be written later than its row.
_ROUNDING_S = 0.001


_PAGE_SIZE = 1000


#: A bucket with one of these headers has old versions in another container through Swift's API.
_ARCHIVE_HEADERS = ("x-versions-location", "x-history-location", fields.SYSMETA_VERSIONS_LOCATION)


def row_timestamp(last_modified: str) -> Timestamp:
    """Return the timestamp of a listing row; the current time if it has none, which is never too early."""
    try:
        return Timestamp(datetime.fromisoformat(last_modified).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return Timestamp.now()


def version_id_query(version: str) -> str:
    """Return the query that selects a version."""
    return f"version-id={quote(version, safe='')}"


def find_part_references(
    client: InternalClient, bucket: EntityPath, key: str, upload_id: str, *, page_size: int = _PAGE_SIZE
) -> set[tuple[str, str]] | None:
    """Return (container, name) of each part of an upload to which the key's object or versions refer.

    None if the listing and the nodes disagree, or versions cannot be listed. Raise ``UnexpectedResponse``.
    """
    headers = client.head(bucket) or {}
    has_versions = "x-versions-enabled" in headers
    if any(headers.get(name) for name in _ARCHIVE_HEADERS):
        return None
    if headers.get(fields.SYSMETA_VERSIONS_CONTAINER) and not has_versions:
        # The pipeline cannot list versions.
        return None
    rows = list(_list_versions(client, bucket, key, page_size, has_versions=has_versions))
    path = bucket._replace(obj=key)
    current = _head_newest(client, path)
    if (current is None) == any(_is_current_object(row) for row in rows):
        return None
    found = [("", current)] if current is not None else []
    for row in rows:
        if row.get("content_type") == DELETE_MARKER_TYPE:
            continue
        version = str(row.get("version_id", ""))
        query = version_id_query(version) if version else ""
        seen = _head_newest(client, path, query)
        if seen is None or _is_older_than_row(seen, row):
            return None
        found.append((query, seen))
    named: set[tuple[str, str]] = set()
    for query, seen in found:
        said = seen.get(fields.SYSMETA_S3_UPLOAD_ID)
        # A manifest stored through Swift's API has no upload id.
        if said == upload_id or (said is None and is_large(seen)):
            parts = _read_manifest_parts(client, path, query)
            if parts is None:
                return None
            named.update(parts)
    return named


def _list_versions(
    client: InternalClient, bucket: EntityPath, key: str, page_size: int, *, has_versions: bool
) -> Iterator[JsonObject]:
    """Return the rows of an object and its versions."""
    for rows in client.pages(bucket, size=page_size, versions=has_versions, prefix=key):
        own = [row for row in rows if row.get("name") == key]
        yield from own
        if not has_versions or len(own) < len(rows):
            return


def _is_current_object(row: JsonObject) -> bool:
    """Return True if a row is the current version of an object."""
    return bool(row.get("is_latest", True)) and row.get("content_type") != DELETE_MARKER_TYPE


def _manifest_query(query: str) -> str:
    return f"{query}{'&' if query else ''}multipart-manifest=get"


def _head_newest(client: InternalClient, path: EntityPath, query: str = "") -> HeaderMap | None:
    asked = client.request("HEAD", path, {"x-newest": "true"}, query=_manifest_query(query), accept=(2, 404))
    with asked as found:
        return dict(found.headers) if found.is_success else None


def _read_manifest_parts(
    client: InternalClient, path: EntityPath, query: str
) -> list[tuple[str, str]] | None:
    """Return the parts in a manifest; None if it is no manifest any more."""
    asked = client.request("GET", path, {"x-newest": "true"}, query=_manifest_query(query), accept=(2, 404))
    with asked as response:
        if response.status != 200:
            return None
        try:
            return own_parts(str(path.container), json.loads(response.read_body()))
        except (ValueError, TypeError, AttributeError):
            return None


def _is_older_than_row(seen: HeaderMap, row: JsonObject) -> bool:
    """Return True if the nodes' state of an object is older than its row."""
    try:
        return (
            Timestamp(seen.get("x-timestamp", "")).seconds + _ROUNDING_S
            < row_timestamp(str(row["last_modified"])).seconds
        )
    except InvalidTimestamp:
        return True
