"""CompleteMultipartUpload: combines the parts to one object (spec: middleware.md §20).

slo stores the manifest and checks every part, so the object appears at once and complete. A repeated
completion gets the same response again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import uuid4

from swift import green
from swift.base.digits import is_digits
from swift.base.etag import unquote_etag
from swift.base.timestamp import Timestamp
from swift.gateway.subrequest import open_response
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.api.encryption import AES256, KEY_METADATA, SSE_HEADER, completed_key_metadata
from swift.s3.api.multipart import remove_parts, require_multipart
from swift.s3.api.objectlock import completed_lock_metadata, lock_parts
from swift.s3.api.placement import manifest_request
from swift.s3.api.writes import checksum_elements, expiry_headers, parse_write_conditions, precondition_error
from swift.s3.config.notifications import enqueue_event
from swift.s3.core.call import Call, Handler, invalid_argument, respond_with_keep_alive, xml_response
from swift.s3.core.checksums import (
    ALGORITHMS,
    CHECKSUM_ELEMENTS,
    CHECKSUM_HEADER_PREFIX,
    COMPOSITE,
    FULL_OBJECT,
    Algorithm,
    decode_checksum,
    default_algorithm,
    encode_checksum,
    parse_declared_checksum,
    validate_checksum_type,
)
from swift.s3.core.errors import S3Error, error_for_status, invalid_request
from swift.s3.core.metadata import CONTENT_HEADERS, DEFAULT_CONTENT_TYPE, manifest_headers
from swift.s3.core.names import segments_container
from swift.s3.core.uploadstate import (
    SWAPS_MAX,
    CallerObjectClient,
    CompletionDecision,
    DecisionStatus,
    RequestedChecksum,
    SwapOutcome,
    SwapTries,
    UploadState,
    end_upload,
    join_decision,
    marker_name,
    multipart_etag,
    newest_timestamp,
    no_such_upload,
    parse_requested_checksum,
    parse_upload_id,
    read_decision_status,
    read_upload_state,
    revert_decision,
    swap_record,
)
from swift.s3.core.xml import Group, RepeatedGroup, Text, Tree, Value, text_of, texts, trees_of

COMPLETE_UPLOAD = Group(
    "CompleteMultipartUpload",
    RepeatedGroup(
        "Part",
        Text("PartNumber", required=True),
        Text("ETag", required=True),
        *CHECKSUM_ELEMENTS,
        required=True,
    ),
)
COMPLETE_RESULT = Group(
    "CompleteMultipartUploadResult",
    *texts("Location Bucket Key ETag"),
    *CHECKSUM_ELEMENTS,
    Text("ChecksumType"),
)
#: Bytes of a document that names one part.
_BYTES_PER_PART = 512
_CONCURRENT_HEADS = 8
#: Seconds by which the timestamp of a state that a completion replaces may be ahead of this clock.
_CLOCK_AHEAD_MAX_S = 60.0
#: 4xx errors after which the object may have been stored.
_UNCERTAIN_CODES = frozenset(("RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "SlowDown"))


#: (container, name) of a part → the headers of its HEAD.
PartHeads = dict[tuple[str, str], HeaderMap]


@dataclass(frozen=True, slots=True)
class RequestedPart:
    """A part as named in the request."""

    number: int
    etag: str
    #: Its checksum of the upload's kind; empty when it names none.
    checksum: str


def complete_upload(call: Call) -> Response:
    """CompleteMultipartUpload; the response begins with spaces if it takes long."""
    require_multipart(call)
    upload_id = parse_upload_id(call)
    conditions = parse_write_conditions(call.headers)
    expiry_headers(call.headers)
    size = _parse_object_size(call)
    _validate_checksum_headers(call.headers)
    tree = call.parse_body(COMPLETE_UPLOAD, limit=call.settings.max_upload_part_num * _BYTES_PER_PART + 4096)
    state = read_upload_state(call, upload_id)
    if state is None:
        parts = _parse_parts(call, tree, None)
        return _repeated_response(call, upload_id, multipart_etag([part.etag for part in parts]))
    requested = parse_requested_checksum(state.headers)
    if requested is not None:
        _validate_object_checksum(call, requested)
    parts = _parse_parts(call, tree, requested)
    return respond_with_keep_alive(
        call, lambda: _decide_and_store(call, state, parts, requested, conditions, size)
    )


# --- parsing the request ------------------------------------------------------------------------------


def _parse_parts(call: Call, tree: Tree, requested: RequestedChecksum | None) -> list[RequestedPart]:
    parts: list[RequestedPart] = []
    for item in trees_of(tree.get("Part")):
        text, etag = text_of(item.get("PartNumber")), unquote_etag(text_of(item.get("ETag"))).lower()
        if not is_digits(text.removeprefix("-")) or len(text) > 9:
            raise S3Error("MalformedXML")
        number = int(text)
        if number < 1:
            raise invalid_argument("PartNumber", text, "PartNumber must be >= 1")
        if number > call.settings.max_upload_part_num:
            raise invalid_argument("PartNumber", text)
        if parts and number <= parts[-1].number:
            raise S3Error("InvalidPartOrder", details={"UploadId": call.params.get("uploadId", "")})
        if len(etag) != 32 or not all(letter in "0123456789abcdef" for letter in etag):
            raise _invalid_part_error(call, number, etag)
        checksum = _parse_part_checksum(item, number, requested) if requested is not None else ""
        parts.append(RequestedPart(number, etag, checksum))
    return parts


def _parse_part_checksum(item: Tree, number: int, requested: RequestedChecksum) -> str:
    """Return the checksum that the request has for a part, empty if optional; raise ``S3Error``."""
    given = [algorithm for algorithm in ALGORITHMS.values() if algorithm.element in item]
    texts = [text_of(item[algorithm.element]) for algorithm in given]
    if len(given) > 1 or any(
        decode_checksum(algorithm, text) is None for algorithm, text in zip(given, texts, strict=True)
    ):
        text = "Invalid Base64 or multiple checksums present in request"
        raise invalid_argument("Checksum", texts[0], text)
    if given and given[0] is not requested.algorithm:
        name = given[0].name.lower()
        text = f"The {name} you specified for part {number} did not match what we received."
        raise S3Error("BadDigest", text)
    if not given and requested.checksum_type == COMPOSITE:
        text = (
            f"The upload was created using a {requested.algorithm.name.lower()} checksum. The complete "
            "request must include the checksum for each part. It was missing for part "
            f"{number} in the request."
        )
        raise invalid_request(text)
    return texts[0] if texts else ""


def _parse_object_size(call: Call) -> int | None:
    """Return the object's size as declared in the request, None without; raise ``S3Error``."""
    text = call.headers.get("x-amz-mp-object-size")
    if text is None:
        return None
    if not is_digits(text.removeprefix("-")):
        raise invalid_request(f"Value for x-amz-mp-object-size header is invalid: '{text}'")
    if text.startswith("-"):
        text = f"Value for x-amz-mp-object-size header is less than zero: '{text}'"
        raise invalid_request(text)
    return int(text)


