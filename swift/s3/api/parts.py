"""Parts of multipart uploads: the upload of a request, and storing a part (decision 0020)."""

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
from swift.s3.api.call import Call
from swift.s3.api.payload import S3Upload
from swift.s3.api.put import store_checksum
from swift.s3.api.uploads import (
    NUMBER_DIGITS,
    ObjectAnswer,
    Swap,
    UploadState,
    marker_of,
    no_such_upload,
    read_state,
    references,
    swap,
)
from swift.s3.auth.session import Session
from swift.s3.errors import S3Error, refusal
from swift.s3.names import KEY_BYTES_MAX

#: Answers that say something of a marker or an object; 501: nodes keep no conditions.
_MEANINGFUL = (404, 409, 412, 501)


class CallerObjects:
    """``Objects`` with the rights of the caller; raises ``S3Error`` for what says nothing."""

    def __init__(self, session: Session):
        self._session = session

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
        asked = self._session.ask(method, container, name, headers=headers, body=body, query=query)
        with asked as response:
            if not response.is_success and response.status not in _MEANINGFUL:
                raise refusal(response.status)
            content = response.read_body() if method == "GET" and response.is_success else b""
            return ObjectAnswer(response.status, response.headers, content)


def find_state(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState | None:
    """Return the state of the upload of the call's key, None without a marker; raises ``S3Error``."""
    objects = CallerObjects(call.session)
    return read_state(objects, call.bucket, call.key, upload_id, is_newest=is_newest)


def find_upload(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState:
    """Return the state of an upload that has not ended; raises ``S3Error``."""
    state = find_state(call, upload_id, is_newest=is_newest)
    if state is None:
        call.session.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return state


def find_open_upload(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState:
    """Return the state of an upload that takes parts and may be aborted; raises ``S3Error``."""
    state = find_upload(call, upload_id, is_newest=is_newest)
    if state.is_completing:
        raise no_such_upload(upload_id)
    return state


def named_by_objects(call: Call, upload_id: str) -> set[tuple[str, str]] | None:
    """Return the parts that the key's object and its versions name; None if that is in doubt."""
    try:
        bucket = EntityPath(call.session.account, call.bucket)
        return references(call.session.hidden.client(), bucket, call.key, upload_id)
    except UnexpectedResponse:
        return None


# --- storing a part -----------------------------------------------------------------------------------
# The first object of a part is created under the part's number, on the condition that there is none.
# What is uploaded again goes to an object of its own, and the marker says that it counts from now on.
# So nothing that a decision to complete refers to is ever replaced. After a part is stored the marker
# is read again: a part that came too late is removed.

#: Bytes of a body that are kept to send them again; the proxy reads no more before it knows conditions.
_REWIND_BYTES_MAX = 65536
#: Digits before those of the number in the name of an object that was uploaded again.
_OTHER_DIGITS = 9
_SWAPS_MAX = 50


class Rewindable(WrappedRequestBody):
    """A request body whose first bytes can be read again."""

    __slots__ = ("_held", "_position")

    def __init__(self, source: RequestBody):
        super().__init__(source)
        self._held: bytes | None = b""
        self._position = 0

    @property
    def received(self) -> int:  # type: ignore[override]
        """Bytes handed out since the beginning or the last rewinding."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``."""
        held = self._held
        if held is not None and self._position < len(held):
            stop = len(held) if size < 0 else self._position + size
            data = held[self._position : stop]
            self._position += len(data)
            return data if size >= 0 else data + self.read()
        data = self._source.read(size)
        self._position += len(data)
        if held is not None:
            self._held = held + data if self._position <= _REWIND_BYTES_MAX else None
        return data

    def rewind(self) -> bool:
        """Begin anew; return False if too much was read for that."""
        if self._held is None:
            return False
        self._position = 0
        return True


def put_part(call: Call, state: UploadState, number: int, upload: S3Upload, headers: HeaderMap) -> Response:
    """Store a part and return the head of the answer, which may be a refusal; raises ``S3Error``."""
    body = Rewindable(upload.body)

    def put(name: str, conditions: HeaderMap) -> Response:
        sent = {**headers, **conditions}
        sub = call.session.subrequest("PUT", state.segments, name, headers=sent, body=body)
        store_checksum(sub, upload)
        with open_response(call.session.open, sub) as response:
            return response

    def again() -> None:
        upload.raise_problem()
        if not body.rewind():
            raise S3Error("ServiceUnavailable")

    name = state.part_name(number)
    if number not in state.record.parts:
        response = put(name, {"if-none-match": "*"})
        if response.is_success:
            _check_open(call, state, number, name)
            return response
        if response.status == 501:
            # Nodes of OpenStack Swift keep no conditions.
            again()
            response = put(name, {})
            if response.is_success:
                _check_open(call, state, number, name)
            return response
        if response.status not in (409, 412, 503):
            return response
        again()
    name = _other_name(state, number)
    response = put(name, {})
    if response.is_success:
        _count(call, state, number, name)
    return response


def _other_name(state: UploadState, number: int) -> str:
    """Return the name of another object for a part, in digits, as OpenStack Swift expects of parts."""
    drawn = random.randrange(10 ** (_OTHER_DIGITS - 1), 10**_OTHER_DIGITS)
    name = f"{marker_of(state.key, state.id)}/{drawn}{number:0{NUMBER_DIGITS}d}"
    if len(name.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")
    return name


def _count(call: Call, state: UploadState, number: int, name: str) -> None:
    """Let an object count as a part, unless the upload has ended; raises ``S3Error``."""
    objects, own = CallerObjects(call.session), name.rpartition("/")[2]
    for _ in range(_SWAPS_MAX):
        found = find_state(call, state.id)
        if found is None or found.is_completing:
            # The object counted for no decision.
            call.remove_unneeded(state.segments, name)
            raise no_such_upload(state.id)
        record = replace(found.record, parts={**found.record.parts, number: own})
        outcome = swap(objects, found, record)
        if outcome is Swap.LOST:
            continue
        if outcome is Swap.WEAK:
            swap(objects, found, record, is_conditional=False)
        elif number in found.record.parts:
            call.remove_unneeded(state.segments, found.part_name(number))
        return
    raise S3Error("ServiceUnavailable")


def _check_open(call: Call, state: UploadState, number: int, name: str) -> None:
    """Raise ``S3Error`` if the upload ended without a part that was just stored, and remove it then."""
    found = find_state(call, state.id)
    if found is None:
        named = named_by_objects(call, state.id)
        if named is not None and (state.segments, name) not in named:
            call.remove_unneeded(state.segments, name)
            _remove_empty_home(call, state.segments)
        if named is not None and (state.segments, name) in named:
            return
        raise no_such_upload(state.id)
    counts, decision = found.part_name(number) == name, found.record.decision
    if decision is None:
        if not counts:
            # The same part was uploaded again meanwhile, and this one is the newest.
            _count(call, state, number, name)
    elif not counts or all(part != number for part, _ in decision.parts):
        call.remove_unneeded(state.segments, name)
        raise no_such_upload(state.id)


def _remove_empty_home(call: Call, container: str) -> None:
    """Remove a container of parts that a late part kept when its bucket was deleted."""
    if call.session.head(call.bucket).status == 404:
        with call.session.ask("DELETE", container):
            return
