"""Listings of objects and versions (spec: middleware.md §21)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.core.call import Call, Handler, invalid_argument, iso_time_of_row, xml_response
from swift.s3.core.errors import S3Error, argument_error, error_for_status
from swift.s3.core.metadata import DELETE_MARKER_TYPE, row_etag, row_storage_class, row_version_id
from swift.s3.core.session import with_trusted_bucket
from swift.s3.core.xml import (
    Element,
    Group,
    RenderedElement,
    RepeatedGroup,
    Text,
    Value,
    escape,
    escape_all,
    texts,
)


def user_element(name: str) -> Element:
    """Return the schema element of an owner or initiator."""
    return Group(name, Text("ID"), Text("DisplayName"))


def render_user(name: str) -> Value:
    """Return the value of an owner or initiator with this access key."""
    return {"ID": name, "DisplayName": name}


class NameEncoding:
    """The encoding of names in a listing: plain, or percent-quoted (``encoding-type=url``)."""

    def __init__(self, call: Call):
        requested = call.params.get("encoding-type")
        if requested is not None and requested != "url":
            raise argument_error("encoding-type", requested, "Invalid Encoding Method specified in Request")
        self.is_url = requested == "url"

    def __call__(self, text: str) -> str:
        """Return a name in this encoding."""
        return quote(text, safe="/-_.~*", errors="surrogateescape") if self.is_url and text else text

    def add_to_document(self, value: dict[str, Value]) -> None:
        """Add the name of the encoding to a document."""
        if self.is_url:
            value["EncodingType"] = "url"


# --- common prefixes ----------------------------------------------------------------------------------
# Versions lie under names that end with their times, so a delimiter with digits or dots would cut the
# times; markers of uploads lie under names that end with the upload's id, and between parts. Such a
# listing is read without a delimiter. After each common prefix another request continues, so
# that its cost depends on the response and not on the rows below the prefixes. Pure: the caller reads the
# rows.

#: The characters of the times in names of versions.
_TIMESTAMP_CHARACTERS = frozenset("0123456789.")
#: Appended to a prefix it sorts after all names with that prefix.
LAST_CHARACTER = "\U0010ffff"
#: Rows of the first request after a common prefix; each further request doubles them.
_ROWS_MIN = 8


class Page(NamedTuple):
    """Rows of a listing, and True if more rows follow."""

    rows: list[JsonObject]
    is_truncated: bool


#: (number of rows, key marker, version marker) → a page.
ReadPage = Callable[[int, str, str], Page]


def may_split_timestamps(delimiter: str) -> bool:
    """Return True if a delimiter could occur in the timestamp of a version's name."""
    return not _TIMESTAMP_CHARACTERS.isdisjoint(delimiter)


def list_with_common_prefixes(
    read: ReadPage, *, prefix: str, delimiter: str, marker: str, version_marker: str, limit: int
) -> Page:
    """Return up to ``limit`` rows and common prefixes after a marker, which may be a common prefix."""
    if delimiter and marker.startswith(prefix) and marker[len(prefix) :].endswith(delimiter):
        marker += LAST_CHARACTER
    rows: list[JsonObject] = []
    count = limit
    while len(rows) <= limit:
        page = read(count, marker, version_marker)
        for row in page.rows:
            name = str(row["name"])
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                common = name[: cut + len(delimiter)]
                rows.append({"subdir": common})
                marker, version_marker, count = f"{common}{LAST_CHARACTER}", "", _ROWS_MIN // 2
                break
            rows.append(row)
            marker, version_marker = name, str(row.get("version_id", "null"))
        else:
            if not page.is_truncated:
                break
        count = max(1, min(count * 2, limit + 1 - len(rows)))
    return Page(rows[:limit], len(rows) > limit)


# --- operations ---------------------------------------------------------------------------------------

_COMMON_PREFIXES = RepeatedGroup("CommonPrefixes", Text("Prefix"))
_NAME_ELEMENTS = (Text("Name"), Text("Prefix"))
_PAGE_ELEMENTS = texts("MaxKeys Delimiter EncodingType IsTruncated")
_OBJECT_ELEMENTS = (*texts("Key LastModified ETag Size"), user_element("Owner"), Text("StorageClass"))
LIST_RESULT = Group(
    "ListBucketResult",
    *_NAME_ELEMENTS,
    *texts("Marker NextMarker NextContinuationToken ContinuationToken StartAfter KeyCount"),
    *_PAGE_ELEMENTS,
    RepeatedGroup("Contents", *_OBJECT_ELEMENTS),
    _COMMON_PREFIXES,
)
VERSIONS_RESULT = Group(
    "ListVersionsResult",
    *_NAME_ELEMENTS,
    *texts("KeyMarker VersionIdMarker NextKeyMarker NextVersionIdMarker"),
    *_PAGE_ELEMENTS,
    RepeatedGroup("Version", Text("Key")),
    RepeatedGroup("DeleteMarker", Text("Key")),
    _COMMON_PREFIXES,
)


