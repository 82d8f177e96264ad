"""Expiration: deletes objects, versions, delete markers and multipart uploads that a lifecycle has expired.

Everything is read again right before its deletion, because it may have changed since it was listed. A plain
object is deleted under the condition that it is unchanged (decision 0011), where all nodes support
conditions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.base.truth import is_true
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.storedtags import decode_tags
from swift.s3.api.partreferences import version_id_query
from swift.s3.config.lifecyclerules import find_expiry
from swift.s3.core.metadata import is_large
from swift.s3.core.names import own_parts, segments_container
from swift.s3.core.uploadstate import (
    CompletionDecision,
    DecisionStatus,
    SwapOutcome,
    UploadState,
    delete_marker,
    end_upload,
    is_definite_failure,
    join_decision,
    part_number_of_name,
    read_decision_status,
    read_state,
)
from swift.s3.daemons.walk import (
    CurrentCandidate,
    DaemonObjectClient,
    NoncurrentCandidate,
    RegisteredBucket,
    UploadCandidates,
    remove_parts,
)

ENDED, KEPT, CHANGED, LOCKED = "ended", "kept", "changed", "locked"
VERSION_ID_HEADER = "x-object-version-id"
#: The most versions of a key that are checked for parts of an upload.
_VERSIONS_MAX = 1000


class Expiration:
    """Deletes expired candidates; each method returns the outcome or raises ``UnexpectedResponse``."""

    def __init__(
        self,
        client: InternalClient,
        now: Callable[[], float],
        wait: Callable[[float], object],
        grace_s: float,
    ):
        self._client = client
        self._now = now
        self._wait = wait
        self._grace_s = grace_s

    # --- objects --------------------------------------------------------------------------------------

    def expire_current(self, unit: CurrentCandidate) -> str:
        """Delete an expired object; in a versioned bucket this leaves a delete marker."""
        path = unit.entry.path._replace(obj=unit.key)
        found = self._head(path)
        if found is None:
            return KEPT
        size = int(found.get("content-length") or 0)
        try:
            modified_s = Timestamp(found.get("x-timestamp", "")).seconds
        except InvalidTimestamp:
            return KEPT
        tags = decode_tags(found.get(fields.TRANSIENT_S3_TAGGING))
        expiry = find_expiry(unit.rules, unit.key, size, modified_s, tags)
        if expiry is None or expiry.at_s > self._now():
            return KEPT
        parts = [] if self._stays_as_version(unit.entry.path, found) else self._parts(path, found)
        outcome = self._delete(path, found)
        if outcome == ENDED:
            self._remove_parts(parts)
        return outcome

    def _head(self, path: EntityPath, query: str = "") -> HeaderMap | None:
        with self._client.request(
            "HEAD", path, {"x-newest": "true"}, query=query, accept=(2, 400, 404)
        ) as response:
            return dict(response.headers) if response.is_success else None

    def _stays_as_version(self, bucket: EntityPath, found: HeaderMap) -> bool:
        """Return True if a deleted object stays as a version, which needs its parts."""
        if found.get(VERSION_ID_HEADER, "null") != "null":
            return True
        return is_large(found) and is_true((self._client.head(bucket) or {}).get("x-versions-enabled"))

    def _delete(self, path: EntityPath, found: HeaderMap) -> str:
        condition = {fields.BACKEND_IF_PREDECESSOR: found[fields.BACKEND_DATA_TIMESTAMP]}
        if found.get(VERSION_ID_HEADER, "null") != "null":
            # The object is a link to a version; nothing is lost with it.
            condition = {}
        status = self._client.delete(path, condition, accept=(2, 403, 404, 409, 412, 501))
        if status == 501:
            # Nodes of OpenStack Swift support no conditions.
            status = self._client.delete(path, accept=(2, 403, 404, 409))
        if status == 403:
            return LOCKED
        return ENDED if status // 100 == 2 else CHANGED

    # --- versions -------------------------------------------------------------------------------------

    def expire_noncurrent(self, unit: NoncurrentCandidate) -> str:
        """Delete an expired noncurrent version or delete marker."""
        path, query = unit.entry.path._replace(obj=unit.key), version_id_query(unit.version)
        current = self._head(path)
        if current is not None and (
            unit.is_marker and not unit.rules or current.get(VERSION_ID_HEADER) == unit.version
        ):
            # A client stored the object again, or made this version the current one.
            return CHANGED
        parts: list[EntityPath] = []
        if not unit.is_marker:
            found = self._head(path, query)
            if found is None:
                return CHANGED
            tags = decode_tags(found.get(fields.TRANSIENT_S3_TAGGING))
            if not any(rule.matches_tags(tags) for rule in unit.rules):
                return KEPT
            parts = self._parts(path, found, query)
        # A client may make the version the current one meanwhile.
        headers: HeaderMap = {fields.BACKEND_RESTORE_VERSION: "true"}
        asked = self._client.request("DELETE", path, headers, query=query, accept=(2, 403, 404, 409))
        with asked as response:
            status = response.status
        if status == 403:
            return LOCKED
        if status // 100 != 2:
            return CHANGED
        self._remove_parts(parts)
        return ENDED

    # --- parts ----------------------------------------------------------------------------------------

    def _parts(self, path: EntityPath, found: HeaderMap, query: str = "") -> list[EntityPath]:
        """Return the parts of a multipart object in the bucket's segments containers."""
        if not is_large(found):
            return []
        query += f"{'&' if query else ''}multipart-manifest=get"
        with self._client.request("GET", path, query=query, accept=(2, 404)) as response:
            rows = json.loads(response.read_body()) if response.status == 200 else []
        return [EntityPath(path.account, *place) for place in own_parts(str(path.container), rows)]

    def _remove_parts(self, parts: Iterable[EntityPath]) -> None:
        for part in parts:
            self._client.delete(part, accept=(2, 404, 409))

    # --- uploads --------------------------------------------------------------------------------------

    def abort_uploads(self, unit: UploadCandidates) -> str:
        """Abort multipart uploads that do not complete; first delete their markers (decision 0020).

        If nodes of OpenStack Swift support no conditions, wait for the grace period, so that a request that
        is completing an upload can store the object.
        """
        bucket, objects = unit.entry.path, DaemonObjectClient(self._client, unit.entry.account)
        ended: list[UploadState] = []
        is_weak = False
        for key, upload_id in unit.uploads:
            state = read_state(objects, unit.entry.bucket, key, upload_id)
            if state is None or state.is_completing:
                continue
            outcome = end_upload(objects, state)
            if outcome is SwapOutcome.UNSUPPORTED:
                is_weak = True
                delete_marker(objects, state)
            if outcome is not SwapOutcome.LOST:
                ended.append(state)
        if is_weak:
            # The wait ends early if the process stops; no later pass would find the parts.
            self._wait(self._grace_s)
        for state in ended:
            if not self._has_completed_object(bucket._replace(obj=state.key), state.id):
                remove_parts(
                    self._client, bucket._replace(container=state.segments_container), state.key, state.id
                )
        return ENDED if ended else CHANGED

    def _has_completed_object(self, path: EntityPath, upload_id: str) -> bool:
        """Return True if the object or a version of it is the result of an upload."""
        found = self._head(path)
        if found is not None and found.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id:
            return True
        if found is not None and VERSION_ID_HEADER not in found:
            return False
        versions = self._client.pages(
            path._replace(obj=None), size=_VERSIONS_MAX, versions=True, prefix=str(path.obj)
        )
        for row in next(versions, ()):
            if row.get("name") != path.obj or "version_id" not in row:
                continue
            version = self._head(path, version_id_query(str(row["version_id"])))
            if version is not None and version.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id:
                return True
        return False