def _validate_checksum_headers(headers: HeaderMap) -> None:
    """Raise ``S3Error`` for invalid checksum headers."""
    stated = {
        name: text.partition("-")[0]
        if name.startswith(CHECKSUM_HEADER_PREFIX) and not name.endswith("-type")
        else text
        for name, text in headers.items()
    }
    parse_declared_checksum(stated)


def _validate_object_checksum(call: Call, requested: RequestedChecksum) -> None:
    """Raise ``S3Error`` for checksum headers that do not fit the upload's checksum."""
    kind = call.headers.get(f"{CHECKSUM_HEADER_PREFIX}type")
    if kind is not None:
        validate_checksum_type(kind)
        if kind.upper() != requested.checksum_type:
            text = (
                f"The upload was created using the {requested.checksum_type} checksum mode. The complete "
                "request must use the same checksum mode."
            )
            raise invalid_request(text)
    for algorithm in ALGORITHMS.values():
        _, dash, count = call.headers.get(algorithm.header, "").partition("-")
        if dash and not (requested.checksum_type == COMPOSITE and is_digits(count)):
            raise invalid_request(f"Value for {algorithm.header} header is invalid.")


def _invalid_part_error(call: Call, number: int, etag: str) -> S3Error:
    upload_id = call.params.get("uploadId", "")
    return S3Error("InvalidPart", details={"PartNumber": number, "ETag": etag, "UploadId": upload_id})


def _repeated_response(call: Call, upload_id: str, etag: str) -> Response:
    """Return the response if the upload has become the object already; raise ``S3Error`` if it has not."""
    head = call.session.head(call.bucket, call.key)
    headers = head.headers
    same = (
        headers.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id and headers.get(fields.SYSMETA_S3_ETAG) == etag
    )
    if not head.is_success or not same:
        call.session.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return _result(call, etag, headers, headers.get("x-object-version-id", ""))


