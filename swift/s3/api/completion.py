"""CompleteMultipartUpload: the parts become one object (spec: middleware.md §20).

The manifest is stored by slo, which looks at every part; so the object appears at once and whole. A client
that repeats a completion that was done hears the same again.
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
from swift.s3.api.call import Call, Handler, invalid_argument, keep_alive, xml_response
from swift.s3.api.checksums import (
    ALGORITHMS,
    COMPOSITE,
    FULL,
    PREFIX,
    Algorithm,
    check_kind,
    decoded,
    encoded,
    stated_checksum,
    usual_algorithm,
)
from swift.s3.api.encryption import AES, STORED, completed_headers
from swift.s3.api.encryption import HEADER as ENCRYPTION
from swift.s3.api.metadata import USUAL_TYPE, manifest_headers
from swift.s3.api.multipart import remove_parts, require_multipart
from swift.s3.api.objectlock import completed_lock, lock_parts
from swift.s3.api.parts import CallerObjects, find_state
from swift.s3.api.placement import manifest_request
from swift.s3.api.put import expiry_headers, unmet, writing_conditions
from swift.s3.api.uploads import (
    CompletionDecision,
    DecisionStatus,
    RequestedChecksum,
    Swap,
    UploadState,
    decision_status,
    end,
    join,
    marker_of,
    newest_state,
    no_such_upload,
    requested_checksum,
    revert,
    swap,
    upload_id_of,
    whole_etag,
)
from swift.s3.config.notifications import announce
from swift.s3.errors import S3Error, refusal
from swift.s3.names import segments_of
from swift.s3.xml import Group, Many, Text, Tree, Value, text_of, trees_of

_SUMS = tuple(Text(algorithm.element) for algorithm in ALGORITHMS.values())
COMPLETE = Group(
    "CompleteMultipartUpload",
    Many("Part", Text("PartNumber", required=True), Text("ETag", required=True), *_SUMS, required=True),
)
RESULT = Group(
    "CompleteMultipartUploadResult",
    Text("Location"),
    Text("Bucket"),
    Text("Key"),
    Text("ETag"),
    *_SUMS,
    Text("ChecksumType"),
)
#: Bytes of a document that names one part.
_BYTES_OF_ONE = 512
_LOOKERS = 8
#: Attempts to change a marker that others change in between.
_SWAPS_MAX = 50
#: So far ahead of this clock a state may be dated that a completion supersedes, seconds.
_AHEAD_S = 60.0
#: Errors of a client's after which the object may have been stored.
_UNCERTAIN = frozenset(("RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "SlowDown"))


#: (container, name) of a part → the headers of its HEAD.
PartHeads = dict[tuple[str, str], HeaderMap]


@dataclass(frozen=True, slots=True)
class StatedPart:
    """A part as the client names it."""

    number: int
    etag: str
    #: Its checksum of the upload's kind; empty when it names none.
    checksum: str


def complete_upload(call: Call) -> Response:
    """CompleteMultipartUpload; the answer begins with spaces when it takes long."""
    require_multipart(call)
    upload_id = upload_id_of(call)
    conditions = writing_conditions(call.headers)
    expiry_headers(call.headers)
    size = _stated_size(call)
    _validate_stated_checksum(call.headers)
    tree = call.document(COMPLETE, limit=call.settings.max_upload_part_num * _BYTES_OF_ONE + 4096)
    state = find_state(call, upload_id)
    if state is None:
        parts = _stated(call, tree, None)
        return _repeated(call, upload_id, whole_etag([part.etag for part in parts]))
    requested = requested_checksum(state.headers)
    if requested is not None:
        _check_final(call, requested)
    parts = _stated(call, tree, requested)
    return keep_alive(call, lambda: _complete(call, state, parts, requested, conditions, size))


# --- what the client says -----------------------------------------------------------------------------


def _stated(call: Call, tree: Tree, requested: RequestedChecksum | None) -> list[StatedPart]:
    parts: list[StatedPart] = []
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
            raise _invalid_part(call, number, etag)
        checksum = _stated_sum(item, number, requested) if requested is not None else ""
        parts.append(StatedPart(number, etag, checksum))
    return parts


def _stated_sum(item: Tree, number: int, requested: RequestedChecksum) -> str:
    """Return the checksum of a part as the client names it, empty where it need not; raise ``S3Error``."""
    given = [algorithm for algorithm in ALGORITHMS.values() if algorithm.element in item]
    texts = [text_of(item[algorithm.element]) for algorithm in given]
    if len(given) > 1 or any(
        decoded(algorithm, text) is None for algorithm, text in zip(given, texts, strict=True)
    ):
        text = "Invalid Base64 or multiple checksums present in request"
        raise invalid_argument("Checksum", texts[0], text)
    if given and given[0] is not requested.algorithm:
        name = given[0].name.lower()
        text = f"The {name} you specified for part {number} did not match what we received."
        raise S3Error("BadDigest", text)
    if not given and requested.kind == COMPOSITE:
        text = (
            f"The upload was created using a {requested.algorithm.name.lower()} checksum. The complete "
            "request must include the checksum for each part. It was missing for part "
            f"{number} in the request."
        )
        raise S3Error("InvalidRequest", text)
    return texts[0] if texts else ""


def _stated_size(call: Call) -> int | None:
    """Return the size that the object is said to have; raise ``S3Error``."""
    text = call.headers.get("x-amz-mp-object-size")
    if text is None:
        return None
    if not is_digits(text.removeprefix("-")):
        raise S3Error("InvalidRequest", f"Value for x-amz-mp-object-size header is invalid: '{text}'")
    if text.startswith("-"):
        text = f"Value for x-amz-mp-object-size header is less than zero: '{text}'"
        raise S3Error("InvalidRequest", text)
    return int(text)


def _validate_stated_checksum(headers: HeaderMap) -> None:
    """Raise ``S3Error`` for headers that state no checksum of an object."""
    stated = {
        name: text.partition("-")[0] if name.startswith(PREFIX) and not name.endswith("-type") else text
        for name, text in headers.items()
    }
    stated_checksum(stated)


def _check_final(call: Call, requested: RequestedChecksum) -> None:
    """Raise ``S3Error`` for a checksum in the head that cannot be the object's."""
    kind = call.headers.get(f"{PREFIX}type")
    if kind is not None:
        check_kind(kind)
        if kind.upper() != requested.kind:
            text = (
                f"The upload was created using the {requested.kind} checksum mode. The complete request "
                "must use the same checksum mode."
            )
            raise S3Error("InvalidRequest", text)
    for algorithm in ALGORITHMS.values():
        _, dash, count = call.headers.get(algorithm.header, "").partition("-")
        if dash and not (requested.kind == COMPOSITE and is_digits(count)):
            raise S3Error("InvalidRequest", f"Value for {algorithm.header} header is invalid.")


