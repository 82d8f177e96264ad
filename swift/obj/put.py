"""PUT: the checks, the body, the decision and the write (spec: object-server.md §4).

``parse_put`` turns a request into a ``PutPlan`` or an error; ``refusal`` decides against an object's state;
both are pure. A small body is read first and everything on disk then happens in one call in the device's
pool. A large one is checked before it is read, streamed into a draft one batch behind the network, and
decided upon again when the object is held.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import md5
from typing import NoReturn

from swift.base.etag import unquote_etag
from swift.base.limits import Limits
from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap, title_case
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.http.validate import check_metadata
from swift.obj.request import (
    PLAIN,
    STORED_LOCK,
    Conditions,
    Guard,
    check_end,
    check_removal,
    conditions_of,
    guard_of,
    is_flagged,
    next_part_power_of,
    parse_delete_at,
    with_delete_at,
)
from swift.store.api import Draft, Edit, ObjectKey, ObjectState, ObjectStore, ReadOptions
from swift.store.calls import Effort
from swift.store.errors import FilesChanged
from swift.store.handle import OpenDraft, StoreHandle
from swift.store.metadata import Metadata

#: Headers stored as metadata; those that a POST may change.
CLIENT_PREFIXES = ("x-object-meta-", fields.OBJECT_TRANSIENT_SYSMETA)
USER_PREFIXES = (*CLIENT_PREFIXES, fields.OBJECT_SYSMETA)
_FRAGMENT_INDEX = fields.SYSMETA_EC_FRAG_INDEX.title()
#: Sets of header names remembered: requests of one kind come with the same names.
NAMES_MAX = 256


@dataclass(slots=True)
class PutPlan:
    """A PUT that may be tried."""

    timestamp: Timestamp
    #: Bytes announced; None if unknown.
    size: int | None
    content_type: str
    #: Copied headers under their stored names.
    copied: Metadata
    #: The MD5 the client expects.
    etag: str | None
    conditions: Conditions | None
    delete_at: int | None
    is_replication: bool
    next_part_power: int | None
    #: Erasure coding: leave the archive non-durable.
    no_commit: bool
    guard: Guard | None = None
    #: From the footers of a multi-stage PUT.
    footers: HeaderMap = field(default_factory=dict)

    def metadata(self, key: ObjectKey, size: int, etag: str) -> Metadata:
        """Return the metadata to store with the body."""
        path = key.path
        return {
            "X-Timestamp": self.timestamp.internal,
            "Content-Type": self.content_type,
            "Content-Length": str(size),
            "ETag": etag,
            **self.copied,
            "name": f"/{path.account}/{path.container}/{path.obj}",
        }

    def fragment(self, key: ObjectKey) -> int | None:
        """Return the index of a fragment archive, None for replicated objects.

        400 when it has no usable one.
        """
        ec = key.policy.ec
        if ec is None:
            return None
        text = self.copied.get(_FRAGMENT_INDEX, "")
        if not (text.isascii() and text.isdigit() and int(text) < ec.fragments):
            raise HTTPError(400, f"Bad fragment index {text!r}", content_type=PLAIN)
        return int(text)


@dataclass(slots=True)
class PutResult:
    """Outcome of a PUT, with the object's state before."""

    etag: str
    size: int
    metadata: Metadata
    before: ObjectState


