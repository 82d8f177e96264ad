"""Operations on objects: PutObject, GetObject, HeadObject, DeleteObject, their attributes and tags."""

from __future__ import annotations

import json
import time

from swift.base.digits import is_digits
from swift.base.ranges import ByteRanges
from swift.base.timestamp import Timestamp
from swift.gateway.subrequest import drained
from swift.http import fields
from swift.http.conditional import client_etag, if_range_matches, parse_http_date
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.api.call import Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.api.checksums import ALGORITHMS
from swift.s3.api.delete import announce_removal, remove_object
from swift.s3.api.encryption import AES, CUSTOMER, check_key, decrypt, encrypt, write_headers
from swift.s3.api.encryption import HEADER as SSE
from swift.s3.api.metadata import (
    echoed_metadata,
    is_changed_since,
    is_multipart,
    is_other_etag,
    object_class,
    object_etag,
    reading_headers,
    rendered_headers,
    requested_range,
    stored_headers,
    with_overrides,
)
from swift.s3.api.objectlock import lock_headers, locking_headers
from swift.s3.api.placement import store_object
from swift.s3.api.put import (
    checksum_elements,
    checksum_headers,
    class_headers,
    expiry_headers,
    head_version,
    just_above,
    missing_key,
    part_checksum,
    part_checksums,
    read_error,
    redirect_headers,
    stored_checksum,
    tagging_headers,
    unmet,
    update_if_unchanged,
    validate_write,
    version_place,
    version_query,
    write_error,
    writing_conditions,
    written_headers,
)
from swift.s3.api.tags import (
    OBJECT_TAGS_MAX,
    TAGGING,
    parsed_tags,
    stored_tags,
    tags_document,
    tags_of_document,
)
from swift.s3.auth.session import owned_sysmeta
from swift.s3.config.lifecycle import expiration_headers
from swift.s3.config.notifications import announce, written_facts
from swift.s3.errors import S3Error, refusal
from swift.s3.policy.authorize import authorize_read, new_object_acl, open_object
from swift.s3.xml import Group, Many, Text, Value

_FOUND = (200, 206, 304)


def put_object(call: Call) -> Response:
    """PutObject."""
    headers = call.headers
    kind = validate_write(call)
    conditions = writing_conditions(headers)
    answer_headers = write_headers(call)
    upload = call.upload()
    size = upload.body.length
    sealed = encrypt(call, upload)
    stored = {**stored_headers(headers), **upload.headers, **conditions, **tagging_headers(headers)}
    stored.update(redirect_headers(headers), **expiry_headers(headers))
    stored.update(new_object_acl(call), **locking_headers(call), **sealed)
    response = store_object(call, kind, upload, stored)
    status = response.status
    if response.is_success:
        answer_headers.update(written_headers(response), **checksum_headers(upload))
        size = upload.body.received if size is None else size
        answer_headers.update(expiration_headers(call, size, stored, modified_s=time.time()))
        announce(call, "s3:ObjectCreated:Put", call.key, size=size, **written_facts(answer_headers))
        return Response(200, answer_headers)
    upload.raise_problem()
    if status == 412:
        raise unmet(call.session, call.bucket, call.key, conditions)
    if status == 409 and conditions:
        raise S3Error("ConditionalRequestConflict")
    raise write_error(call.session, call.bucket, status, headers)