def _invalid_part(call: Call, number: int, etag: str) -> S3Error:
    upload_id = call.params.get("uploadId", "")
    return S3Error("InvalidPart", details={"PartNumber": number, "ETag": etag, "UploadId": upload_id})


def _repeated(call: Call, upload_id: str, etag: str) -> Response:
    """Return the answer when there is no such upload: perhaps it has become the object already."""
    head = call.session.head(call.bucket, call.key)
    headers = head.headers
    same = (
        headers.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id and headers.get(fields.SYSMETA_S3_ETAG) == etag
    )
    if not head.is_success or not same:
        call.session.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return xml_response(RESULT, _result(call, etag))


def _result(call: Call, etag: str) -> dict[str, Value]:
    request = call.request
    url = f"{request.scheme}://{request.headers.get('host', 'localhost')}{request.raw_path}"
    return {"Location": url, "Bucket": call.bucket, "Key": call.key, "ETag": f'"{etag}"'}


# --- doing it -----------------------------------------------------------------------------------------


def _complete(
    call: Call,
    state: UploadState,
    parts: Sequence[StatedPart],
    requested: RequestedChecksum | None,
    conditions: HeaderMap,
    size: int | None,
) -> Response:
    """Decide that the upload completes and store the object; follow an earlier decision (0020)."""
    objects, etag = CallerObjects(call.session), whole_etag([part.etag for part in parts])
    for _ in range(_SWAPS_MAX):
        known = state.record.decision
        if known is not None:
            return _repeat(call, state, parts)
        heads: PartHeads = {}
        decision = _decide(call, state, parts, requested, conditions, size, heads)
        decided = replace(state, record=replace(state.record, decision=decision))
        outcome = swap(objects, state, decided.record)
        if outcome is not Swap.LOST:
            is_weak = outcome is Swap.WEAK
            # Without conditions a part may have been replaced meanwhile, and is looked at again.
            version = _carry_out(call, decided, parts, {} if is_weak else heads, is_weak=is_weak)
            return _finish(call, decided, version)
        found = find_state(call, state.id)
        if found is None:
            return _repeated(call, state.id, etag)
        state = found
    raise S3Error("ServiceUnavailable")