def _result(call: Call, etag: str, headers: HeaderMap, version: str) -> Response:
    """Return the response for an object with these headers."""
    request = call.request
    url = f"{request.scheme}://{request.headers.get('host', 'localhost')}{request.raw_path}"
    value: dict[str, Value] = {
        "Location": url,
        "Bucket": call.bucket,
        "Key": call.key,
        "ETag": f'"{etag}"',
        **checksum_elements(headers),
    }
    response_headers: HeaderMap = (
        {SSE_HEADER: AES256} if call.features.encryption and KEY_METADATA not in headers else {}
    )
    if version not in ("", "null"):
        response_headers["x-amz-version-id"] = version
    return xml_response(COMPLETE_RESULT, value, headers=response_headers)


# --- doing it -----------------------------------------------------------------------------------------


def _decide_and_store(
    call: Call,
    state: UploadState,
    parts: Sequence[RequestedPart],
    requested: RequestedChecksum | None,
    conditions: HeaderMap,
    size: int | None,
) -> Response:
    """Decide that the upload completes and store the object; follow an existing decision (0020)."""
    objects, tries = CallerObjectClient(call.session), SwapTries()
    etag = multipart_etag([part.etag for part in parts])
    for _ in range(SWAPS_MAX):
        known = state.record.decision
        if known is not None:
            return _follow_decision(call, state, parts)
        heads: PartHeads = {}
        decision = _make_decision(call, state, parts, requested, conditions, size, heads)
        decided = replace(state, record=replace(state.record, decision=decision))
        outcome = swap_record(objects, state, decided.record)
        if not outcome.is_open:
            is_unconditional = outcome is SwapOutcome.UNSUPPORTED
            # Without conditional writes a part may have been replaced meanwhile, so slo reads it again.
            version = _store_decided_object(
                call, decided, parts, {} if is_unconditional else heads, is_unconditional=is_unconditional
            )
            return _finish_upload(call, decided, version)
        tries.pause(outcome)
        found = read_upload_state(call, state.id)
        if found is None:
            return _repeated_response(call, state.id, etag)
        state = found
    raise S3Error("ServiceUnavailable")


def _make_decision(
    call: Call,
    state: UploadState,
    parts: Sequence[RequestedPart],
    requested: RequestedChecksum | None,
    conditions: HeaderMap,
    size: int | None,
    heads: PartHeads,
) -> CompletionDecision:
    """Return the decision to make the object from these parts; raise ``S3Error`` if they do not match.

    The headers of the parts that are read are added to ``heads``.
    """
    marker, etag = state.headers, multipart_etag([part.etag for part in parts])
    sums = _read_part_checksums(
        call, parts, state.part_locations([part.number for part in parts]), requested, heads
    )
    if requested is None:
        requested = _default_checksum(sums)
    headers = {
        "content-type": DEFAULT_CONTENT_TYPE,
        **_object_metadata(marker),
        **conditions,
        **expiry_headers(call.headers),
        "accept": "application/json",
    }
    headers.update(completed_key_metadata(marker))
    headers.update(manifest_headers(marker.get(fields.SYSMETA_S3_CLASS, ""), state.id, etag))
    if requested is not None:
        checksum = _object_checksum(call, sums, requested)
        headers[fields.SYSMETA_S3_CHECKSUM] = (
            f"{requested.algorithm.name} {requested.checksum_type} {checksum}"
        )
    headers.update(completed_lock_metadata(call, marker))
    return CompletionDecision(
        id=uuid4().hex,
        at=_object_timestamp(call).internal,
        etag=etag,
        parts=_numbers_and_etags(parts),
        headers=headers,
        size_min=call.settings.min_segment_size,
        size=size,
    )


def _object_metadata(marker: Mapping[str, str]) -> HeaderMap:
    """Return the metadata that an object takes from its upload's marker."""
    also = (fields.TRANSIENT_S3_TAGGING, fields.SYSMETA_S3_REDIRECT, fields.SYSMETA_S3_UPLOAD_HEADERS)
    found = {
        name: value
        for name, value in marker.items()
        if name.startswith("x-object-meta-") or name in (*CONTENT_HEADERS, *also)
    }
    if marker.get(fields.SYSMETA_S3_HAS_CONTENT_TYPE) == "yes":
        found["content-type"] = marker.get(fields.SYSMETA_S3_CONTENT_TYPE, "")
    acl = marker.get(fields.SYSMETA_S3_UPLOAD_ACL)
    if acl:
        found[fields.SYSMETA_S3_OBJECT_ACL] = acl
    return found


def _numbers_and_etags(parts: Sequence[RequestedPart]) -> tuple[tuple[int, str], ...]:
    return tuple((part.number, part.etag) for part in parts)


