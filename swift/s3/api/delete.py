"""DeleteObjects, and the removal of an object, its parts and its versions (spec: middleware.md §20, §21).

The parts of a multipart object go only when nothing leads to its manifest any more: not when a deletion
leaves a marker, nor when it removes the link to a version that stays.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from swift import green
from swift.gateway.subrequest import open_response
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError, Response
from swift.s3.api.call import Call, Handler, as_s3_error, invalid_argument, keep_alive, xml_response
from swift.s3.api.checksums import stated_checksum
from swift.s3.api.metadata import is_large as is_manifest
from swift.s3.api.objectlock import bypass_headers, locked_error
from swift.s3.api.put import unmet
from swift.s3.config.notifications import announce
from swift.s3.errors import S3Error, refusal
from swift.s3.names import KEY_BYTES_MAX, own_parts
from swift.s3.policy.authorize import authorize_deletion
from swift.s3.xml import Group, Many, Text, Tree, Value, text_of, trees_of

_MARKER_TYPE = "application/x-deleted;"
_WITH_PARTS = "multipart-manifest=delete&async=on"


class Removed(NamedTuple):
    """The result of a deletion: the version that it removed or made; True for a delete marker."""

    version: str = ""
    is_marker: bool = False


def remove_object(
    call: Call, key: str, version: str | None, *, conditions: HeaderMap | None = None
) -> Removed:
    """Delete an object or one version of it; raises ``S3Error``. A missing key is removed already."""
    info = call.session.bucket_info(call.bucket)
    has_versions = "versions-container" in info.sysmeta
    if version is not None and not has_versions:
        if version != "null":
            return Removed()
        version = None
    if version is not None:
        return _remove_version(call, key, version, bypass_headers(call))
    if has_versions and info.sysmeta.get("versions-enabled", "").lower() == "true":
        response = _delete(call, key, "", conditions)
        return Removed(response.headers.get("x-object-version-id", ""), is_marker=True)
    _remove_plain(call, key, has_versions=has_versions, conditions=conditions)
    return Removed("null" if has_versions else "")


def _remove_plain(call: Call, key: str, *, has_versions: bool, conditions: HeaderMap | None) -> None:
    is_large = False
    if call.features.multipart:
        head = call.session.head(call.bucket, key)
        is_large = is_manifest(head.headers)
        if has_versions and head.headers.get("x-object-version-id", "null") != "null":
            # Only a link goes.
            is_large = False
    if is_large and conditions:
        parts = parts_of(call, key)
        _delete(call, key, "", conditions)
        _remove_parts(call, parts)
    else:
        _delete(call, key, _WITH_PARTS if is_large else "", conditions)


def _delete(call: Call, key: str, query: str, conditions: HeaderMap | None = None) -> Response:
    """Return the head of the answer; a missing object is no error, unless conditions were to be met."""
    session = call.session
    is_conditional = bool(conditions and conditions.keys() & {"if-match", "if-none-match"})
    sub = session.subrequest("DELETE", call.bucket, key, headers=dict(conditions or {}), query=query)
    # Parts that a deletion leaves when it breaks off the lifecycle daemon finds.
    sub.env[environkeys.SLO_MANIFEST_FIRST] = True
    with open_response(session.open, sub) as response:
        status = response.status
        if response.is_success and response.headers.get("content-type", "").startswith("text/plain"):
            # The report of a deletion that was not left to the expirer.
            status = _reported(response)
    if status == 412:
        raise unmet(session, call.bucket, key, conditions or {})
    if status == 404 and conditions and "if-match" in conditions:
        raise S3Error("NoSuchKey", details={"Key": key})
    if status == 409 and is_conditional:
        raise S3Error("ConditionalRequestConflict")
    if status not in (404, *range(200, 300)):
        raise refusal(status, missing="NoSuchKey", conflict="OperationAborted")
    return response


def _reported(response: Response) -> int:
    for line in response.read_body().decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(": ")
        if name == "Response Status" and value[:3].isdigit():
            return int(value[:3])
    return response.status


def parts_of(call: Call, key: str, query: str = "") -> list[tuple[str, str]]:
    """Return the parts of a multipart object in the bucket's containers of them, each (container, name)."""
    with call.session.ask("GET", call.bucket, key, query=f"{query}multipart-manifest=get") as response:
        if not response.is_success:
            return []
        return own_parts(call.bucket, json.loads(response.read_body()))


def _remove_parts(call: Call, parts: list[tuple[str, str]], rights: HeaderMap | None = None) -> None:
    for container, name in parts:
        call.session.remove(container, name, rights)


# --- versions -----------------------------------------------------------------------------------------


def _remove_version(call: Call, key: str, version: str, rights: HeaderMap) -> Removed:
    """Remove one version; the newest of those that are left becomes the current one.

    ``rights`` says below that the caller may remove what is locked.
    """
    query = f"version-id={quote(version, safe='')}"
    head = call.session.head(call.bucket, key, query=query)
    if head.status == 400:
        raise invalid_argument("versionId", version, "Invalid version id specified")
    is_marker = head.headers.get("content-type", "").startswith(_MARKER_TYPE)
    large = head.is_success and is_manifest(head.headers)
    parts = parts_of(call, key, f"{query}&") if large else []
    try:
        _delete(call, key, query, rights)
    except S3Error as error:
        if error.code == "AccessDenied" and fields.TRANSIENT_S3_LOCK in head.headers:
            raise locked_error()
        raise
    _remove_parts(call, parts, rights)
    _restore(call, key)
    return Removed(version, is_marker)