def _decide(
    call: Call,
    state: UploadState,
    parts: Sequence[StatedPart],
    requested: RequestedChecksum | None,
    conditions: HeaderMap,
    size: int | None,
    heads: PartHeads,
) -> CompletionDecision:
    """Return the object that the upload becomes; raise ``S3Error`` if its parts are not as stated.

    The headers of parts that are looked at go to ``heads``.
    """
    marker, etag = state.headers, whole_etag([part.etag for part in parts])
    sums = _sums(call, parts, state.places([part.number for part in parts]), requested, heads)
    if requested is None:
        requested = _implied(sums)
    headers = {
        "content-type": USUAL_TYPE,
        **_object_metadata(marker),
        **conditions,
        **expiry_headers(call.headers),
        "accept": "application/json",
    }
    headers.update(completed_headers(marker))
    headers.update(manifest_headers(marker.get(fields.SYSMETA_S3_CLASS, ""), state.id, etag))
    if requested is not None:
        checksum = _checksum(call, sums, requested)
        headers[fields.SYSMETA_S3_CHECKSUM] = f"{requested.algorithm.name} {requested.kind} {checksum}"
    headers.update(completed_lock(call, marker))
    return CompletionDecision(
        id=uuid4().hex,
        at=_date(call).internal,
        etag=etag,
        parts=_numbered(parts),
        headers=headers,
        size_min=call.settings.min_segment_size,
        size=size,
    )


def _object_metadata(marker: Mapping[str, str]) -> HeaderMap:
    """Return the metadata that the object of an upload takes from its marker."""
    kept = ("cache-control", "content-disposition", "content-encoding", "content-language", "expires")
    also = (fields.TRANSIENT_S3_TAGGING, fields.SYSMETA_S3_REDIRECT)
    found = {
        name: value
        for name, value in marker.items()
        if name.startswith("x-object-meta-") or name in kept or name in also
    }
    if marker.get(fields.SYSMETA_S3_HAS_CONTENT_TYPE) == "yes":
        found["content-type"] = marker.get(fields.SYSMETA_S3_CONTENT_TYPE, "")
    acl = marker.get(fields.SYSMETA_S3_UPLOAD_ACL)
    if acl:
        found[fields.SYSMETA_S3_OBJECT_ACL] = acl
    return found


def _numbered(parts: Sequence[StatedPart]) -> tuple[tuple[int, str], ...]:
    return tuple((part.number, part.etag) for part in parts)


def _date(call: Call) -> Timestamp:
    """Return the time of the object: now, or just above a state whose clock is a little ahead."""
    now = Timestamp.now()
    newest = newest_state(CallerObjects(call.session), call.bucket, call.key)
    return newest.above(1) if now <= newest and newest.seconds < now.seconds + _AHEAD_S else now