def read_page(
    call: Call, container: str, limit: int, parameters: Mapping[str, str], *, flags: str = ""
) -> Page:
    """Return up to ``limit`` rows of a container; raise ``S3Error``."""
    if not limit:
        parameters = {}
    query = f"format=json&limit={max(limit, 0) + 1}{flags}"
    for name, value in parameters.items():
        if value:
            query += f"&{name}={quote(value, safe='', errors='surrogateescape')}"
    headers: HeaderMap = {fields.BACKEND_FIND_ARCHIVED_NULL: "true"} if flags else {}
    response, rows = call.session.read_rows(container, headers=headers, query=query)
    if response.status == 404:
        raise S3Error("NoSuchBucket", details={"BucketName": call.bucket})
    if not response.is_success:
        raise error_for_status(response.status)
    return Page(rows[:limit], bool(limit) and len(rows) > limit)


def row_name(row: JsonObject) -> str:
    """Return the name or the prefix of a row."""
    return str(row["subdir"] if "subdir" in row else row["name"])


def _common_values(call: Call, page: Page, encode: NameEncoding) -> dict[str, Value]:
    delimiter = call.text_param("delimiter")
    value: dict[str, Value] = {
        "Name": call.bucket,
        "Prefix": encode(call.text_param("prefix")),
        "MaxKeys": call.parse_count_param("max-keys", call.settings.max_bucket_listing),
        "IsTruncated": "true" if page.is_truncated else "false",
        "CommonPrefixes": [{"Prefix": encode(row["subdir"])} for row in page.rows if "subdir" in row],
    }
    if delimiter:
        value["Delimiter"] = encode(delimiter)
    encode.add_to_document(value)
    return value


def _render_contents(call: Call, page: Page, encode: NameEncoding, *, owner: bool) -> list[Value]:
    owner_element = ""
    if owner:
        name = escape(call.session.user_id)
        owner_element = f"<Owner><ID>{name}</ID><DisplayName>{name}</DisplayName></Owner>"
    default_class = call.bucket_storage_class
    rows = [row for row in page.rows if "subdir" not in row]
    keys = escape_all(
        [encode(row["name"]) for row in rows] if encode.is_url else [row["name"] for row in rows]
    )
    pieces = []
    for key, row in zip(keys, rows, strict=True):
        etag, storage_class = str(row.get("hash", "")), default_class
        if ";" in etag or "slo_etag" in row:
            etag, storage_class = row_etag(row), row_storage_class(row) or default_class
        pieces.append(
            f"<Contents><Key>{key}</Key>"
            f"<LastModified>{iso_time_of_row(row['last_modified'])}</LastModified>"
            f'<ETag>"{etag}"</ETag><Size>{row["bytes"]}</Size>'
            f"{owner_element}<StorageClass>{storage_class}</StorageClass></Contents>"
        )
    return [RenderedElement("".join(pieces))]


def list_objects(call: Call) -> Response:
    """ListObjects."""
    encode = NameEncoding(call)
    limit = call.count_param("max-keys", call.settings.max_bucket_listing)
    marker = call.text_param("marker")
    requested = {
        "prefix": call.text_param("prefix"),
        "delimiter": call.text_param("delimiter"),
        "marker": marker,
    }
    page = read_page(call, call.bucket, limit, requested)
    value = _common_values(call, page, encode)
    value["Marker"] = encode(marker)
    if page.is_truncated and requested["delimiter"]:
        value["NextMarker"] = encode(row_name(page.rows[-1]))
    value["Contents"] = _render_contents(call, page, encode, owner=True)
    return xml_response(LIST_RESULT, value)


def list_objects_v2(call: Call) -> Response:
    """ListObjectsV2."""
    kind = call.params["list-type"]
    if not is_digits(kind):
        raise invalid_argument("list-type", kind, "Argument list-type must be an integer")
    if kind.lstrip("0") != "2":
        return list_objects(call)
    encode = NameEncoding(call)
    limit = call.count_param("max-keys", call.settings.max_bucket_listing)
    token, start = call.params.get("continuation-token"), call.text_param("start-after")
    marker = start if token is None else _decode_token(token)
    requested = {
        "prefix": call.text_param("prefix"),
        "delimiter": call.text_param("delimiter"),
        "marker": marker,
    }
    page = read_page(call, call.bucket, limit, requested)
    value = _common_values(call, page, encode)
    value["KeyCount"] = len(page.rows)
    if page.is_truncated:
        value["NextContinuationToken"] = b64encode(row_name(page.rows[-1]).encode()).decode("ascii")
    if token is not None:
        value["ContinuationToken"] = token
    if "start-after" in call.params:
        value["StartAfter"] = encode(start)
    owner = call.params.get("fetch-owner", "").lower() == "true"
    value["Contents"] = _render_contents(call, page, encode, owner=owner)
    return xml_response(LIST_RESULT, value)


