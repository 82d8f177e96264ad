"""Object lock configurations of buckets, retentions and legal holds of versions (decision 0016)."""

from __future__ import annotations

import time
from collections.abc import Callable

from swift.base.digits import is_digits
from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.base.truth import is_true
from swift.http import fields
from swift.http.objectlock import (
    COMPLIANCE,
    ENABLED,
    GOVERNANCE,
    MAY_RELEASE,
    UNITS,
    DefaultRetention,
    ObjectLock,
    parse_authority,
    parse_default_retention,
    parse_lock,
)
from swift.http.response import Response
from swift.middleware.versioned_writes.names import unquote_container_name
from swift.s3.api.delete import list_parts_of_object
from swift.s3.api.objectlock import (
    bypass_headers,
    lock_parts,
    locked_error,
    parse_retain_until,
    render_retain_until,
    require_lockable,
)
from swift.s3.api.writes import head_version, version_path
from swift.s3.core.call import Call, Handler, invalid_argument, xml_response
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.metadata import metadata_for_post
from swift.s3.core.segments import enable_part_locks
from swift.s3.core.xml import Group, Text, Value, text_of, texts, tree_of, word_of
from swift.s3.policy.authorize import require_owner

CONFIGURATION = Group(
    "ObjectLockConfiguration",
    Text("ObjectLockEnabled"),
    Group("Rule", Group("DefaultRetention", *texts("Mode Days Years"))),
)
RETENTION = Group("Retention", Text("Mode"), Text("RetainUntilDate"))
HOLD = Group("LegalHold", Text("Status"))
_DAYS_MAX, _YEARS_MAX = 36500, 100


# --- buckets ------------------------------------------------------------------------------------------


def get_lock_configuration(call: Call) -> Response:
    """GetObjectLockConfiguration."""
    text = call.session.bucket_headers(call.bucket).get(fields.SYSMETA_S3_LOCK_RULE)
    if not text:
        raise S3Error("ObjectLockConfigurationNotFoundError", details={"BucketName": call.bucket})
    value: dict[str, Value] = {"ObjectLockEnabled": "Enabled"}
    default = parse_default_retention(text)
    if default is not None:
        value["Rule"] = {"DefaultRetention": {"Mode": default.mode, default.unit: default.number}}
    return xml_response(CONFIGURATION, value)


def put_lock_configuration(call: Call) -> Response:
    """PutObjectLockConfiguration."""
    tree = call.parse_body(CONFIGURATION)
    word_of(tree, "ObjectLockEnabled", ("Enabled",))
    rule = ENABLED
    if "Rule" in tree:
        default = tree_of(tree_of(tree["Rule"]).get("DefaultRetention"))
        mode, units = text_of(default.get("Mode")), [unit for unit in UNITS if unit in default]
        if mode not in (GOVERNANCE, COMPLIANCE) or len(units) != 1:
            raise S3Error("MalformedXML")
        count, most = text_of(default[units[0]]), _DAYS_MAX if units[0] == "Days" else _YEARS_MAX
        if not is_digits(count) or not int(count):
            text = "Default retention period must be a positive integer value."
            raise invalid_argument(units[0], count, text)
        if int(count) > most:
            raise invalid_argument(units[0], count, "Default retention period too large.")
        rule = str(DefaultRetention(mode, int(count), units[0]))
    enable_lock(call, rule)
    return Response(200)


def enable_lock(call: Call, rule: str) -> None:
    """Store the bucket's lock rule, after the containers of locked objects allow locks."""
    require_owner(call)
    headers = call.session.bucket_headers(call.bucket)
    hidden = headers.get(fields.SYSMETA_VERSIONS_CONTAINER)
    if not hidden or not is_true(headers.get("x-versions-enabled")):
        raise S3Error(
            "InvalidBucketState",
            "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
        )
    flag = {fields.SYSMETA_S3_OBJECT_LOCK: "true"}
    call.session.privileged.send_change(
        "POST", EntityPath(call.session.account, unquote_container_name(hidden)), flag
    )
    if call.features.multipart:
        enable_part_locks(call)
    call.session.require_success("POST", call.bucket, headers={fields.SYSMETA_S3_LOCK_RULE: rule})


# --- versions -----------------------------------------------------------------------------------------


def get_retention(call: Call) -> Response:
    """GetObjectRetention."""
    lock = parse_lock(head_version(call).get(fields.TRANSIENT_S3_LOCK))
    if not lock.mode:
        require_lockable(call)
        raise S3Error("NoSuchObjectLockConfiguration", details={"Key": call.key})
    return xml_response(RETENTION, {"Mode": lock.mode, "RetainUntilDate": render_retain_until(lock)})


def put_retention(call: Call) -> Response:
    """PutObjectRetention; an empty document removes the retention if governance may be bypassed."""
    call.session.bucket_info(call.bucket)
    tree = call.parse_body(RETENTION)
    mode, until = text_of(tree.get("Mode")), text_of(tree.get("RetainUntilDate"))
    if bool(mode) != bool(until) or mode not in ("", GOVERNANCE, COMPLIANCE):
        raise S3Error("MalformedXML")
    end_s = parse_retain_until(until) if until else 0
    authority = bypass_headers(call).get(fields.BACKEND_OBJECT_LOCK, "")
    return _change_lock(call, lambda lock: lock._replace(mode=mode, until_s=end_s), authority)


def get_legal_hold(call: Call) -> Response:
    """GetObjectLegalHold."""
    text = head_version(call).get(fields.TRANSIENT_S3_LOCK)
    if text is None:
        require_lockable(call)
        raise S3Error("NoSuchObjectLockConfiguration", details={"Key": call.key})
    return xml_response(HOLD, {"Status": "ON" if parse_lock(text).has_legal_hold else "OFF"})


def put_legal_hold(call: Call) -> Response:
    """PutObjectLegalHold."""
    call.session.bucket_info(call.bucket)
    status = word_of(call.parse_body(HOLD), "Status", ("ON", "OFF"))
    return _change_lock(call, lambda lock: lock._replace(has_legal_hold=status == "ON"), MAY_RELEASE)


def _change_lock(call: Call, change: Callable[[ObjectLock], ObjectLock], authority: str) -> Response:
    """Change the lock of a version, after that of its parts; the object servers validate it again."""
    require_lockable(call)
    require_owner(call)
    found = head_version(call)
    version = found.get("x-object-version-id", "null")
    try:
        stamp = Timestamp(version)
    except InvalidTimestamp:
        raise invalid_request("Only versions can be locked, and this object is older than those.")
    known = parse_lock(found.get(fields.TRANSIENT_S3_LOCK))
    new = change(known)
    if not known.allows(new, parse_authority(authority), time.time()):
        raise locked_error()
    headers = {fields.TRANSIENT_S3_LOCK: str(new), fields.BACKEND_OBJECT_LOCK: authority}
    if is_true(found.get("x-static-large-object")):
        lock_parts(call, list_parts_of_object(call, call.key, f"version-id={version}"), headers)
    again = metadata_for_post(found)
    if new.is_locked(time.time()):
        again.pop("x-delete-at", None)
    call.session.privileged.send_change("POST", version_path(call, stamp), {**again, **headers})
    return Response(200)


HANDLERS: dict[str, Handler] = {
    "GetObjectLockConfiguration": get_lock_configuration,
    "PutObjectLockConfiguration": put_lock_configuration,
    "GetObjectRetention": get_retention,
    "PutObjectRetention": put_retention,
    "GetObjectLegalHold": get_legal_hold,
    "PutObjectLegalHold": put_legal_hold,
}
