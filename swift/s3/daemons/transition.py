"""Giving objects and versions the storage class that a lifecycle says (decision 0018).

An object that moves stays the same version: its bytes are stored in the container of the class, and then a
manifest of them takes its place with the object's own time, a step of the offset later. A client that wrote
or deleted it meanwhile did that later, and wins; metadata that was posted since stays on top. So nothing
has to be locked, and a move that breaks off leaves the object as it was, and bytes that ``Leftovers``
finds.
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
from swift.http.transform import as_request_body
from swift.middleware.versioned_writes.names import Version, unquote_container_name
from swift.s3.api.metadata import copied_metadata, echoed_metadata, is_large, manifest_headers, object_class
from swift.s3.api.tags import parsed_tags
from swift.s3.api.uploads import marker_of, new_upload_id, version_id_query
from swift.s3.config.lifecyclerules import DAY_S, class_by, noncurrent_class_by
from swift.s3.daemons.expiration import CHANGED, KEPT, LOCKED, VERSION_ID
from swift.s3.daemons.walk import CurrentCandidate, TransitionCandidate
from swift.s3.names import KEY_BYTES_MAX, own_parts, segments_of

MOVED = "moved"
#: No object has more parts.
PARTS_MAX = 10_000
_QUERY = "multipart-manifest=get&symlink=get"

#: The class that something is to have, judged by its headers; empty when it stays.
Judge = Callable[[HeaderMap, int, float], str]


class _Part(NamedTuple):
    """A part of an object."""

    path: EntityPath
    etag: str


class TransitionRun:
    """Moves one thing after another; each method says what became of it and raises ``UnexpectedResponse``."""

    def __init__(self, client: InternalClient, now: Callable[[], float]):
        self._client = client
        self._now = now

    def current(self, unit: CurrentCandidate) -> str:
        """Give an object the class that it is to have by now."""
        path = unit.entry.path._replace(obj=unit.key)
        found = self._head(path)
        if found is None:
            return KEPT

        def judge(headers: HeaderMap, size: int, modified_s: float) -> str:
            tags = parsed_tags(headers.get(fields.TRANSIENT_S3_TAGGING))
            kind = object_class(headers)
            return class_by(unit.rules, unit.key, size, modified_s, self._now(), kind, tags)

        version = found.get(VERSION_ID, "null")
        if version == "null":
            return self._move(unit.entry.path, path, unit.key, judge)
        with self._loosened(path, version) as is_current:
            return self._version(unit.entry.path, unit.key, version, judge) if is_current else CHANGED

    def aged(self, unit: TransitionCandidate) -> str:
        """Return the same for a version that is not current."""
        path = unit.entry.path._replace(obj=unit.key)

        def judge(headers: HeaderMap, size: int, _: float) -> str:
            tags = parsed_tags(headers.get(fields.TRANSIENT_S3_TAGGING))
            return noncurrent_class_by(
                unit.rules,
                unit.key,
                size,
                unit.since_s,
                self._now(),
                object_class(headers),
                newer=unit.newer,
                tags=tags,
            )

        current = self._head(path)
        if unit.version == "null" or (current is not None and current.get(VERSION_ID) == unit.version):
            return CHANGED
        outcome = self._version(unit.entry.path, unit.key, unit.version, judge)
        current = self._head(path, "symlink=get")
        if outcome == MOVED and current is not None and current.get(VERSION_ID) == unit.version:
            # It became the current version during the transition: the link must name its new location.
            self._relink(path, unit.version, current)
        return outcome

    def _head(self, path: EntityPath, query: str = "") -> HeaderMap | None:
        with self._client.request(
            "HEAD", path, {"x-newest": "true"}, query=query, accept=(2, 404, 409)
        ) as found:
            return dict(found.headers) if found.is_success else None

    # --- versions -------------------------------------------------------------------------------------

    def _version(self, bucket: EntityPath, key: str, version: str, judge: Judge) -> str:
        stored = (self._client.head(bucket) or {}).get(fields.SYSMETA_VERSIONS_CONTAINER)
        if not stored:
            return CHANGED
        place = EntityPath(
            bucket.account, unquote_container_name(stored), Version(key, Timestamp(version)).name
        )
        return self._move(bucket, place, key, judge)

    @contextmanager
    def _loosened(self, path: EntityPath, version: str) -> Iterator[bool]:
        """For the time of a block, have the link to a version lead to it whatever its bytes are.

        Gives whether it is the link to that version. Each change of it is a step later than the link that was
        seen, so that a newer one wins.
        """
        link = self._head(path, "symlink=get")
        if link is None or link.get(VERSION_ID) != version:
            yield False
            return
        stamp = self._relink(path, version, link, loose=True)
        try:
            yield True
        finally:
            self._relink(path, version, {**link, fields.BACKEND_DATA_TIMESTAMP: stamp.internal})

    def _relink(self, path: EntityPath, version: str, link: HeaderMap, *, loose: bool = False) -> Timestamp:
        """Write a link again, one step later than it was; when that is."""
        stamp = _data_time(link)
        headers = {"x-timestamp": stamp.internal}
        if "x-delete-at" in link:
            headers["x-delete-at"] = link["x-delete-at"]
        if loose:
            headers[fields.BACKEND_LOOSE_LINK] = "true"
        query = version_id_query(version)
        with self._client.request("PUT", path, headers, query=query, accept=(2, 404, 409)):
            return _later(stamp)

    # --- one object -----------------------------------------------------------------------------------

    def _move(self, bucket: EntityPath, place: EntityPath, key: str, judge: Judge) -> str:
        """Store what is at a place apart, if it is to be; a manifest takes its place."""
        with self._client.request(
            "GET", place, {"x-newest": "true"}, query=_QUERY, accept=(2, 404)
        ) as source:
            found = source.headers
            is_link = fields.SYSMETA_SYMLINK_TARGET in found or "x-object-manifest" in found
            if not source.is_success or is_link:
                return KEPT
            size = found.get(fields.SYSMETA_SLO_SIZE if is_large(found) else "content-length")
            stamp = _data_time(found)
            kind = judge(found, int(size or 0), stamp.seconds)
            if not kind:
                return KEPT
            if parse_lock(found.get(fields.TRANSIENT_S3_LOCK)).is_locked(self._now()):
                return LOCKED
            segments = EntityPath(bucket.account, segments_of(str(bucket.container), kind))
            start = marker_of(key, new_upload_id())
            if len(f"{start}/{PARTS_MAX}".encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
                # Nothing can lie apart under so long a name.
                return KEPT
            old = self._own_parts(bucket, source) if is_large(found) else []
            if old is None:
                return KEPT
            parts = self._apart(source, old, segments, start)
        etag = found.get(fields.SYSMETA_S3_ETAG) or unquote_etag(found.get("etag", ""))
        headers = {**copied_metadata(found), **manifest_headers(kind, start.rpartition("/")[2], etag)}
        headers["x-timestamp"] = _later(stamp).internal
        if not self._replace(place, headers, parts):
            # Another request changed the object first.
            for part in parts:
                self._client.delete(part.path, accept=(2, 404, 409))
            return CHANGED
        self._let_go(old)
        return MOVED

    def _replace(self, place: EntityPath, headers: HeaderMap, parts: Sequence[_Part]) -> bool:
        """Store the manifest of parts; return True if no other request changed the object first."""
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

    def _own_parts(self, bucket: EntityPath, source: Response) -> list[_Part] | None:
        """Return the parts of a manifest.

        None of one that came by Swift's API: others may need its segments.
        """
        rows = json.loads(source.read_body())
        own = own_parts(str(bucket.container), rows)
        is_whole = not any(row.get("range") or row.get("sub_slo") for row in rows)
        if len(own) < len(rows) or not is_whole or fields.SYSMETA_S3_ETAG not in source.headers:
            return None
        return [
            _Part(EntityPath(bucket.account, *place), str(row["hash"]))
            for place, row in zip(own, rows, strict=True)
        ]

    def _apart(self, source: Response, old: Sequence[_Part], segments: EntityPath, start: str) -> list[_Part]:
        """Store the bytes of an object: part by part as they were, or as one."""
        if old:
            return [
                self._copied(part, segments._replace(obj=f"{start}/{number}"))
                for number, part in enumerate(old, 1)
            ]
        with as_request_body(source) as body:
            return [self._stored(segments._replace(obj=f"{start}/1"), body, source.headers)]

    def _copied(self, part: _Part, target: EntityPath) -> _Part:
        with self._client.request("GET", part.path, {"x-newest": "true"}) as source:
            if unquote_etag(source.headers.get("etag", "")) != part.etag:
                text = "the part is not what its manifest says"
                raise UnexpectedResponse("GET", part.path, source.status, text)
            with as_request_body(source) as body:
                return self._stored(target, body, source.headers)

    def _stored(self, target: EntityPath, body: RequestBody, found: HeaderMap) -> _Part:
        """Store a part with the checksum that its source has, and what a customer's key needs."""
        etag, given = unquote_etag(found.get("etag", "")), iter((body,))

        def once() -> RequestBody:
            left = next(given, None)
            if left is None:
                raise UnexpectedResponse("PUT", target, 0, "what is read cannot be sent again")
            return left

        headers = {"content-type": "application/octet-stream", "etag": etag}
        for name in (fields.SYSMETA_S3_CHECKSUM, fields.SYSMETA_S3_SSE_C):
            if name in found:
                headers[name] = found[name]
        self._client.put(target, once, headers)
        return _Part(target, etag)

    def _let_go(self, parts: Sequence[_Part]) -> None:
        """Have parts end in a day: until then those go on who are reading them."""
        end = {"x-delete-at": str(int(self._now()) + DAY_S)}
        for part in parts:
            headers = self._head(part.path)
            if headers is not None:
                with self._client.request(
                    "POST", part.path, {**echoed_metadata(headers), **end}, accept=(2, 404)
                ):
                    pass


def _data_time(found: HeaderMap) -> Timestamp:
    """Return the time of an object's bytes; the epoch if it is not known."""
    try:
        return Timestamp(found.get(fields.BACKEND_DATA_TIMESTAMP) or found.get("x-timestamp", "0"))
    except InvalidTimestamp:
        return Timestamp(0)


def _later(stamp: Timestamp) -> Timestamp:
    return Timestamp.from_raw(stamp.raw, stamp.offset + 1)