def parse_put(request: Request, key: ObjectKey, limits: Limits, stored: frozenset[str]) -> PutPlan:
    """Check everything that needs no disk, in the order of the spec; raises ``HTTPError``."""
    headers = request.headers
    timestamp = request.timestamp
    size = _announced_size(headers, limits)
    obj = key.path.obj or ""
    if len(obj) > limits.max_object_name_length:
        _refuse(f"Object name length of {len(obj)} longer than {limits.max_object_name_length}")
    content_type = headers.get("content-type")
    if not content_type:
        raise HTTPError(400, "Invalid Content-Type", content_type=PLAIN)
    if not content_type.isascii():
        _check_utf8(content_type)
    copied = copied_headers(headers, stored)
    is_replication = is_flagged(headers, fields.BACKEND_REPLICATION)
    delete_at = parse_delete_at(headers, timestamp, may_be_past=is_replication, after=True)
    # All metadata is copied: without any there is nothing to check but lengths.
    if copied or max(map(len, headers.values())) > limits.max_header_size:
        check_metadata(headers, "object", limits)
    if size is None:
        size = _object_length(headers)
    copied = with_delete_at(copied, delete_at)
    guard = guard_of(headers, timestamp)
    check_end(copied, delete_at, guard)
    return PutPlan(
        timestamp=timestamp,
        size=size,
        content_type=content_type,
        copied=copied,
        etag=unquote_etag(headers["etag"]) if headers.get("etag") else None,
        conditions=conditions_of(headers),
        delete_at=delete_at,
        is_replication=is_replication,
        next_part_power=next_part_power_of(request),
        no_commit=is_flagged(headers, fields.BACKEND_NO_COMMIT),
        guard=guard,
    )


def _refuse(text: str, status: int = 400) -> NoReturn:
    raise HTTPError(status, text, content_type=PLAIN)


def _check_utf8(content_type: str) -> None:
    try:
        content_type.encode("latin-1").decode("utf-8")
    except UnicodeError:
        _refuse("Invalid Content-Type")


def _announced_size(headers: HeaderMap, limits: Limits) -> int | None:
    coding = headers.get("transfer-encoding")
    if coding is not None and coding.strip().lower() != "chunked":
        if "," in coding:
            _refuse("Unsupported Transfer-Coding header value specified in Transfer-Encoding header", 501)
        _refuse("Invalid Transfer-Encoding header value")
    text = headers.get("content-length")
    if coding is not None:
        return None
    if text is None:
        _refuse("Missing Content-Length header.", 411)
    size = _whole_number(text, "Content-Length")
    if size > limits.max_file_size:
        _refuse("Your request is too large.", 413)
    return size


def _object_length(headers: HeaderMap) -> int | None:
    text = headers.get(fields.BACKEND_OBJ_CONTENT_LENGTH)
    return None if text is None else _whole_number(text, fields.BACKEND_OBJ_CONTENT_LENGTH.title())


def _whole_number(text: str, name: str) -> int:
    if not (text.isascii() and text.strip().isdigit()) or len(text) > 20:
        _refuse(f"Invalid {name} header value")
    return int(text)


def copied_headers(headers: HeaderMap, stored: frozenset[str], *, with_sysmeta: bool = True) -> Metadata:
    """Return the request headers that are stored, under their stored names.

    ``stored`` are the allowed headers; names in X-Backend-Replication-Headers are added to them.
    """
    also = headers.get(fields.BACKEND_REPLICATION_HEADERS)
    names = _copied_names(tuple(headers), stored, also, with_sysmeta)
    return {title: headers[name] for name, title in names}


@lru_cache(maxsize=NAMES_MAX)
def _copied_names(
    names: tuple[str, ...], stored: frozenset[str], also: str | None, with_sysmeta: bool
) -> tuple[tuple[str, str], ...]:
    """Return the headers to store, with the names to store them under."""
    if also is not None:
        from swift.obj.settings import NEVER_STORED

        stored = (stored | frozenset(also.lower().split())) - NEVER_STORED
    prefixes = USER_PREFIXES if with_sysmeta else CLIENT_PREFIXES
    return tuple((name, title_case(name)) for name in names if name in stored or name.startswith(prefixes))


def refusal(state: ObjectState, plan: PutPlan, etag: str = "") -> HTTPError | None:
    """Why the object as it is now must not be replaced: 412 or 409; None when it may.

    ``etag`` is that of the new body, empty before it has arrived. Raises ``HTTPError`` 403 when the object is
    locked.
    """
    if STORED_LOCK in state.metadata:
        check_removal(state, plan.guard, plan.copied, etag)
    if plan.conditions is not None and state.quarantine_reason:
        # The condition may be about the state that was quarantined just now.
        return HTTPError(503)
    if plan.conditions is not None and not plan.conditions.hold(state):
        return plan.conditions.refused(state)
    newest = state.write_timestamp
    if newest and newest >= plan.timestamp:
        return HTTPError(409, headers={fields.BACKEND_TIMESTAMP: newest.internal})
    return None


