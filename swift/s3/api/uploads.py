"""Multipart uploads as they lie in Swift: the container of parts, markers, names (spec: middleware.md §20).

``<bucket>+segments`` holds a marker ``<key>/<upload id>`` for every upload that is going on and its parts
``<key>/<upload id>/<number>``; those of an object of another storage class than the bucket's are in
``<bucket>+<class>+segments``. The object itself is a static large object over the parts.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import unhexlify
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from hashlib import md5
from typing import NamedTuple, Protocol
from urllib.parse import quote
from uuid import uuid4

from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.api.call import Call
from swift.s3.api.checksums import ALGORITHMS, Algorithm
from swift.s3.api.metadata import DELETE_MARKER_TYPE, EMPTY_MD5, copied_metadata, is_large, row_override
from swift.s3.errors import S3Error, refusal
from swift.s3.names import KEY_BYTES_MAX, own_parts, segments_of

MARKER_TYPE = "application/directory"
#: System metadata of a marker in which our own clients' wishes for the checksum stand: ``CRC32 COMPOSITE``.
REQUESTED_CHECKSUM = fields.SYSMETA_S3_CHECKSUM
_ID_MAX = 128
#: Digits of a part's number at the end of the name of an object that was uploaded again.
NUMBER_DIGITS = 9


class RequestedChecksum(NamedTuple):
    """The checksum that the object of an upload is to have."""

    algorithm: Algorithm
    kind: str


def new_upload_id() -> str:
    """Return the URL-safe base64 of a UUID's text."""
    return urlsafe_b64encode(str(uuid4()).encode()).decode("ascii")


def upload_id_of(call: Call) -> str:
    """Return the upload that a request names; raise ``S3Error``."""
    upload_id = call.text_param("uploadId")
    if not is_upload_id(upload_id):
        call.session.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return upload_id


def is_upload_id(text: str) -> bool:
    """Return True if an upload could be called so."""
    try:
        return (
            len(text) <= _ID_MAX
            and "/" not in text
            and bool(urlsafe_b64decode(text.encode("ascii")).decode("ascii"))
        )
    except ValueError:
        return False


def no_such_upload(upload_id: str) -> S3Error:
    """Return a 404 that names an upload."""
    return S3Error("NoSuchUpload", details={"UploadId": upload_id})


def part_number_of(call: Call) -> int:
    """Return the part that a request names; raise ``S3Error``."""
    text, most = call.params["partNumber"], call.settings.max_upload_part_num
    if not is_digits(text) or len(text) > 9 or not 1 <= int(text) <= most:
        raise S3Error(
            "InvalidArgument",
            f"Part number must be an integer between 1 and {most}, inclusive",
            details={"ArgumentName": "partNumber", "ArgumentValue": text},
        )
    return int(text)


def marker_of(key: str, upload_id: str) -> str:
    """Return the marker of an upload."""
    return f"{key}/{upload_id}"


