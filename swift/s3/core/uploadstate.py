"""The state of multipart uploads: markers, names, and the segments container (spec: middleware.md §20).

``<bucket>+segments`` has a marker ``<key>/<upload id>`` for every upload that has not ended, and its parts
``<key>/<upload id>/<number>``. Parts of another storage class than the bucket's are in
``<bucket>+<class>+segments``. The completed object is a static large object over the parts.
"""

from __future__ import annotations

import json
import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import unhexlify
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from hashlib import md5
from itertools import chain
from typing import NamedTuple, Protocol, TypedDict, Unpack
from urllib.parse import quote
from uuid import uuid4

from swift import green
from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.pages import follow_pages
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.s3.core.call import Call
from swift.s3.core.checksums import ALGORITHMS, Algorithm
from swift.s3.core.errors import S3Error, argument_error, error_for_status
from swift.s3.core.metadata import EMPTY_MD5, metadata_for_put, row_parameters
from swift.s3.core.names import KEY_BYTES_MAX, segments_container
from swift.s3.core.session import Session

MARKER_CONTENT_TYPE = "application/directory"
#: System metadata of a marker for the requested checksum: ``CRC32 COMPOSITE``.
REQUESTED_CHECKSUM_METADATA = fields.SYSMETA_S3_CHECKSUM
_UPLOAD_ID_MAX = 128
#: Digits of a part's number at the end of the name of an object that was uploaded again.
NUMBER_DIGITS = 9


class RequestedChecksum(NamedTuple):
    """The checksum that an upload's object is to have, and its type."""

    algorithm: Algorithm
    checksum_type: str


def new_upload_id() -> str:
    """Return a new upload id: the URL-safe base64 of a UUID."""
    return urlsafe_b64encode(str(uuid4()).encode()).decode("ascii")


def parse_upload_id(call: Call) -> str:
    """Return the upload id of a request; raise ``S3Error``."""
    upload_id = call.text_param("uploadId")
    if not is_upload_id(upload_id):
        call.session.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return upload_id


def is_upload_id(text: str) -> bool:
    """Return True if the text can be an upload id."""
    try:
        return (
            len(text) <= _UPLOAD_ID_MAX
            and "/" not in text
            and bool(urlsafe_b64decode(text.encode("ascii")).decode("ascii"))
        )
    except ValueError:
        return False


def no_such_upload(upload_id: str) -> S3Error:
    """Return a 404 error that names an upload."""
    return S3Error("NoSuchUpload", details={"UploadId": upload_id})


def parse_part_number(call: Call) -> int:
    """Return the part number of a request; raise ``S3Error``."""
    text, most = call.params["partNumber"], call.settings.max_upload_part_num
    if not is_digits(text) or len(text) > 9 or not 1 <= int(text) <= most:
        reason = f"Part number must be an integer between 1 and {most}, inclusive"
        raise argument_error("partNumber", text, reason)
    return int(text)


def marker_name(key: str, upload_id: str) -> str:
    """Return the name of an upload's marker."""
    return f"{key}/{upload_id}"


