"""Operations on objects: PutObject, GetObject, HeadObject, DeleteObject, attributes and tags."""

from __future__ import annotations

import time
from dataclasses import replace

from swift.base.digits import is_digits
from swift.base.ranges import ByteRanges
from swift.base.timestamp import Timestamp
from swift.gateway.subrequest import drained
from swift.http import fields
from swift.http.conditional import client_etag, if_range_matches, parse_http_date
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.storedtags import decode_tags, encode_tags
from swift.s3.api.delete import enqueue_deletion_event, remove_object
from swift.s3.api.encryption import (
    AES256,
    CUSTOMER_PREFIX,
    SSE_HEADER,
    decrypt_response,
    encrypt_upload,
    encryption_response_headers,
    validate_object_key,
)
from swift.s3.api.listing import read_page
from swift.s3.api.objectlock import lock_headers, lock_metadata
from swift.s3.api.placement import store_object
from swift.s3.api.writes import (
    checksum_elements,
    expiry_headers,
    head_version,
    object_error,
    parse_write_conditions,
    part_checksum_elements,
    part_checksum_headers,
    read_error,
    redirect_headers,
    storage_class_headers,
    stored_checksum_headers,
    tagging_headers,
    timestamp_just_above,
    update_if_unchanged,
    upload_checksum_headers,
    validate_write,
    version_path,
    write_error,
    write_response_headers,
)
from swift.s3.config.lifecycle import expiration_headers
from swift.s3.config.notifications import enqueue_event, etag_and_version
from swift.s3.core.call import Call, Handler, invalid_argument, no_content, version_query, xml_response
from swift.s3.core.checksums import CHECKSUM_ELEMENTS
from swift.s3.core.errors import S3Error, error_for_status, invalid_request
from swift.s3.core.metadata import (
    DELETE_MARKER_TYPE,
    apply_response_overrides,
    fails_if_match,
    fails_if_modified_since,
    fails_if_unmodified_since,
    is_multipart,
    metadata_for_post,
    object_etag,
    object_storage_class,
    parse_range,
    parse_read_headers,
    pop_date_conditions,
    row_version_id,
    s3_version_id,
    to_s3_headers,
    to_swift_headers,
)
from swift.s3.core.session import owner_sysmeta, with_trusted_bucket
from swift.s3.core.tags import OBJECT_TAGS_MAX, TAGGING, parse_tags_document, render_tags
from swift.s3.core.xml import Group, RepeatedGroup, Text, Value
from swift.s3.policy.authorize import authorize_read, new_object_acl_headers, open_object

_READ_STATUSES = (200, 206, 304)


def put_object(call: Call) -> Response:
    """PutObject."""
    headers = call.headers
    storage_class = validate_write(call)
    conditions = parse_write_conditions(headers)
    response_headers = encryption_response_headers(call)
    upload = call.make_upload()
    size = upload.body.length
    key_metadata = encrypt_upload(call, upload)
    stored = {**to_swift_headers(headers), **upload.headers, **conditions, **tagging_headers(headers)}
    stored.update(redirect_headers(headers), **expiry_headers(headers))
    stored.update(new_object_acl_headers(call), **lock_metadata(call), **key_metadata)
    response = store_object(call, storage_class, upload, stored)
    if response.is_success:
        response_headers.update(write_response_headers(response), **upload_checksum_headers(upload))
        size = upload.body.received if size is None else size
        response_headers.update(expiration_headers(call, stored, size=size, modified_s=time.time()))
        enqueue_event(call, "s3:ObjectCreated:Put", call.key, size=size, **etag_and_version(response_headers))
        return Response(200, response_headers)
    upload.raise_body_error()
    raise write_error(call, response.status, conditions)


def read_object(call: Call) -> Response:
    """GetObject and HeadObject."""
    params = call.params
    try:
        query, requested = _read_query(call), parse_read_headers(call.headers)
    except S3Error:
        authorize_read(call)
        raise
    dates = pop_date_conditions(requested)
    call, response = open_object(call, requested, query)
    failed_condition = _failed_condition({**requested, **dates}, response)
    if failed_condition:
        drained(response)
        raise S3Error("PreconditionFailed", details={"Condition": failed_condition})
    if response.status not in _READ_STATUSES:
        drained(response)
        raise _read_error(call, response)
    swift_headers = response.headers
    if response.is_success and fails_if_modified_since(dates, swift_headers):
        drained(response)
        for name in ("content-length", "content-range"):
            swift_headers.pop(name, None)
        response = Response(304, swift_headers)
    headers = to_s3_headers(swift_headers)
    headers.update(
        lock_headers(swift_headers),
        **decrypt_response(call, response),
        **storage_class_headers(call, swift_headers),
    )
    if call.settings.accept_aes256 and f"{CUSTOMER_PREFIX}algorithm" not in headers:
        headers[SSE_HEADER] = AES256
    if call.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED":
        headers.update(_response_checksum_headers(call, response))
    for name, value in expiration_headers(call, swift_headers).items():
        headers.setdefault(name, value)
    if params:
        apply_response_overrides(headers, params)
        if "partNumber" in params:
            _respond_as_only_part(call, response, headers)
    response.headers = headers
    if call.request.method == "HEAD" and parse_range(call.headers) and response.status == 200:
        modified_s = parse_http_date(swift_headers.get("last-modified", ""))
        if if_range_matches(
            requested, etag=client_etag(requested, swift_headers), last_modified_s=modified_s
        ):
            _apply_range_to_head(call, response)
    return response


