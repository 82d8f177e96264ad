"""DeleteObjects, and the deletion of an object, its parts and its versions (spec: middleware.md §20, §21).

The parts of a multipart object are deleted when nothing refers to its manifest any more. They stay if the
deletion creates a delete marker, or removes a link to a version that stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath
from swift.gateway.subrequest import ReportedChange, open_response, report_change
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError, Response
from swift.s3.api.objectlock import bypass_headers, locked_error
from swift.s3.api.writes import archive_error, has_versioning, precondition_error
from swift.s3.config.notifications import enqueue_event
from swift.s3.core.call import (
    Call,
    Handler,
    as_s3_error,
    invalid_argument,
    respond_with_keep_alive,
    xml_response,
)
from swift.s3.core.checksums import parse_declared_checksum
from swift.s3.core.errors import S3Error, error_for_status, invalid_request
from swift.s3.core.metadata import is_large as is_manifest
from swift.s3.core.names import KEY_BYTES_MAX, own_parts
from swift.s3.core.xml import Group, RepeatedGroup, Text, Tree, Value, text_of, texts, trees_of
from swift.s3.policy.authorize import authorize_deletion

_DELETE_MARKER_TYPE_PREFIX = "application/x-deleted;"
_DELETE_PARTS_QUERY = "multipart-manifest=delete&async=on"


class Deletion(NamedTuple):
    """The result of a deletion: the version that it deleted or created, and True for a delete marker."""

    version: str = ""
    is_marker: bool = False


def remove_object(
    call: Call, key: str, version: str | None, *, conditions: HeaderMap | None = None
) -> Deletion:
    """Delete an object or one version of it; raise ``S3Error``. A missing object is no error."""
    info = call.session.bucket_info(call.bucket)
    has_versions = "versions-container" in info.sysmeta
    if version is not None and not has_versions:
        if version != "null" and conditions:
            raise S3Error("NoSuchVersion", details={"Key": key, "VersionId": version})
        if version != "null":
            return Deletion()
        version = None
    if version is not None:
        return _remove_version(call, key, version, conditions or {})
    if has_versioning(info):
        response = _delete(call, key, "", conditions)
        marker = response.headers.get("x-object-version-id", "")
        return Deletion(marker, is_marker=bool(marker))
    _remove_plain(call, key, has_versions=has_versions, conditions=conditions)
    return Deletion("null" if has_versions else "")


def _remove_plain(call: Call, key: str, *, has_versions: bool, conditions: HeaderMap | None) -> None:
    is_large = _is_large_object(call, key, has_versions=has_versions)
    if is_large and conditions:
        parts = list_parts_of_object(call, key)
        _delete(call, key, "", conditions)
        _remove_parts(call, parts)
        return
    try:
        _delete(call, key, _DELETE_PARTS_QUERY if is_large else "", conditions)
    except S3Error as error:
        if error.status != 400 or not is_large or _is_large_object(call, key, has_versions=has_versions):
            raise
        # An object without parts replaced it meanwhile.
        _delete(call, key, "", conditions)


def _is_large_object(call: Call, key: str, *, has_versions: bool) -> bool:
    """Return True if parts must be deleted with an object."""
    if not call.features.multipart:
        return False
    headers = call.session.head(call.bucket, key).headers
    # Of a version only the link is deleted.
    return is_manifest(headers) and not (
        has_versions and headers.get("x-object-version-id", "null") != "null"
    )


def _delete(call: Call, key: str, query: str, conditions: HeaderMap | None = None) -> Response:
    """Send a DELETE and return the response. A missing object is an error only under a condition."""
    session = call.session
    is_conditional = bool(conditions and conditions.keys() & {"if-match", "if-none-match"})
    sub = session.subrequest("DELETE", call.bucket, key, headers=dict(conditions or {}), query=query)
    # The lifecycle daemon deletes the parts that an interrupted deletion leaves.
    sub.env[environkeys.SLO_MANIFEST_FIRST] = True
    with open_response(session.send, sub) as response:
        status = response.status
        if response.is_success and response.headers.get("content-type", "").startswith("text/plain"):
            # The report of a deletion that slo has made itself, without the expirer.
            status = _reported_status(response)
    if status == 412 and conditions and query:
        raise S3Error("PreconditionFailed", details={"Condition": _condition_name(conditions)})
    if status == 412 and conditions:
        raise precondition_error(session, call.bucket, key, conditions)
    if status == 412:
        raise archive_error()
    if status == 404 and conditions and "if-match" in conditions:
        raise S3Error("NoSuchKey", details={"Key": key})
    if status == 409 and is_conditional:
        raise S3Error("ConditionalRequestConflict")
    if status not in (404, *range(200, 300)):
        raise error_for_status(status)
    return response


def _condition_name(conditions: HeaderMap) -> str:
    return "If-Match" if "if-match" in conditions else "If-None-Match"


def _reported_status(response: Response) -> int:
    for line in response.read_body().decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(": ")
        if name == "Response Status" and value[:3].isdigit():
            return int(value[:3])
    return response.status


def list_parts_of_object(call: Call, key: str, query: str = "") -> list[tuple[str, str]]:
    """Return (container, name) of each part of a multipart object in the bucket's segments containers."""
    return own_parts(call.bucket, call.session.read_manifest(call.bucket, key, query)[1])


