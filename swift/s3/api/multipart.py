"""Multipart uploads: creating, parts, listings, aborting. ``completion`` has their completion."""

from __future__ import annotations

from collections.abc import Collection

from swift.base.documents import JsonObject
from swift.http import fields
from swift.http.body import length_header
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.s3.api.copies import COPY_BYTES_MAX, CopySource, modified_time_of, open_source, parse_copy_source
from swift.s3.api.encryption import (
    encrypt_upload,
    encryption_response_headers,
    upload_key_metadata,
    validate_part_key,
)
from swift.s3.api.listing import (
    LAST_CHARACTER,
    NameEncoding,
    Page,
    list_with_common_prefixes,
    render_user,
    row_name,
    user_element,
)
from swift.s3.api.objectlock import (
    LOCK_CONFIGURATION,
    REQUESTED_LOCK_METADATA,
    parse_requested_lock,
    require_lockable,
)
from swift.s3.api.parts import find_parts_in_use, put_part, require_open_upload, require_upload
from swift.s3.api.writes import (
    expiry_headers,
    part_checksum_elements,
    redirect_headers,
    tagging_headers,
    upload_checksum_headers,
    validate_write,
    write_error,
    write_response_headers,
)
from swift.s3.core.call import (
    Call,
    Handler,
    invalid_argument,
    iso_time_of_row,
    no_content,
    respond_with_keep_alive,
    xml_response,
)
from swift.s3.core.checksums import (
    CHECKSUM_ELEMENTS,
    COMPOSITE,
    DeclaredChecksum,
    find_algorithm,
    parse_declared_checksum,
    validate_checksum_type,
)
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.metadata import (
    EMPTY_MD5,
    row_etag,
    row_parameters,
    row_storage_class,
    s3_version_id,
    to_swift_headers,
)
from swift.s3.core.names import segments_container
from swift.s3.core.payload import S3Upload, VerifiedBody
from swift.s3.core.segments import make_segments_container
from swift.s3.core.uploadstate import (
    MARKER_CONTENT_TYPE,
    REQUESTED_CHECKSUM_METADATA,
    CallerObjectClient,
    RequestedChecksum,
    SwapOutcome,
    UploadState,
    all_segments,
    end_upload,
    is_upload_id,
    list_segments,
    marker_name,
    new_upload_id,
    parse_part_number,
    parse_requested_checksum,
    parse_upload_id,
    part_name,
    part_number_of_name,
)
from swift.s3.core.xml import Group, RepeatedGroup, Text, Value, texts
from swift.s3.policy.authorize import new_object_acl_headers
from swift.s3.policy.context import upload_headers_metadata

CREATE_RESULT = Group("InitiateMultipartUploadResult", *texts("Bucket Key UploadId"))
COPY_PART_RESULT = Group("CopyPartResult", Text("LastModified"), Text("ETag"), *CHECKSUM_ELEMENTS)
LIST_PARTS_RESULT = Group(
    "ListPartsResult",
    *texts("Bucket Key UploadId"),
    user_element("Initiator"),
    user_element("Owner"),
    *texts("StorageClass PartNumberMarker NextPartNumberMarker MaxParts"),
    *texts("EncodingType IsTruncated ChecksumAlgorithm ChecksumType"),
    RepeatedGroup("Part", *texts("PartNumber LastModified ETag Size"), *CHECKSUM_ELEMENTS),
)
LIST_UPLOADS_RESULT = Group(
    "ListMultipartUploadsResult",
    *texts("Bucket KeyMarker UploadIdMarker NextKeyMarker NextUploadIdMarker"),
    *texts("Prefix Delimiter EncodingType MaxUploads IsTruncated"),
    RepeatedGroup(
        "Upload",
        Text("Key"),
        Text("UploadId"),
        user_element("Initiator"),
        user_element("Owner"),
        Text("StorageClass"),
        Text("Initiated"),
    ),
    RepeatedGroup("CommonPrefixes", Text("Prefix")),
)


#: The least number of rows of the segments container that a page of uploads reads.
_ROWS_MIN = 16
#: Attempts to change an upload that other requests change at the same time.
_ATTEMPTS_MAX = 50


def require_multipart(call: Call) -> None:
    """Raise ``S3Error`` if the pipeline does not support multipart uploads."""
    if not call.features.multipart:
        raise S3Error("NotImplemented", "Multipart uploads are not offered.")


# --- beginning and ending -----------------------------------------------------------------------------


