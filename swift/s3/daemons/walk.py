"""The registry of buckets with a lifecycle or inventories, their parts, and the walk over their listings.

The registry is an empty object for each bucket in a hidden account, as the expirer has a queue.

It is written after the rules and before they are acknowledged; what stands there in vain the daemon removes,
unless it was written again meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient
from swift.http.headers import HeaderMap
from swift.s3.api.metadata import DELETE_MARKER_TYPE, row_class
from swift.s3.api.uploads import ObjectAnswer, marker_of, number_of, page_of, time_of
from swift.s3.config.lifecyclerules import (
    LifecycleRule,
    class_by,
    is_marker_due,
    is_upload_due,
    may_be_due,
    noncurrent_class_by,
    noncurrent_rules,
)
from swift.s3.names import REGISTRY_ACCOUNT, REGISTRY_CONTAINER, registry_path, segments_of


class RegisteredBucket(NamedTuple):
    """A bucket that has, or had, a lifecycle."""

    account: str
    bucket: str
    #: When its lifecycle was set last.
    changed: Timestamp

    @property
    def name(self) -> str:
        """The name of the entry in the registry and in the cursor of a pass."""
        return f"{self.account}/{self.bucket}"

    @property
    def path(self) -> EntityPath:
        """The bucket's container."""
        return EntityPath(self.account, self.bucket)


def registered_buckets(client: InternalClient) -> Iterator[RegisteredBucket]:
    """Return all of them, in the order of their names; raise ``UnexpectedResponse``."""
    for row in client.objects(REGISTRY_ACCOUNT, REGISTRY_CONTAINER):
        account, slash, bucket = str(row.get("name", "")).partition("/")
        if slash and account and bucket:
            yield RegisteredBucket(account, bucket, time_of(str(row.get("last_modified", ""))))


def unregister_bucket(client: InternalClient, entry: RegisteredBucket) -> None:
    """Remove an entry, unless it was written again; raises ``UnexpectedResponse``."""
    stamp = entry.changed.above(1).internal
    path = registry_path(entry.account, entry.bucket)
    client.delete(path, {"x-timestamp": stamp}, accept=(2, 404, 409))


# --- parts --------------------------------------------------------------------------------------------


class DaemonObjects:
    """``Objects`` with all rights; raises ``UnexpectedResponse`` for 5xx but 501."""

    def __init__(self, client: InternalClient, account: str):
        self._client = client
        self._account = account

    def send(
        self,
        method: str,
        container: str,
        name: str,
        headers: HeaderMap | None = None,
        body: bytes = b"",
        *,
        query: str = "",
    ) -> ObjectAnswer:
        """See ``Objects``."""
        path = EntityPath(self._account, container, name)
        with self._client.request(method, path, headers, body, query=query, accept=(2, 4, 501)) as response:
            content = response.read_body() if method == "GET" and response.is_success else b""
            return ObjectAnswer(response.status, response.headers, content)


def remove_parts(
    client: InternalClient,
    segments: EntityPath,
    key: str,
    upload_id: str,
    but: Collection[tuple[str, str]] = (),
) -> list[int]:
    """Remove the objects of an upload's parts, but some, each (container, name); the statuses.

    Raises ``UnexpectedResponse``.
    """
    prefix = f"{marker_of(key, upload_id)}/"
    statuses = []
    for row in client.listing(segments, prefix=prefix):
        name = str(row["name"])
        # A longer name is of an upload of another key.
        if number_of(name[len(prefix) :]) is not None and (str(segments.container), name) not in but:
            statuses.append(client.delete(segments._replace(obj=name), accept=(2, 403, 404, 409)))
    return statuses


# --- the walk -----------------------------------------------------------------------------------------
# Listings say names, sizes and times. What they do not say (tags), and what may have changed since, the
# rule that ends something looks at again.

#: Uploads that are aborted together.
UPLOADS_AT_ONCE = 100

#: Told the last name that is done, page by page.
Note = Callable[[str], object]


class CurrentCandidate(NamedTuple):
    """An object that may have ended."""

    entry: RegisteredBucket
    rules: Sequence[LifecycleRule]
    key: str


class NoncurrentCandidate(NamedTuple):
    """A version that is not current, or a delete marker, that may have ended; ``rules`` are about it."""

    entry: RegisteredBucket
    rules: Sequence[LifecycleRule]
    key: str
    version: str
    is_marker: bool


class TransitionCandidate(NamedTuple):
    """A version that is not current, whose storage class may be another by now."""

    entry: RegisteredBucket
    rules: Sequence[LifecycleRule]
    key: str
    version: str
    #: Since when it is not current, and how many versions like it are newer.
    since_s: float
    newer: int


class UploadCandidates(NamedTuple):
    """Multipart uploads that were begun long ago: keys and ids."""

    entry: RegisteredBucket
    uploads: Sequence[tuple[str, str]]


#: What a pass does at a time.
Unit = CurrentCandidate | NoncurrentCandidate | TransitionCandidate | UploadCandidates


