"""Object lock in S3's words: headers, and what a caller must be to weaken a lock (decision 0016).

What is locked is a version, so a bucket with object lock keeps versions. That a lock holds is seen to by the
object servers, for all ways to an object; here it is only said. The parts of a multipart version are locked
with it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from swift import green
from swift.base.entity import EntityPath
from swift.base.truth import is_true
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.objectlock import (
    COMPLIANCE,
    GOVERNANCE,
    MAY_BYPASS,
    NO_LOCK,
    ObjectLock,
    parse_default_retention,
    parse_lock,
)
from swift.s3.api.call import Call, invalid_argument
from swift.s3.auth.session import Rights, owned_sysmeta
from swift.s3.errors import S3Error
from swift.s3.policy.authorize import OWNER, bucket_acl, require_permission

MODE, UNTIL, HOLD = (f"x-amz-object-lock-{word}" for word in ("mode", "retain-until-date", "legal-hold"))
BYPASS = "x-amz-bypass-governance-retention"
#: Of an upload's marker: the lock that its client wishes for.
REQUESTED_LOCK = fields.SYSMETA_S3_OBJECT + "lock"
_RULE_KEY = fields.SYSMETA_S3_LOCK_RULE.removeprefix(fields.CONTAINER_SYSMETA)
_LOCKERS = 8
_LATEST_S = 253402300799


# --- saying it ----------------------------------------------------------------------------------------


def until_of(text: str) -> int:
    """Return a moment in the future, in Unix seconds; raise ``S3Error``."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        seconds = int(moment.timestamp())
    except (ValueError, OverflowError):
        raise invalid_argument(UNTIL, text, "The retain until date must be provided in ISO 8601 format")
    if not time.time() < seconds <= _LATEST_S:
        raise invalid_argument(UNTIL, text, "The retain until date must be in the future!")
    return seconds


def rendered_until(lock: ObjectLock) -> str:
    """Return the end of a retention as documents and headers say it."""
    return datetime.fromtimestamp(min(lock.until_s, _LATEST_S), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def lock_headers(stored: HeaderMap) -> HeaderMap:
    """Return the headers of an answer about an object's lock."""
    text = stored.get(fields.TRANSIENT_S3_LOCK)
    if text is None:
        return {}
    lock = parse_lock(text)
    found = {MODE: lock.mode, UNTIL: rendered_until(lock)} if lock.mode else {}
    if lock.has_legal_hold or not lock.mode:
        found[HOLD] = "ON" if lock.has_legal_hold else "OFF"
    return found


def requested_lock(headers: HeaderMap) -> ObjectLock | None:
    """Return the lock that the headers of a write ask for, None when they ask for none; raise ``S3Error``."""
    mode, until, hold = (headers.get(name) for name in (MODE, UNTIL, HOLD))
    if mode is until is hold is None:
        return None
    if (mode is None) != (until is None):
        raise invalid_argument(
            UNTIL if until is None else MODE,
            "",
            "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied.",
        )
    if mode not in (None, GOVERNANCE, COMPLIANCE):
        raise invalid_argument(MODE, mode, "Unknown wormMode directive.")
    if hold not in (None, "ON", "OFF"):
        raise invalid_argument(HOLD, hold, "Legal Hold must be either of 'ON' or 'OFF'")
    return ObjectLock(mode or "", 0 if until is None else until_of(until), hold == "ON")


# --- new objects --------------------------------------------------------------------------------------

#: How the answer to a write that wishes for a lock names what the bucket lacks.
LOCK_CONFIGURATION = "ObjectLockConfiguration"


def locked_error() -> S3Error:
    """Return the answer to a change that a lock forbids."""
    return S3Error("AccessDenied", "Access Denied because object protected by object lock.")


def require_lockable(call: Call, missing: str = "Object Lock Configuration") -> None:
    """Raise ``S3Error`` when nothing can be locked in the bucket; it says what is ``missing``."""
    info = call.session.bucket_info(call.bucket)
    if _RULE_KEY not in info.sysmeta:
        raise S3Error("InvalidRequest", f"Bucket is missing {missing}")
    if not is_true(info.sysmeta.get("versions-enabled")):
        raise S3Error("InvalidBucketState", "Versioning is suspended, so that nothing new can be locked.")


def locking_headers(call: Call) -> HeaderMap:
    """Return the lock that a write asks for, as metadata; raise ``S3Error``.

    What the bucket gives its new objects is added where versions are made, for Swift's API as well.
    """
    lock = requested_lock(call.headers)
    if lock is None:
        return {}
    require_lockable(call, LOCK_CONFIGURATION)
    return _stored(call, lock)


def _stored(call: Call, lock: ObjectLock) -> HeaderMap:
    if not lock.mode:
        default = parse_default_retention(call.session.bucket_info(call.bucket).sysmeta.get(_RULE_KEY))
        if default is not None:
            lock = default.make_lock(time.time())._replace(has_legal_hold=lock.has_legal_hold)
    return {fields.TRANSIENT_S3_LOCK: str(lock)} if lock != NO_LOCK else {}


def completed_lock(call: Call, marker: HeaderMap) -> HeaderMap:
    """Return the lock of the object that an upload becomes, as metadata."""
    sysmeta = call.session.bucket_info(call.bucket).sysmeta
    if _RULE_KEY not in sysmeta or not is_true(sysmeta.get("versions-enabled")):
        return {}
    wished = marker.get(REQUESTED_LOCK)
    return _stored(call, parse_lock(wished) if wished else NO_LOCK)


def lock_parts(call: Call, parts: Sequence[tuple[str, str]], headers: HeaderMap) -> None:
    """Give a lock to parts of an object, each (container, name); raises ``S3Error``."""
    left = iter(parts)

    def work() -> None:
        for container, name in left:
            call.session.hidden.note("POST", EntityPath(call.session.account, container, name), headers)

    green.gather([work] * min(_LOCKERS, len(parts)))


# --- who may weaken one -------------------------------------------------------------------------------


def bypass_headers(call: Call) -> HeaderMap:
    """Return the header of a change that bypasses governance; raise ``S3Error`` if it may not."""
    if call.headers.get(BYPASS, "").lower() != "true":
        return {}
    require_owner(call)
    return {fields.BACKEND_OBJECT_LOCK: MAY_BYPASS}


def require_owner(call: Call, bucket: str = "") -> None:
    """Raise ``S3Error`` for callers to whom a bucket, by default that of the request, does not belong."""
    bucket = bucket or call.bucket
    if call.settings.s3_acl:
        require_permission(call, bucket_acl(call, bucket), OWNER)
    else:
        # Whatever a policy allows its caller: that is no part of it.
        owned_sysmeta(call.session.with_rights(Rights.ALL), bucket)


def require_target(call: Call, bucket: str, code: str) -> None:
    """Raise ``S3Error`` of this code when a bucket, named in a document, is not there or not the caller's.

    Daemons write there with all rights, so no policy or ACL of the bucket of the request counts.
    """
    try:
        require_owner(call, bucket)
    except S3Error as error:
        raise error if error.status >= 500 else S3Error(code)