def create_upload(call: Call) -> Response:
    """CreateMultipartUpload."""
    require_multipart(call)
    headers = call.headers
    storage_class = validate_write(call)
    call.require_no_body()
    response_headers, key_metadata = encryption_response_headers(call), upload_key_metadata(call)
    requested = _parse_requested_checksum(headers)
    stored = to_swift_headers(headers)
    stored.update(redirect_headers(headers), **key_metadata)
    stored.update(tagging_headers(headers), **new_object_acl_headers(call, name=fields.SYSMETA_S3_UPLOAD_ACL))
    stored.update(upload_headers_metadata(headers))
    lock = parse_requested_lock(headers)
    if lock is not None:
        require_lockable(call, LOCK_CONFIGURATION)
        stored[REQUESTED_LOCK_METADATA] = str(lock)
    named = "content-type" in headers
    stored[fields.SYSMETA_S3_HAS_CONTENT_TYPE] = "yes" if named else "no"
    if named:
        stored[fields.SYSMETA_S3_CONTENT_TYPE] = headers["content-type"]
    stored["content-type"] = MARKER_CONTENT_TYPE
    if requested is not None:
        stored[REQUESTED_CHECKSUM_METADATA] = f"{requested.algorithm.name} {requested.checksum_type}"
        response_headers |= {
            "x-amz-checksum-algorithm": requested.algorithm.name,
            "x-amz-checksum-type": requested.checksum_type,
        }
    upload_id = new_upload_id()
    # If the name of the first part is too long, that of every part is.
    part_name(call.key, upload_id, 1)
    make_segments_container(call)
    if storage_class:
        make_segments_container(call, storage_class)
        stored[fields.SYSMETA_S3_CLASS] = storage_class
        # Listings of uploads show the class too.
        stored[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = (
            f"{EMPTY_MD5}{row_parameters(storage_class=storage_class)}"
        )
    with call.session.open_response(
        "PUT", segments_container(call.bucket), marker_name(call.key, upload_id), headers=stored
    ) as response:
        if not response.is_success:
            raise write_error(call, response.status)
    value = {"Bucket": call.bucket, "Key": call.key, "UploadId": upload_id}
    return xml_response(CREATE_RESULT, value, headers=response_headers)


def _parse_requested_checksum(headers: HeaderMap) -> RequestedChecksum | None:
    name, kind = headers.get("x-amz-checksum-algorithm"), headers.get("x-amz-checksum-type")
    if kind is not None:
        validate_checksum_type(kind)
    if name is None:
        if kind is not None:
            text = "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header."
            raise invalid_request(text)
        return None
    algorithm = find_algorithm(name)
    requested = RequestedChecksum(algorithm, (kind or algorithm.default_type).upper())
    algorithm.validate_type(requested.checksum_type)
    return requested


def abort_upload(call: Call) -> Response:
    """AbortMultipartUpload: deletes the marker first, unless the upload completes (decision 0020)."""
    require_multipart(call)
    upload_id = parse_upload_id(call)
    state = _end_open_upload(call, upload_id)
    # An interrupted proxy of an earlier version may have left the marker of a complete upload.
    named = find_parts_in_use(call, upload_id)
    if named is not None:
        remove_parts(call, state, but=named)
    return no_content()


def remove_parts(call: Call, state: UploadState, but: Collection[tuple[str, str]] = ()) -> None:
    """Delete the parts of an upload that has ended, except those in ``but``; raise ``S3Error``."""
    kept = {name for _, name in but}
    prefix = marker_name(state.key, state.id) + "/"
    for row in all_segments(call, state.segments_container, prefix):
        name = str(row["name"])
        # A longer name is of an upload of another key.
        if name not in kept and part_number_of_name(name[len(prefix) :]) is not None:
            call.session.delete_object(state.segments_container, name)


def _end_open_upload(call: Call, upload_id: str) -> UploadState:
    """Delete the marker of an open upload and return its state; raise ``S3Error``."""
    for _ in range(_ATTEMPTS_MAX):
        state = require_open_upload(call, upload_id)
        outcome = end_upload(CallerObjectClient(call.session), state)
        if outcome is SwapOutcome.UNSUPPORTED:
            call.session.delete_object(segments_container(call.bucket), marker_name(call.key, upload_id))
        if outcome is not SwapOutcome.LOST:
            return state
    raise S3Error("ServiceUnavailable")


# --- parts --------------------------------------------------------------------------------------------


def upload_part(call: Call) -> Response:
    """UploadPart."""
    require_multipart(call)
    # Checked but not stored: a version may need the part for longer than the object exists.
    expiry_headers(call.headers)
    number, upload_id = parse_part_number(call), parse_upload_id(call)
    state = require_open_upload(call, upload_id, is_newest=False)
    validate_part_key(call, state.headers)
    requested = parse_requested_checksum(state.headers)
    upload = call.make_upload(None if requested is None else requested.algorithm)
    if (
        requested is not None
        and requested.checksum_type == COMPOSITE
        and parse_declared_checksum(call.headers) is None
    ):
        text = (
            "Checksum Type mismatch occurred, expected checksum Type: "
            f"{requested.algorithm.name.lower()}, actual checksum Type: null"
        )
        raise invalid_request(text)
    headers = {**encrypt_upload(call, upload), **_part_headers(upload)}
    response = put_part(call, state, number, upload, headers)
    if response.is_success:
        response_headers = {
            name: value for name, value in upload_checksum_headers(upload).items() if "-type" not in name
        }
        response_headers |= encryption_response_headers(call)
        return Response(200, {"etag": write_response_headers(response)["etag"], **response_headers})
    upload.raise_body_error()
    raise write_error(call, response.status)


def _part_headers(upload: S3Upload) -> HeaderMap:
    return {"content-type": "application/octet-stream", **upload.headers}


def copy_part(call: Call) -> Response:
    """UploadPartCopy; the response begins with spaces if it takes long."""
    require_multipart(call)
    expiry_headers(call.headers)
    call.require_no_body()
    number, source = parse_part_number(call), parse_copy_source(call)
    upload_id = parse_upload_id(call)
    byte_range = call.headers.get("x-amz-copy-source-range")
    state = require_open_upload(call, upload_id, is_newest=False)
    validate_part_key(call, state.headers)
    return respond_with_keep_alive(call, lambda: _copy_part(call, source, byte_range, state, number))


def _copy_part(
    call: Call, source: CopySource, byte_range: str | None, state: UploadState, number: int
) -> Response:
    requested = parse_requested_checksum(state.headers)
    _validate_source_range(call, source, byte_range)
    found = open_source(call, source, byte_range)
    with as_request_body(found) as body:
        if (body.length or 0) > COPY_BYTES_MAX:
            raise invalid_request(f"A part is no larger than {COPY_BYTES_MAX} bytes.")
        computed = None if requested is None else DeclaredChecksum(requested.algorithm, "")
        stated = None if requested is None else DeclaredChecksum(requested.algorithm, None)
        upload = S3Upload(body, VerifiedBody(body, None, computed), {}, stated)
        headers = {**encrypt_upload(call, upload), **_part_headers(upload)}
        headers.update(length_header(body))
        response = put_part(call, state, number, upload, headers)
    if not response.is_success:
        raise write_error(call, response.status)
    value: dict[str, Value] = {
        "LastModified": modified_time_of(response),
        "ETag": write_response_headers(response)["etag"],
    }
    if requested is not None:
        value[requested.algorithm.element] = upload.checksum
    response_headers = encryption_response_headers(call)
    if "x-object-version-id" in found.headers:
        response_headers["x-amz-copy-source-version-id"] = s3_version_id(found.headers)
    return xml_response(COPY_PART_RESULT, value, headers=response_headers)


def _validate_source_range(call: Call, source: CopySource, text: str | None) -> None:
    """Raise ``S3Error`` for a range that is not within the source."""
    if text is None:
        return
    first, dash, last = text.removeprefix("bytes=").partition("-")
    bad = (
        not text.startswith("bytes=")
        or not dash
        or not all(n.isascii() and n.isdigit() for n in (first, last))
    )
    if bad or len(first) > 15 or len(last) > 15 or int(first) > int(last):
        raise invalid_argument(
            "x-amz-source-range",
            text,
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are "
            "the zero-based offsets of the first and last bytes to copy",
        )
    session = source.call_of(call).session
    head = session.head(source.bucket, source.key, query=source.query)
    size = int(head.headers.get("content-length") or 0)
    if head.is_success and int(last) >= size:
        raise invalid_argument(
            "x-amz-copy-source-range", text, f"Range specified is not valid for source object of size: {size}"
        )


# --- listings -----------------------------------------------------------------------------------------


def list_parts(call: Call) -> Response:
    """ListParts, in the order of part numbers."""
    require_multipart(call)
    encode = NameEncoding(call)
    upload_id = parse_upload_id(call)
    limit = call.count_param("max-parts", call.settings.max_parts_listing)
    after = call.parse_count_param("part-number-marker", 0)
    state = require_upload(call, upload_id)
    segments = state.segments_container
    rows = _part_rows(call, state).items()
    parts = sorted((number, row) for number, row in rows if number > after)
    listed = parts[:limit]
    requested = parse_requested_checksum(state.headers)
    sums = part_checksum_elements(
        call, [(segments, str(row["name"])) for _, row in listed] if requested is not None else []
    )
    sums = sums or [{} for _ in listed]
    owner = render_user(call.session.user_id)
    value: dict[str, Value] = {
        "Bucket": call.bucket,
        "Key": encode(call.key),
        "UploadId": upload_id,
        "Initiator": owner,
        "Owner": owner,
        "StorageClass": state.headers.get(fields.SYSMETA_S3_CLASS) or call.bucket_storage_class,
        "PartNumberMarker": after,
        "MaxParts": limit,
        "IsTruncated": "true" if len(parts) > len(listed) else "false",
        "Part": [
            {
                "PartNumber": number,
                "LastModified": iso_time_of_row(str(row["last_modified"])),
                "ETag": f'"{row_etag(row)}"',
                "Size": int(str(row["bytes"])),
                **found,
            }
            for (number, row), found in zip(listed, sums, strict=True)
        ],
    }
    value["NextPartNumberMarker"] = listed[-1][0] if listed else 0
    if requested is not None:
        value["ChecksumAlgorithm"], value["ChecksumType"] = requested.algorithm.name, requested.checksum_type
    encode.add_to_document(value)
    return xml_response(LIST_PARTS_RESULT, value)


def _part_rows(call: Call, state: UploadState) -> dict[int, dict[str, object]]:
    """Return the row of each valid part of an upload, by part number."""
    prefix = marker_name(call.key, state.id) + "/"
    found: dict[int, dict[str, object]] = {}
    for row in all_segments(call, state.segments_container, prefix):
        name = str(row["name"])
        number = part_number_of_name(name[len(prefix) :])
        if number is not None and state.part_name(number) == name:
            found[number] = row
    return found


def list_uploads(call: Call) -> Response:
    """ListMultipartUploads."""
    require_multipart(call)
    encode = NameEncoding(call)
    call.session.bucket_info(call.bucket)
    limit = call.count_param("max-uploads", call.settings.max_bucket_listing)
    prefix, delimiter = call.text_param("prefix"), call.text_param("delimiter")
    key_marker, id_marker = call.text_param("key-marker"), call.text_param("upload-id-marker")
    if key_marker and id_marker and not is_upload_id(id_marker):
        raise invalid_argument("upload-id-marker", id_marker, "Invalid uploadId marker")
    default_class = call.bucket_storage_class
    page = list_with_common_prefixes(
        lambda count, key, upload_id: _list_markers(call, prefix, count, key, upload_id),
        prefix=prefix,
        delimiter=delimiter,
        marker=key_marker,
        version_marker=id_marker,
        limit=limit,
    )
    uploads = [row for row in page.rows if "subdir" not in row]
    prefixes = [str(row["subdir"]) for row in page.rows if "subdir" in row]
    owner = render_user(call.session.user_id)
    value: dict[str, Value] = {
        "Bucket": call.bucket,
        "KeyMarker": encode(key_marker),
        "UploadIdMarker": id_marker,
        "MaxUploads": limit,
        "IsTruncated": "true" if page.is_truncated else "false",
        "Upload": [
            {
                "Key": encode(str(row["name"])),
                "UploadId": str(row["version_id"]),
                "Initiator": owner,
                "Owner": owner,
                "StorageClass": row_storage_class(row) or default_class,
                "Initiated": iso_time_of_row(str(row["last_modified"])),
            }
            for row in uploads
        ],
        "CommonPrefixes": [{"Prefix": encode(p)} for p in prefixes],
    }
    if "prefix" in call.params:
        value["Prefix"] = encode(prefix)
    if delimiter:
        value["Delimiter"] = encode(delimiter)
    last, last_id = "", ""
    if page.rows and (page.is_truncated or len(uploads) > 1):
        row = page.rows[-1] if page.is_truncated else uploads[-1]
        last, last_id = row_name(row), str(row.get("version_id", ""))
    value["NextKeyMarker"], value["NextUploadIdMarker"] = encode(last), last_id
    encode.add_to_document(value)
    return xml_response(LIST_UPLOADS_RESULT, value)


def _list_markers(call: Call, prefix: str, count: int, key_marker: str, id_marker: str) -> Page:
    """Return up to ``count`` markers of uploads: rows with key and upload id.

    Container servers of OpenStack Swift list the parts too: the more parts there are, the larger the
    requests.
    """
    marker = f"{key_marker}/{id_marker or '~'}" if key_marker else ""
    if key_marker.endswith(LAST_CHARACTER):
        marker = key_marker
    found: list[JsonObject] = []
    size, segments = max(count + 1, _ROWS_MIN), segments_container(call.bucket)
    while len(found) <= count:
        limit = min(size, call.settings.max_bucket_listing + 1)
        rows = list_segments(call, segments, prefix=prefix, marker=marker, limit=limit, only_markers=True)
        for row in rows:
            marker = str(row["name"])
            key, _, upload_id = marker.rpartition("/")
            # A part's name ends with a slash and its number.
            if key and not upload_id.isdigit():
                found.append({**row, "name": key, "version_id": upload_id})
        if len(rows) < limit:
            break
        size *= 2
    return Page(found[:count], len(found) > count)


HANDLERS: dict[str, Handler] = {
    "CreateMultipartUpload": create_upload,
    "UploadPart": upload_part,
    "UploadPartCopy": copy_part,
    "AbortMultipartUpload": abort_upload,
    "ListParts": list_parts,
    "ListMultipartUploads": list_uploads,
}
