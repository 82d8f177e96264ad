"""Facts of an object request that several verbs need (spec: object-server.md §1, §2, §4.5, §5.1, §7).

Its key, policy and read options; when the object shall expire; the conditions under which it may be
changed; and what the change may do to a locked object (decision 0016). Changes that come from other nodes
(replication) are not judged by locks: they happened.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from swift.base.documents import JsonObject
from swift.base.entity import RESERVED, EntityPath, reserved_name_error
from swift.base.etag import EtagList, unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp, normalize_delete_at
from swift.base.truth import is_true
from swift.http import fields
from swift.http.headers import HeaderMap, title_case
from swift.http.objectlock import MAY_REWRITE, NO_LOCK, ObjectLock, parse_authority, parse_lock
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.policy.policy import Policy
from swift.runtime.backendapp import BackendContext, reject_sync_key, split_backend_path
from swift.store.api import EXPIRED, LIVE, FragmentPreference, ObjectKey, ObjectState, ReadOptions
from swift.store.metadata import Metadata
from swift.wire import reservation

PLAIN = "text/plain"


def policy_of(request: Request, context: BackendContext) -> Policy:
    """Return the policy that the request names; 503 for one that this node does not know."""
    text = request.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX)
    policy = context.policies.of_header(text)
    if policy is None:
        raise HTTPError(503, f"No policy with index {text}", content_type=PLAIN)
    return policy


def key_of(request: Request, context: BackendContext) -> ObjectKey:
    """Return the object of ``/device/partition/account/container/object``.

    Raises ``HTTPError`` 400, 403, 412, 503.
    """
    policy = policy_of(request, context)
    headers = request.headers
    if fields.BACKEND_STORAGE_POLICY_INDEX not in headers:
        # Proxies of OpenStack Swift hand a client's headers on, and name the policy.
        reject_sync_key(headers)
    device, partition, account, container, obj = split_backend_path(request, 5, 5)
    context.partitions.check(partition, policy.ring_name)
    path = EntityPath(account, container, obj)
    if RESERVED in account or RESERVED in container or RESERVED in obj:
        reason = reserved_name_error(path, context.limits.auto_create_account_prefix)
        if reason is not None:
            raise HTTPError(400, reason)
    name_hash = context.hasher.hexdigest(account, container, obj)
    if not is_flagged(headers, fields.BACKEND_REPLICATION):
        # Replication copies what lies in a partition as it is, so that no misplaced object stops it.
        context.partitions.check_hash(partition, policy.ring_name, name_hash)
    return ObjectKey(device, partition, policy, path, name_hash)


def is_flagged(headers: HeaderMap, name: str) -> bool:
    """Return True if a header, usually absent, has a true value."""
    return name in headers and is_true(headers[name])


def opens_expired(request: Request) -> bool:
    """Return True if the request treats expired objects as existing."""
    headers = request.headers
    return is_flagged(headers, fields.BACKEND_OPEN_EXPIRED) or is_flagged(headers, fields.BACKEND_REPLICATION)


def read_options_of(request: Request, context: BackendContext) -> ReadOptions:
    """Return the read options of a GET or HEAD: at the request's X-Timestamp, or now."""
    headers = request.headers
    moment_s = context.clock.time()
    if "x-timestamp" in headers:
        moment_s = request.timestamp.seconds
    preferences = None
    if fields.BACKEND_FRAGMENT_PREFERENCES in headers:
        preferences = parse_preferences(headers[fields.BACKEND_FRAGMENT_PREFERENCES])
    return ReadOptions(moment_s, opens_expired(request), preferences)


