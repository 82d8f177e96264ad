"""Storage of the parts of multipart uploads, and lookup of a request's upload (decision 0020)."""

from __future__ import annotations

import random
from dataclasses import replace

from swift.base.entity import EntityPath
from swift.gateway.internal_client import UnexpectedResponse
from swift.gateway.subrequest import open_response
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import WrappedRequestBody
from swift.s3.api.partreferences import find_part_references
from swift.s3.api.writes import add_checksum_metadata
from swift.s3.core.call import Call
from swift.s3.core.errors import S3Error
from swift.s3.core.names import KEY_BYTES_MAX
from swift.s3.core.payload import S3Upload
from swift.s3.core.uploadstate import (
    NUMBER_DIGITS,
    SWAPS_MAX,
    CallerObjectClient,
    SwapOutcome,
    SwapTries,
    UploadState,
    marker_name,
    no_such_upload,
    read_upload_state,
    swap_record,
)


def require_upload(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState:
    """Return the state of an upload; raise ``S3Error`` if it has ended."""
    state = read_upload_state(call, upload_id, is_newest=is_newest)
    if state is None:
        call.session.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return state


def require_open_upload(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState:
    """Return the state of an upload that accepts parts and can be aborted; raise ``S3Error``."""
    state = require_upload(call, upload_id, is_newest=is_newest)
    if state.is_completing:
        raise no_such_upload(upload_id)
    return state


def find_parts_in_use(call: Call, upload_id: str) -> set[tuple[str, str]] | None:
    """Return the parts that the key's object and versions refer to; None if they cannot be determined."""
    try:
        bucket = EntityPath(call.session.account, call.bucket)
        return find_part_references(call.session.privileged.internal_client(), bucket, call.key, upload_id)
    except UnexpectedResponse:
        return None


# --- storing a part -----------------------------------------------------------------------------------
# The first object of a part is created under the part's number, on the condition that there is none.
# A part that is uploaded again becomes an object of its own, and the marker records it as the valid one.
# So nothing that a decision to complete refers to is ever replaced. After a part is stored the marker
# is read again: a part that came too late is removed.

#: Bytes of a body that can be sent again; the proxy reads no more before conditions are evaluated.
_REWIND_BYTES_MAX = 65536
#: Random digits before the part number in the name of a part that was uploaded again.
_RANDOM_DIGITS = 9


class RewindableBody(WrappedRequestBody):
    """A request body whose first bytes can be read again."""

    __slots__ = ("_buffered", "_position")

    def __init__(self, source: RequestBody):
        super().__init__(source)
        self._buffered: bytes | None = b""
        self._position = 0

    @property
    def received(self) -> int:  # type: ignore[override]
        """Bytes handed out since the beginning or the last rewinding."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return bytes of the buffered beginning, then those of the source."""
        held = self._buffered
        if held is not None and self._position < len(held):
            stop = len(held) if size < 0 else self._position + size
            data = held[self._position : stop]
            self._position += len(data)
            return data if size >= 0 else data + self.read()
        data = self._source.read(size)
        self._position += len(data)
        if held is not None:
            self._buffered = held + data if self._position <= _REWIND_BYTES_MAX else None
        return data

    def rewind(self) -> bool:
        """Start again at the first byte; return False if too much was read."""
        if self._buffered is None:
            return False
        self._position = 0
        return True


def put_part(call: Call, state: UploadState, number: int, upload: S3Upload, headers: HeaderMap) -> Response:
    """Store a part and return the response, which may be an error; raise ``S3Error``."""
    body = RewindableBody(upload.body)

    def put(name: str, conditions: HeaderMap) -> Response:
        sent = {**headers, **conditions}
        sub = call.session.subrequest("PUT", state.segments_container, name, headers=sent, body=body)
        add_checksum_metadata(sub, upload)
        with open_response(call.session.send, sub) as response:
            return response

    def rewind_body() -> None:
        upload.raise_body_error()
        if not body.rewind():
            raise S3Error("ServiceUnavailable")

    name = state.part_name(number)
    if number not in state.record.parts:
        response = put(name, {"if-none-match": "*"})
        if response.is_success:
            _require_still_open(call, state, number, name)
            return response
        if response.status == 501:
            # Nodes of OpenStack Swift support no conditions.
            rewind_body()
            response = put(name, {})
            if response.is_success:
                _require_still_open(call, state, number, name)
            return response
        if response.status not in (409, 412, 503):
            return response
        rewind_body()
    name = _new_part_name(state, number)
    response = put(name, {})
    if response.is_success:
        _record_part(call, state, number, name)
    return response


def _new_part_name(state: UploadState, number: int) -> str:
    """Return another object name for a part, in digits, as OpenStack Swift expects of parts."""
    drawn = random.randrange(10 ** (_RANDOM_DIGITS - 1), 10**_RANDOM_DIGITS)
    name = f"{marker_name(state.key, state.id)}/{drawn}{number:0{NUMBER_DIGITS}d}"
    if len(name.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")
    return name


def _record_part(call: Call, state: UploadState, number: int, name: str) -> None:
    """Make an object the valid one of a part, unless the upload has ended; raise ``S3Error``."""
    objects, own, tries = CallerObjectClient(call.session), name.rpartition("/")[2], SwapTries()
    for _ in range(SWAPS_MAX):
        found = read_upload_state(call, state.id)
        if found is None or found.is_completing:
            # No decision refers to the object.
            call.delete_unreferenced_part(state.segments_container, name)
            raise no_such_upload(state.id)
        if found.record.parts.get(number) == own:
            return
        record = replace(found.record, parts={**found.record.parts, number: own})
        outcome = swap_record(objects, found, record)
        if outcome.is_open:
            tries.pause(outcome)
            continue
        if outcome is SwapOutcome.UNSUPPORTED:
            swap_record(objects, found, record, is_conditional=False)
        elif number in found.record.parts:
            call.delete_unreferenced_part(state.segments_container, found.part_name(number))
        return
    raise S3Error("ServiceUnavailable")


def _require_still_open(call: Call, state: UploadState, number: int, name: str) -> None:
    """Delete a part that was just stored and raise ``S3Error`` if the upload ended without it."""
    found = read_upload_state(call, state.id)
    if found is None:
        named = find_parts_in_use(call, state.id)
        if named is not None and (state.segments_container, name) not in named:
            call.delete_unreferenced_part(state.segments_container, name)
            _delete_empty_segments(call, state.segments_container)
        if named is not None and (state.segments_container, name) in named:
            return
        raise no_such_upload(state.id)
    counts, decision = found.part_name(number) == name, found.record.decision
    if decision is None:
        if not counts:
            # The same part was uploaded again meanwhile, and this one is the newest.
            _record_part(call, state, number, name)
    elif not counts or all(part != number for part, _ in decision.parts):
        call.delete_unreferenced_part(state.segments_container, name)
        raise no_such_upload(state.id)


def _delete_empty_segments(call: Call, container: str) -> None:
    """Delete the segments container that a late part has kept alive when its bucket was deleted."""
    if call.session.head(call.bucket).status == 404:
        with call.session.open_response("DELETE", container):
            return