def _restore(call: Call, key: str) -> None:
    """Let the newest version be the current one when there is none."""
    session = call.session
    if session.head(call.bucket, key).status != 404:
        return
    query = f"format=json&versions=true&limit=2&prefix={quote(key, safe='')}"
    with session.ask("GET", call.bucket, query=query) as response:
        rows = json.loads(response.read_body()) if response.status == 200 else []
    newest = next((row for row in rows if row.get("name") == key), None)
    if newest is None or str(newest.get("content_type", "")).startswith(_MARKER_TYPE):
        return
    version = str(newest.get("version_id", "null"))
    if version != "null":
        session.done("PUT", call.bucket, key, query=f"version-id={quote(version, safe='')}")


# --- events of deletions ------------------------------------------------------------------------------


def announce_removal(call: Call, key: str, removed: Removed, *, by_version: bool) -> None:
    """Keep the event of a deletion; raises ``S3Error``. Removing a version, a mark too, is a deletion."""
    made_marker = removed.is_marker and not by_version
    event = "DeleteMarkerCreated" if made_marker else "Delete"
    announce(call, f"s3:ObjectRemoved:{event}", key, version=removed.version)


# --- DeleteObjects ------------------------------------------------------------------------------------

DELETE = Group(
    "Delete",
    Text("Quiet"),
    Many(
        "Object",
        Text("Key", required=True),
        Text("VersionId"),
        Text("ETag"),
        Text("LastModifiedTime"),
        Text("Size"),
        required=True,
    ),
)
RESULT = Group(
    "DeleteResult",
    Many(
        "Deleted",
        Text("Key"),
        Text("VersionId"),
        Text("DeleteMarker"),
        Text("DeleteMarkerVersionId"),
    ),
    Many("Error", Text("Key"), Text("VersionId"), Text("Code"), Text("Message")),
)
#: Bytes of a document that names one object, quoted in any way.
_BYTES_OF_ONE = 4096


def delete_objects(call: Call) -> Response:
    """DeleteObjects; the answer begins with spaces when it takes long."""
    headers = call.headers
    if "x-amz-mfa" in headers:
        raise S3Error("NotImplemented", "MFA Delete is not supported.")
    if "content-md5" not in headers and stated_checksum(headers) is None:
        text = "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
        raise S3Error("InvalidRequest", text)
    most = call.settings.max_multi_delete_objects
    tree = call.document(DELETE, limit=max(1 << 20, most * _BYTES_OF_ONE))
    items = trees_of(tree.get("Object"))
    if len(items) > most:
        raise S3Error("MalformedXML")
    if not all(map(_key, items)):
        raise S3Error("UserKeyMustBeSpecified")
    call.session.bucket_info(call.bucket)
    quiet = text_of(tree.get("Quiet")).lower() == "true"
    return keep_alive(call, lambda: _all(call, items, quiet=quiet))


def _all(call: Call, items: Sequence[Tree], *, quiet: bool) -> Response:
    results: list[Removed | S3Error] = [Removed()] * len(items)
    left = iter(range(len(items)))

    def work() -> None:
        for number in left:
            results[number] = _one(call, items[number])

    green.gather([work] * min(call.settings.multi_delete_concurrency, len(items)))
    pairs = list(zip(items, results, strict=True))
    value: dict[str, Value] = {"Error": [_error(i, r) for i, r in pairs if isinstance(r, S3Error)]}
    if not quiet:
        value["Deleted"] = [_deleted(i, r) for i, r in pairs if isinstance(r, Removed)]
    return xml_response(RESULT, value)


def _one(call: Call, item: Tree) -> Removed | S3Error:
    key = _key(item)
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
        announce_removal(call, key, removed, by_version=requested is not None)
        return removed
    except (S3Error, HTTPError, BodyError) as error:
        known = as_s3_error(error)
        assert known is not None, "all of these carry an answer"
        return known


def _key(item: Tree) -> str:
    key = item.get("Key")
    return key if isinstance(key, str) else ""


def _deleted(item: Tree, removed: Removed) -> Value:
    value: dict[str, Value] = {"Key": _key(item)}
    asked = text_of(item.get("VersionId"))
    if asked:
        value["VersionId"] = asked
    if removed.is_marker:
        value["DeleteMarker"] = "true"
        value["DeleteMarkerVersionId"] = removed.version
    return value


def _error(item: Tree, error: S3Error) -> Value:
    value: dict[str, Value] = {"Key": _key(item), "Code": error.code, "Message": error.text}
    asked = text_of(item.get("VersionId"))
    if asked:
        value["VersionId"] = asked
    return value


HANDLERS: dict[str, Handler] = {
    "DeleteObjects": delete_objects,
}