def parse_preferences(text: str) -> list[FragmentPreference] | None:
    """``X-Backend-Fragment-Preferences``; malformed JSON is absent, anything but preferences in it is 400."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return None
    try:
        return [_preference(item) for item in items]
    except (TypeError, KeyError, ValueError, OverflowError):
        raise HTTPError(400, "Bad X-Backend-Fragment-Preferences", content_type=PLAIN)


def _preference(item: JsonObject) -> FragmentPreference:
    return FragmentPreference(Timestamp(item["timestamp"]), frozenset(int(i) for i in item["exclude"]))


def next_part_power_of(request: Request) -> int | None:
    """X-Backend-Next-Part-Power, None when absent or not a power."""
    text = request.headers.get(fields.BACKEND_NEXT_PART_POWER)
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) <= 32 else None


def with_delete_at(copied: Metadata, delete_at: int | None) -> Metadata:
    """Return copied headers with the checked X-Delete-At instead of the raw one."""
    copied.pop("X-Delete-At", None)
    if delete_at is not None:
        copied["X-Delete-At"] = f"{delete_at:010d}"
    return copied


def parse_delete_at(
    headers: HeaderMap, timestamp: Timestamp, *, may_be_past: bool, after: bool, equal_is_past: bool = True
) -> int | None:
    """Return the expiry time (Unix seconds), None for never; raises ``HTTPError`` 400.

    ``after`` lets X-Delete-After count; ``equal_is_past`` tells whether the request's own second is late.
    """
    relative = headers.get("x-delete-after") if after else None
    if relative is not None:
        seconds = _integer(relative, "X-Delete-After")
        delete_at = int(timestamp.seconds) + seconds
        if seconds <= 0:
            _refuse("X-Delete-After in past")
    else:
        text = headers.get("x-delete-at")
        if not text:
            return None
        delete_at = _integer(text, "X-Delete-At")
    late = delete_at <= timestamp.seconds if equal_is_past else delete_at < timestamp.seconds
    if late and not may_be_past:
        _refuse("X-Delete-At in past")
    return int(normalize_delete_at(delete_at))


def _integer(text: str, name: str) -> int:
    try:
        if len(text) > 30 or not text.isascii():
            raise ValueError
        return int(text)
    except ValueError:
        raise HTTPError(400, f"Non-integer {name}", content_type=PLAIN)


def _refuse(text: str) -> NoReturn:
    raise HTTPError(400, text, content_type=PLAIN)


#: Raises what is to be answered when an object must not be changed as it is.
Check = Callable[[ObjectState], None]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Preconditions of a change."""

    if_match: EtagList | None
    if_none_match: EtagList | None
    #: X-Backend-Etag-Is-At, see ``condition_etag``.
    etag_is_at: str
    #: The sender asks for promises, and wants to know by which version conditions are judged.
    is_reserving: bool
    #: Locks are to be looked at too (``obj.locks``), or alone.
    checks_locks: bool = False
    #: X-Backend-If-Predecessor: when the data that is there must have been written.
    predecessor: Timestamp | None = None

    def hold(self, state: ObjectState) -> bool:
        """Return True if the object's state meets the conditions."""
        if self.predecessor is not None and self.predecessor != state.write_timestamp:
            return False
        etag = condition_etag(self.etag_is_at, state) if state.exists else None
        if self.if_none_match is not None and state.exists and self.if_none_match.matches(etag):
            return False
        return self.if_match is None or (state.exists and self.if_match.matches(etag))

    def demand(self, state: ObjectState) -> None:
        """Raise ``HTTPError`` 404 when there is no object, and 412 when they do not hold for it."""
        if self.if_match is None and self.if_none_match is None and self.predecessor is None:
            return
        if state.quarantine_reason:
            raise self.refused(state, 503)
        if not state.exists:
            raise self.refused(state, 404)
        if not self.hold(state):
            raise self.refused(state)

    def refused(self, state: ObjectState, status: int = 412) -> HTTPError:
        """Return the answer when they do not hold, or when there is nothing to change."""
        said = reservation.version_headers(state.write_timestamp) if self.is_reserving else {}
        return HTTPError(status, headers=said)


def conditions_of(headers: HeaderMap) -> Conditions | None:
    """Return the conditions of a change, None when there are none; raises ``HTTPError`` 400.

    Those about the version that is there count only when the object is promised to one writer: elsewhere
    they could not be kept.
    """
    is_reserving = reservation.OFFER in headers and reservation.is_offered(headers)
    if_none_match = headers.get("if-none-match")
    if_match = headers.get("if-match") if is_reserving else None
    checks_locks = is_reserving and fields.BACKEND_OBJECT_LOCK in headers
    predecessor = _predecessor(headers) if is_reserving else None
    if if_none_match is None and if_match is None and predecessor is None and not checks_locks:
        return None
    return Conditions(
        None if if_match is None else EtagList.parse(if_match),
        None if if_none_match is None else EtagList.parse(if_none_match),
        headers.get(fields.BACKEND_ETAG_IS_AT, ""),
        is_reserving,
        checks_locks,
        predecessor,
    )


