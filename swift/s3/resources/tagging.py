"""Tags of objects and of buckets.

The tags of an object are metadata that a POST replaces as a whole, so a change reads the other metadata
first and says it again, to the same object; of two changes of its metadata at the same time one wins.
"""

from __future__ import annotations

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.account import owners_settings
from swift.s3.call import Call, Handler, no_content, xml_response
from swift.s3.errors import S3Error, refusal
from swift.s3.metadata import said_again
from swift.s3.notifications.events import announce
from swift.s3.rewriting import just_above, rewrite
from swift.s3.tags import (
    BUCKET_TAGS_MAX,
    OBJECT_TAGS_MAX,
    TAGGING,
    parsed_tags,
    stored_tags,
    tags_document,
    tags_of_document,
)
from swift.s3.versions import missing_key, refused_version, version_place, version_query


def get_object_tagging(call: Call) -> Response:
    """GetObjectTagging."""
    head = _head(call)
    tags = parsed_tags(head.headers.get(fields.TRANSIENT_S3_TAGGING))
    return xml_response(TAGGING, tags_document(tags), headers=_version(head.headers))


def put_object_tagging(call: Call) -> Response:
    """PutObjectTagging."""
    tags = tags_of_document(call.document(TAGGING), OBJECT_TAGS_MAX)
    told = _store(call, stored_tags(tags))
    announce(call, "s3:ObjectTagging:Put", call.key, version=told.get("x-amz-version-id", ""))
    return Response(200, told)


def delete_object_tagging(call: Call) -> Response:
    """DeleteObjectTagging."""
    told = _store(call, "")
    announce(call, "s3:ObjectTagging:Delete", call.key, version=told.get("x-amz-version-id", ""))
    return no_content(told)


def _head(call: Call) -> Response:
    newest = {"x-newest": "true"} if call.request.method != "GET" else {}
    head = call.account.head(call.bucket, call.key, headers=newest, query=version_query(call))
    if head.is_success:
        return head
    version = call.params.get("versionId")
    if version is not None and head.status in (400, 404):
        raise refused_version(call, head, version)
    raise missing_key(call, call.key) if head.status == 404 else refusal(head.status)


def _version(headers: HeaderMap) -> HeaderMap:
    version = headers.get("x-object-version-id")
    return {"x-amz-version-id": version} if version else {}


def _store(call: Call, text: str) -> HeaderMap:
    """Replace the tags; what the answer says of the version."""
    wanted = call.params.get("versionId", "null")
    if wanted != "null":
        found = _head(call).headers
        current = call.account.head(call.bucket, call.key).headers.get("x-object-version-id")
        if current != wanted:
            # No other request than ours reaches it: who may do this is asked here.
            owners_settings(call.account, call.bucket)
            place = version_place(call, Timestamp(wanted))
            call.account.hidden.note("POST", place, _with_tags(found, text))
            return _version(found)
    told: HeaderMap = {}

    def write(conditions: HeaderMap) -> int:
        found = _head(call).headers
        told.update(_version(found))
        headers = {**_with_tags(found, text), **_end(call, found)}
        headers.update(conditions, **(just_above(found) if conditions else {}))
        with call.account.ask("POST", call.bucket, call.key, headers=headers) as response:
            return response.status

    status = rewrite(call, write)
    if not 200 <= status <= 299:
        raise missing_key(call, call.key) if status == 404 else refusal(status)
    return told


def _end(call: Call, found: HeaderMap) -> HeaderMap:
    """Return when the link to a version ends, which a POST must say again; versions do not end."""
    if found.get("x-object-version-id", "null") == "null":
        return {}
    link = call.account.head(call.bucket, call.key, query="symlink=get").headers
    return {name: link[name] for name in ("x-delete-at",) if name in link}


def _with_tags(found: HeaderMap, text: str) -> HeaderMap:
    """What a POST says again with other tags, none if ``text`` is empty."""
    headers = said_again(found)
    headers.pop(fields.TRANSIENT_S3_TAGGING, None)
    return {**headers, fields.TRANSIENT_S3_TAGGING: text} if text else headers


# --- buckets ------------------------------------------------------------------------------------------


def get_bucket_tagging(call: Call) -> Response:
    """GetBucketTagging."""
    text = _bucket(call).get(fields.SYSMETA_S3_BUCKET_TAGGING)
    if not text:
        raise S3Error("NoSuchTagSet", details={"BucketName": call.bucket})
    return xml_response(TAGGING, tags_document(parsed_tags(text)))


def _bucket(call: Call) -> HeaderMap:
    head = call.account.head(call.bucket)
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    return head.headers


def put_bucket_tagging(call: Call) -> Response:
    """PutBucketTagging."""
    tags = tags_of_document(call.document(TAGGING), BUCKET_TAGS_MAX)
    _store_bucket(call, stored_tags(tags))
    return no_content()


def delete_bucket_tagging(call: Call) -> Response:
    """DeleteBucketTagging."""
    _store_bucket(call, "")
    return no_content()


def _store_bucket(call: Call, text: str) -> None:
    call.account.done("POST", call.bucket, headers={fields.SYSMETA_S3_BUCKET_TAGGING: text})


HANDLERS: dict[str, Handler] = {
    "GetObjectTagging": get_object_tagging,
    "PutObjectTagging": put_object_tagging,
    "DeleteObjectTagging": delete_object_tagging,
    "GetBucketTagging": get_bucket_tagging,
    "PutBucketTagging": put_bucket_tagging,
    "DeleteBucketTagging": delete_bucket_tagging,
}
