"""Locked objects: whoever asks for it, an object server does not remove them (decision 0016).

Changes that come from other nodes (replication) are not judged: they happened.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap, title_case
from swift.http.objectlock import NO_LOCK, ObjectLock, parse_authority, parse_lock
from swift.http.response import HTTPError
from swift.obj.target import PLAIN, is_flagged
from swift.store.api import EXPIRED, LIVE, ObjectState
from swift.wire import reservation

_STORED = title_case(fields.TRANSIENT_S3_LOCK)


class Guard(NamedTuple):
    """What a change is allowed, and when it is judged."""

    authority: frozenset[str]
    moment_s: float
    #: The sender wants to know by which version it was judged.
    is_promised: bool


def guard_of(headers: HeaderMap, timestamp: Timestamp) -> Guard | None:
    """From a request; None for what another node has decided. No sender can make it later than it is."""
    if is_flagged(headers, fields.BACKEND_REPLICATION):
        return None
    return Guard(
        parse_authority(headers.get(fields.BACKEND_OBJECT_LOCK)),
        min(timestamp.seconds, time.time()),
        reservation.is_offered(headers),
    )


def check_removal(state: ObjectState, guard: Guard | None) -> None:
    """Raise ``HTTPError`` 403 when an object must neither be deleted nor replaced."""
    if guard is None or state.kind not in (LIVE, EXPIRED) or _STORED not in state.metadata:
        return
    if not parse_lock(state.metadata[_STORED]).allows_removal(guard.authority, guard.moment_s):
        raise _locked(state, guard)


def check_change(state: ObjectState, stored: Mapping[str, str], guard: Guard | None) -> None:
    """Raise ``HTTPError`` 403 when metadata must not take the place of an object's, for want of its lock."""
    if guard is None or _STORED not in state.metadata:
        return
    known, new = parse_lock(state.metadata[_STORED]), lock_in(stored)
    if not known.allows(new, guard.authority, guard.moment_s):
        raise _locked(state, guard)


def check_end(stored: Mapping[str, str], delete_at: int | None, guard: Guard | None) -> None:
    """Raise ``HTTPError`` 400 for a locked object that would expire."""
    if guard is None or delete_at is None or _STORED not in stored:
        return
    if lock_in(stored).is_on(guard.moment_s):
        raise HTTPError(400, "A locked object does not expire", content_type=PLAIN)


def lock_in(stored: Mapping[str, str]) -> ObjectLock:
    """The lock in metadata that is to be stored."""
    return parse_lock(stored[_STORED]) if _STORED in stored else NO_LOCK


def _locked(state: ObjectState, guard: Guard) -> HTTPError:
    said = reservation.judged_by(state.write_timestamp) if guard.is_promised else {}
    return HTTPError(403, "The object is locked", headers=said, content_type=PLAIN)