def _failed_condition(requested: HeaderMap, response: Response) -> str:
    """Return the condition that failed before the one that storage nodes reported, if they did."""
    if response.status == 304 and fails_if_match(requested, response.headers):
        return "If-Match"
    if response.status not in _READ_STATUSES:
        return ""
    return "If-Unmodified-Since" if fails_if_unmodified_since(requested, response.headers) else ""


def _response_checksum_headers(call: Call, response: Response) -> HeaderMap:
    """Return the checksum headers for a response's content: the whole object, or one part of it."""
    sums = stored_checksum_headers(response.headers)
    if response.status == 200:
        return sums
    number = call.params.get("partNumber")
    if not sums or number is None or response.status != 206 or "x-parts-count" not in response.headers:
        return {}
    return part_checksum_headers(call, int(number), sums["x-amz-checksum-type"])


def _apply_range_to_head(call: Call, response: Response) -> None:
    """Turn the response to a HEAD with Range into that of the GET; raise ``S3Error``."""
    headers = response.headers
    size = int(headers.get("content-length") or 0)
    ranges = ByteRanges.parse(call.headers["range"])
    spans = ranges.resolve(size) if ranges else None
    if spans is None:
        return
    if not spans:
        drained(response)
        raise S3Error("InvalidRange", details={"RangeRequested": call.headers["range"]})
    if not size:
        # Any suffix range of an empty object is the whole object.
        return
    response.status, response.reason = 206, "Partial Content"
    for name in [name for name in headers if name.startswith("x-amz-checksum-")]:
        # They are checksums of the whole object.
        del headers[name]
    headers["content-range"] = spans[0].content_range(size)
    headers["content-length"] = str(spans[0].length)


def _read_query(call: Call) -> str:
    """Return the query for the requested version and part; raise ``S3Error``."""
    params = call.params
    if not params:
        return ""
    if call.session.is_anonymous and any(name.startswith("response-") for name in params):
        text = "Request specific response headers cannot be used for anonymous GET requests."
        raise invalid_request(text)
    found = version_query(call)
    number = params.get("partNumber")
    if number is not None:
        if not is_digits(number) or not 1 <= int(number[:6]) <= 10000:
            raise invalid_argument(
                "partNumber", number, "Part number must be an integer between 1 and 10000, inclusive"
            )
        if "range" in call.headers:
            raise invalid_request("Cannot specify both Range header and partNumber query parameter")
        found += f"{'&' if found else ''}part-number={number}"
    return found


def _respond_as_only_part(call: Call, response: Response, headers: HeaderMap) -> None:
    """Return a whole object as its only part; raise ``S3Error`` for other part numbers."""
    if "x-amz-mp-parts-count" in headers or response.status != 200:
        return
    if int(call.params["partNumber"]) != 1:
        drained(response)
        raise S3Error("InvalidPartNumber", details={"PartNumberRequested": call.params["partNumber"]})
    size = int(headers.get("content-length") or 0)
    if size:
        response.status, response.reason = 206, "Partial Content"
        headers["content-range"] = f"bytes 0-{size - 1}/{size}"


def _read_error(call: Call, response: Response) -> S3Error:
    """Return the error for a failed GET or HEAD."""
    status = response.status
    if status == 416 and "partNumber" in call.params:
        return S3Error("InvalidPartNumber", details={"PartNumberRequested": call.params["partNumber"]})
    if status == 416:
        return S3Error("InvalidRange", details={"RangeRequested": call.headers.get("range", "")})
    if status not in (400, 404):
        return error_for_status(status, conflict="BrokenMPU")
    error = read_error(call, response)
    if error.code == "NoSuchKey":
        error.headers.update(_delete_marker_headers(call))
    return error