def _decode_token(token: str) -> str:
    try:
        name = b64decode(token, validate=True).decode("utf-8")
    except ValueError:
        name = ""
    if (token and not name) or "\x00" in name:
        text = "The continuation token provided is incorrect"
        raise invalid_argument("continuation-token", quote(token, errors="replace"), text)
    return name


def list_versions(call: Call) -> Response:
    """ListObjectVersions."""
    encode = NameEncoding(call)
    limit = call.count_param("max-keys", call.settings.max_bucket_listing)
    marker, version_marker = call.text_param("key-marker"), call.text_param("version-id-marker")
    if "version-id-marker" in call.params:
        _validate_version_marker(version_marker, marker)
    page = _read_versions_page(call, limit, marker, _stored_version_marker(call, marker, version_marker))
    value = _common_values(call, page, encode)
    value["KeyMarker"], value["VersionIdMarker"] = encode(marker), version_marker
    if "delimiter" in call.params:
        value["Delimiter"] = encode(call.text_param("delimiter"))
    if page.is_truncated:
        last = page.rows[-1]
        value["NextKeyMarker"] = encode(row_name(last))
        if "subdir" not in last:
            value["NextVersionIdMarker"] = last.get("version_id", "null")
    objects = [row for row in page.rows if "subdir" not in row]
    default_class = call.bucket_storage_class
    # Versions and delete markers are in one order; clients rely on it within a name.
    value["Version"] = [RenderedElement(_render_version(call, row, encode, default_class)) for row in objects]
    return xml_response(VERSIONS_RESULT, value)


def _stored_version_marker(call: Call, marker: str, version_marker: str) -> str:
    """Return the id by which the listing knows a version; clients know one of an archived object as null."""
    if version_marker != "null":
        return version_marker
    head = with_trusted_bucket(call.session, call.bucket).head(call.bucket, marker, query="version-id=null")
    return head.headers.get("x-object-version-id", version_marker)


def _read_versions_page(call: Call, limit: int, marker: str, version_marker: str) -> Page:
    flags = "&versions=true" if call.features.versioning else ""
    prefix, delimiter = call.text_param("prefix"), call.text_param("delimiter")
    requested = {"prefix": prefix, "delimiter": delimiter, "marker": marker, "version_marker": version_marker}
    if not flags or not may_split_timestamps(delimiter):
        return read_page(call, call.bucket, limit, requested, flags=flags)

    def read(count: int, key: str, version: str) -> Page:
        place = {"prefix": prefix, "marker": key, "version_marker": version}
        return read_page(call, call.bucket, count, place, flags=flags)

    if not limit:
        return read(0, "", "")
    return list_with_common_prefixes(
        read, prefix=prefix, delimiter=delimiter, marker=marker, version_marker=version_marker, limit=limit
    )


def _validate_version_marker(version: str, key: str) -> None:
    if not key:
        text = "A version-id marker cannot be specified without a key marker."
        raise invalid_argument("version-id-marker", version, text)
    try:
        Timestamp("0" if version == "null" else version)
    except InvalidTimestamp:
        raise invalid_argument("version-id-marker", version, "Invalid version id specified")


def _render_version(call: Call, row: JsonObject, encode: NameEncoding, default_class: str) -> str:
    is_marker = row.get("content_type") == DELETE_MARKER_TYPE
    tag = "DeleteMarker" if is_marker else "Version"
    name = escape(call.session.user_id)
    data = storage_class = ""
    if not is_marker:
        data = f'<ETag>"{row_etag(row)}"</ETag><Size>{row["bytes"]}</Size>'
        storage_class = f"<StorageClass>{row_storage_class(row) or default_class}</StorageClass>"
    return (
        f"<{tag}><Key>{escape(encode(row['name']))}</Key>"
        f"<VersionId>{escape(row_version_id(row))}</VersionId>"
        f"<IsLatest>{'true' if row.get('is_latest', True) else 'false'}</IsLatest>"
        f"<LastModified>{iso_time_of_row(row['last_modified'])}</LastModified>{data}"
        f"<Owner><ID>{name}</ID><DisplayName>{name}</DisplayName></Owner>{storage_class}</{tag}>"
    )


HANDLERS: dict[str, Handler] = {
    "ListObjects": list_objects,
    "ListObjectsV2": list_objects_v2,
    "ListObjectVersions": list_versions,
}