def check(state: ObjectState, plan: PutPlan, etag: str) -> None:
    """Raise the refusal, or 422 when the body is not what the client meant to send."""
    refused = refusal(state, plan, etag)
    if refused is None and plan.etag is not None and plan.etag != etag:
        refused = HTTPError(422)
    if refused is not None:
        raise refused


def store_small(
    store: StoreHandle, key: ObjectKey, options: ReadOptions, plan: PutPlan, body: bytes
) -> PutResult:
    """Decide and write in one call; raises ``HTTPError`` and what engines raise."""
    power, work = plan.next_part_power, partial(_put_small, key, plan, body)
    for is_new in (plan.conditions is None, False):
        try:
            return store.change(
                key,
                options,
                work,
                create=True,
                is_new=is_new,
                next_part_power=power,
                size_bytes=len(body),
            )
        except FilesChanged as error:
            # Others write the same object; without a guess the second look sees what they wrote.
            failure = error
    raise failure


def _put_small(key: ObjectKey, plan: PutPlan, body: bytes, edit: Edit) -> PutResult:
    etag = md5(body, usedforsecurity=False).hexdigest()
    check(edit.state, plan, etag)
    draft = edit.draft(len(body), etag=etag)
    try:
        draft.write(body)
        return _publish(edit, key, plan, draft, etag, commit=not plan.no_commit)
    finally:
        draft.discard()


def publish_draft(
    engine: ObjectStore,
    key: ObjectKey,
    options: ReadOptions,
    plan: PutPlan,
    draft: OpenDraft,
    commit: bool = True,
) -> PutResult:
    """Decide and publish a finished draft, which is gone afterwards.

    ``commit`` false leaves a fragment archive for ``store_commit``.
    """
    try:
        with engine.edit(key, options, create=True, next_part_power=plan.next_part_power) as edit:
            return _publish_draft(key, plan, draft, commit, edit)
    finally:
        draft.discard()


def _publish_draft(key: ObjectKey, plan: PutPlan, draft: OpenDraft, commit: bool, edit: Edit) -> PutResult:
    etag = draft.etag
    check(edit.state, plan, etag)
    return _publish(edit, key, plan, draft.raw, etag, commit=commit and not plan.no_commit)


def _publish(
    edit: Edit, key: ObjectKey, plan: PutPlan, draft: Draft, etag: str, *, commit: bool
) -> PutResult:
    fragment = plan.fragment(key)
    metadata = plan.metadata(key, draft.size, etag)
    edit.put(draft, plan.timestamp, metadata, fragment=fragment)
    if fragment is not None and commit:
        edit.commit(plan.timestamp, fragment)
    return PutResult(etag, draft.size, metadata, edit.state)


def store_draft(
    store: StoreHandle,
    key: ObjectKey,
    options: ReadOptions,
    plan: PutPlan,
    draft: OpenDraft,
    commit: bool = True,
) -> PutResult:
    """``publish_draft`` as one call, in a thread if the body is in a file."""
    if draft.may_block:
        return store.call(Effort.LONG, publish_draft, key, options, plan, draft, commit)
    work = partial(_publish_draft, key, plan, draft, commit)
    try:
        return store.change(key, options, work, create=True, next_part_power=plan.next_part_power)
    finally:
        draft.discard()


def store_commit(store: StoreHandle, key: ObjectKey, options: ReadOptions, plan: PutPlan) -> None:
    """Make a stored fragment archive durable; nothing for replicated objects."""
    fragment = plan.fragment(key)
    if fragment is not None and not plan.no_commit:
        work = partial(_commit, plan.timestamp, fragment)
        store.change(key, options, work, create=True, next_part_power=plan.next_part_power)


def _commit(timestamp: Timestamp, fragment: int, edit: Edit) -> None:
    edit.commit(timestamp, fragment)