def _delete_marker_headers(call: Call) -> HeaderMap:
    """Return the headers about the delete marker that is the current version; none without one."""
    if "versions-container" not in call.session.bucket_info(call.bucket).sysmeta:
        return {}
    trusted = replace(call, session=with_trusted_bucket(call.session, call.bucket))
    page = read_page(trusted, call.bucket, 1, {"prefix": call.key}, flags="&versions=true")
    newest = next((row for row in page.rows if row.get("name") == call.key), {})
    if newest.get("content_type") != DELETE_MARKER_TYPE:
        return {}
    return {"x-amz-delete-marker": "true", "x-amz-version-id": row_version_id(newest)}


def delete_object(call: Call) -> Response:
    """DeleteObject."""
    if "x-amz-mfa" in call.headers:
        raise S3Error("NotImplemented", details={"Header": "x-amz-mfa"})
    version_query(call)
    removed = remove_object(
        call, call.key, call.params.get("versionId"), conditions=parse_write_conditions(call.headers)
    )
    enqueue_deletion_event(call, call.key, removed, by_version="versionId" in call.params)
    headers = {}
    if removed.version:
        headers["x-amz-version-id"] = removed.version
    if removed.is_marker:
        headers["x-amz-delete-marker"] = "true"
    return no_content(headers)


# --- GetObjectAttributes ------------------------------------------------------------------------------

ATTRIBUTES = Group(
    "GetObjectAttributesResponse",
    Text("ETag"),
    Group("Checksum", *CHECKSUM_ELEMENTS, Text("ChecksumType")),
    Group(
        "ObjectParts",
        *(
            Text(n)
            for n in ("PartsCount", "PartNumberMarker", "NextPartNumberMarker", "MaxParts", "IsTruncated")
        ),
        RepeatedGroup("Part", Text("PartNumber"), Text("Size"), *CHECKSUM_ELEMENTS),
    ),
    Text("StorageClass"),
    Text("ObjectSize"),
)
_ATTRIBUTE_NAMES = ("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize")
_PARTS_MAX = 1000


def get_attributes(call: Call) -> Response:
    """GetObjectAttributes: the attributes that the request lists."""
    text = call.headers.get("x-amz-object-attributes", "")
    requested = {word.strip() for word in text.split(",") if word.strip()}
    if not requested <= set(_ATTRIBUTE_NAMES) or not requested:
        call.session.bucket_info(call.bucket)
    if not requested:
        raise invalid_request(
            "The x-amz-object-attributes header specifying the attributes to be retrieved "
            "is either missing or empty"
        )
    if not requested <= set(_ATTRIBUTE_NAMES):
        raise invalid_argument("x-amz-object-attributes", text, "Invalid attribute name specified.")
    query = version_query(call)
    headers = head_version(call)
    validate_object_key(call, headers)
    value: dict[str, Value] = {}
    if "ETag" in requested:
        value["ETag"] = object_etag(headers).strip('"')
    if "Checksum" in requested and (sums := checksum_elements(headers)):
        value["Checksum"] = sums
    if "ObjectParts" in requested and is_multipart(headers):
        value["ObjectParts"] = _list_object_parts(call, query, has_sums=bool(checksum_elements(headers)))
    if "StorageClass" in requested:
        value["StorageClass"] = object_storage_class(headers) or call.bucket_storage_class
    if "ObjectSize" in requested:
        value["ObjectSize"] = headers.get("content-length", "0")
    listed = to_s3_headers(headers)
    response_headers: HeaderMap = {n: listed[n] for n in ("last-modified", "x-amz-version-id") if n in listed}
    return xml_response(ATTRIBUTES, value, headers=response_headers)


def _list_object_parts(call: Call, query: str, *, has_sums: bool) -> Value:
    """Return a page of the parts of a large object, with checksums if the object has one."""
    most = min(_number_header(call, "x-amz-max-parts", _PARTS_MAX), _PARTS_MAX)
    after = _number_header(call, "x-amz-part-number-marker", 0)
    response, entries = call.session.read_manifest(call.bucket, call.key, query)
    if not response.is_success:
        raise error_for_status(response.status)
    listed = list(enumerate(entries, 1))[after : after + most]
    paths = [str(entry.get("name", "")).lstrip("/").partition("/") for _, entry in listed]
    found = part_checksum_elements(
        call, [(container, name) for container, _, name in paths] if has_sums else []
    )
    sums = found or [{} for _ in listed]
    value: dict[str, Value] = {
        "PartsCount": len(entries),
        "PartNumberMarker": after,
        "MaxParts": most,
        "IsTruncated": "true" if after + most < len(entries) else "false",
        "Part": [
            {"PartNumber": number, "Size": _segment_size(entry), **elements}
            for (number, entry), elements in zip(listed, sums, strict=True)
        ],
    }
    if listed:
        value["NextPartNumberMarker"] = listed[-1][0]
    return value


