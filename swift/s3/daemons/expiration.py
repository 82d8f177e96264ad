"""Ending what a lifecycle says has ended: objects, versions, marks of deletions, multipart uploads.

Everything is looked at again right before, because it may have changed since it was listed. A plain object
is deleted on the condition that it is what was seen (decision 0011), where all nodes can keep that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.base.truth import is_true
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.api.metadata import is_large
from swift.s3.api.tags import parsed_tags
from swift.s3.api.uploads import (
    CompletionDecision,
    DecisionStatus,
    Swap,
    UploadState,
    decision_status,
    end,
    forget,
    is_refused,
    join,
    number_of,
    page_of,
    read_state,
    version_id_query,
)
from swift.s3.config.lifecyclerules import expiry_of
from swift.s3.daemons.walk import (
    CurrentCandidate,
    DaemonObjects,
    NoncurrentCandidate,
    RegisteredBucket,
    UploadCandidates,
    remove_parts,
)
from swift.s3.names import own_parts, segments_of

ENDED, KEPT, CHANGED, LOCKED = "ended", "kept", "changed", "locked"
VERSION_ID = "x-object-version-id"
#: Versions of a key that are looked at for parts of an upload.
_VERSIONS_MAX = 1000


class Expiration:
    """Ends one thing after another; each method says what became of it and raises ``UnexpectedResponse``."""

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

    def current(self, unit: CurrentCandidate) -> str:
        """End an object; in a bucket that keeps versions this leaves a delete marker."""
        path = unit.entry.path._replace(obj=unit.key)
        found = self._head(path)
        if found is None:
            return KEPT
        size = int(found.get("content-length") or 0)
        try:
            modified_s = Timestamp(found.get("x-timestamp", "")).seconds
        except InvalidTimestamp:
            return KEPT
        tags = parsed_tags(found.get(fields.TRANSIENT_S3_TAGGING))
        expiry = expiry_of(unit.rules, unit.key, size, modified_s, tags)
        if expiry is None or expiry.at_s > self._now():
            return KEPT
        parts = [] if self._stays_a_version(unit.entry.path, found) else self._parts(path, found)
        outcome = self._delete(path, found)
        if outcome == ENDED:
            self._remove_parts(parts)
        return outcome

    def _head(self, path: EntityPath, query: str = "") -> HeaderMap | None:
        with self._client.request(
            "HEAD", path, {"x-newest": "true"}, query=query, accept=(2, 400, 404)
        ) as response:
            return dict(response.headers) if response.is_success else None

    def _stays_a_version(self, bucket: EntityPath, found: HeaderMap) -> bool:
        """Return True if an object, when it is deleted, stays as a version, which needs its parts."""
        if found.get(VERSION_ID, "null") != "null":
            return True
        return is_large(found) and is_true((self._client.head(bucket) or {}).get("x-versions-enabled"))

    def _delete(self, path: EntityPath, found: HeaderMap) -> str:
        condition = {fields.BACKEND_IF_PREDECESSOR: found[fields.BACKEND_DATA_TIMESTAMP]}
        if found.get(VERSION_ID, "null") != "null":
            # The object is a link to a version; nothing is lost with it.
            condition = {}
        status = self._client.delete(path, condition, accept=(2, 403, 404, 409, 412, 501))
        if status == 501:
            # Nodes of the peer's keep no conditions.
            status = self._client.delete(path, accept=(2, 403, 404, 409))
        if status == 403:
            return LOCKED
        return ENDED if status // 100 == 2 else CHANGED

    # --- versions -------------------------------------------------------------------------------------

    def former(self, unit: NoncurrentCandidate) -> str:
        """End a version that is not current, or a delete marker."""
        path, query = unit.entry.path._replace(obj=unit.key), version_id_query(unit.version)
        current = self._head(path)
        if current is not None and (
            unit.is_marker and not unit.rules or current.get(VERSION_ID) == unit.version
        ):
            # A client stored the object again, or made this version the current one.
            return CHANGED
        parts: list[EntityPath] = []
        if not unit.is_marker:
            found = self._head(path, query)
            if found is None:
                return CHANGED
            tags = parsed_tags(found.get(fields.TRANSIENT_S3_TAGGING))
            if not any(rule.has_tags(tags) for rule in unit.rules):
                return KEPT
            parts = self._parts(path, found, query)
        with self._client.request("DELETE", path, query=query, accept=(2, 403, 404, 409)) as response:
            status = response.status
        if status == 403:
            return LOCKED
        if status // 100 != 2:
            return CHANGED
        self._remove_parts(parts)
        return ENDED

    # --- parts ----------------------------------------------------------------------------------------

    def _parts(self, path: EntityPath, found: HeaderMap, query: str = "") -> list[EntityPath]:
        """Return the parts of a multipart object in the bucket's containers of them."""
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

    def uploads(self, unit: UploadCandidates) -> str:
        """Abort multipart uploads that do not complete: first their markers go (decision 0020).

        Where nodes of OpenStack Swift keep no conditions, a request that is completing an upload has until
        the end of the grace to store the object.
        """
        bucket, objects = unit.entry.path, DaemonObjects(self._client, unit.entry.account)
        ended: list[UploadState] = []
        is_weak = False
        for key, upload_id in unit.uploads:
            state = read_state(objects, unit.entry.bucket, key, upload_id)
            if state is None or state.is_completing:
                continue
            outcome = end(objects, state)
            if outcome is Swap.WEAK:
                is_weak = True
                forget(objects, state)
            if outcome is not Swap.LOST:
                ended.append(state)
        if is_weak:
            # Cut short when the process is to end; no later pass would meet the parts.
            self._wait(self._grace_s)
        for state in ended:
            if not self._was_completed(bucket._replace(obj=state.key), state.id):
                remove_parts(self._client, bucket._replace(container=state.segments), state.key, state.id)
        return ENDED if ended else CHANGED

    def _was_completed(self, path: EntityPath, upload_id: str) -> bool:
        """Return True if the object, or a version of it, is what came of an upload."""
        found = self._head(path)
        if found is not None and found.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id:
            return True
        if found is not None and VERSION_ID not in found:
            return False
        query = f"format=json&versions=true&limit={_VERSIONS_MAX}&prefix={quote(str(path.obj), safe='')}"
        with self._client.request("GET", path._replace(obj=None), query=query, accept=(2, 404)) as response:
            rows = json.loads(response.read_body()) if response.status == 200 else []
        for row in rows:
            if row.get("name") != path.obj or "version_id" not in row:
                continue
            version = self._head(path, version_id_query(str(row["version_id"])))
            if version is not None and version.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id:
                return True
        return False


