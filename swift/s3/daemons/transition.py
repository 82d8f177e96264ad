"""Transitions: moves objects and versions to the storage class that a lifecycle orders (decision 0018).

An object that moves stays the same version: its bytes are stored in the container of the class. Then a
manifest replaces it with the object's own timestamp and the next offset. A concurrent write or deletion by
a client is later and wins, and later metadata of a POST stays. So no lock is needed. An interrupted move
leaves the object unchanged, and bytes that ``OrphanCleanup`` deletes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.objectlock import parse_lock
from swift.http.response import Response
from swift.http.storedtags import decode_tags
from swift.http.transform import as_request_body
from swift.middleware.versioned_writes.names import ARCHIVED_NULL, Version, unquote_container_name
from swift.s3.api.partreferences import version_id_query
from swift.s3.config.lifecyclerules import DAY_S, due_noncurrent_storage_class, due_storage_class
from swift.s3.core.metadata import (
    is_large,
    manifest_headers,
    metadata_for_post,
    metadata_for_put,
    object_storage_class,
)
from swift.s3.core.names import KEY_BYTES_MAX, own_parts, segments_container
from swift.s3.core.uploadstate import marker_name, new_upload_id
from swift.s3.daemons.expiration import CHANGED, KEPT, LOCKED, VERSION_ID_HEADER
from swift.s3.daemons.walk import CurrentCandidate, TransitionCandidate

MOVED = "moved"
#: No object has more parts.
PARTS_MAX = 10_000
_MANIFEST_QUERY = "multipart-manifest=get&symlink=get"

#: Returns the due storage class by headers, size and time of an object; empty if it stays.
FindDueClass = Callable[[HeaderMap, int, float], str]


class _Part(NamedTuple):
    """A part of an object."""

    path: EntityPath
    etag: str


class TransitionRun:
    """Moves candidates; each method returns the outcome or raises ``UnexpectedResponse``."""

    def __init__(self, client: InternalClient, now: Callable[[], float]):
        self._client = client
        self._now = now

    def move_current(self, unit: CurrentCandidate) -> str:
        """Move an object to the storage class that is due."""
        path = unit.entry.path._replace(obj=unit.key)
        found = self._head(path)
        if found is None:
            return KEPT

        def find_due_class(headers: HeaderMap, size: int, modified_s: float) -> str:
            tags = decode_tags(headers.get(fields.TRANSIENT_S3_TAGGING))
            storage_class = object_storage_class(headers)
            return due_storage_class(unit.rules, unit.key, size, modified_s, self._now(), storage_class, tags)

        version = found.get(VERSION_ID_HEADER, "null")
        if version == "null":
            return self._move_object(unit.entry.path, path, unit.key, find_due_class)
        with self._unverified_link(path, version) as is_current:
            return (
                self._move_version(unit.entry.path, unit.key, version, find_due_class)
                if is_current
                else CHANGED
            )

    def move_noncurrent(self, unit: TransitionCandidate) -> str:
        """Move a noncurrent version to the storage class that is due."""
        path = unit.entry.path._replace(obj=unit.key)

        def find_due_class(headers: HeaderMap, size: int, _: float) -> str:
            tags = decode_tags(headers.get(fields.TRANSIENT_S3_TAGGING))
            return due_noncurrent_storage_class(
                unit.rules,
                unit.key,
                size,
                unit.since_s,
                self._now(),
                object_storage_class(headers),
                newer=unit.newer_versions,
                tags=tags,
            )

        current = self._head(path)
        if unit.version == "null" or (current is not None and current.get(VERSION_ID_HEADER) == unit.version):
            return CHANGED
        outcome = self._move_version(unit.entry.path, unit.key, unit.version, find_due_class)
        current = self._head(path, "symlink=get")
        if outcome == MOVED and current is not None and current.get(VERSION_ID_HEADER) == unit.version:
            # It became the current version during the transition: the link must name its new location.
            self._rewrite_link(path, unit.version, current)
        return outcome

    def _head(self, path: EntityPath, query: str = "") -> HeaderMap | None:
        with self._client.request(
            "HEAD", path, {"x-newest": "true"}, query=query, accept=(2, 404, 409)
        ) as found:
            return dict(found.headers) if found.is_success else None

    # --- versions -------------------------------------------------------------------------------------

    def _move_version(self, bucket: EntityPath, key: str, version: str, find_due_class: FindDueClass) -> str:
        stored = (self._client.head(bucket) or {}).get(fields.SYSMETA_VERSIONS_CONTAINER)
        if not stored:
            return CHANGED
        place = EntityPath(
            bucket.account, unquote_container_name(stored), Version(key, Timestamp(version)).name
        )
        return self._move_object(bucket, place, key, find_due_class)

    @contextmanager
    def _unverified_link(self, path: EntityPath, version: str) -> Iterator[bool]:
        """For the time of a block, make the link to a version valid for any content of the version.

        Yield True if the link is to that version. Each change of the link has the next offset of the
        timestamp that was read, so a newer link wins.
        """
        link = self._head(path, "symlink=get")
        if link is None or link.get(VERSION_ID_HEADER) != version:
            yield False
            return
        stamp = self._rewrite_link(path, version, link, loose=True)
        try:
            yield True
        finally:
            self._rewrite_link(path, version, {**link, fields.BACKEND_DATA_TIMESTAMP: stamp.internal})

    def _rewrite_link(
        self, path: EntityPath, version: str, link: HeaderMap, *, loose: bool = False
    ) -> Timestamp:
        """Rewrite a link with its own timestamp; return the timestamp of the next rewrite."""
        stamp = _data_timestamp(link)
        headers = {"x-timestamp": stamp.internal}
        if "x-delete-at" in link:
            headers["x-delete-at"] = link["x-delete-at"]
        if loose:
            headers[fields.BACKEND_LOOSE_LINK] = "true"
        query = version_id_query(version)
        with self._client.request("PUT", path, headers, query=query, accept=(2, 404, 409)):
            return _next_offset(stamp)

    # --- one object -----------------------------------------------------------------------------------

    def _move_object(
        self, bucket: EntityPath, place: EntityPath, key: str, find_due_class: FindDueClass
    ) -> str:
        """Store an object's bytes in the due class and replace the object by a manifest of them."""
        with self._client.request(
            "GET", place, {"x-newest": "true"}, query=_MANIFEST_QUERY, accept=(2, 404)
        ) as source:
            found = source.headers
            is_link = fields.SYSMETA_SYMLINK_TARGET in found or "x-object-manifest" in found
            if not source.is_success or is_link:
                return KEPT
            size = found.get(fields.SYSMETA_SLO_SIZE if is_large(found) else "content-length")
            stamp = _data_timestamp(found)
            storage_class = find_due_class(found, int(size or 0), stamp.seconds)
            if not storage_class:
                return KEPT
            if parse_lock(found.get(fields.TRANSIENT_S3_LOCK)).is_locked(self._now()):
                return LOCKED
            segments = EntityPath(bucket.account, segments_container(str(bucket.container), storage_class))
            start = marker_name(key, new_upload_id())
            if len(f"{start}/{PARTS_MAX}".encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
                # The name is too long for parts.
                return KEPT
            old = self._parts_to_copy(bucket, source) if is_large(found) else []
            if old is None:
                return KEPT
            parts = self._store_in_class(source, old, segments, start)
        etag = found.get(fields.SYSMETA_S3_ETAG) or unquote_etag(found.get("etag", ""))
        headers = {
            **metadata_for_put(found),
            **manifest_headers(storage_class, start.rpartition("/")[2], etag),
        }
        if fields.SYSMETA_VERSIONS_NULL in headers:
            headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] += f"; {ARCHIVED_NULL}=true"
        headers["x-timestamp"] = _next_offset(stamp).internal
        if not self._store_manifest(place, headers, parts):
            # Another request changed the object first.
            for part in parts:
                self._client.delete(part.path, accept=(2, 404, 409))
            return CHANGED
        self._expire_old_parts(old)
        return MOVED

    def _store_manifest(self, place: EntityPath, headers: HeaderMap, parts: Sequence[_Part]) -> bool:
        """Store the manifest of parts; return False if another request changed the object first."""
        manifest = [{"path": f"/{part.path.container}/{part.path.obj}", "etag": part.etag} for part in parts]
        with self._client.request(
            "PUT",
            place,
            headers,
            json.dumps(manifest).encode(),
            query="multipart-manifest=put",
            accept=(2, 409),
        ) as response:
            return response.status == 201

    def _parts_to_copy(self, bucket: EntityPath, source: Response) -> list[_Part] | None:
        """Return the parts of a manifest; None for manifests of Swift's API, whose segments may be shared."""
        rows = json.loads(source.read_body())
        own = own_parts(str(bucket.container), rows)
        is_whole = not any(row.get("range") or row.get("sub_slo") for row in rows)
        if len(own) < len(rows) or not is_whole or fields.SYSMETA_S3_ETAG not in source.headers:
            return None
        return [
            _Part(EntityPath(bucket.account, *place), str(row["hash"]))
            for place, row in zip(own, rows, strict=True)
        ]

    def _store_in_class(
        self, source: Response, old: Sequence[_Part], segments: EntityPath, start: str
    ) -> list[_Part]:
        """Store the bytes of an object: part by part, or as one part."""
        if old:
            return [
                self._copy_part(part, segments._replace(obj=f"{start}/{number}"))
                for number, part in enumerate(old, 1)
            ]
        with as_request_body(source) as body:
            return [self._store_part(segments._replace(obj=f"{start}/1"), body, source.headers)]

    def _copy_part(self, part: _Part, target: EntityPath) -> _Part:
        with self._client.request("GET", part.path, {"x-newest": "true"}) as source:
            if unquote_etag(source.headers.get("etag", "")) != part.etag:
                text = "the ETag of the part differs from its manifest"
                raise UnexpectedResponse("GET", part.path, source.status, text)
            with as_request_body(source) as body:
                return self._store_part(target, body, source.headers)

    def _store_part(self, target: EntityPath, body: RequestBody, found: HeaderMap) -> _Part:
        """Store a part with its source's checksum and customer key metadata."""
        etag, given = unquote_etag(found.get("etag", "")), iter((body,))

        def body_once() -> RequestBody:
            left = next(given, None)
            if left is None:
                raise UnexpectedResponse(
                    "PUT", target, 0, "the body was read already and cannot be sent again"
                )
            return left

        headers = {"content-type": "application/octet-stream", "etag": etag}
        for name in (fields.SYSMETA_S3_CHECKSUM, fields.SYSMETA_S3_SSE_C):
            if name in found:
                headers[name] = found[name]
        self._client.put(target, body_once, headers)
        return _Part(target, etag)

    def _expire_old_parts(self, parts: Sequence[_Part]) -> None:
        """Let the old parts expire in a day, so that running reads can finish."""
        end = {"x-delete-at": str(int(self._now()) + DAY_S)}
        for part in parts:
            headers = self._head(part.path)
            if headers is not None:
                with self._client.request(
                    "POST", part.path, {**metadata_for_post(headers), **end}, accept=(2, 404)
                ):
                    pass


def _data_timestamp(found: HeaderMap) -> Timestamp:
    """Return the timestamp of an object's data; the epoch if it is unknown."""
    try:
        return Timestamp(found.get(fields.BACKEND_DATA_TIMESTAMP) or found.get("x-timestamp", "0"))
    except InvalidTimestamp:
        return Timestamp(0)


def _next_offset(stamp: Timestamp) -> Timestamp:
    return Timestamp.from_raw(stamp.raw, stamp.offset + 1)