def read_object(call: Call) -> Response:
    """GetObject and HeadObject."""
    params = call.params
    try:
        query, requested = _query(call), reading_headers(call.headers)
    except S3Error:
        authorize_read(call)
        raise
    call, response = open_object(call, requested, query)
    unmet_first = _unmet_first(requested, response)
    if unmet_first:
        drained(response)
        raise S3Error("PreconditionFailed", details={"Condition": unmet_first})
    if response.status not in _FOUND:
        drained(response)
        raise _refused_read(call, response)
    below = response.headers
    headers = rendered_headers(below)
    headers.update(lock_headers(below), **decrypt(call, response), **class_headers(call, below))
    if call.settings.accept_aes256 and f"{CUSTOMER}algorithm" not in headers:
        headers[SSE] = AES
    if call.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED":
        headers.update(_checksum(call, response))
    for name, value in expiration_headers(call, _whole_size(below), below).items():
        headers.setdefault(name, value)
    if params:
        with_overrides(headers, params)
        if "partNumber" in params:
            _as_part(call, response, headers)
    response.headers = headers
    if call.request.method == "HEAD" and requested_range(call.headers) and response.status == 200:
        modified_s = parse_http_date(headers.get("last-modified", ""))
        if if_range_matches(requested, etag=client_etag(requested, below), last_modified_s=modified_s):
            _cut_head(call, response)
    return response


def _unmet_first(requested: HeaderMap, response: Response) -> str:
    """Return the unmet condition of a 304, judged before the one that the storage nodes answered."""
    if response.status != 304:
        return ""
    if is_other_etag(requested, response.headers):
        return "If-Match"
    return "If-Unmodified-Since" if is_changed_since(requested, response.headers) else ""


def _checksum(call: Call, response: Response) -> HeaderMap:
    """Return the checksum of what an answer gives: the whole object, or one of its parts."""
    sums = stored_checksum(response.headers)
    if response.status == 200:
        return sums
    number = call.params.get("partNumber")
    if not sums or number is None or response.status != 206 or "x-parts-count" not in response.headers:
        return {}
    return part_checksum(call, int(number), sums["x-amz-checksum-type"])


def _whole_size(headers: HeaderMap) -> int:
    """Return the size of an object of which an answer may have a part."""
    text = headers.get("content-range", "").rpartition("/")[2] or headers.get("content-length", "")
    return int(text) if is_digits(text) else 0


def _cut_head(call: Call, response: Response) -> None:
    """Answer a HEAD with Range as its GET would be; raises ``S3Error``."""
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
        # The last bytes of nothing are all of it.
        return
    response.status, response.reason = 206, "Partial Content"
    for name in [name for name in headers if name.startswith("x-amz-checksum-")]:
        # They are those of all its bytes.
        del headers[name]
    headers["content-range"] = spans[0].content_range(size)
    headers["content-length"] = str(spans[0].length)