def _remove_parts(call: Call, parts: list[tuple[str, str]], bypass: HeaderMap | None = None) -> None:
    """Delete the parts of a deleted object; log failures, for the lifecycle daemon deletes what remains."""
    for container, name in parts:
        call.delete_unreferenced_part(container, name, bypass)


# --- versions -----------------------------------------------------------------------------------------


def _remove_version(call: Call, key: str, version: str, conditions: HeaderMap) -> Deletion:
    """Delete one version if it meets the conditions; the newest remaining one becomes the current one."""
    bypass = bypass_headers(call)
    query = f"version-id={quote(version, safe='')}"
    head = call.session.head(call.bucket, key, query=query)
    if head.status == 400:
        raise invalid_argument("versionId", version, "Invalid version id specified")
    is_marker = head.headers.get("content-type", "").startswith(_DELETE_MARKER_TYPE_PREFIX)
    if conditions and is_marker:
        # It has no ETag.
        raise S3Error("PreconditionFailed", details={"Condition": _condition_name(conditions)})
    if "if-match" in conditions and head.status == 404:
        raise S3Error("NoSuchVersion", details={"Key": key, "VersionId": version})
    large = head.is_success and is_manifest(head.headers)
    parts = list_parts_of_object(call, key, query) if large else []
    try:
        _delete(call, key, query, {**bypass, **conditions, fields.BACKEND_RESTORE_VERSION: "true"})
    except S3Error as error:
        if error.code == "AccessDenied" and fields.TRANSIENT_S3_LOCK in head.headers:
            raise locked_error()
        raise
    _remove_parts(call, parts, bypass)
    return Deletion(version, is_marker)


# --- events of deletions ------------------------------------------------------------------------------


def enqueue_deletion_event(call: Call, key: str, removed: Deletion, *, by_version: bool) -> None:
    """Enqueue the event of a deletion; raise ``S3Error``. Removing a version or marker is a deletion."""
    made_marker = removed.is_marker and not by_version
    event = "DeleteMarkerCreated" if made_marker else "Delete"
    enqueue_event(call, f"s3:ObjectRemoved:{event}", key, version=removed.version)


# --- DeleteObjects ------------------------------------------------------------------------------------

DELETE_OBJECTS = Group(
    "Delete",
    Text("Quiet"),
    RepeatedGroup(
        "Object", Text("Key", required=True), *texts("VersionId ETag LastModifiedTime Size"), required=True
    ),
)
DELETE_RESULT = Group(
    "DeleteResult",
    RepeatedGroup("Deleted", *texts("Key VersionId DeleteMarker DeleteMarkerVersionId")),
    RepeatedGroup("Error", *texts("Key VersionId Code Message")),
)
#: Bytes of a document for each object, whatever its quoting.
_BYTES_PER_KEY = 4096


