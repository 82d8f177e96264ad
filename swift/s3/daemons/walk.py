"""The registry of buckets with a lifecycle or inventories, their parts, and the walk over their listings.

The registry has an empty object for each bucket in a hidden account. It is written after the rules and
before they are acknowledged. The daemon deletes entries without rules unless they were written again
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Unpack

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient
from swift.s3.api.partreferences import row_timestamp
from swift.s3.config.lifecyclerules import (
    LifecycleRule,
    due_noncurrent_storage_class,
    due_storage_class,
    expired_noncurrent_rules,
    is_delete_marker_expired,
    is_upload_expired,
    may_be_expired,
)
from swift.s3.core.metadata import DELETE_MARKER_TYPE, row_storage_class
from swift.s3.core.names import REGISTRY_ACCOUNT, REGISTRY_CONTAINER, registry_path, segments_container
from swift.s3.core.uploadstate import ObjectContent, ObjectResponse, marker_name, part_number_of_name


class RegisteredBucket(NamedTuple):
    """A bucket in the registry, which has or had a lifecycle."""

    account: str
    bucket: str
    #: When its configuration was last changed.
    changed_at: Timestamp

    @property
    def name(self) -> str:
        """The name of the entry in the registry and in the cursor of a pass."""
        return f"{self.account}/{self.bucket}"

    @property
    def path(self) -> EntityPath:
        """The bucket's container."""
        return EntityPath(self.account, self.bucket)


def registered_buckets(client: InternalClient) -> Iterator[RegisteredBucket]:
    """Yield all registered buckets in the order of their names; raise ``UnexpectedResponse``."""
    for row in client.objects(REGISTRY_ACCOUNT, REGISTRY_CONTAINER):
        account, slash, bucket = str(row.get("name", "")).partition("/")
        if slash and account and bucket:
            yield RegisteredBucket(account, bucket, row_timestamp(str(row.get("last_modified", ""))))


def unregister_bucket(client: InternalClient, entry: RegisteredBucket) -> None:
    """Delete an entry unless it was written again; raise ``UnexpectedResponse``."""
    stamp = entry.changed_at.above(1).internal
    path = registry_path(entry.account, entry.bucket)
    client.delete(path, {"x-timestamp": stamp}, accept=(2, 404, 409))


# --- parts --------------------------------------------------------------------------------------------


class DaemonObjectClient:
    """``ObjectClient`` with all rights; raises ``UnexpectedResponse`` for 5xx except 501."""

    def __init__(self, client: InternalClient, account: str):
        self._client = client
        self._account = account

    def request(
        self, method: str, container: str, name: str, **content: Unpack[ObjectContent]
    ) -> ObjectResponse:
        """Return the response; raise ``UnexpectedResponse``."""
        path, headers = EntityPath(self._account, container, name), content.get("headers")
        sent, query = content.get("body", b""), content.get("query", "")
        with self._client.request(method, path, headers, sent, query=query, accept=(2, 4, 501)) as response:
            body = response.read_body() if method == "GET" and response.is_success else b""
            return ObjectResponse(response.status, response.headers, body)


def remove_parts(
    client: InternalClient,
    segments: EntityPath,
    key: str,
    upload_id: str,
    but: Collection[tuple[str, str]] = (),
) -> list[int]:
    """Delete the parts of an upload except those in ``but``, each (container, name); return the statuses.

    Raise ``UnexpectedResponse``.
    """
    prefix = f"{marker_name(key, upload_id)}/"
    statuses = []
    for row in client.listing(segments, prefix=prefix):
        name = str(row["name"])
        # A longer name is of an upload of another key.
        if (
            part_number_of_name(name[len(prefix) :]) is not None
            and (str(segments.container), name) not in but
        ):
            statuses.append(client.delete(segments._replace(obj=name), accept=(2, 403, 404, 409)))
    return statuses


# --- the walk -----------------------------------------------------------------------------------------
# Listings have names, sizes and times. Tags, and everything that may have changed since, are checked
# again right before a candidate is processed.

#: Uploads that are aborted together.
UPLOADS_PER_UNIT = 100

#: Called with the last processed name after each page.
NoteProgress = Callable[[str], object]


class CurrentCandidate(NamedTuple):
    """An object that may have expired or may move."""

    entry: RegisteredBucket
    rules: Sequence[LifecycleRule]
    key: str


class NoncurrentCandidate(NamedTuple):
    """A noncurrent version or delete marker that may have expired; ``rules`` match it."""

    entry: RegisteredBucket
    rules: Sequence[LifecycleRule]
    key: str
    version: str
    is_marker: bool


class TransitionCandidate(NamedTuple):
    """A noncurrent version that may move to another storage class."""

    entry: RegisteredBucket
    rules: Sequence[LifecycleRule]
    key: str
    version: str
    #: Since when it is noncurrent, and the number of newer noncurrent versions.
    since_s: float
    newer_versions: int


class UploadCandidates(NamedTuple):
    """Keys and ids of old multipart uploads."""

    entry: RegisteredBucket
    uploads: Sequence[tuple[str, str]]


#: A unit of work of a pass.
Unit = CurrentCandidate | NoncurrentCandidate | TransitionCandidate | UploadCandidates