def _query(call: Call) -> str:
    """Return the query for the requested version and part; raise ``S3Error``."""
    params = call.params
    if not params:
        return ""
    if call.session.is_anonymous and any(name.startswith("response-") for name in params):
        text = "Request specific response headers cannot be used for anonymous GET requests."
        raise S3Error("InvalidRequest", text)
    found = version_query(call)
    number = params.get("partNumber")
    if number is not None:
        if not is_digits(number) or not 1 <= int(number[:6]) <= 10000:
            raise invalid_argument(
                "partNumber", number, "Part number must be an integer between 1 and 10000, inclusive"
            )
        if "range" in call.headers:
            raise S3Error("InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
        found += f"{'&' if found else ''}part-number={number}"
    return found


def _as_part(call: Call, response: Response, headers: HeaderMap) -> None:
    """Answer a whole object as its only part."""
    if "x-amz-mp-parts-count" in headers or response.status != 200:
        return
    if int(call.params["partNumber"]) != 1:
        drained(response)
        raise S3Error("InvalidPartNumber", details={"PartNumberRequested": call.params["partNumber"]})
    size = int(headers.get("content-length") or 0)
    if size:
        response.status, response.reason = 206, "Partial Content"
        headers["content-range"] = f"bytes 0-{size - 1}/{size}"


def _refused_read(call: Call, response: Response) -> S3Error:
    """Return the error for a GET or HEAD that found nothing."""
    status = response.status
    if status == 416 and "partNumber" in call.params:
        return S3Error("InvalidPartNumber", details={"PartNumberRequested": call.params["partNumber"]})
    if status == 416:
        return S3Error("InvalidRange", details={"RangeRequested": call.headers.get("range", "")})
    return read_error(call, response) if status in (400, 404) else refusal(status, conflict="BrokenMPU")


def delete_object(call: Call) -> Response:
    """DeleteObject."""
    if "x-amz-mfa" in call.headers:
        raise S3Error("NotImplemented", details={"Header": "x-amz-mfa"})
    version_query(call)
    removed = remove_object(
        call, call.key, call.params.get("versionId"), conditions=writing_conditions(call.headers)
    )
    announce_removal(call, call.key, removed, by_version="versionId" in call.params)
    headers = {}
    if removed.version:
        headers["x-amz-version-id"] = removed.version
    if removed.is_marker:
        headers["x-amz-delete-marker"] = "true"
    return no_content(headers)


# --- GetObjectAttributes ------------------------------------------------------------------------------

_SUMS = tuple(Text(algorithm.element) for algorithm in ALGORITHMS.values())
ATTRIBUTES = Group(
    "GetObjectAttributesResponse",
    Text("ETag"),
    Group("Checksum", *_SUMS, Text("ChecksumType")),
    Group(
        "ObjectParts",
        *(
            Text(n)
            for n in ("PartsCount", "PartNumberMarker", "NextPartNumberMarker", "MaxParts", "IsTruncated")
        ),
        Many("Part", Text("PartNumber"), Text("Size"), *_SUMS),
    ),
    Text("StorageClass"),
    Text("ObjectSize"),
)
_KNOWN = ("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize")
_PARTS_MAX = 1000


def get_attributes(call: Call) -> Response:
    """GetObjectAttributes: the attributes that the header names."""
    text = call.headers.get("x-amz-object-attributes", "")
    requested = {word.strip() for word in text.split(",") if word.strip()}
    if not requested <= set(_KNOWN) or not requested:
        call.session.bucket_info(call.bucket)
    if not requested:
        raise S3Error(
            "InvalidRequest",
            "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing "
            "or empty",
        )
    if not requested <= set(_KNOWN):
        raise invalid_argument("x-amz-object-attributes", text, "Invalid attribute name specified.")
    query = version_query(call)
    headers = head_version(call)
    check_key(call, headers)
    value: dict[str, Value] = {}
    if "ETag" in requested:
        value["ETag"] = object_etag(headers).strip('"')
    if "Checksum" in requested and (sums := checksum_elements(headers)):
        value["Checksum"] = sums
    if "ObjectParts" in requested and is_multipart(headers):
        value["ObjectParts"] = _parts(call, query, has_sums=bool(checksum_elements(headers)))
    if "StorageClass" in requested:
        value["StorageClass"] = object_class(headers) or call.storage_class
    if "ObjectSize" in requested:
        value["ObjectSize"] = headers.get("content-length", "0")
    shown = rendered_headers(headers)
    answer_headers: HeaderMap = {n: shown[n] for n in ("last-modified", "x-amz-version-id") if n in shown}
    return xml_response(ATTRIBUTES, value, headers=answer_headers)


def _parts(call: Call, query: str, *, has_sums: bool) -> Value:
    """Return the parts of a large object, in pages; each with its checksum when the object has one."""
    most = min(_number(call, "x-amz-max-parts", _PARTS_MAX), _PARTS_MAX)
    after = _number(call, "x-amz-part-number-marker", 0)
    query = f"{query}{'&' if query else ''}multipart-manifest=get"
    with call.session.ask("GET", call.bucket, call.key, query=query) as response:
        if not response.is_success:
            raise refusal(response.status)
        entries = json.loads(response.read_body())
    shown = list(enumerate(entries, 1))[after : after + most]
    paths = [str(entry.get("name", "")).lstrip("/").partition("/") for _, entry in shown]
    found = part_checksums(call, [(container, name) for container, _, name in paths] if has_sums else [])
    sums = found or [{} for _ in shown]
    value: dict[str, Value] = {
        "PartsCount": len(entries),
        "PartNumberMarker": after,
        "MaxParts": most,
        "IsTruncated": "true" if after + most < len(entries) else "false",
        "Part": [
            {"PartNumber": number, "Size": _size(entry), **elements}
            for (number, entry), elements in zip(shown, sums, strict=True)
        ],
    }
    if shown:
        value["NextPartNumberMarker"] = shown[-1][0]
    return value


def _size(entry: dict[str, object]) -> int:
    first, dash, last = str(entry.get("range", "")).partition("-")
    return int(last) - int(first) + 1 if dash else int(str(entry.get("bytes", 0)))


def _number(call: Call, name: str, usual: int) -> int:
    text = call.headers.get(name)
    if text is None:
        return usual
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise invalid_argument(name, text)
    return int(text)


# --- tags ---------------------------------------------------------------------------------------------
# The tags of an object are metadata that a POST replaces as a whole, so a change reads the other metadata
# first and says it again, to the same object; of two changes of its metadata at the same time one wins.


def get_object_tagging(call: Call) -> Response:
    """GetObjectTagging."""
    headers = _head(call)
    tags = parsed_tags(headers.get(fields.TRANSIENT_S3_TAGGING))
    return xml_response(TAGGING, tags_document(tags), headers=_version(headers))


def put_object_tagging(call: Call) -> Response:
    """PutObjectTagging."""
    tags = tags_of_document(call.document(TAGGING), OBJECT_TAGS_MAX)
    answer_headers = _store(call, stored_tags(tags))
    announce(call, "s3:ObjectTagging:Put", call.key, version=answer_headers.get("x-amz-version-id", ""))
    return Response(200, answer_headers)


def delete_object_tagging(call: Call) -> Response:
    """DeleteObjectTagging."""
    answer_headers = _store(call, "")
    announce(call, "s3:ObjectTagging:Delete", call.key, version=answer_headers.get("x-amz-version-id", ""))
    return no_content(answer_headers)


def _head(call: Call) -> HeaderMap:
    return head_version(call, {"x-newest": "true"} if call.request.method != "GET" else None)


def _version(headers: HeaderMap) -> HeaderMap:
    version = headers.get("x-object-version-id")
    return {"x-amz-version-id": version} if version else {}


def _store(call: Call, text: str) -> HeaderMap:
    """Replace the tags; what the answer says of the version."""
    requested = call.params.get("versionId", "null")
    if requested != "null":
        found = _head(call)
        current = call.session.head(call.bucket, call.key).headers.get("x-object-version-id")
        if current != requested:
            # No other request than ours reaches it: who may do this is asked here.
            owned_sysmeta(call.session, call.bucket)
            place = version_place(call, Timestamp(requested))
            call.session.hidden.note("POST", place, _with_tags(found, text))
            return _version(found)
    answer_headers: HeaderMap = {}

    def write(conditions: HeaderMap) -> int:
        found = _head(call)
        answer_headers.update(_version(found))
        headers = {**_with_tags(found, text), **_end(call, found)}
        headers.update(conditions, **(just_above(found) if conditions else {}))
        with call.session.ask("POST", call.bucket, call.key, headers=headers) as response:
            return response.status

    status = update_if_unchanged(call, write)
    if not 200 <= status <= 299:
        raise missing_key(call, call.key) if status == 404 else refusal(status)
    return answer_headers


def _end(call: Call, found: HeaderMap) -> HeaderMap:
    """Return when the link to a version ends, which a POST must say again; versions do not end."""
    if found.get("x-object-version-id", "null") == "null":
        return {}
    link = call.session.head(call.bucket, call.key, query="symlink=get").headers
    return {name: link[name] for name in ("x-delete-at",) if name in link}


def _with_tags(found: HeaderMap, text: str) -> HeaderMap:
    """Return the metadata that a POST echoes, with other tags; none if ``text`` is empty."""
    headers = echoed_metadata(found)
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
