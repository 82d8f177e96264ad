"""Multipart uploads: beginning, parts, listing, aborting. Completing is in ``completion``."""

from __future__ import annotations

from collections.abc import Collection

from swift.base.documents import JsonObject
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.s3.api.call import (
    Call,
    Handler,
    invalid_argument,
    iso_of_row,
    keep_alive,
    no_content,
    xml_response,
)
from swift.s3.api.checksums import (
    ALGORITHMS,
    COMPOSITE,
    StatedChecksum,
    algorithm_named,
    check_kind,
    stated_checksum,
)
from swift.s3.api.copies import COPY_BYTES_MAX, CopySource, modified_of, open_source, source_of
from swift.s3.api.encryption import check_part_key, encrypt, upload_headers, write_headers
from swift.s3.api.listing import AFTER_ALL, Encoding, Page, folded_page, last_name, person, person_of
from swift.s3.api.metadata import EMPTY_MD5, row_class, row_etag, row_override, stored_headers
from swift.s3.api.objectlock import LOCK_CONFIGURATION, REQUESTED_LOCK, requested_lock, require_lockable
from swift.s3.api.parts import CallerObjects, find_open_upload, find_upload, named_by_objects, put_part
from swift.s3.api.payload import CheckedBody, S3Upload
from swift.s3.api.placement import make_segments_container
from swift.s3.api.put import (
    checksum_headers,
    expiry_headers,
    part_checksums,
    redirect_headers,
    tagging_headers,
    validate_write,
    write_error,
    writing_conditions,
    written_headers,
)
from swift.s3.api.uploads import (
    MARKER_TYPE,
    REQUESTED_CHECKSUM,
    RequestedChecksum,
    Swap,
    UploadState,
    end,
    is_upload_id,
    marker_of,
    new_upload_id,
    number_of,
    part_number_of,
    part_of,
    requested_checksum,
    rows_of,
    upload_id_of,
)
from swift.s3.errors import S3Error
from swift.s3.names import segments_of
from swift.s3.policy.authorize import new_object_acl
from swift.s3.xml import Group, Many, Text, Value

INITIATED = Group("InitiateMultipartUploadResult", Text("Bucket"), Text("Key"), Text("UploadId"))
_SUMS = tuple(Text(algorithm.element) for algorithm in ALGORITHMS.values())
COPIED = Group("CopyPartResult", Text("LastModified"), Text("ETag"), *_SUMS)
PARTS = Group(
    "ListPartsResult",
    *(Text(n) for n in ("Bucket", "Key", "UploadId")),
    person("Initiator"),
    person("Owner"),
    *(Text(n) for n in ("StorageClass", "PartNumberMarker", "NextPartNumberMarker", "MaxParts")),
    *(Text(n) for n in ("EncodingType", "IsTruncated", "ChecksumAlgorithm", "ChecksumType")),
    Many("Part", *(Text(n) for n in ("PartNumber", "LastModified", "ETag", "Size")), *_SUMS),
)
UPLOADS = Group(
    "ListMultipartUploadsResult",
    *(Text(n) for n in ("Bucket", "KeyMarker", "UploadIdMarker", "NextKeyMarker", "NextUploadIdMarker")),
    *(Text(n) for n in ("Prefix", "Delimiter", "EncodingType", "MaxUploads", "IsTruncated")),
    Many(
        "Upload",
        Text("Key"),
        Text("UploadId"),
        person("Initiator"),
        person("Owner"),
        Text("StorageClass"),
        Text("Initiated"),
    ),
    Many("CommonPrefixes", Text("Prefix")),
)


#: Rows of the container of parts that are read at least for a page of uploads.
_ROWS_MIN = 16
#: Attempts to change an upload that others change in between.
_SWAPS_MAX = 50


def require_multipart(call: Call) -> None:
    """Raise ``S3Error`` where there are no multipart uploads."""
    if not call.features.multipart:
        raise S3Error("NotImplemented", "Multipart uploads are not offered.")


# --- beginning and ending -----------------------------------------------------------------------------


