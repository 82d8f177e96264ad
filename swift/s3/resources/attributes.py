"""GetObjectAttributes."""

from __future__ import annotations

import json

from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.call import Call, Handler, invalid_argument, xml_response
from swift.s3.checksums import ALGORITHMS
from swift.s3.errors import S3Error, refusal
from swift.s3.metadata import is_multipart, object_class, object_etag, shown_headers
from swift.s3.partsums import checksum_elements, sums_of_parts
from swift.s3.sse import check_key
from swift.s3.versions import missing_key, refused_version, version_query
from swift.s3.xml import Group, Many, Text, Value

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
    """What of an object's attributes the header names."""
    text = call.headers.get("x-amz-object-attributes", "")
    wanted = {word.strip() for word in text.split(",") if word.strip()}
    if not wanted <= set(_KNOWN) or not wanted:
        call.account.bucket_info(call.bucket)
    if not wanted:
        raise S3Error(
            "InvalidRequest",
            "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing "
            "or empty",
        )
    if not wanted <= set(_KNOWN):
        raise invalid_argument("x-amz-object-attributes", text, "Invalid attribute name specified.")
    query = version_query(call)
    head = call.account.head(call.bucket, call.key, query=query)
    if not head.is_success:
        raise _refused(call, head)
    headers = head.headers
    check_key(call, headers)
    value: dict[str, Value] = {}
    if "ETag" in wanted:
        value["ETag"] = object_etag(headers).strip('"')
    if "Checksum" in wanted and (sums := checksum_elements(headers)):
        value["Checksum"] = sums
    if "ObjectParts" in wanted and is_multipart(headers):
        value["ObjectParts"] = _parts(call, query, has_sums=bool(checksum_elements(headers)))
    if "StorageClass" in wanted:
        value["StorageClass"] = object_class(headers) or call.storage_class
    if "ObjectSize" in wanted:
        value["ObjectSize"] = headers.get("content-length", "0")
    shown = shown_headers(headers)
    told: HeaderMap = {n: shown[n] for n in ("last-modified", "x-amz-version-id") if n in shown}
    return xml_response(ATTRIBUTES, value, headers=told)


def _refused(call: Call, head: Response) -> S3Error:
    version = call.params.get("versionId")
    if version is not None and head.status in (400, 404):
        return refused_version(call, head, version)
    return missing_key(call, call.key) if head.status == 404 else refusal(head.status)


def _parts(call: Call, query: str, *, has_sums: bool) -> Value:
    """The parts of a large object, in pages; each with its checksum when the object has one."""
    most = min(_number(call, "x-amz-max-parts", _PARTS_MAX), _PARTS_MAX)
    after = _number(call, "x-amz-part-number-marker", 0)
    query = f"{query}{'&' if query else ''}multipart-manifest=get"
    with call.account.ask("GET", call.bucket, call.key, query=query) as response:
        if not response.is_success:
            raise refusal(response.status)
        entries = json.loads(response.read_body())
    shown = list(enumerate(entries, 1))[after : after + most]
    paths = [str(entry.get("name", "")).lstrip("/").partition("/") for _, entry in shown]
    found = sums_of_parts(call, [(container, name) for container, _, name in paths] if has_sums else [])
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


HANDLERS: dict[str, Handler] = {"GetObjectAttributes": get_attributes}