# --- unfinished completions ---------------------------------------------------------------------------

#: A completion is under way for so long, seconds; it is finished for its client after that.
UNDER_WAY_S = 3600.0


class UnfinishedUpload(NamedTuple):
    """An upload whose completion may have been decided."""

    entry: RegisteredBucket
    key: str
    upload_id: str


class CompletionRecovery:
    """Finds decisions, and carries out one after another; raises ``UnexpectedResponse``."""

    def __init__(
        self, client: InternalClient, now: Callable[[], float], page_size: int, age_s: float = UNDER_WAY_S
    ):
        self._client = client
        self._now = now
        self._page_size = page_size
        self._age_s = age_s

    def find(self, entry: RegisteredBucket) -> Iterator[UnfinishedUpload]:
        """Return uploads whose markers say something, which those of new uploads do not."""
        segments = EntityPath(entry.account, segments_of(entry.bucket))
        marker = ""
        while rows := page_of(self._client, segments, self._page_size, marker=marker):
            for row in rows:
                marker = str(row["name"])
                key, _, upload_id = marker.rpartition("/")
                if key and row["bytes"] and number_of(upload_id) is None:
                    yield UnfinishedUpload(entry, key, upload_id)

    def finish(self, unit: UnfinishedUpload) -> str:
        """Store the object of a decision, if that may still be done, and end the upload."""
        objects = DaemonObjects(self._client, unit.entry.account)
        state = read_state(objects, unit.entry.bucket, unit.key, unit.upload_id)
        decision = None if state is None else state.record.decision
        if state is None or decision is None:
            return CHANGED
        if decision.age_s(self._now()) < self._age_s:
            return KEPT
        state = join(objects, state)
        if state is None or state.record.decision is None:
            return CHANGED
        found = decision_status(objects, state, self._now())
        if found is DecisionStatus.TO_DO and self._store(objects, state, state.record.decision):
            found = DecisionStatus.DONE
        if found is DecisionStatus.DONE:
            forget(objects, state)
        else:
            # The parts stay for ``Leftovers``, which asks whether an object has them.
            end(objects, state)
        return ENDED

    def _store(self, objects: DaemonObjects, state: UploadState, decision: CompletionDecision) -> bool:
        """Store the manifest; return False if its parts or its conditions do not allow that."""
        places = state.places([number for number, _ in decision.parts])
        sizes = []
        for (container, name), (_, etag) in zip(places, decision.parts, strict=True):
            head = objects.send("HEAD", container, name)
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
        answer = objects.send("PUT", state.bucket, state.key, headers, body, query=query)
        return not is_refused(answer.status) and answer.status < 500