def _segment_size(entry: dict[str, object]) -> int:
    first, dash, last = str(entry.get("range", "")).partition("-")
    return int(last) - int(first) + 1 if dash else int(str(entry.get("bytes", 0)))


def _number_header(call: Call, name: str, default: int) -> int:
    text = call.headers.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise invalid_argument(name, text)
    return int(text)


# --- tags ---------------------------------------------------------------------------------------------
# The tags of an object are metadata that a POST replaces as a whole, so a change reads the other metadata
# first and repeats it to the same object; of two concurrent changes of its metadata one wins.


def get_object_tagging(call: Call) -> Response:
    """GetObjectTagging."""
    headers = _head_newest(call)
    tags = decode_tags(headers.get(fields.TRANSIENT_S3_TAGGING))
    return xml_response(TAGGING, render_tags(tags), headers=_version_headers(headers))


def put_object_tagging(call: Call) -> Response:
    """PutObjectTagging."""
    tags = parse_tags_document(call.parse_body(TAGGING), OBJECT_TAGS_MAX)
    response_headers = _replace_tags(call, encode_tags(tags))
    enqueue_event(
        call, "s3:ObjectTagging:Put", call.key, version=response_headers.get("x-amz-version-id", "")
    )
    return Response(200, response_headers)


def delete_object_tagging(call: Call) -> Response:
    """DeleteObjectTagging."""
    response_headers = _replace_tags(call, "")
    enqueue_event(
        call, "s3:ObjectTagging:Delete", call.key, version=response_headers.get("x-amz-version-id", "")
    )
    return no_content(response_headers)


def _head_newest(call: Call) -> HeaderMap:
    return head_version(call, {"x-newest": "true"} if call.request.method != "GET" else None)


def _version_headers(headers: HeaderMap) -> HeaderMap:
    version = s3_version_id(headers)
    return {"x-amz-version-id": version} if version else {}


def _replace_tags(call: Call, text: str) -> HeaderMap:
    """Replace the tags and return the response headers about the version."""
    found = _head_newest(call) if "versionId" in call.params else {}
    requested = found.get("x-object-version-id", "null")
    if requested != "null":
        current = call.session.head(call.bucket, call.key).headers.get("x-object-version-id")
        if current != requested:
            # Only privileged requests reach it, so the caller's right is checked here.
            owner_sysmeta(call.session, call.bucket)
            place = version_path(call, Timestamp(requested))
            call.session.privileged.send_change("POST", place, _metadata_with_tags(found, text))
            return _version_headers(found)
    response_headers: HeaderMap = {}

    def write(conditions: HeaderMap) -> int:
        found = _head_newest(call)
        response_headers.update(_version_headers(found))
        headers = {**_metadata_with_tags(found, text), **_link_expiry_headers(call, found)}
        headers.update(conditions, **(timestamp_just_above(found) if conditions else {}))
        with call.session.open_response("POST", call.bucket, call.key, headers=headers) as response:
            return response.status

    status = update_if_unchanged(call, write)
    if status == 400:
        raise S3Error("MetadataTooLarge", "The tags of this object and its metadata have no room together.")
    if not 200 <= status <= 299:
        raise object_error(call, status)
    return response_headers


def _link_expiry_headers(call: Call, found: HeaderMap) -> HeaderMap:
    """Return the expiry of the link to a version, which a POST must repeat; versions have none."""
    if found.get("x-object-version-id", "null") == "null":
        return {}
    link = call.session.head(call.bucket, call.key, query="symlink=get").headers
    return {name: link[name] for name in ("x-delete-at",) if name in link}


def _metadata_with_tags(found: HeaderMap, text: str) -> HeaderMap:
    """Return the metadata that a POST preserves, with other tags; without tags if ``text`` is empty."""
    headers = metadata_for_post(found)
    headers.pop(fields.TRANSIENT_S3_TAGGING, None)
    return {**headers, fields.TRANSIENT_S3_TAGGING: text} if text else headers


HANDLERS: dict[str, Handler] = {
    "PutObject": put_object,
    "GetObject": read_object,
    "HeadObject": read_object,
    "DeleteObject": delete_object,
    "GetObjectAttributes": get_attributes,
    "GetObjectTagging": get_object_tagging,
    "PutObjectTagging": put_object_tagging,
    "DeleteObjectTagging": delete_object_tagging,
}