def delete_objects(call: Call) -> Response:
    """DeleteObjects; the response begins with spaces if it takes long."""
    headers = call.headers
    if "x-amz-mfa" in headers:
        raise S3Error("NotImplemented", "MFA Delete is not supported.")
    if "content-md5" not in headers and parse_declared_checksum(headers) is None:
        text = "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
        raise invalid_request(text)
    most = call.settings.max_multi_delete_objects
    tree = call.parse_body(DELETE_OBJECTS, limit=max(1 << 20, most * _BYTES_PER_KEY))
    items = trees_of(tree.get("Object"))
    if len(items) > most:
        raise S3Error("MalformedXML")
    if not all(map(_item_key, items)):
        raise S3Error("UserKeyMustBeSpecified")
    call.session.bucket_info(call.bucket)
    quiet = text_of(tree.get("Quiet")).lower() == "true"
    return respond_with_keep_alive(call, lambda: _delete_all(call, items, quiet=quiet))


def _delete_all(call: Call, items: Sequence[Tree], *, quiet: bool) -> Response:
    results: list[Deletion | S3Error] = [Deletion()] * len(items)
    numbers_of_key: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        numbers_of_key.setdefault(_item_key(item), []).append(number)
    left = iter(numbers_of_key.values())

    def work() -> None:
        # One worker deletes all versions of a key, in the order of the document.
        for numbers in left:
            for number in numbers:
                results[number] = _delete_one(call, items[number])
                _report(call, _item_key(items[number]), results[number])

    green.gather([work] * min(call.settings.multi_delete_concurrency, len(numbers_of_key)))
    pairs = list(zip(items, results, strict=True))
    value: dict[str, Value] = {"Error": [_render_error(i, r) for i, r in pairs if isinstance(r, S3Error)]}
    if not quiet:
        value["Deleted"] = [_render_deleted(i, r) for i, r in pairs if isinstance(r, Deletion)]
    return xml_response(DELETE_RESULT, value)


def _delete_one(call: Call, item: Tree) -> Deletion | S3Error:
    key = _item_key(item)
    version = item.get("VersionId")
    try:
        if "\x00" in key:
            raise S3Error("InvalidURI")
        if len(key.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
            raise S3Error("KeyTooLongError")
        if "LastModifiedTime" in item or "Size" in item:
            raise S3Error("NotImplemented", "Only ETag is a condition of a deletion here.")
        etag = text_of(item.get("ETag"))
        conditions = {"if-match": etag} if etag else {}
        requested = version if isinstance(version, str) and version else None
        removed = remove_object(
            authorize_deletion(call, key, requested), key, requested, conditions=conditions
        )
        enqueue_deletion_event(call, key, removed, by_version=requested is not None)
        return removed
    except (S3Error, HTTPError, BodyError) as error:
        known = as_s3_error(error)
        assert known is not None, "all of these carry an answer"
        return known


def _report(call: Call, key: str, result: Deletion | S3Error) -> None:
    """Report the deletion of one of several keys to the audit log."""
    status, reason = (result.status, result.code) if isinstance(result, S3Error) else (204, "")
    path = EntityPath(call.session.account, call.bucket, key)
    env = call.request.env
    change = ReportedChange("DELETE", f"/v1{path.quoted}", status, "DeleteObjects", env, reason=reason)
    report_change(call.request, change)


def _item_key(item: Tree) -> str:
    key = item.get("Key")
    return key if isinstance(key, str) else ""


def _render_deleted(item: Tree, removed: Deletion) -> Value:
    value: dict[str, Value] = {"Key": _item_key(item)}
    requested_version = text_of(item.get("VersionId"))
    if requested_version:
        value["VersionId"] = requested_version
    if removed.is_marker:
        value["DeleteMarker"] = "true"
        value["DeleteMarkerVersionId"] = removed.version
    return value


def _render_error(item: Tree, error: S3Error) -> Value:
    value: dict[str, Value] = {"Key": _item_key(item), "Code": error.code, "Message": error.text}
    requested_version = text_of(item.get("VersionId"))
    if requested_version:
        value["VersionId"] = requested_version
    return value


HANDLERS: dict[str, Handler] = {"DeleteObjects": delete_objects}