# --- unfinished completions ---------------------------------------------------------------------------

#: Seconds for which a completion is left to its client; after that this daemon finishes it.
COMPLETION_GRACE_S = 3600.0


class UnfinishedUpload(NamedTuple):
    """An upload whose completion may have been decided."""

    entry: RegisteredBucket
    key: str
    upload_id: str


class CompletionRecovery:
    """Finds decided completions that were interrupted and carries them out; raises ``UnexpectedResponse``."""

    def __init__(
        self,
        client: InternalClient,
        now: Callable[[], float],
        page_size: int,
        age_s: float = COMPLETION_GRACE_S,
    ):
        self._client = client
        self._now = now
        self._page_size = page_size
        self._age_s = age_s

    def find_unfinished(self, entry: RegisteredBucket) -> Iterator[UnfinishedUpload]:
        """Yield the uploads whose markers have a record, unlike those of new uploads."""
        segments = EntityPath(entry.account, segments_container(entry.bucket))
        for row in chain.from_iterable(self._client.pages(segments, size=self._page_size)):
            key, _, upload_id = str(row["name"]).rpartition("/")
            if key and row["bytes"] and part_number_of_name(upload_id) is None:
                yield UnfinishedUpload(entry, key, upload_id)

    def finish_upload(self, unit: UnfinishedUpload) -> str:
        """Store the object of a decision if it can still be stored, and end the upload."""
        objects = DaemonObjectClient(self._client, unit.entry.account)
        state = read_state(objects, unit.entry.bucket, unit.key, unit.upload_id)
        decision = None if state is None else state.record.decision
        if state is None or decision is None:
            return CHANGED
        if decision.age_s(self._now()) < self._age_s:
            return KEPT
        state = join_decision(objects, state)
        if state is None or state.record.decision is None:
            return CHANGED
        found = read_decision_status(objects, state, self._now())
        if found is DecisionStatus.TO_DO and self._store_manifest(objects, state, state.record.decision):
            found = DecisionStatus.DONE
        if found is DecisionStatus.DONE:
            delete_marker(objects, state)
        else:
            # ``OrphanCleanup`` deletes the parts if no object refers to them.
            end_upload(objects, state)
        return ENDED

    def _store_manifest(
        self, objects: DaemonObjectClient, state: UploadState, decision: CompletionDecision
    ) -> bool:
        """Store the manifest; return False if its parts or conditions do not allow it."""
        places = state.part_locations([number for number, _ in decision.parts])
        sizes = []
        for (container, name), (_, etag) in zip(places, decision.parts, strict=True):
            head = objects.request("HEAD", container, name)
            if not head.is_success or unquote_etag(head.headers.get("etag", "")) != etag:
                return False
            sizes.append(int(head.headers.get("content-length") or 0))
        is_small = any(size < decision.size_min for size in sizes[:-1])
        if is_small or decision.size not in (None, sum(sizes)):
            return False
        manifest = [
            {"path": f"/{container}/{name}", "etag": etag}
            for (container, name), (_, etag) in zip(places, decision.parts, strict=True)
        ]
        headers = {**decision.headers, "x-timestamp": decision.at}
        body = json.dumps(manifest).encode()
        query = "multipart-manifest=put"
        answer = objects.request("PUT", state.bucket, state.key, headers=headers, body=body, query=query)
        return not is_definite_failure(answer.status) and answer.status < 500