def _repeat(call: Call, state: UploadState, parts: Sequence[StatedPart]) -> Response:
    """Return the answer to a completion that was decided before; raise ``S3Error`` if it was another one."""
    objects = CallerObjects(call.session)
    joined = join(objects, state)
    if joined is None:
        return _repeated(call, state.id, whole_etag([part.etag for part in parts]))
    decision = joined.record.decision
    if decision is None or decision.parts != _numbered(parts):
        raise no_such_upload(state.id)
    found = decision_status(objects, joined, time.time())
    if found is DecisionStatus.OVERTAKEN:
        end(objects, joined)
        raise no_such_upload(state.id)
    if found is DecisionStatus.DONE:
        head = call.session.head(call.bucket, call.key)
        return _finish(call, joined, head.headers.get("x-object-version-id", ""))
    return _finish(call, joined, _carry_out(call, joined, parts, {}, is_weak=False))


def _carry_out(
    call: Call, state: UploadState, parts: Sequence[StatedPart], heads: PartHeads, *, is_weak: bool
) -> str:
    """Store the object and return its version. Raise ``S3Error``; the upload may be open then."""
    decision = state.record.decision
    assert decision is not None, "only decisions are carried out"
    headers = dict(decision.headers)
    if not is_weak:
        headers["x-timestamp"] = decision.at
    conditions: HeaderMap = {n: headers[n] for n in ("if-match", "if-none-match") if n in headers}
    places = state.places([number for number, _ in decision.parts])
    try:
        return _store(call, parts, places, headers, conditions, decision.size, heads)
    except S3Error as error:
        if not is_weak and error.status < 500 and error.code not in _UNCERTAIN:
            revert(CallerObjects(call.session), state, decision)
        raise


def _finish(call: Call, state: UploadState, version: str) -> Response:
    """Remove what the upload leaves beside its object; the answer."""
    decision = state.record.decision
    assert decision is not None, "only decisions end so"
    headers, etag = decision.headers, decision.etag
    places = state.places([number for number, _ in decision.parts])
    if fields.TRANSIENT_S3_LOCK in headers:
        lock_parts(call, places, {fields.TRANSIENT_S3_LOCK: headers[fields.TRANSIENT_S3_LOCK]})
    with call.session.ask("DELETE", segments_of(call.bucket), marker_of(call.key, state.id)) as response:
        if not response.is_success and response.status != 404:
            call.log.warning(f"cannot delete the marker of upload {state.id}: {response.status}")
    try:
        remove_parts(call, state, but=places)
    except S3Error as error:
        call.log.warning(f"cannot delete unused parts of upload {state.id}: {error}")
    announce(call, "s3:ObjectCreated:CompleteMultipartUpload", call.key, etag=etag, version=version)
    value = _result(call, etag)
    answer_headers: HeaderMap = (
        {ENCRYPTION: AES} if call.features.encryption and STORED not in headers else {}
    )
    name, _, rest = headers.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")
    if name in ALGORITHMS:
        value["ChecksumType"], _, value[ALGORITHMS[name].element] = rest.partition(" ")
    if version:
        answer_headers["x-amz-version-id"] = version
    return xml_response(RESULT, value, headers=answer_headers)


def _store(
    call: Call,
    parts: Sequence[StatedPart],
    places: Sequence[tuple[str, str]],
    headers: HeaderMap,
    conditions: HeaderMap,
    size: int | None,
    heads: PartHeads,
) -> str:
    """Have slo store the manifest and return its version; raise ``S3Error``.

    slo looks at the parts that are not among ``heads``.
    """
    least = call.settings.min_segment_size

    found = 0

    def misfit(entries: Sequence[dict[str, object]]) -> list[tuple[str, str]]:
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
    sub.env[environkeys.SLO_MANIFEST_HOOK] = misfit
    sub.env[environkeys.SLO_KNOWN_HEADS] = heads
    with open_response(call.session.open, sub) as response:
        if response.is_success:
            return response.headers.get("x-object-version-id", "")
        status, report = response.status, response.read_body()
    if status == 412:
        raise unmet(call.session, call.bucket, call.key, conditions)
    if status == 409 and conditions:
        raise S3Error("ConditionalRequestConflict")
    if size is not None and found not in (0, size):
        text = (
            f"The provided 'x-amz-mp-object-size' header value {size} does not match what was computed: "
            f"{found}"
        )
        raise S3Error("InvalidRequest", text)
    if status == 400:
        raise _bad_parts(call, parts, headers[fields.SYSMETA_S3_UPLOAD_ID], report)
    raise refusal(status, missing="NoSuchBucket", conflict="OperationAborted")


