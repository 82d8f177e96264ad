"""POST: new metadata beside the data (spec: object-server.md §5).

``decide_post`` is pure: from an object's state and a plan to the metadata that is to be stored. It runs while
the object is held.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from swift.base.limits import Limits
from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.http.validate import check_metadata
from swift.obj.put import copied_headers
from swift.obj.request import (
    PLAIN,
    Check,
    Guard,
    check_change,
    check_end,
    guard_of,
    next_part_power_of,
    parse_delete_at,
    with_delete_at,
)
from swift.store.api import LIVE, Edit, ObjectKey, ObjectState, ReadOptions
from swift.store.handle import StoreHandle
from swift.store.metadata import Metadata


@dataclass(frozen=True, slots=True)
class PostPlan:
    """A POST that may be tried."""

    timestamp: Timestamp
    copied: Metadata
    content_type: str | None
    ctype_timestamp: Timestamp
    delete_at: int | None
    next_part_power: int | None
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class PostChange:
    """Change of a POST: the stored values and the object's effective content type."""

    timestamp: Timestamp
    stored_ctype_timestamp: Timestamp | None
    metadata: Metadata
    content_type: str
    ctype_timestamp: Timestamp


@dataclass(frozen=True, slots=True)
class PostResult:
    """A POST that happened."""

    change: PostChange
    before: ObjectState


def parse_post(request: Request, limits: Limits, stored: frozenset[str]) -> PostPlan:
    """Check everything that needs no disk; raises ``HTTPError``."""
    headers = request.headers
    timestamp = request.timestamp
    delete_at = parse_delete_at(headers, timestamp, may_be_past=False, after=False, equal_is_past=False)
    check_metadata(headers, "object", limits)
    content_type = headers.get("content-type") or None
    ctype_timestamp = ZERO
    if content_type is not None:
        text = headers.get("content-type-timestamp")
        try:
            ctype_timestamp = timestamp if text is None else Timestamp(text)
        except InvalidTimestamp:
            raise HTTPError(400, "Invalid Content-Type-Timestamp header", content_type=PLAIN)
    copied = with_delete_at(copied_headers(headers, stored, with_sysmeta=False), delete_at)
    guard = guard_of(headers, timestamp)
    check_end(copied, delete_at, guard)
    return PostPlan(
        timestamp, copied, content_type, ctype_timestamp, delete_at, next_part_power_of(request), guard
    )


def decide_post(state: ObjectState, plan: PostPlan, key: ObjectKey) -> PostChange:
    """Return the values to store; raises ``HTTPError`` 404 or 409."""
    if state.kind != LIVE:
        # Of an object that was quarantined just now nothing is known, not even that it is absent.
        raise HTTPError(503 if state.quarantine_reason else 404)
    check_change(state, plan.copied, plan.guard)
    known = state.ctype_timestamp
    newer = plan.timestamp > state.timestamp
    retyped = plan.content_type is not None and plan.ctype_timestamp > known
    if not newer and (not retyped or state.posted is None):
        # A content type cannot be stored beside metadata of the data file's own time: there is no .meta.
        raise HTTPError(409, headers={fields.BACKEND_TIMESTAMP: state.timestamp.internal})
    timestamp = plan.timestamp if newer else state.timestamp
    metadata: Metadata = {"X-Timestamp": timestamp.internal}
    if newer:
        metadata.update(plan.copied)
    else:
        metadata.update(state.posted or {})
        metadata.pop("Content-Type", None)
        metadata.pop("Content-Type-Timestamp", None)
        metadata.pop("name", None)
    content_type, ctype_timestamp = state.metadata.get("Content-Type", ""), known
    if retyped:
        content_type, ctype_timestamp = plan.content_type or "", plan.ctype_timestamp
    stored_at = ctype_timestamp if ctype_timestamp != state.data_timestamp else None
    if stored_at is not None:
        metadata["Content-Type"] = content_type
        metadata["Content-Type-Timestamp"] = stored_at.internal
    path = key.path
    metadata["name"] = f"/{path.account}/{path.container}/{path.obj}"
    return PostChange(timestamp, stored_at, metadata, content_type, ctype_timestamp)


def apply_post(key: ObjectKey, plan: PostPlan, edit: Edit, check_state: Check | None = None) -> PostResult:
    """Decide and write while the object is held; ``check_state`` may object by raising."""
    if check_state is not None:
        check_state(edit.state)
    change = decide_post(edit.state, plan, key)
    edit.post(change.timestamp, change.stored_ctype_timestamp, change.metadata)
    return PostResult(change, edit.state)


def store_post(store: StoreHandle, key: ObjectKey, options: ReadOptions, plan: PostPlan) -> PostResult:
    """Decide and write in one call; raises ``HTTPError`` and what engines raise."""
    work = partial(apply_post, key, plan)
    return store.change(key, options, work, create=False, next_part_power=plan.next_part_power)
