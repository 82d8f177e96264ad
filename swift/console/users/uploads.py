"""Uploads: whole objects, and large ones by S3 in parts, which go on after a break.

``console.js`` sends the bodies; they go to the APIs as they come.
"""

from __future__ import annotations

import json
from typing import NamedTuple
from urllib.parse import unquote

from lxml import etree

from swift.console.core.api import ApiError
from swift.console.core.visit import Route, Visit
from swift.console.core.web import BadForm
from swift.console.core.xml import parse_xml
from swift.console.users.names import bucket_of, is_s3_bucket, object_of
from swift.http.headers import HeaderMap
from swift.http.response import Response

#: Larger files are sent in parts of this size, or of a larger one if they would be too many.
PART_BYTES = 16 << 20
_PART_ALIGNMENT = 1 << 20
#: Parts that any cluster allows.
_PARTS_SURE = 1000
_PARTS_MAX = 10_000
_UPLOADS_SHOWN = 200
_OBJECT_BYTES_MAX = 1 << 50
#: Texts of the table ``upload`` that the script shows.
_SCRIPT_TEXTS = (
    *("waiting", "running", "paused", "done", "failed", "cancelled", "skipped", "pause", "resume", "cancel"),
    *("retrying", "summary", "bad_name", "other_user", "exists", "resumed", "unreadable", "interrupted"),
)


class OpenUpload(NamedTuple):
    """An upload in parts that was begun."""

    name: str
    id: str
    begun: str


def script_texts(visit: Visit) -> dict[str, str]:
    """Return the texts that the script of uploads shows."""
    return {key: visit.text(f"upload.{key}") for key in _SCRIPT_TEXTS}


def exists(visit: Visit) -> Response:
    """Say whether there is an object of this name."""
    found = visit.api.read("HEAD", *object_of(visit.query), also=(404,))
    return visit.json({"exists": found.is_success})


def put_whole(visit: Visit) -> Response:
    """Store the body as an object."""
    headers = _body_headers(visit)
    kind = visit.request.headers.get("content-type", "")
    if kind:
        headers["content-type"] = kind
    bucket, name = object_of(visit.query)
    visit.api.read("PUT", bucket, name, headers=headers, body=visit.request.body)
    return visit.json({}, 201)


def _body_headers(visit: Visit) -> HeaderMap:
    """Return the header that states the length of the body; raises ``BadForm``."""
    length = visit.request.headers.get("content-length", "")
    if not length:
        raise BadForm("form.no_length")
    return {"content-length": length}


def begin(visit: Visit) -> Response:
    """Begin an upload in parts; say that the file must be sent whole where S3 cannot name the object."""
    bucket, name = object_of(visit.query)
    size = visit.form.number("size", 0, 0, _OBJECT_BYTES_MAX)
    if not is_s3_bucket(visit.api, bucket):
        return visit.json({"whole": True})
    kind = visit.form.text("type")
    headers: HeaderMap = {"content-type": kind} if kind.isascii() and kind.isprintable() and kind else {}
    try:
        found = visit.api.s3("POST", bucket, name, query={"uploads": ""}, headers=headers)
    except ApiError as error:
        if error.status == 400:
            # The names of parts are longer than that of the object.
            return visit.json({"whole": True})
        raise
    upload = parse_xml(found.read_body()).findtext("{*}UploadId")
    return visit.json({"upload": str(upload), "part_bytes": _part_bytes(visit, size)})