def _bad_parts(call: Call, parts: Sequence[StatedPart], upload_id: str, report: bytes) -> S3Error:
    """Return the error for slo's report."""
    try:
        problems = {str(name): str(what) for name, what in json.loads(report).get("Errors", ())}
    except (ValueError, TypeError, AttributeError):
        problems = {}
    if any(what == "EntityTooSmall" or what.startswith("Too small") for what in problems.values()):
        return S3Error("EntityTooSmall")
    bad = next(
        (p for p in parts if any(name.endswith(f"/{upload_id}/{p.number}") for name in problems)), None
    )
    return S3Error("InvalidPart") if bad is None else _invalid_part(call, bad.number, bad.etag)


# --- checksums ----------------------------------------------------------------------------------------


class _Sum(NamedTuple):
    """The checksum that is stored with a part, and the part's size."""

    algorithm: Algorithm
    digest: bytes
    size: int


def _sums(
    call: Call,
    parts: Sequence[StatedPart],
    places: Sequence[tuple[str, str]],
    requested: RequestedChecksum | None,
    heads: PartHeads,
) -> list[_Sum | None]:
    """Return the checksum of each part, None of one without; raise ``S3Error`` if it is not as requested."""
    if requested is None and len(parts) > 1:
        # All but the last are too large to have the usual one.
        return []
    found: dict[int, _Sum | None] = {}
    left = iter(zip(parts, places, strict=True))

    def look() -> None:
        for part, place in left:
            head = call.session.head(*place)
            if head.is_success:
                heads[place] = head.headers
            found[part.number] = seen = _sum_of(head)
            is_requested = (
                seen is not None and requested is not None and seen.algorithm is requested.algorithm
            )
            text = encoded(seen.digest) if seen is not None else ""
            if requested is not None and (not is_requested or (part.checksum and part.checksum != text)):
                raise _invalid_part(call, part.number, part.etag)

    green.gather([look] * min(_LOOKERS, len(parts)))
    return [found[part.number] for part in parts]


def _sum_of(head: Response) -> _Sum | None:
    name, _, rest = head.headers.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")
    algorithm, text = ALGORITHMS.get(name), rest.partition(" ")[2]
    digest = decoded(algorithm, text) if algorithm is not None and text else None
    if not head.is_success or algorithm is None or digest is None:
        return None
    return _Sum(algorithm, digest, int(head.headers.get("content-length") or 0))


def _implied(sums: Sequence[_Sum | None]) -> RequestedChecksum | None:
    """Return the checksum of an object without a requested one, if all its parts have it."""
    usual = usual_algorithm()
    if usual is None or not sums or not all(seen is not None and seen.algorithm is usual for seen in sums):
        return None
    return RequestedChecksum(usual, FULL)


def _checksum(call: Call, sums: Sequence[_Sum | None], requested: RequestedChecksum) -> str:
    """Return the checksum of the object, from those of its parts; raise ``S3Error``."""
    checksum = requested.algorithm.combine(
        [(seen.digest, seen.size) for seen in sums if seen is not None], requested.kind
    )
    stated = call.headers.get(requested.algorithm.header)
    if stated is not None and stated.partition("-")[0] != checksum.partition("-")[0]:
        raise S3Error(
            "BadDigest",
            f"The {requested.algorithm.name} you specified did not match the calculated checksum.",
        )
    return checksum


HANDLERS: dict[str, Handler] = {
    "CompleteMultipartUpload": complete_upload,
}
