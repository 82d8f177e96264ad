"""DeleteObjects."""

from __future__ import annotations

from collections.abc import Sequence

from swift import green
from swift.http.body import BodyError
from swift.http.response import HTTPError, Response
from swift.s3.call import Call, Handler, xml_response
from swift.s3.checksums import promised
from swift.s3.errors import S3Error
from swift.s3.guard import guarded_deletion
from swift.s3.keepalive import patiently
from swift.s3.names import KEY_BYTES_MAX
from swift.s3.notifications.removals import announce_removal
from swift.s3.removal import Removed, remove_object
from swift.s3.reports import as_s3_error, explain
from swift.s3.xml import Group, Many, Text, Tree, Value, text_of, trees_of

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
    if "content-md5" not in headers and promised(headers) is None:
        text = "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
        raise S3Error("InvalidRequest", text)
    most = call.settings.max_multi_delete_objects
    tree = call.document(DELETE, limit=max(1 << 20, most * _BYTES_OF_ONE))
    items = trees_of(tree.get("Object"))
    if len(items) > most:
        raise S3Error("MalformedXML")
    if not all(map(_key, items)):
        raise S3Error("UserKeyMustBeSpecified")
    call.account.bucket_info(call.bucket)
    quiet = text_of(tree.get("Quiet")).lower() == "true"
    return patiently(
        lambda: _all(call, items, quiet=quiet),
        lambda error: explain(call, error),
        interval_s=call.settings.keep_alive_seconds,
    )


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
        wanted = version if isinstance(version, str) and version else None
        removed = remove_object(guarded_deletion(call, key, wanted), key, wanted, conditions=conditions)
        announce_removal(call, key, removed, by_version=wanted is not None)
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


HANDLERS: dict[str, Handler] = {"DeleteObjects": delete_objects}