def _part_bytes(visit: Visit, size: int) -> int:
    """Return the size of the parts of a file."""
    parts_max = _PARTS_SURE
    if size > PART_BYTES * _PARTS_SURE:
        found = visit.api.anonymous("GET", "/info")
        facts = json.loads(found.read_body()) if found.is_success else {}
        parts_max = min(int(facts.get("s3api", {}).get("max_upload_part_num", _PARTS_SURE)), _PARTS_MAX)
    least = -(-size // parts_max)
    return max(PART_BYTES, -(-least // _PART_ALIGNMENT) * _PART_ALIGNMENT)


def put_part(visit: Visit) -> Response:
    """Store the body as a part."""
    number = visit.query.number("part", 0, 1, _PARTS_MAX)
    query = {"partNumber": str(number), "uploadId": _upload_id(visit)}
    headers = _body_headers(visit)
    visit.api.s3("PUT", *object_of(visit.query), query=query, headers=headers, body=visit.request.body)
    return visit.json({})


def _upload_id(visit: Visit) -> str:
    upload = visit.query.text("upload")
    if not upload:
        raise BadForm("form.no_upload")
    return upload


class _Part(NamedTuple):
    number: int
    size: int
    etag: str


def _read_parts(visit: Visit) -> list[_Part]:
    parts: list[_Part] = []
    query = {"uploadId": _upload_id(visit), "encoding-type": "url"}
    while True:
        found = visit.api.s3("GET", *object_of(visit.query), query=query)
        tree = parse_xml(found.read_body())
        for part in tree.iter("{*}Part"):
            number, size, tag = (part.findtext(f"{{*}}{name}") for name in ("PartNumber", "Size", "ETag"))
            parts.append(_Part(int(number or 0), int(size or 0), str(tag)))
        if tree.findtext("{*}IsTruncated") != "true":
            return parts
        query["part-number-marker"] = str(parts[-1].number)


def list_parts(visit: Visit) -> Response:
    """Say which parts of an upload are there."""
    return visit.json({"parts": [{"number": part.number, "size": part.size} for part in _read_parts(visit)]})


def complete(visit: Visit) -> Response:
    """Make the object of all parts, if together they have its size."""
    bucket, name = object_of(visit.query)
    size = visit.form.number("size", 0, 0, _OBJECT_BYTES_MAX)
    try:
        parts = _read_parts(visit)
    except ApiError as error:
        head = visit.api.read("HEAD", bucket, name, also=(404,)).headers
        if error.status == 404 and head.get("content-length") == str(size):
            # An earlier request completed it, and its response was lost.
            return visit.json({}, 201)
        raise
    is_whole = [part.number for part in parts] == list(range(1, len(parts) + 1))
    if not is_whole or sum(part.size for part in parts) != size:
        return visit.refusal(visit.text("upload.incomplete"), 409)
    root = etree.Element("CompleteMultipartUpload")
    for part in parts:
        element = etree.SubElement(root, "Part")
        etree.SubElement(element, "PartNumber").text = str(part.number)
        etree.SubElement(element, "ETag").text = part.etag
    query = {"uploadId": _upload_id(visit)}
    found = visit.api.s3("POST", bucket, name, query=query, body=etree.tostring(root))
    # A completion that takes long begins with 200, whatever its end.
    tree = parse_xml(found.read_body().strip())
    if etree.QName(tree).localname == "Error":
        return visit.refusal(visit.text("upload.not_completed", reason=tree.findtext("{*}Message")), 503)
    return visit.json({}, 201)


def abort(visit: Visit) -> Response:
    """Give up an upload; its parts are deleted."""
    bucket, name = object_of(visit.query)
    visit.api.s3("DELETE", bucket, name, query={"uploadId": _upload_id(visit)}, also=(404,))
    if visit.wants_json:
        return visit.json({})
    return visit.redirect("/uploads", bucket=bucket, done="upload_aborted")


def show_uploads(visit: Visit) -> Response:
    """Show the uploads that were begun in a bucket."""
    bucket = bucket_of(visit.query)
    marker, id_marker = visit.query.text("marker"), visit.query.text("id_marker")
    uploads: list[OpenUpload] = []
    more: OpenUpload | None = None
    if is_s3_bucket(visit.api, bucket):
        query = {"uploads": "", "encoding-type": "url", "max-uploads": str(_UPLOADS_SHOWN)}
        query |= {"key-marker": marker, "upload-id-marker": id_marker} if marker else {}
        found = visit.api.s3("GET", bucket, query=query)
        tree = parse_xml(found.read_body())
        uploads = [_open_upload(element) for element in tree.iter("{*}Upload")]
        more = uploads[-1] if uploads and tree.findtext("{*}IsTruncated") == "true" else None
    return visit.page("uploads.html", bucket=bucket, uploads=uploads, more=more, marker=marker)


def _open_upload(element: etree._Element) -> OpenUpload:
    name, upload, begun = (str(element.findtext(f"{{*}}{n}") or "") for n in ("Key", "UploadId", "Initiated"))
    return OpenUpload(unquote(name), upload, f"{begun[:19].replace('T', ' ')} UTC")


def show_session(visit: Visit) -> Response:
    """Say who has logged in, and the token that requests need: after a new log-in an upload goes on."""
    return visit.json({"user": visit.session.name, "csrf": visit.session.csrf_token})


ROUTES = (
    Route("GET", "/session", show_session),
    Route("GET", "/uploads", show_uploads),
    Route("GET", "/upload/exists", exists),
    Route("PUT", "/upload/whole", put_whole),
    Route("POST", "/upload/begin", begin),
    Route("PUT", "/upload/part", put_part),
    Route("GET", "/upload/parts", list_parts),
    Route("POST", "/upload/complete", complete),
    Route("POST", "/upload/abort", abort),
)