def _predecessor(headers: HeaderMap) -> Timestamp | None:
    text = headers.get(fields.BACKEND_IF_PREDECESSOR)
    try:
        return None if text is None else Timestamp(text)
    except InvalidTimestamp:
        raise HTTPError(400)


def condition_etag(etag_is_at: str, state: ObjectState) -> str | None:
    """Return the ETag for clients: the first metadata named in X-Backend-Etag-Is-At, or the body's."""
    for name in etag_is_at.split(","):
        value = metadata_value(state, name.strip())
        if value is not None:
            return unquote_etag(value)
    return state.etag


def metadata_value(state: ObjectState, name: str) -> str | None:
    """Return stored metadata by its name in any case."""
    if not name:
        return None
    wanted = name.lower()
    return next((value for key, value in state.metadata.items() if key.lower() == wanted), None)


#: The name of the stored lock.
STORED_LOCK = title_case(fields.TRANSIENT_S3_LOCK)
_NO_AUTHORITY = parse_authority(None)


class Guard(NamedTuple):
    """Permissions of a change, and the moment to check them at."""

    authority: frozenset[str]
    moment_s: float
    #: The sender wants to know by which version it was judged.
    is_reserving: bool


def guard_of(headers: HeaderMap, timestamp: Timestamp) -> Guard | None:
    """From a request; None for what another node has decided. No sender can make it later than it is."""
    if is_flagged(headers, fields.BACKEND_REPLICATION):
        return None
    authority = headers.get(fields.BACKEND_OBJECT_LOCK)
    return Guard(
        parse_authority(authority) if authority else _NO_AUTHORITY,
        min(timestamp.seconds, time.time()),
        reservation.OFFER in headers and reservation.is_offered(headers),
    )


def check_removal(
    state: ObjectState, guard: Guard | None, stored: Mapping[str, str] | None = None, etag: str = ""
) -> None:
    """Raise ``HTTPError`` 403 when an object must neither be deleted nor replaced.

    With the permission, metadata ``stored`` and a body with ``etag`` (empty: not known yet) may replace the
    same body with the same lock.
    """
    if guard is None or state.kind not in (LIVE, EXPIRED) or STORED_LOCK not in state.metadata:
        return
    lock = parse_lock(state.metadata[STORED_LOCK])
    is_same = stored is not None and lock_in(stored) == lock and etag in ("", state.etag)
    if is_same and MAY_REWRITE in guard.authority:
        return
    if not lock.allows_removal(guard.authority, guard.moment_s):
        raise _locked(state, guard)


def check_change(state: ObjectState, stored: Mapping[str, str], guard: Guard | None) -> None:
    """Raise ``HTTPError`` 403 when metadata must not take the place of an object's, for want of its lock."""
    if guard is None or STORED_LOCK not in state.metadata:
        return
    known, new = parse_lock(state.metadata[STORED_LOCK]), lock_in(stored)
    if not known.allows(new, guard.authority, guard.moment_s):
        raise _locked(state, guard)


def check_end(stored: Mapping[str, str], delete_at: int | None, guard: Guard | None) -> None:
    """Raise ``HTTPError`` 400 for a locked object that would expire."""
    if guard is None or delete_at is None or STORED_LOCK not in stored:
        return
    if lock_in(stored).is_locked(guard.moment_s):
        raise HTTPError(400, "A locked object does not expire", content_type=PLAIN)


def lock_in(stored: Mapping[str, str]) -> ObjectLock:
    """Return the lock in metadata that is to be stored."""
    return parse_lock(stored[STORED_LOCK]) if STORED_LOCK in stored else NO_LOCK


def _locked(state: ObjectState, guard: Guard) -> HTTPError:
    said = reservation.version_headers(state.write_timestamp) if guard.is_reserving else {}
    return HTTPError(403, "The object is locked", headers=said, content_type=PLAIN)