def _object_timestamp(call: Call) -> Timestamp:
    """Return the object's timestamp: now, or just above a newer state within the tolerated clock skew."""
    now = Timestamp.now()
    newest = newest_timestamp(CallerObjectClient(call.session), call.bucket, call.key)
    return newest.above(1) if now <= newest and newest.seconds < now.seconds + _CLOCK_AHEAD_MAX_S else now


def _follow_decision(call: Call, state: UploadState, parts: Sequence[RequestedPart]) -> Response:
    """Return the response to a completion that was decided before; raise ``S3Error`` if its parts differ."""
    objects = CallerObjectClient(call.session)
    joined = join_decision(objects, state)
    if joined is None:
        return _repeated_response(call, state.id, multipart_etag([part.etag for part in parts]))
    decision = joined.record.decision
    if decision is None or decision.parts != _numbers_and_etags(parts):
        raise no_such_upload(state.id)
    found = read_decision_status(objects, joined, time.time())
    if found is DecisionStatus.OVERTAKEN:
        end_upload(objects, joined)
        raise no_such_upload(state.id)
    if found is DecisionStatus.DONE:
        head = call.session.head(call.bucket, call.key)
        return _finish_upload(call, joined, head.headers.get("x-object-version-id", ""))
    return _finish_upload(
        call, joined, _store_decided_object(call, joined, parts, {}, is_unconditional=False)
    )


def _store_decided_object(
    call: Call,
    state: UploadState,
    parts: Sequence[RequestedPart],
    heads: PartHeads,
    *,
    is_unconditional: bool,
) -> str:
    """Store the object of a decision and return its version; raise ``S3Error``.

    After an error the upload may be open again.
    """
    decision = state.record.decision
    assert decision is not None, "only decisions are carried out"
    headers = dict(decision.headers)
    if not is_unconditional:
        headers["x-timestamp"] = decision.at
    conditions: HeaderMap = {n: headers[n] for n in ("if-match", "if-none-match") if n in headers}
    places = state.part_locations([number for number, _ in decision.parts])
    try:
        return _store_manifest(call, parts, places, headers, conditions, decision.size, heads)
    except S3Error as error:
        if not is_unconditional and error.status < 500 and error.code not in _UNCERTAIN_CODES:
            revert_decision(CallerObjectClient(call.session), state, decision)
        raise


def _finish_upload(call: Call, state: UploadState, version: str) -> Response:
    """Delete the marker and unused parts of a completed upload and return the response."""
    decision = state.record.decision
    assert decision is not None, "only decisions end so"
    headers, etag = decision.headers, decision.etag
    places = state.part_locations([number for number, _ in decision.parts])
    if fields.TRANSIENT_S3_LOCK in headers:
        lock_parts(call, places, {fields.TRANSIENT_S3_LOCK: headers[fields.TRANSIENT_S3_LOCK]})
    with call.session.open_response(
        "DELETE", segments_container(call.bucket), marker_name(call.key, state.id)
    ) as response:
        if not response.is_success and response.status != 404:
            call.log.warning(
                f"cannot delete the marker of completed upload {state.id}: status {response.status}"
            )
    try:
        remove_parts(call, state, but=places)
    except S3Error as error:
        call.log.warning(f"cannot delete unused parts of upload {state.id}: {error}")
    enqueue_event(call, "s3:ObjectCreated:CompleteMultipartUpload", call.key, etag=etag, version=version)
    return _result(call, etag, headers, version)


def _store_manifest(
    call: Call,
    parts: Sequence[RequestedPart],
    places: Sequence[tuple[str, str]],
    headers: HeaderMap,
    conditions: HeaderMap,
    size: int | None,
    heads: PartHeads,
) -> str:
    """Let slo store the manifest and return its version; raise ``S3Error``.

    slo reads the parts that are not in ``heads``.
    """
    least = call.settings.min_segment_size

    found = 0

    def find_size_problems(entries: Sequence[dict[str, object]]) -> list[tuple[str, str]]:
        nonlocal found
        sizes = [int(str(entry.get("bytes", 0))) for entry in entries]
        found = sum(sizes)
        if size is not None and size != found:
            return [(str(entries[0]["name"]), "WrongSize")]
        return [
            (str(entry["name"]), "EntityTooSmall")
            for entry, each in zip(entries[:-1], sizes, strict=False)
            if each < least
        ]

    named = [(*place, part.etag) for place, part in zip(places, parts, strict=True)]
    sub = manifest_request(call, named, headers)
    sub.env[environkeys.SLO_MANIFEST_HOOK] = find_size_problems
    sub.env[environkeys.SLO_KNOWN_HEADS] = heads
    with open_response(call.session.send, sub) as response:
        if response.is_success:
            return response.headers.get("x-object-version-id", "")
        status, report = response.status, response.read_body()
    if status == 412 and conditions:
        raise precondition_error(call.session, call.bucket, call.key, conditions)
    if status == 409 and conditions:
        raise S3Error("ConditionalRequestConflict")
    if size is not None and found not in (0, size):
        text = (
            f"The provided 'x-amz-mp-object-size' header value {size} does not match what was computed: "
            f"{found}"
        )
        raise invalid_request(text)
    if status == 400:
        raise _manifest_error(call, parts, headers[fields.SYSMETA_S3_UPLOAD_ID], report)
    raise error_for_status(status, missing="NoSuchBucket", conflict="OperationAborted")


