"""Object lock: headers, and the rights to weaken a lock (decision 0016).

Locks are on versions, so a bucket with object lock is versioned. The object servers enforce locks, for all
APIs; this module only sets them. The parts of a multipart version are locked with it.
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
from swift.http.packedconfig import sysmeta_key
from swift.s3.core.call import Call, invalid_argument
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.policy.authorize import require_owner

MODE_HEADER, UNTIL_HEADER, HOLD_HEADER = (
    f"x-amz-object-lock-{word}" for word in ("mode", "retain-until-date", "legal-hold")
)
BYPASS_HEADER = "x-amz-bypass-governance-retention"
#: Metadata of an upload's marker: the lock that its client requested.
REQUESTED_LOCK_METADATA = fields.SYSMETA_S3_OBJECT + "lock"
_RULE_KEY = sysmeta_key(fields.SYSMETA_S3_LOCK_RULE)
_CONCURRENT_LOCKS = 8
_LATEST_DATE_S = 253402300799


# --- headers ------------------------------------------------------------------------------------------


def parse_retain_until(text: str) -> int:
    """Return a future date as Unix second; raise ``S3Error``."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        seconds = int(moment.timestamp())
    except (ValueError, OverflowError):
        raise invalid_argument(
            UNTIL_HEADER, text, "The retain until date must be provided in ISO 8601 format"
        )
    if not time.time() < seconds <= _LATEST_DATE_S:
        raise invalid_argument(UNTIL_HEADER, text, "The retain until date must be in the future!")
    return seconds


def render_retain_until(lock: ObjectLock) -> str:
    """Return the end of a retention in the format of documents and headers."""
    return datetime.fromtimestamp(min(lock.until_s, _LATEST_DATE_S), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def lock_headers(stored: HeaderMap) -> HeaderMap:
    """Return the response headers about an object's lock."""
    text = stored.get(fields.TRANSIENT_S3_LOCK)
    if text is None:
        return {}
    lock = parse_lock(text)
    found = {MODE_HEADER: lock.mode, UNTIL_HEADER: render_retain_until(lock)} if lock.mode else {}
    if lock.has_legal_hold or not lock.mode:
        found[HOLD_HEADER] = "ON" if lock.has_legal_hold else "OFF"
    return found


def parse_requested_lock(headers: HeaderMap) -> ObjectLock | None:
    """Return the lock in the headers of a write, None without one; raise ``S3Error``."""
    mode, until, hold = headers.get(MODE_HEADER), headers.get(UNTIL_HEADER), headers.get(HOLD_HEADER)
    if mode is until is hold is None:
        return None
    if (mode is None) != (until is None):
        raise invalid_argument(
            UNTIL_HEADER if until is None else MODE_HEADER,
            "",
            "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied.",
        )
    if mode not in (None, GOVERNANCE, COMPLIANCE):
        raise invalid_argument(MODE_HEADER, mode, "Unknown wormMode directive.")
    if hold not in (None, "ON", "OFF"):
        raise invalid_argument(HOLD_HEADER, hold, "Legal Hold must be either of 'ON' or 'OFF'")
    return ObjectLock(mode or "", 0 if until is None else parse_retain_until(until), hold == "ON")


# --- new objects --------------------------------------------------------------------------------------

#: The name of the bucket's missing configuration in the error for a write with a lock.
LOCK_CONFIGURATION = "ObjectLockConfiguration"


def locked_error() -> S3Error:
    """Return the error for a change that a lock forbids."""
    return S3Error("AccessDenied", "Access Denied because object protected by object lock.")


def require_lockable(call: Call, missing: str = "Object Lock Configuration") -> None:
    """Raise ``S3Error`` if objects of the bucket cannot be locked; ``missing`` is for its message."""
    info = call.session.bucket_info(call.bucket)
    if _RULE_KEY not in info.sysmeta:
        raise invalid_request(f"Bucket is missing {missing}")
    if not is_true(info.sysmeta.get("versions-enabled")):
        raise S3Error("InvalidBucketState", "Versioning is suspended, so that nothing new can be locked.")


def lock_metadata(call: Call) -> HeaderMap:
    """Return the metadata for the lock in the headers of a write; raise ``S3Error``.

    object_versioning adds the bucket's default retention to new versions, for Swift's API as well.
    """
    lock = parse_requested_lock(call.headers)
    if lock is None:
        return {}
    require_lockable(call, LOCK_CONFIGURATION)
    return _stored_lock_headers(call, lock)


def _stored_lock_headers(call: Call, lock: ObjectLock) -> HeaderMap:
    if not lock.mode:
        default = parse_default_retention(call.session.bucket_info(call.bucket).sysmeta.get(_RULE_KEY))
        if default is not None:
            lock = default.make_lock(time.time())._replace(has_legal_hold=lock.has_legal_hold)
    return {fields.TRANSIENT_S3_LOCK: str(lock)} if lock != NO_LOCK else {}


def completed_lock_metadata(call: Call, marker: HeaderMap) -> HeaderMap:
    """Return the metadata for the lock of the object that an upload becomes."""
    sysmeta = call.session.bucket_info(call.bucket).sysmeta
    if _RULE_KEY not in sysmeta or not is_true(sysmeta.get("versions-enabled")):
        return {}
    requested = marker.get(REQUESTED_LOCK_METADATA)
    return _stored_lock_headers(call, parse_lock(requested) if requested else NO_LOCK)


def lock_parts(call: Call, parts: Sequence[tuple[str, str]], headers: HeaderMap) -> None:
    """Set the lock of an object's parts, each (container, name); raise ``S3Error``."""
    left = iter(parts)

    def work() -> None:
        for container, name in left:
            call.session.privileged.send_change(
                "POST", EntityPath(call.session.account, container, name), headers
            )

    green.gather([work] * min(_CONCURRENT_LOCKS, len(parts)))


# --- rights to weaken a lock --------------------------------------------------------------------------


def bypass_headers(call: Call) -> HeaderMap:
    """Return the header by which a change bypasses governance; raise ``S3Error`` if that is not allowed."""
    if call.headers.get(BYPASS_HEADER, "").lower() != "true":
        return {}
    require_owner(call)
    return {fields.BACKEND_OBJECT_LOCK: MAY_BYPASS}