def part_name(key: str, upload_id: str, number: int) -> str:
    """Return the name of an upload's part; raise ``S3Error`` if it is too long."""
    name = f"{key}/{upload_id}/{number}"
    if len(name.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")
    return name


def part_number_of_name(name: str) -> int | None:
    """Return the part number in the last element of a part's name; None for other names."""
    if not (name.isascii() and name.isdigit()):
        return None
    return int(name[-NUMBER_DIGITS:])


def parse_requested_checksum(headers: HeaderMap) -> RequestedChecksum | None:
    """Return the requested checksum in an upload's marker; None without one."""
    name, _, kind = headers.get(REQUESTED_CHECKSUM_METADATA, "").partition(" ")
    return RequestedChecksum(ALGORITHMS[name], kind) if name in ALGORITHMS and kind else None


def list_segments(
    call: Call,
    container: str,
    *,
    prefix: str = "",
    marker: str = "",
    limit: int = 0,
    only_markers: bool = False,
) -> list[JsonObject]:
    """Return rows of a container; none if it does not exist; raise ``S3Error``.

    With ``only_markers`` our container servers omit parts; those of OpenStack Swift do not.
    """
    query = "format=json"
    requested = {"prefix": prefix, "marker": marker, "limit": str(limit or "")}
    headers = {fields.BACKEND_LISTING_DIRECTORIES: "true"} if only_markers else None
    for name, value in requested.items():
        if value:
            query += f"&{name}={quote(value, safe='', errors='surrogateescape')}"
    response, rows = call.session.read_rows(container, headers=headers, query=query)
    if not response.is_success and response.status != 404:
        raise error_for_status(response.status)
    return rows


def all_segments(call: Call, container: str, prefix: str = "") -> Iterator[JsonObject]:
    """Yield all rows of a container whose names begin with a prefix; raise ``S3Error``."""
    pages = follow_pages(
        lambda marker: list_segments(call, container, prefix=prefix, marker=marker),
        "",
        lambda row: str(row["name"]),
    )
    return chain.from_iterable(pages)


def multipart_etag(etags: Sequence[str]) -> str:
    """Return the unquoted ETag of a multipart object; raise ValueError if an ETag is no MD5."""
    digest = md5(b"".join(unhexlify(etag) for etag in etags), usedforsecurity=False).hexdigest()
    return f"{digest}-{len(etags)}"


# --- the state of an upload ---------------------------------------------------------------------------
# An upload is *open*, *completing*, or gone with its marker. The marker's body is a ``MarkerRecord``: which
# part objects count where a part was uploaded again, and the decision to complete. Every change is
# made on the condition that the marker's data is what was read (``X-Backend-If-Predecessor``,
# decision 0011), so of several requests that end or change an upload one wins. Nodes of OpenStack
# Swift support no conditions: ``SwapOutcome.UNSUPPORTED``.
#
# Proxies and the lifecycle daemon share this module: they differ in ``ObjectClient`` alone.

#: Seconds for which a decision can be carried out. Later the tombstone of a deleted object may be reclaimed,
#: and the object would come back.
DECISION_VALID_S = 5 * 86400.0
#: Statuses after which a write may have happened.
_UNCERTAIN = (408, 409, 429, 499)
#: Unknown outcomes of a compare-and-swap before it fails, and the first pause after one; they double.
_UNKNOWN_MAX, _PAUSE_S = 7, 0.02
#: Tries of a compare-and-swap.
SWAPS_MAX = 50


class StateUnavailable(HTTPError):
    """The cluster could not read or change the state of an upload."""

    def __init__(self, status: int):
        super().__init__(status)
        self.args = (f"the request for an upload's marker had status {status}",)
        self.status = status


class ObjectResponse(NamedTuple):
    """The response to a request for an object; the body only of a GET."""

    status: int
    headers: HeaderMap
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """True for 2xx."""
        return self.status // 100 == 2


class ObjectContent(TypedDict, total=False):
    """Headers, body and query of a request for an object."""

    headers: HeaderMap
    body: bytes
    query: str


class ObjectClient(Protocol):
    """Requests for the objects of one account; implementations may raise their own errors for 5xx."""

    def request(
        self, method: str, container: str, name: str, **content: Unpack[ObjectContent]
    ) -> ObjectResponse:
        """Return the response."""


class SwapOutcome(Enum):
    """The outcome of a compare-and-swap."""

    WON = "won"
    #: The marker has changed: read it again.
    LOST = "lost"
    #: A node supports no conditions; nothing was changed.
    UNSUPPORTED = "weak"
    #: Other requests change the marker at the same time, or nodes fail: read it again.
    UNKNOWN = "unknown"

    @property
    def is_open(self) -> bool:
        """True if the marker must be read again."""
        return self in (SwapOutcome.LOST, SwapOutcome.UNKNOWN)


class SwapTries:
    """The tries of a compare-and-swap, which other requests may disturb."""

    def __init__(self) -> None:
        self._unknown = 0

    def pause(self, outcome: SwapOutcome) -> None:
        """Wait before the next try; raise ``StateUnavailable`` after too many unknown outcomes."""
        if outcome is SwapOutcome.UNKNOWN:
            if self._unknown == _UNKNOWN_MAX:
                raise StateUnavailable(503)
            green.sleep(_PAUSE_S * 2**self._unknown * (0.5 + random.random()))
            self._unknown += 1


@dataclass(frozen=True, slots=True)
class CompletionDecision:
    """The decision to complete an upload.

    All requests that carry it out store the same object with the same timestamp.
    """

    #: Random: distinguishes equal decisions.
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
    #: Another request or the daemon carries it out too, so one failure does not mean that all fail.
    is_joined: bool = False

    def age_s(self, now_s: float) -> float:
        """Return the age of the decision in seconds."""
        try:
            return now_s - Timestamp(self.at).seconds
        except InvalidTimestamp:
            return DECISION_VALID_S


@dataclass(frozen=True, slots=True)
class MarkerRecord:
    """The body of an upload's marker; empty for a new upload."""

    #: Part number → last element of the name of its valid object, where that is not the number.
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


def parse_record(body: bytes) -> MarkerRecord:
    """Return the record of a marker; raise ``StateUnavailable`` for unknown formats."""
    if not body:
        return MarkerRecord()
    try:
        document = json.loads(body)
        parts = {int(number): str(name) for number, name in document["parts"].items()}
        found = document.get("decision")
        if found is None:
            return MarkerRecord(parts)
        named = tuple((int(number), str(etag)) for number, etag in found.pop("parts"))
        return MarkerRecord(parts, CompletionDecision(parts=named, **found))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StateUnavailable(500)


@dataclass(frozen=True, slots=True)
class UploadState:
    """The marker of an upload as it was read."""

    bucket: str
    key: str
    id: str
    headers: HeaderMap
    record: MarkerRecord

    @property
    def is_completing(self) -> bool:
        """True if the upload was decided to complete."""
        return self.record.decision is not None

    @property
    def segments_container(self) -> str:
        """The container of its parts, which depends on the object's storage class."""
        return segments_container(self.bucket, self.headers.get(fields.SYSMETA_S3_CLASS, ""))

    def part_name(self, number: int) -> str:
        """Return the name of the valid object of a part."""
        other = self.record.parts.get(number)
        if other is not None:
            return f"{marker_name(self.key, self.id)}/{other}"
        return part_name(self.key, self.id, number)

    def part_locations(self, numbers: Sequence[int]) -> list[tuple[str, str]]:
        """Return (container, name) of each part."""
        return [(self.segments_container, self.part_name(number)) for number in numbers]


# --- reading and changing -----------------------------------------------------------------------------


def read_state(
    objects: ObjectClient, bucket: str, key: str, upload_id: str, *, is_newest: bool = True
) -> UploadState | None:
    """Return the state of an upload, None without a marker; raise ``StateUnavailable``.

    ``is_newest`` reads all nodes; one is enough if the state is read again later.
    """
    headers: HeaderMap = {"x-newest": "true"} if is_newest else {}
    answer = objects.request("GET", segments_container(bucket), marker_name(key, upload_id), headers=headers)
    if answer.status == 404:
        return None
    if not answer.is_success:
        raise StateUnavailable(answer.status)
    return UploadState(bucket, key, upload_id, answer.headers, parse_record(answer.body))


def swap_record(
    objects: ObjectClient, state: UploadState, record: MarkerRecord, *, is_conditional: bool = True
) -> SwapOutcome:
    """Replace the record of an upload if it is unchanged; raise ``StateUnavailable``."""
    body = record.encode()
    storage_class = state.headers.get(fields.SYSMETA_S3_CLASS, "")
    headers = metadata_for_put(state.headers)
    if is_conditional:
        headers.update(_unchanged_condition(state))
    if storage_class:
        digest = md5(body, usedforsecurity=False).hexdigest() if body else EMPTY_MD5
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = (
            f"{digest}{row_parameters(storage_class=storage_class)}"
        )
    name = marker_name(state.key, state.id)
    answer = objects.request("PUT", segments_container(state.bucket), name, headers=headers, body=body)
    return SwapOutcome.UNKNOWN if answer.status == 503 else _swap_outcome(answer)


def end_upload(objects: ObjectClient, state: UploadState) -> SwapOutcome:
    """Delete the marker of an upload if it is unchanged; raise ``StateUnavailable``."""
    name = marker_name(state.key, state.id)
    return _swap_outcome(
        objects.request("DELETE", segments_container(state.bucket), name, headers=_unchanged_condition(state))
    )


def _unchanged_condition(state: UploadState) -> HeaderMap:
    stamp = state.headers.get(fields.BACKEND_DATA_TIMESTAMP) or state.headers.get("x-timestamp", "0")
    return {fields.BACKEND_IF_PREDECESSOR: stamp}


def _swap_outcome(answer: ObjectResponse) -> SwapOutcome:
    if answer.is_success:
        return SwapOutcome.WON
    if answer.status in (404, 409, 412):
        return SwapOutcome.LOST
    if answer.status == 501:
        return SwapOutcome.UNSUPPORTED
    raise StateUnavailable(answer.status)


def delete_marker(objects: ObjectClient, state: UploadState) -> None:
    """Delete the marker of an upload unconditionally; raise ``StateUnavailable``."""
    answer = objects.request("DELETE", segments_container(state.bucket), marker_name(state.key, state.id))
    if not answer.is_success and answer.status != 404:
        raise StateUnavailable(answer.status)


# --- carrying out a decision --------------------------------------------------------------------------


def is_definite_failure(status: int) -> bool:
    """Return True if the status of a manifest's PUT proves that the manifest was not stored."""
    return 400 <= status <= 499 and status not in _UNCERTAIN


def join_decision(objects: ObjectClient, state: UploadState) -> UploadState | None:
    """Record that another request carries out the decision too.

    Return the new state, None if the upload ended meanwhile. Raise ``StateUnavailable``.
    """
    tries = SwapTries()
    for _ in range(SWAPS_MAX):
        decision = state.record.decision
        if decision is None or decision.is_joined:
            return state
        joined = replace(state.record, decision=replace(decision, is_joined=True))
        outcome = swap_record(objects, state, joined)
        if outcome is SwapOutcome.UNSUPPORTED:
            return state
        tries.pause(outcome)
        found = read_state(objects, state.bucket, state.key, state.id)
        if found is None:
            return None
        state = found
    raise StateUnavailable(503)


def revert_decision(objects: ObjectClient, state: UploadState, decision: CompletionDecision) -> None:
    """Open an upload again whose decision could not be carried out; raise ``StateUnavailable``.

    If other requests have joined the decision, one of them may have carried it out. The upload then ends,
    and the lifecycle daemon deletes its unused parts.
    """
    tries = SwapTries()
    for _ in range(SWAPS_MAX):
        found = read_state(objects, state.bucket, state.key, state.id)
        known = None if found is None else found.record.decision
        if found is None or known is None or known.id != decision.id:
            return
        if known.is_joined:
            end_upload(objects, found)
            return
        outcome = swap_record(objects, found, replace(found.record, decision=None))
        if not outcome.is_open:
            return
        tries.pause(outcome)


class DecisionStatus(Enum):
    """The status of a decision's object, for a repeated completion."""

    #: The object exists as decided.
    DONE = "done"
    #: The object can still be stored.
    TO_DO = "to do"
    #: The decision was conditional and the object has changed since, so the outcome is unknown.
    OVERTAKEN = "overtaken"


def read_decision_status(objects: ObjectClient, state: UploadState, now_s: float) -> DecisionStatus:
    """Return the status of a decision's object; raise ``StateUnavailable``."""
    decision = state.record.decision
    assert decision is not None, "only a decision is repeated"
    found = objects.request("HEAD", state.bucket, state.key, headers={"x-newest": "true"})
    if not found.is_success and found.status != 404:
        raise StateUnavailable(found.status)
    if found.is_success and found.headers.get(fields.SYSMETA_S3_UPLOAD_ID) == state.id:
        return DecisionStatus.DONE
    if decision.age_s(now_s) > DECISION_VALID_S:
        return DecisionStatus.OVERTAKEN
    is_conditional = not decision.headers.keys().isdisjoint(("if-match", "if-none-match"))
    if is_conditional and newest_timestamp(objects, state.bucket, state.key) >= Timestamp(decision.at):
        return DecisionStatus.OVERTAKEN
    return DecisionStatus.TO_DO


def newest_timestamp(objects: ObjectClient, bucket: str, key: str) -> Timestamp:
    """Return the timestamp of an object's newest state, deletions included; raise ``StateUnavailable``."""
    found = objects.request("HEAD", bucket, key, headers={"x-newest": "true"}, query="symlink=get")
    if not found.is_success and found.status != 404:
        raise StateUnavailable(found.status)
    stamps = [Timestamp(0)]
    for name in (fields.BACKEND_TIMESTAMP, fields.BACKEND_DATA_TIMESTAMP):
        try:
            stamps.append(Timestamp(found.headers.get(name) or 0))
        except InvalidTimestamp:
            continue
    return max(stamps)


# --- with the rights of the caller --------------------------------------------------------------------

#: Statuses that report the state of an object; 501: nodes support no conditions; 503: others change it too.
_EXPECTED_STATUSES = (404, 409, 412, 501, 503)


class CallerObjectClient:
    """``ObjectClient`` with the rights of the caller; raises ``S3Error`` for unexpected statuses."""

    def __init__(self, session: Session):
        self._session = session

    def request(
        self, method: str, container: str, name: str, **content: Unpack[ObjectContent]
    ) -> ObjectResponse:
        """Return the response; raise ``S3Error``."""
        with self._session.open_response(method, container, name, **content) as response:
            if not response.is_success and response.status not in _EXPECTED_STATUSES:
                raise error_for_status(response.status)
            body = response.read_body() if method == "GET" and response.is_success else b""
            return ObjectResponse(response.status, response.headers, body)


def read_upload_state(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState | None:
    """Return the state of an upload of the call's key, None without a marker; raise ``S3Error``."""
    objects = CallerObjectClient(call.session)
    return read_state(objects, call.bucket, call.key, upload_id, is_newest=is_newest)