def _manifest_error(call: Call, parts: Sequence[RequestedPart], upload_id: str, report: bytes) -> S3Error:
    """Return the error for a manifest that slo rejected with this report."""
    try:
        problems = {str(name): str(what) for name, what in json.loads(report).get("Errors", ())}
    except (ValueError, TypeError, AttributeError):
        problems = {}
    if any(what == "EntityTooSmall" or what.startswith("Too small") for what in problems.values()):
        return S3Error("EntityTooSmall")
    bad = next(
        (p for p in parts if any(name.endswith(f"/{upload_id}/{p.number}") for name in problems)), None
    )
    return S3Error("InvalidPart") if bad is None else _invalid_part_error(call, bad.number, bad.etag)


# --- checksums ----------------------------------------------------------------------------------------


class _PartChecksum(NamedTuple):
    """The checksum stored with a part, and the part's size."""

    algorithm: Algorithm
    digest: bytes
    size: int


def _read_part_checksums(
    call: Call,
    parts: Sequence[RequestedPart],
    places: Sequence[tuple[str, str]],
    requested: RequestedChecksum | None,
    heads: PartHeads,
) -> list[_PartChecksum | None]:
    """Return the checksum of each part, None if it has none; raise ``S3Error`` if one does not match."""
    if requested is None and len(parts) > 1:
        # All but the last are too large to have the default one.
        return []
    found: dict[int, _PartChecksum | None] = {}
    left = iter(zip(parts, places, strict=True))

    def head_parts() -> None:
        for part, place in left:
            head = call.session.head(*place)
            if head.is_success:
                heads[place] = head.headers
            found[part.number] = seen = _parse_part_checksum_of_head(head)
            is_requested = (
                seen is not None and requested is not None and seen.algorithm is requested.algorithm
            )
            text = encode_checksum(seen.digest) if seen is not None else ""
            if requested is not None and (not is_requested or (part.checksum and part.checksum != text)):
                raise _invalid_part_error(call, part.number, part.etag)

    green.gather([head_parts] * min(_CONCURRENT_HEADS, len(parts)))
    return [found[part.number] for part in parts]


def _parse_part_checksum_of_head(head: Response) -> _PartChecksum | None:
    name, _, rest = head.headers.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")
    algorithm, text = ALGORITHMS.get(name), rest.partition(" ")[2]
    digest = decode_checksum(algorithm, text) if algorithm is not None and text else None
    if not head.is_success or algorithm is None or digest is None:
        return None
    return _PartChecksum(algorithm, digest, int(head.headers.get("content-length") or 0))


def _default_checksum(sums: Sequence[_PartChecksum | None]) -> RequestedChecksum | None:
    """Return the default checksum if all parts have it; None if not."""
    default = default_algorithm()
    if (
        default is None
        or not sums
        or not all(seen is not None and seen.algorithm is default for seen in sums)
    ):
        return None
    return RequestedChecksum(default, FULL_OBJECT)


def _object_checksum(call: Call, sums: Sequence[_PartChecksum | None], requested: RequestedChecksum) -> str:
    """Return the object's checksum, combined from those of its parts; raise ``S3Error``."""
    checksum = requested.algorithm.combine_parts(
        [(seen.digest, seen.size) for seen in sums if seen is not None], requested.checksum_type
    )
    stated = call.headers.get(requested.algorithm.header)
    if stated is not None and stated.partition("-")[0] != checksum.partition("-")[0]:
        raise S3Error(
            "BadDigest",
            f"The {requested.algorithm.name} you specified did not match the calculated checksum.",
        )
    return checksum


HANDLERS: dict[str, Handler] = {"CompleteMultipartUpload": complete_upload}