def create_upload(call: Call) -> Response:
    """CreateMultipartUpload."""
    require_multipart(call)
    headers = call.headers
    kind = validate_write(call)
    call.take_no_body()
    answer_headers, sealed = write_headers(call), upload_headers(call)
    requested = _requested(headers)
    stored = stored_headers(headers)
    stored.update(redirect_headers(headers), **sealed)
    stored.update(tagging_headers(headers), **new_object_acl(call, name=fields.SYSMETA_S3_UPLOAD_ACL))
    wished = requested_lock(headers)
    if wished is not None:
        require_lockable(call, LOCK_CONFIGURATION)
        stored[REQUESTED_LOCK] = str(wished)
    named = "content-type" in headers
    stored[fields.SYSMETA_S3_HAS_CONTENT_TYPE] = "yes" if named else "no"
    if named:
        stored[fields.SYSMETA_S3_CONTENT_TYPE] = headers["content-type"]
    stored["content-type"] = MARKER_TYPE
    if requested is not None:
        stored[REQUESTED_CHECKSUM] = f"{requested.algorithm.name} {requested.kind}"
        answer_headers |= {
            "x-amz-checksum-algorithm": requested.algorithm.name,
            "x-amz-checksum-type": requested.kind,
        }
    upload_id = new_upload_id()
    # Without room for the first there is none for any.
    part_of(call.key, upload_id, 1)
    make_segments_container(call)
    if kind:
        make_segments_container(call, kind)
        stored[fields.SYSMETA_S3_CLASS] = kind
        # Listings of uploads say it too.
        stored[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = f"{EMPTY_MD5}{row_override(kind=kind)}"
    with call.session.ask(
        "PUT", segments_of(call.bucket), marker_of(call.key, upload_id), headers=stored
    ) as response:
        if not response.is_success:
            raise write_error(call.session, call.bucket, response.status, headers)
    value = {"Bucket": call.bucket, "Key": call.key, "UploadId": upload_id}
    return xml_response(INITIATED, value, headers=answer_headers)


def _requested(headers: HeaderMap) -> RequestedChecksum | None:
    name, kind = headers.get("x-amz-checksum-algorithm"), headers.get("x-amz-checksum-type")
    if kind is not None:
        check_kind(kind)
    if name is None:
        if kind is not None:
            text = "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header."
            raise S3Error("InvalidRequest", text)
        return None
    algorithm = algorithm_named(name)
    requested = RequestedChecksum(algorithm, (kind or algorithm.usual_type).upper())
    algorithm.check_type(requested.kind)
    return requested


def abort_upload(call: Call) -> Response:
    """AbortMultipartUpload: the marker goes first, unless the upload completes (decision 0020)."""
    require_multipart(call)
    writing_conditions(call.headers)
    upload_id = upload_id_of(call)
    state = _end(call, upload_id)
    # A proxy of an earlier version that broke off may have left the marker of an upload that is complete.
    named = named_by_objects(call, upload_id)
    if named is not None:
        remove_parts(call, state, but=named)
    return no_content()


def remove_parts(call: Call, state: UploadState, but: Collection[tuple[str, str]] = ()) -> None:
    """Remove the parts of an upload that has ended, but those of its object; raises ``S3Error``."""
    kept = {name for _, name in but}
    prefix, marker = marker_of(state.key, state.id) + "/", ""
    while rows := rows_of(call, state.segments, prefix=prefix, marker=marker):
        for row in rows:
            marker = str(row["name"])
            # A longer name is of an upload of another key.
            if marker not in kept and number_of(marker[len(prefix) :]) is not None:
                call.session.remove(state.segments, marker)


def _end(call: Call, upload_id: str) -> UploadState:
    """Remove the marker of an open upload, and return what it was; raises ``S3Error``."""
    for _ in range(_SWAPS_MAX):
        state = find_open_upload(call, upload_id)
        outcome = end(CallerObjects(call.session), state)
        if outcome is Swap.WEAK:
            call.session.remove(segments_of(call.bucket), marker_of(call.key, upload_id))
        if outcome is not Swap.LOST:
            return state
    raise S3Error("ServiceUnavailable")


# --- parts --------------------------------------------------------------------------------------------


def upload_part(call: Call) -> Response:
    """UploadPart."""
    require_multipart(call)
    # Checked but not stored: a version may need the part for longer than the object exists.
    expiry_headers(call.headers)
    number, upload_id = part_number_of(call), upload_id_of(call)
    state = find_open_upload(call, upload_id, is_newest=False)
    check_part_key(call, state.headers)
    requested = requested_checksum(state.headers)
    upload = call.upload(None if requested is None else requested.algorithm)
    if requested is not None and requested.kind == COMPOSITE and stated_checksum(call.headers) is None:
        text = (
            "Checksum Type mismatch occurred, expected checksum Type: "
            f"{requested.algorithm.name.lower()}, actual checksum Type: null"
        )
        raise S3Error("InvalidRequest", text)
    headers = {**encrypt(call, upload), **_part_headers(upload)}
    response = put_part(call, state, number, upload, headers)
    if response.is_success:
        answer_headers = {
            name: value for name, value in checksum_headers(upload).items() if "-type" not in name
        }
        answer_headers |= write_headers(call)
        return Response(200, {"etag": written_headers(response)["etag"], **answer_headers})
    upload.raise_problem()
    raise write_error(call.session, call.bucket, response.status, call.headers)


def _part_headers(upload: S3Upload) -> HeaderMap:
    return {"content-type": "application/octet-stream", **upload.headers}


def copy_part(call: Call) -> Response:
    """UploadPartCopy; the answer begins with spaces when it takes long."""
    require_multipart(call)
    expiry_headers(call.headers)
    call.take_no_body()
    number, source = part_number_of(call), source_of(call)
    upload_id = upload_id_of(call)
    byte_range = call.headers.get("x-amz-copy-source-range")
    state = find_open_upload(call, upload_id, is_newest=False)
    check_part_key(call, state.headers)
    return keep_alive(call, lambda: _copy_part(call, source, byte_range, state, number))


def _copy_part(
    call: Call,
    source: CopySource,
    byte_range: str | None,
    state: UploadState,
    number: int,
) -> Response:
    requested = requested_checksum(state.headers)
    _check_range(call, source, byte_range)
    found = open_source(call, source, byte_range)
    with as_request_body(found) as body:
        if (body.length or 0) > COPY_BYTES_MAX:
            raise S3Error("InvalidRequest", f"A part is no larger than {COPY_BYTES_MAX} bytes.")
        computed = None if requested is None else StatedChecksum(requested.algorithm, "")
        stated = None if requested is None else StatedChecksum(requested.algorithm, None)
        upload = S3Upload(body, CheckedBody(body, None, computed), {}, stated)
        headers = {**encrypt(call, upload), **_part_headers(upload)}
        if body.length is None:
            headers["transfer-encoding"] = "chunked"
        else:
            headers["content-length"] = str(body.length)
        response = put_part(call, state, number, upload, headers)
    if not response.is_success:
        raise write_error(call.session, call.bucket, response.status, call.headers)
    value: dict[str, Value] = {
        "LastModified": modified_of(response),
        "ETag": written_headers(response)["etag"],
    }
    if requested is not None:
        value[requested.algorithm.element] = upload.checksum
    answer_headers = write_headers(call)
    if "x-object-version-id" in found.headers:
        answer_headers["x-amz-copy-source-version-id"] = found.headers["x-object-version-id"]
    return xml_response(COPIED, value, headers=answer_headers)


def _check_range(call: Call, source: CopySource, text: str | None) -> None:
    """Raise ``S3Error`` for a range that is not inside of the source."""
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
    head = call.session.head(source.bucket, source.key, query=source.query)
    size = int(head.headers.get("content-length") or 0)
    if head.is_success and int(last) >= size:
        raise invalid_argument(
            "x-amz-copy-source-range", text, f"Range specified is not valid for source object of size: {size}"
        )


# --- listings -----------------------------------------------------------------------------------------


def list_parts(call: Call) -> Response:
    """ListParts; in the order of their numbers."""
    require_multipart(call)
    encode = Encoding(call)
    upload_id = upload_id_of(call)
    limit = call.count_param("max-parts", call.settings.max_parts_listing)
    after = call.stated_count("part-number-marker", 0)
    state = find_upload(call, upload_id)
    segments = state.segments
    rows = _parts_of(call, state).items()
    parts = sorted((number, row) for number, row in rows if number > after)
    shown = parts[:limit]
    requested = requested_checksum(state.headers)
    sums = part_checksums(
        call, [(segments, str(row["name"])) for _, row in shown] if requested is not None else []
    )
    sums = sums or [{} for _ in shown]
    owner = person_of(call.session.owner)
    value: dict[str, Value] = {
        "Bucket": call.bucket,
        "Key": encode(call.key),
        "UploadId": upload_id,
        "Initiator": owner,
        "Owner": owner,
        "StorageClass": state.headers.get(fields.SYSMETA_S3_CLASS) or call.storage_class,
        "PartNumberMarker": after,
        "MaxParts": limit,
        "IsTruncated": "true" if len(parts) > len(shown) else "false",
        "Part": [
            {
                "PartNumber": number,
                "LastModified": iso_of_row(str(row["last_modified"])),
                "ETag": f'"{row_etag(row)}"',
                "Size": int(str(row["bytes"])),
                **found,
            }
            for (number, row), found in zip(shown, sums, strict=True)
        ],
    }
    value["NextPartNumberMarker"] = shown[-1][0] if shown else 0
    if requested is not None:
        value["ChecksumAlgorithm"], value["ChecksumType"] = requested.algorithm.name, requested.kind
    encode.mark(value)
    return xml_response(PARTS, value)


def _parts_of(call: Call, state: UploadState) -> dict[int, dict[str, object]]:
    """Return the rows of the parts of an upload that count, by number."""
    prefix = marker_of(call.key, state.id) + "/"
    found: dict[int, dict[str, object]] = {}
    marker = ""
    while rows := rows_of(call, state.segments, prefix=prefix, marker=marker):
        for row in rows:
            name = str(row["name"])
            number = number_of(name[len(prefix) :])
            if number is not None and state.part_name(number) == name:
                found[number] = row
        marker = str(rows[-1]["name"])
    return found


def list_uploads(call: Call) -> Response:
    """ListMultipartUploads."""
    require_multipart(call)
    encode = Encoding(call)
    call.session.bucket_info(call.bucket)
    limit = call.count_param("max-uploads", call.settings.max_bucket_listing)
    prefix, delimiter = call.text_param("prefix"), call.text_param("delimiter")
    key_marker, id_marker = call.text_param("key-marker"), call.text_param("upload-id-marker")
    if key_marker and id_marker and not is_upload_id(id_marker):
        raise invalid_argument("upload-id-marker", id_marker, "Invalid uploadId marker")
    kind = call.storage_class
    page = folded_page(
        lambda count, key, upload_id: _markers(call, prefix, count, key, upload_id),
        prefix=prefix,
        delimiter=delimiter,
        marker=key_marker,
        version_marker=id_marker,
        limit=limit,
    )
    uploads = [row for row in page.rows if "subdir" not in row]
    prefixes = [str(row["subdir"]) for row in page.rows if "subdir" in row]
    owner = person_of(call.session.owner)
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
                "StorageClass": row_class(row) or kind,
                "Initiated": iso_of_row(str(row["last_modified"])),
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
        last, last_id = last_name(row), str(row.get("version_id", ""))
    value["NextKeyMarker"], value["NextUploadIdMarker"] = encode(last), last_id
    encode.mark(value)
    return xml_response(UPLOADS, value)


def _markers(call: Call, prefix: str, count: int, key_marker: str, id_marker: str) -> Page:
    """Return up to ``count`` markers of uploads: rows with the key as name and the id of the upload.

    Container servers of OpenStack Swift list parts among them: the more there are, the larger is a request.
    """
    marker = f"{key_marker}/{id_marker or '~'}" if key_marker else ""
    if key_marker.endswith(AFTER_ALL):
        marker = key_marker
    found: list[JsonObject] = []
    size, segments = max(count + 1, _ROWS_MIN), segments_of(call.bucket)
    while len(found) <= count:
        limit = min(size, call.settings.max_bucket_listing + 1)
        rows = rows_of(call, segments, prefix=prefix, marker=marker, limit=limit, only_markers=True)
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
