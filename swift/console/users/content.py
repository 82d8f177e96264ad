"""Downloads and previews of objects.

Whatever a preview contains, it is inert: it has one of a few types, browsers may not guess another, and its
policy allows no script, no form and no other resource.
"""

from __future__ import annotations

import re
from enum import Enum
from urllib.parse import quote

from swift.console.core.visit import Route, Visit
from swift.console.users.names import last_part, object_of
from swift.gateway.subrequest import drained
from swift.http.headers import HeaderMap
from swift.http.response import Response

#: Bytes of a text that its preview has.
TEXT_BYTES_MAX = 100_000
#: Bytes of an image that pages still show.
IMAGE_BYTES_MAX = 64 << 20
_INERT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
#: The browser's own viewer does not work in a sandbox; it runs no script of the document's.
_PDF_POLICY = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"
_RANGE_HEADERS = ("range", "if-range")
_CONTENT_HEADERS = (
    *("content-length", "content-range", "accept-ranges", "etag", "last-modified", "content-encoding"),
)
_PASSED_STATUS = (304, 412, 416)
_IMAGE_TYPES = frozenset(
    f"image/{kind}"
    for kind in (
        *("png", "jpeg", "gif", "webp", "avif", "apng", "bmp", "svg+xml", "x-icon", "vnd.microsoft.icon"),
    )
)
_TEXT_TYPES = frozenset(
    f"application/{kind}"
    for kind in (
        *("json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "x-sh", "sql", "x-ndjson"),
        *("x-httpd-php", "x-tex", "rtf", "graphql"),
    )
)
_is_type = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]*").fullmatch


class Preview(Enum):
    """The ways in which pages show an object."""

    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    PDF = "pdf"
    TEXT = "text"
    NONE = ""


def preview_of(headers: HeaderMap) -> Preview:
    """Return the way to show an object, by the headers of its HEAD."""
    name = _essence(headers)
    kind = name.partition("/")[0]
    if headers.get("content-encoding", "identity") not in ("", "identity", "aws-chunked"):
        return Preview.NONE
    if name in _IMAGE_TYPES:
        is_small = int(headers.get("content-length") or 0) <= IMAGE_BYTES_MAX
        return Preview.IMAGE if is_small else Preview.NONE
    if kind in ("audio", "video"):
        return Preview(kind)
    if name == "application/pdf":
        return Preview.PDF
    if kind == "text" or name in _TEXT_TYPES or name.endswith(("+json", "+xml")):
        return Preview.TEXT
    return Preview.NONE


def _essence(headers: HeaderMap) -> str:
    """Return the media type without its parameters; empty for what is none."""
    name = headers.get("content-type", "").partition(";")[0].strip().lower()
    return name if _is_type(name) else ""


def download(visit: Visit) -> Response:
    """Send an object, or a range of it, as a file to be saved."""
    found = _open(visit, _range_headers(visit))
    name = _essence(found.headers) or "application/octet-stream"
    disposition = attachment(last_part(visit.query.text("name")))
    return _finish(visit, found, name, _INERT_POLICY, disposition)


def attachment(name: str) -> str:
    """Return the header that names a file to be saved (RFC 6266)."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%/' else "_" for c in name)
    quoted = quote(name or "object", safe="")
    return f"attachment; filename=\"{plain or 'object'}\"; filename*=UTF-8''{quoted}"


def show_content(visit: Visit) -> Response:
    """Send an object for the preview of its page; other types than those are refused."""
    head = visit.api.read("HEAD", *object_of(visit.query), query=version_query(visit.query.text("version")))
    kind = preview_of(head.headers)
    if kind is Preview.NONE:
        return visit.refusal(visit.text("object.no_preview"), 415)
    if kind is Preview.TEXT:
        return _text(visit)
    policy = _PDF_POLICY if kind is Preview.PDF else _INERT_POLICY
    found = _open(visit, _range_headers(visit))
    if found.is_success and preview_of({**found.headers, "content-length": "0"}) is not kind:
        # It was replaced meanwhile.
        drained(found)
        return visit.refusal(visit.text("errors.412"), 412)
    return _finish(visit, found, _essence(head.headers), policy, "inline")


def _text(visit: Visit) -> Response:
    found = _open(visit, {"range": f"bytes=0-{TEXT_BYTES_MAX - 1}"})
    found.headers.pop("content-range", None)
    if found.status == 416:
        # It is empty.
        drained(found)
        found.headers, found.body = {"content-length": "0"}, b""
    found.status, found.reason = 200, "OK"
    return _finish(visit, found, "text/plain; charset=utf-8", _INERT_POLICY, "inline")


def version_query(version: str) -> dict[str, str]:
    """Return the query of a request for a version; empty for the current one."""
    return {"version-id": version} if version else {}


def _range_headers(visit: Visit) -> HeaderMap:
    sent = visit.request.headers
    return {name: sent[name] for name in _RANGE_HEADERS if name in sent}


def _open(visit: Visit, headers: HeaderMap) -> Response:
    query = version_query(visit.query.text("version"))
    return visit.api.stream("GET", *object_of(visit.query), query=query, headers=headers, also=_PASSED_STATUS)


def _finish(visit: Visit, found: Response, kind: str, policy: str, disposition: str) -> Response:
    """Replace the headers of a response by those that a browser may see."""
    passed = {name: found.headers[name] for name in _CONTENT_HEADERS if name in found.headers}
    found.headers = visit.headers(
        content_type=kind,
        content_disposition=disposition,
        content_security_policy=policy,
        x_frame_options="SAMEORIGIN",
    )
    found.headers.update(passed)
    return found


ROUTES = (
    Route("GET", "/download", download),
    Route("GET", "/content", show_content),
)