class BucketWalk:
    """Finds candidates in the listings of one bucket, as of one time."""

    def __init__(
        self,
        client: InternalClient,
        entry: RegisteredBucket,
        rules: Sequence[LifecycleRule],
        now_s: float,
        page_size: int,
    ):
        self._client = client
        self._entry = entry
        self._rules = rules
        self._now_s = now_s
        self._page_size = page_size

    # --- objects --------------------------------------------------------------------------------------

    def object_candidates(self, after: str, note: NoteProgress) -> Iterator[Unit]:
        """Yield candidates of a bucket without versions; ``after`` is the last name that was processed."""
        for rows in self._client.pages(self._entry.path, size=self._page_size, marker=after):
            for row in rows:
                modified_s = row_timestamp(str(row["last_modified"])).seconds
                if self._may_be_due(row, modified_s):
                    yield CurrentCandidate(self._entry, self._rules, row["name"])
            note(str(rows[-1]["name"]))

    def _may_be_due(self, row: JsonObject, modified_s: float) -> bool:
        """Return True if an object may have expired, or may have to move to another class."""
        key, size, now_s = str(row["name"]), int(row["bytes"]), self._now_s
        return may_be_expired(self._rules, key, size, modified_s, now_s) or bool(
            due_storage_class(self._rules, key, size, modified_s, now_s, row_storage_class(row))
        )

    def version_candidates(self, after: str, note: NoteProgress) -> Iterator[Unit]:
        """Yield candidates among objects, versions and delete markers; newest first within a name."""
        name, newer, since_s = "", 0, 0.0
        rows: Iterator[JsonObject | None] = chain(self._version_rows(after, note), [None])
        for row, following in pairwise(rows):
            assert row is not None, "only the last is"
            is_first = row["name"] != name
            modified_s = row_timestamp(str(row["last_modified"])).seconds
            if is_first:
                name, newer, since_s = str(row["name"]), 0, modified_s
            is_latest = bool(row.get("is_latest"))
            unit = None
            if is_latest:
                is_single = is_first and (following is None or following["name"] != name)
                unit = self._current_candidate(row, modified_s, is_single=is_single)
            elif not is_first:
                # The newest version is not current since an unknown time: an older one was restored.
                unit = self._noncurrent_candidate(row, since_s, newer)
            newer += not is_latest
            since_s = modified_s
            if unit is not None:
                yield unit

    def _current_candidate(self, row: JsonObject, modified_s: float, *, is_single: bool) -> Unit | None:
        key = str(row["name"])
        if row.get("content_type") != DELETE_MARKER_TYPE:
            return (
                CurrentCandidate(self._entry, self._rules, key) if self._may_be_due(row, modified_s) else None
            )
        if not is_single or not is_delete_marker_expired(self._rules, key, modified_s, self._now_s):
            return None
        return NoncurrentCandidate(self._entry, (), key, str(row["version_id"]), is_marker=True)

    def _noncurrent_candidate(self, row: JsonObject, since_s: float, newer: int) -> Unit | None:
        key, is_marker = str(row["name"]), row.get("content_type") == DELETE_MARKER_TYPE
        found = expired_noncurrent_rules(
            self._rules, key, int(row["bytes"]), since_s=since_s, newer=newer, now_s=self._now_s
        )
        if is_marker:
            # It has no tags.
            found = [rule for rule in found if not rule.tags]
        if not found:
            return None if is_marker else self._transition_candidate(row, since_s, newer)
        return NoncurrentCandidate(self._entry, found, key, str(row["version_id"]), is_marker)

    def _transition_candidate(self, row: JsonObject, since_s: float, newer: int) -> Unit | None:
        key, size, storage_class = str(row["name"]), int(row["bytes"]), row_storage_class(row)
        if not due_noncurrent_storage_class(
            self._rules, key, size, since_s, self._now_s, storage_class, newer=newer
        ):
            return None
        return TransitionCandidate(self._entry, self._rules, key, str(row["version_id"]), since_s, newer)

    def _version_rows(self, after: str, note: NoteProgress) -> Iterator[JsonObject]:
        done = after
        for rows in self._client.pages(self._entry.path, size=self._page_size, versions=True, marker=after):
            yield from rows
            # More versions of the last name may follow.
            last = rows[-1]["name"]
            done = max((str(row["name"]) for row in rows if row["name"] != last), default=done)
            if done:
                note(done)

    # --- uploads --------------------------------------------------------------------------------------

    def upload_candidates(self, after: str, note: NoteProgress) -> Iterator[Unit]:
        """Yield multipart uploads that rules abort, several at a time."""

        def is_due(key: str, begun_s: float) -> bool:
            return is_upload_expired(self._rules, key, begun_s, self._now_s)

        return self._find_uploads(after, note, is_due)

    def upload_candidates_before(self, before_s: float) -> Iterator[Unit]:
        """Yield all multipart uploads that began before a time, several at a time."""
        return self._find_uploads("", lambda _name: None, lambda _key, begun_s: begun_s < before_s)

    def _find_uploads(
        self, after: str, note: NoteProgress, is_due: Callable[[str, float], bool]
    ) -> Iterator[Unit]:
        segments = EntityPath(self._entry.account, segments_container(self._entry.bucket))
        found: list[tuple[str, str]] = []
        for rows in self._client.pages(segments, size=self._page_size, marker=after):
            for row in rows:
                key, slash, upload_id = str(row["name"]).rpartition("/")
                if not slash or upload_id.isdigit() or not key:
                    continue
                begun_s = row_timestamp(str(row["last_modified"])).seconds
                if is_due(key, begun_s):
                    found.append((key, upload_id))
            while len(found) >= UPLOADS_PER_UNIT:
                yield UploadCandidates(self._entry, found[:UPLOADS_PER_UNIT])
                found = found[UPLOADS_PER_UNIT:]
            note(str(rows[-1]["name"]))
        if found:
            yield UploadCandidates(self._entry, found)