class Walk:
    """Over one bucket, at one moment."""

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

    def objects(self, after: str, note: Note) -> Iterator[Unit]:
        """Return objects of a bucket without versions; ``after`` is the name that was done last."""
        marker = after
        while rows := self._page(self._entry.path, marker=marker):
            for row in rows:
                modified_s = time_of(str(row["last_modified"])).seconds
                if self._is_due(row, modified_s):
                    yield CurrentCandidate(self._entry, self._rules, row["name"])
            marker = str(rows[-1]["name"])
            note(marker)

    def _is_due(self, row: JsonObject, modified_s: float) -> bool:
        """Return True if an object may have ended, or may have another storage class by now."""
        key, size, now_s = str(row["name"]), int(row["bytes"]), self._now_s
        return may_be_due(self._rules, key, size, modified_s, now_s) or bool(
            class_by(self._rules, key, size, modified_s, now_s, row_class(row))
        )

    def versions(self, after: str, note: Note) -> Iterator[Unit]:
        """Objects, their versions and the marks of deletions; newest first within a name."""
        name, newer, since_s = "", 0, 0.0
        rows: Iterator[JsonObject | None] = chain(self._version_rows(after, note), [None])
        for row, following in pairwise(rows):
            assert row is not None, "only the last is"
            is_first = row["name"] != name
            modified_s = time_of(str(row["last_modified"])).seconds
            if is_first:
                name, newer, since_s = str(row["name"]), 0, modified_s
            is_latest = bool(row.get("is_latest"))
            unit = None
            if is_latest:
                is_alone = is_first and (following is None or following["name"] != name)
                unit = self._latest(row, modified_s, is_alone=is_alone)
            elif not is_first:
                # The newest version is not current since an unknown time: an older one was restored.
                unit = self._former(row, since_s, newer)
            newer += not is_latest
            since_s = modified_s
            if unit is not None:
                yield unit

    def _latest(self, row: JsonObject, modified_s: float, *, is_alone: bool) -> Unit | None:
        key = str(row["name"])
        if row.get("content_type") != DELETE_MARKER_TYPE:
            return CurrentCandidate(self._entry, self._rules, key) if self._is_due(row, modified_s) else None
        if not is_alone or not is_marker_due(self._rules, key, modified_s, self._now_s):
            return None
        return NoncurrentCandidate(self._entry, (), key, str(row["version_id"]), is_marker=True)

    def _former(self, row: JsonObject, since_s: float, newer: int) -> Unit | None:
        key, is_marker = str(row["name"]), row.get("content_type") == DELETE_MARKER_TYPE
        found = noncurrent_rules(
            self._rules, key, int(row["bytes"]), since_s=since_s, newer=newer, now_s=self._now_s
        )
        if is_marker:
            # It has no tags.
            found = [rule for rule in found if not rule.tags]
        if not found:
            return None if is_marker else self._aged(row, since_s, newer)
        return NoncurrentCandidate(self._entry, found, key, str(row["version_id"]), is_marker)

    def _aged(self, row: JsonObject, since_s: float, newer: int) -> Unit | None:
        key, size, kind = str(row["name"]), int(row["bytes"]), row_class(row)
        if not noncurrent_class_by(self._rules, key, size, since_s, self._now_s, kind, newer=newer):
            return None
        return TransitionCandidate(self._entry, self._rules, key, str(row["version_id"]), since_s, newer)

    def _version_rows(self, after: str, note: Note) -> Iterator[JsonObject]:
        marker, version, done = after, "", after
        while rows := self._page(
            self._entry.path, marker=marker, version_marker=version, flags="&versions=true"
        ):
            yield from rows
            marker, version = str(rows[-1]["name"]), str(rows[-1].get("version_id", "null"))
            # The versions of the last name may go on.
            done = max((str(row["name"]) for row in rows if row["name"] != marker), default=done)
            if done:
                note(done)

    # --- uploads --------------------------------------------------------------------------------------

    def uploads(self, after: str, note: Note) -> Iterator[Unit]:
        """Multipart uploads that rules end, some at a time."""

        def is_due(key: str, begun_s: float) -> bool:
            return is_upload_due(self._rules, key, begun_s, self._now_s)

        return self._uploads(after, note, is_due)

    def uploads_before(self, before_s: float) -> Iterator[Unit]:
        """Return all multipart uploads that were begun before a time, some at a time."""
        return self._uploads("", lambda _name: None, lambda _key, begun_s: begun_s < before_s)

    def _uploads(self, after: str, note: Note, is_due: Callable[[str, float], bool]) -> Iterator[Unit]:
        segments = EntityPath(self._entry.account, segments_of(self._entry.bucket))
        found: list[tuple[str, str]] = []
        marker = after
        while rows := self._page(segments, marker=marker):
            for row in rows:
                key, slash, upload_id = str(row["name"]).rpartition("/")
                if not slash or upload_id.isdigit() or not key:
                    continue
                begun_s = time_of(str(row["last_modified"])).seconds
                if is_due(key, begun_s):
                    found.append((key, upload_id))
            marker = str(rows[-1]["name"])
            while len(found) >= UPLOADS_AT_ONCE:
                yield UploadCandidates(self._entry, found[:UPLOADS_AT_ONCE])
                found = found[UPLOADS_AT_ONCE:]
            note(marker)
        if found:
            yield UploadCandidates(self._entry, found)

    # --- pages ----------------------------------------------------------------------------------------

    def _page(self, path: EntityPath, *, flags: str = "", **limits: str) -> list[JsonObject]:
        return page_of(self._client, path, self._page_size, flags=flags, **limits)