def part_of(key: str, upload_id: str, number: int) -> str:
    """Return a part of an upload; raise ``S3Error`` when no object can be called so."""
    name = f"{key}/{upload_id}/{number}"
    if len(name.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")
    return name


def number_of(name: str) -> int | None:
    """Return the part of which an object is, by its name behind the marker's; None if it is none."""
    if not (name.isascii() and name.isdigit()):
        return None
    return int(name[-NUMBER_DIGITS:])


def requested_checksum(headers: HeaderMap) -> RequestedChecksum | None:
    """Return the checksum in the marker of an upload, None if its client requested none."""
    name, _, kind = headers.get(REQUESTED_CHECKSUM, "").partition(" ")
    return RequestedChecksum(ALGORITHMS[name], kind) if name in ALGORITHMS and kind else None


def rows_of(
    call: Call,
    container: str,
    *,
    prefix: str = "",
    marker: str = "",
    limit: int = 0,
    only_markers: bool = False,
) -> list[dict[str, object]]:
    """Return rows of a listing, none of a container that is not there; raises ``S3Error``.

    With ``only_markers`` the container servers leave out parts; those of OpenStack Swift do not.
    """
    query = "format=json"
    requested = {"prefix": prefix, "marker": marker, "limit": str(limit or "")}
    headers = {fields.BACKEND_LISTING_DIRECTORIES: "true"} if only_markers else None
    for name, value in requested.items():
        if value:
            query += f"&{name}={quote(value, safe='', errors='surrogateescape')}"
    with call.session.ask("GET", container, headers=headers, query=query) as response:
        if response.status == 404:
            return []
        if not response.is_success:
            raise refusal(response.status)
        return list(json.loads(response.read_body())) if response.status == 200 else []


def whole_etag(etags: Sequence[str]) -> str:
    """Return the ETag of an object of parts, unquoted; raises ValueError for what is no MD5."""
    digest = md5(b"".join(unhexlify(etag) for etag in etags), usedforsecurity=False).hexdigest()
    return f"{digest}-{len(etags)}"


# --- the state of an upload ---------------------------------------------------------------------------
# An upload is *open*, *completing*, or gone with its marker. The marker's body is a ``Record``: which
# part objects count where a part was uploaded again, and the decision to complete. Every change is
# made on the condition that the marker's data is what was read (``X-Backend-If-Predecessor``,
# decision 0011), so of several requests that end or change an upload one wins. Nodes of OpenStack
# Swift keep no conditions: ``Swap.WEAK``.
#
# Proxies and the lifecycle daemon share this module: they differ in ``Objects`` alone.

#: A decision is carried out for so long; later the tombstone of a deleted object may be reclaimed, and the
#: object would come back.
DECISION_S = 5 * 86400.0
#: Answers after which a write may have been done.
_UNCERTAIN = (408, 409, 429, 499)


class Unavailable(SwiftError):
    """The cluster did not say what the state of an upload is, or did not change it."""

    def __init__(self, status: int):
        super().__init__(f"the marker of an upload answered {status}")
        self.status = status


class ObjectAnswer(NamedTuple):
    """The answer to a request for an object; the body only of a GET."""

    status: int
    headers: HeaderMap
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Return True for 2xx."""
        return self.status // 100 == 2


class Objects(Protocol):
    """Requests for the objects of one account; an implementation may raise errors of its own for 5xx."""

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
        """Return the answer."""


class Swap(Enum):
    """The outcome of a compare-and-swap."""

    WON = "won"
    #: The marker is not what was read: read it again.
    LOST = "lost"
    #: A node keeps no conditions; nothing was changed.
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class CompletionDecision:
    """The decision to complete an upload: whatever carries it out stores the same object at the same time."""

    #: Random: tells it from an equal decision.
    id: str
    #: The timestamp of the object that it makes, in its internal form.
    at: str
    etag: str
    #: Number and ETag of each part.
    parts: tuple[tuple[int, str], ...]
    #: Of the manifest.
    headers: HeaderMap = field(default_factory=dict)
    #: The least size of a part that is not the last one, and the object's size if the client stated it.
    size_min: int = 0
    size: int | None = None
    #: A repeat or the daemon carries it out too, so one that failed does not say that none succeeded.
    is_joined: bool = False

    def age_s(self, now_s: float) -> float:
        """Return how long ago it was made."""
        try:
            return now_s - Timestamp(self.at).seconds
        except InvalidTimestamp:
            return DECISION_S


@dataclass(frozen=True, slots=True)
class Record:
    """The body of a marker; that of a new upload is empty."""

    #: Number → name, behind the marker's, of the object that counts as this part. Others have their number.
    parts: Mapping[int, str] = field(default_factory=dict)
    decision: CompletionDecision | None = None

    def encode(self) -> bytes:
        """Return the body."""
        if not self.parts and self.decision is None:
            return b""
        document: dict[str, object] = {"parts": {str(n): name for n, name in self.parts.items()}}
        if self.decision is not None:
            document["decision"] = asdict(self.decision)
        return json.dumps(document).encode()


def parse_record(body: bytes) -> Record:
    """Return the record of a marker; raises ``Unavailable`` for what this version does not know."""
    if not body:
        return Record()
    try:
        document = json.loads(body)
        parts = {int(number): str(name) for number, name in document["parts"].items()}
        found = document.get("decision")
        if found is None:
            return Record(parts)
        named = tuple((int(number), str(etag)) for number, etag in found.pop("parts"))
        return Record(parts, CompletionDecision(parts=named, **found))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Unavailable(500)


@dataclass(frozen=True, slots=True)
class UploadState:
    """The marker of an upload as it was read."""

    bucket: str
    key: str
    id: str
    headers: HeaderMap
    record: Record

    @property
    def is_completing(self) -> bool:
        """Return True once it is decided that the upload completes."""
        return self.record.decision is not None

    @property
    def segments(self) -> str:
        """The container of its parts, which depends on the storage class of its object."""
        return segments_of(self.bucket, self.headers.get(fields.SYSMETA_S3_CLASS, ""))

    def part_name(self, number: int) -> str:
        """Return the name of the object that counts as a part."""
        other = self.record.parts.get(number)
        if other is not None:
            return f"{marker_of(self.key, self.id)}/{other}"
        return part_of(self.key, self.id, number)

    def places(self, numbers: Sequence[int]) -> list[tuple[str, str]]:
        """Return container and name of each part."""
        return [(self.segments, self.part_name(number)) for number in numbers]


# --- reading and changing -----------------------------------------------------------------------------


def read_state(
    objects: Objects, bucket: str, key: str, upload_id: str, *, is_newest: bool = True
) -> UploadState | None:
    """Return the state of an upload, None if it has no marker; raises ``Unavailable``.

    All nodes are asked for the newest state; one is enough where the state is read again later.
    """
    headers: HeaderMap = {"x-newest": "true"} if is_newest else {}
    answer = objects.send("GET", segments_of(bucket), marker_of(key, upload_id), headers)
    if answer.status == 404:
        return None
    if not answer.is_success:
        raise Unavailable(answer.status)
    return UploadState(bucket, key, upload_id, answer.headers, parse_record(answer.body))


def swap(objects: Objects, state: UploadState, record: Record, *, is_conditional: bool = True) -> Swap:
    """Give an upload another record, if it is what was read; raises ``Unavailable``."""
    body = record.encode()
    kind = state.headers.get(fields.SYSMETA_S3_CLASS, "")
    headers = copied_metadata(state.headers)
    if is_conditional:
        headers.update(_condition(state))
    if kind:
        digest = md5(body, usedforsecurity=False).hexdigest() if body else EMPTY_MD5
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = f"{digest}{row_override(kind=kind)}"
    name = marker_of(state.key, state.id)
    return _outcome(objects.send("PUT", segments_of(state.bucket), name, headers, body))


def end(objects: Objects, state: UploadState) -> Swap:
    """Remove the marker of an upload if it is what was read; raises ``Unavailable``."""
    name = marker_of(state.key, state.id)
    return _outcome(objects.send("DELETE", segments_of(state.bucket), name, _condition(state)))


def _condition(state: UploadState) -> HeaderMap:
    stamp = state.headers.get(fields.BACKEND_DATA_TIMESTAMP) or state.headers.get("x-timestamp", "0")
    return {fields.BACKEND_IF_PREDECESSOR: stamp}


def _outcome(answer: ObjectAnswer) -> Swap:
    if answer.is_success:
        return Swap.WON
    if answer.status in (404, 409, 412):
        return Swap.LOST
    if answer.status == 501:
        return Swap.WEAK
    raise Unavailable(answer.status)


def forget(objects: Objects, state: UploadState) -> None:
    """Remove the marker of an upload that has ended, whatever it says; raises ``Unavailable``."""
    answer = objects.send("DELETE", segments_of(state.bucket), marker_of(state.key, state.id))
    if not answer.is_success and answer.status != 404:
        raise Unavailable(answer.status)


# --- carrying out a decision --------------------------------------------------------------------------


def is_refused(status: int) -> bool:
    """Return True if an answer to the PUT of a manifest says that it was not stored."""
    return 400 <= status <= 499 and status not in _UNCERTAIN


def join(objects: Objects, state: UploadState) -> UploadState | None:
    """Note that a repeat carries the decision out too; the state to go on with, None if it ended meanwhile.

    Raises ``Unavailable``.
    """
    for _ in range(8):
        decision = state.record.decision
        if decision is None or decision.is_joined:
            return state
        joined = replace(state.record, decision=replace(decision, is_joined=True))
        if swap(objects, state, joined) is Swap.WEAK:
            return state
        found = read_state(objects, state.bucket, state.key, state.id)
        if found is None:
            return None
        state = found
    raise Unavailable(503)


def revert(objects: Objects, state: UploadState, decision: CompletionDecision) -> None:
    """Open an upload again whose decision could not be carried out; raises ``Unavailable``.

    If others have joined the decision, one of them may have carried it out: then the upload just ends, and
    the daemon sees to its parts.
    """
    found = read_state(objects, state.bucket, state.key, state.id)
    if found is None or found.record.decision is None or found.record.decision.id != decision.id:
        return
    if not found.record.decision.is_joined:
        if swap(objects, found, replace(found.record, decision=None)) is not Swap.LOST:
            return
        found = read_state(objects, state.bucket, state.key, state.id)
    if found is not None and found.record.decision is not None and found.record.decision.id == decision.id:
        end(objects, found)


class DecisionStatus(Enum):
    """The object of a decision, as a repeat finds it."""

    #: It is what the decision made.
    DONE = "done"
    #: It may still become that.
    TO_DO = "to do"
    #: Conditions were to be met, and the object has changed since: no repeat can say how that went.
    OVERTAKEN = "overtaken"


def decision_status(objects: Objects, state: UploadState, now_s: float) -> DecisionStatus:
    """Return how the object of a decision stands; raises ``Unavailable``."""
    decision = state.record.decision
    assert decision is not None, "only a decision is repeated"
    found = objects.send("HEAD", state.bucket, state.key, {"x-newest": "true"})
    if not found.is_success and found.status != 404:
        raise Unavailable(found.status)
    if found.is_success and found.headers.get(fields.SYSMETA_S3_UPLOAD_ID) == state.id:
        return DecisionStatus.DONE
    if decision.age_s(now_s) > DECISION_S:
        return DecisionStatus.OVERTAKEN
    is_conditional = not decision.headers.keys().isdisjoint(("if-match", "if-none-match"))
    if is_conditional and newest_state(objects, state.bucket, state.key) >= Timestamp(decision.at):
        return DecisionStatus.OVERTAKEN
    return DecisionStatus.TO_DO


def newest_state(objects: Objects, bucket: str, key: str) -> Timestamp:
    """Return the time of an object's newest state, deletions included; raises ``Unavailable``."""
    found = objects.send("HEAD", bucket, key, {"x-newest": "true"}, query="symlink=get")
    if not found.is_success and found.status != 404:
        raise Unavailable(found.status)
    stamps = [Timestamp(0)]
    for name in (fields.BACKEND_TIMESTAMP, fields.BACKEND_DATA_TIMESTAMP):
        try:
            stamps.append(Timestamp(found.headers.get(name) or 0))
        except InvalidTimestamp:
            continue
    return max(stamps)


# --- listings and references --------------------------------------------------------------------------
# A node that is away, or a row that is late, must never make a part look forgotten that is not. So the parts
# that an object and its versions name are only given where the listing of the bucket and the objects' own
# nodes agree.

#: Seconds by which an object may seem to be written later than its row.
_ROUNDING_S = 0.001
_PAGE_SIZE = 1000
#: A bucket that has one of these keeps former versions of its objects in another container by Swift's API.
_ARCHIVES = ("x-versions-location", "x-history-location", fields.SYSMETA_VERSIONS_LOCATION)


def page_of(
    client: InternalClient, path: EntityPath, size: int, *, flags: str = "", **limits: str
) -> list[JsonObject]:
    """Return rows of a listing, none when nothing is there; raise ``UnexpectedResponse``."""
    query = f"format=json&limit={size}{flags}"
    for name, text in limits.items():
        if text:
            query += f"&{name}={quote(text, safe='', errors='surrogateescape')}"
    with client.request("GET", path, query=query, accept=(2, 404)) as response:
        body = response.read_body() if response.status == 200 else b""
    rows: list[JsonObject] = json.loads(body) if body else []
    return rows


def time_of(last_modified: str) -> Timestamp:
    """Return the time of a row of a listing; now, which is never too early, for a row without one."""
    try:
        return Timestamp(datetime.fromisoformat(last_modified).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return Timestamp.now()


def version_id_query(version: str) -> str:
    """Return the query that asks for a version."""
    return f"version-id={quote(version, safe='')}"


def references(
    client: InternalClient, bucket: EntityPath, key: str, upload_id: str, *, page_size: int = _PAGE_SIZE
) -> set[tuple[str, str]] | None:
    """Return container and name of each part of an upload that an object or version of a key names.

    None if the listing and the nodes disagree, or versions are where they cannot be listed. Raises
    ``UnexpectedResponse``.
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
        if row.get("content_type") == DELETE_MARKER_TYPE:
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
    return bool(row.get("is_latest", True)) and row.get("content_type") != DELETE_MARKER_TYPE


def _manifest_query(query: str) -> str:
    return f"{query}{'&' if query else ''}multipart-manifest=get"


def _head(client: InternalClient, path: EntityPath, query: str = "") -> HeaderMap | None:
    asked = client.request("HEAD", path, {"x-newest": "true"}, query=_manifest_query(query), accept=(2, 404))
    with asked as found:
        return dict(found.headers) if found.is_success else None


def _parts(client: InternalClient, path: EntityPath, query: str) -> list[tuple[str, str]] | None:
    """Return the parts that a manifest names; None if it is none any more."""
    asked = client.request("GET", path, {"x-newest": "true"}, query=_manifest_query(query), accept=(2, 404))
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
