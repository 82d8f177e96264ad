"""GET and HEAD of static large objects (spec: middleware.md §5.2).

Size and ETag of the large object are stored beside the manifest, so that conditions, HEAD and unsatisfiable
ranges need no read of the manifest. ``middleware.segments`` reads the bytes. Nested manifests are read when
the stream reaches them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import md5

from swift.base.digits import is_digits
from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.ranges import ByteRanges, Span
from swift.base.truth import is_true
from swift.gateway.subrequest import drained, open_response
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.conditional import (
    client_etag,
    failed_condition,
    if_range_matches,
    is_conditional,
    parse_http_date,
)
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response, default_body, error_response
from swift.http.segments import SegmentedBody
from swift.middleware.segments import (
    Segment,
    SegmentError,
    SegmentSource,
    content_location_path,
    make_segment_request,
    version_query,
)
from swift.middleware.slo.manifest import (
    MANIFEST_BYTES_MAX,
    BadManifest,
    Part,
    manifest_etag,
    overlapping_parts,
    parse_stored,
    part_span,
    render_raw,
    total_bytes,
)
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import SUBREQUEST_SOURCE
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log
from swift.wire.byteranges import Multipart

#: Levels of nested manifests, including the outermost.
MANIFEST_DEPTH_MAX = 10
_GET_MANIFEST_QUERY = "multipart-manifest=get"
#: Statuses of an existing manifest; conditions and ranges of the request can change the status.
_FOUND_STATUSES = frozenset((200, 206, 304, 412, 416))
_MANIFEST_ONLY_HEADERS = ("content-length", "content-range", "transfer-encoding")


class ManifestDownload:
    """Serves GET and HEAD of static large objects."""

    def __init__(self, forward: Handle, settings: SloSettings, log: Log):
        self._forward = forward
        self._log = log
        self._rate_limit = settings.rate_limit(settings.rate_limit_under_size)

    # the manifest itself

    def get_manifest(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the response to ``multipart-manifest=get``."""
        response = self._forward(request)
        if response.status not in _FOUND_STATUSES or not is_manifest(response):
            return response
        if request.params.get("format") == "raw":
            return self._get_raw_manifest(request, version, path, response)
        if not response.headers.get("content-type", "").startswith("multipart/byteranges"):
            response.headers["content-type"] = "application/json; charset=utf-8"
        return response

    def _get_raw_manifest(
        self, request: Request, version: str, path: EntityPath, response: Response
    ) -> Response:
        """Return the manifest in the format that clients upload.

        Conditions apply to this text; ranges are ignored.
        """
        try:
            if request.method == "GET" and response.status == 200:
                headers, parts = response.headers, _read_parts(response)
            else:
                drained(response)
                sub = make_segment_request(
                    request,
                    version,
                    "GET",
                    path,
                    version_query(request, _GET_MANIFEST_QUERY),
                    SUBREQUEST_SOURCE,
                )
                headers, parts = self.read_manifest(sub)
        except (BodyError, BadManifest) as error:
            return self.make_error_response(request, error)
        text = render_raw(parts)
        etag = md5(text, usedforsecurity=False).hexdigest()
        headers["etag"] = etag
        headers["content-length"] = str(len(text))
        failed = _failed_condition_status(request.headers, etag, headers)
        return Response(200, headers, text) if failed is None else _condition_response(failed, headers)

    # the large object

    def get_object(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the response to a GET or HEAD; responses of plain objects pass unchanged."""
        headers = request.headers
        added = {
            fields.BACKEND_ETAG_IS_AT: fields.SYSMETA_SLO_ETAG,
            fields.BACKEND_IGNORE_RANGE: "x-static-large-object",
        }
        original = {name: headers[name] for name in added if name in headers}
        for name, value in added.items():
            headers[name] = f"{original[name]},{value}" if name in original else value
        response = self._forward(request)
        for name in added:
            headers.pop(name, None)
        headers.update(original)
        if response.status not in _FOUND_STATUSES or not is_manifest(response):
            return response
        return _LargeObjectRead(
            self, request, version, content_location_path(response.headers, path), response
        ).respond()

    def make_segment_source(self, request: Request, version: str) -> SegmentSource:
        """Return the source that opens the segments of one download."""
        return SegmentSource(self._forward, request, version, SUBREQUEST_SOURCE, self._rate_limit, self._log)

    def read_manifest(self, sub: Request) -> tuple[HeaderMap, list[Part]]:
        """Return headers and parts of the manifest that a sub-request names; raises ``BodyError``."""
        with open_response(self._forward, sub) as response:
            if not response.is_success or not is_manifest(response):
                raise BodyError(f"{sub.path_qs} answered {response.status}, not a manifest")
            return response.headers, _read_parts(response)

    def make_error_response(self, request: Request, error: Exception) -> Response:
        """Log why a download cannot start, and return the error response."""
        if not isinstance(error, SegmentError):
            text = f"ERROR {request.method} {request.path_qs}: {error}"
            self._log.error(text, txid=request.env.get(environkeys.TRANS_ID))
        return error_response(409)


class _LargeObjectRead:
    """One GET or HEAD of a large object."""

    def __init__(
        self, download: ManifestDownload, request: Request, version: str, path: EntityPath, response: Response
    ):
        self._download = download
        self._request = request
        self._version = version
        self._path = path
        self._response = response
        self._source = download.make_segment_source(request, version)
        self._source.hidden_part_owners.add(path)
        self._parts: list[Part] | None = None

    def respond(self) -> Response:
        """Return the response; raises ``HTTPError``."""
        request, response = self._request, self._response
        etag = response.headers.get(fields.SYSMETA_SLO_ETAG, "")
        size = response.headers.get(fields.SYSMETA_SLO_SIZE, "")
        try:
            number = _parse_part_number(request)
        except HTTPError:
            drained(response)
            raise
        has_stored_etag = bool(etag) and is_digits(size)
        try:
            if not has_stored_etag:
                # An old manifest has no stored ETag: its conditions were checked against the wrong one.
                self._load_manifest()
                etag, size = manifest_etag(self._manifest_parts), str(total_bytes(self._manifest_parts))
            headers = self._object_headers(etag)
            failed = (
                response.status
                if has_stored_etag
                else _failed_condition_status(request.headers, etag, headers)
            )
            if failed in (304, 412):
                drained(self._response)
                return _condition_response(failed, headers)
            if number is not None:
                return self._get_part(headers, number)
            return self._get_ranges(headers, int(size))
        except (BodyError, BadManifest) as error:
            drained(self._response)
            return self._download.make_error_response(request, error)

    def _load_manifest(self) -> None:
        """Read the manifest unless the response contains all of it; raises ``BodyError``, ``BadManifest``."""
        if self._parts is not None:
            return
        if self._response.status == 200 and self._request.method == "GET":
            self._parts = _read_parts(self._response)
            return
        drained(self._response)
        query = version_query(self._request, _GET_MANIFEST_QUERY)
        sub = self._source.subrequest("GET", self._path, query)
        for name in ("x-newest", fields.BACKEND_ALLOW_RESERVED_NAMES):
            if name in self._request.headers:
                sub.headers[name] = self._request.headers[name]
        headers, self._parts = self._download.read_manifest(sub)
        self._response = Response(200, headers)

    @property
    def _manifest_parts(self) -> Sequence[Part]:
        self._load_manifest()
        assert self._parts is not None
        return self._parts

    def _object_headers(self, etag: str) -> HeaderMap:
        headers = {n: v for n, v in self._response.headers.items() if n not in _MANIFEST_ONLY_HEADERS}
        headers["x-manifest-etag"] = unquote_etag(headers.get("etag", ""))
        headers["etag"] = f'"{etag}"'
        headers["accept-ranges"] = "bytes"
        return headers

    def _get_part(self, headers: HeaderMap, number: int) -> Response:
        parts = self._manifest_parts
        total, span = total_bytes(parts), part_span(parts, number)
        headers["x-parts-count"] = str(len(parts))
        if span is None:
            headers["content-range"] = f"bytes */{total}"
            text = b"" if self._request.method == "HEAD" else b"The requested part number is not satisfiable"
            return Response(416, headers, text)
        if not span.length:
            # No Content-Range can describe an empty part.
            return self._make_response(200, headers, [span], total)
        headers["content-range"] = span.content_range(total)
        return self._make_response(206, headers, [span], total)

    def _get_ranges(self, headers: HeaderMap, total: int) -> Response:
        request = self._request
        spans, status = [Span(0, total)], 200
        ranges = ByteRanges.parse(request.headers.get("range", "")) if request.method == "GET" else None
        modified_s = parse_http_date(headers.get("last-modified", ""))
        etag = client_etag(request.headers, headers)
        if ranges is not None and if_range_matches(request.headers, etag=etag, last_modified_s=modified_s):
            spans = ranges.resolve(total)
            status = 206 if total else 200
        if not spans:
            drained(self._response)
            headers["content-range"] = f"bytes */{total}"
            return Response(416, headers, default_body(416))
        if status == 206 and len(spans) == 1:
            headers["content-range"] = spans[0].content_range(total)
        return self._make_response(status, headers, spans, total)

    def _make_response(self, status: int, headers: HeaderMap, spans: list[Span], total: int) -> Response:
        layout = None
        if len(spans) > 1:
            layout = Multipart(spans, total, headers.get("content-type", ""))
            headers["content-type"] = layout.content_type
        length = spans[0].length if layout is None else layout.length
        headers["content-length"] = str(length)
        if self._request.method == "HEAD":
            drained(self._response)
            return Response(status, headers)
        if total != total_bytes(self._manifest_parts):
            raise BadManifest(f"its size is not {total} bytes")
        pieces = self._span_pieces(spans[0]) if layout is None else self._multipart_pieces(layout)
        body = SegmentedBody(pieces, self._source.open, length, memory=self._source.read_ahead_bytes)
        body.start()
        return Response(status, headers, body)

    # bytes

    def _multipart_pieces(self, layout: Multipart) -> Iterator[bytes | Segment]:
        for piece in layout.pieces():
            if isinstance(piece, Span):
                yield from self._span_pieces(piece)
            else:
                yield piece

    def _span_pieces(self, span: Span) -> Iterator[bytes | Segment]:
        return self._iter_segments(self._manifest_parts, self._path.account, span, 1)

    def _iter_segments(
        self, parts: Sequence[Part], account: str, span: Span, depth: int
    ) -> Iterator[bytes | Segment]:
        """Yield the inline bytes and the segments of a span; raises ``BodyError``."""
        for part, sub_span in overlapping_parts(parts, span):
            if not part.name:
                yield part.data[sub_span.start : sub_span.stop]
            elif part.is_manifest:
                sub_parts, sub_path = self._read_sub_manifest(part.path(account), part, depth)
                yield from self._iter_segments(sub_parts, sub_path.account, sub_span, depth + 1)
            else:
                yield Segment(part.path(account), sub_span, part.size, part.etag)

    def _read_sub_manifest(self, path: EntityPath, part: Part, depth: int) -> tuple[list[Part], EntityPath]:
        """Return the parts and the path of a nested manifest; raises ``BodyError``."""
        if depth >= MANIFEST_DEPTH_MAX:
            raise self._source.logged_error(f"more than {MANIFEST_DEPTH_MAX} manifests in each other")
        sub = self._source.subrequest("GET", path, _GET_MANIFEST_QUERY)
        try:
            headers, parts = self._download.read_manifest(sub)
        except (BodyError, BadManifest) as error:
            raise self._source.logged_error(str(error))
        if manifest_etag(parts) != part.etag or total_bytes(parts) != part.size:
            raise self._source.logged_error(f"segment {path} is no longer what it was")
        sub_path = content_location_path(headers, path)
        self._source.hidden_part_owners.add(sub_path)
        return parts, sub_path


def is_manifest(response: Response) -> bool:
    """Return True if a response is of the manifest of a static large object."""
    return is_true(response.headers.get("x-static-large-object"))


def _read_parts(response: Response) -> list[Part]:
    """Return the parts of a manifest in a response; raises ``BadManifest`` and ``BodyError``."""
    try:
        text = response.read_body(MANIFEST_BYTES_MAX)
    except ValueError as error:
        raise BadManifest(str(error))
    response.report_end(len(text), True)
    return parse_stored(text)


def _failed_condition_status(request_headers: HeaderMap, etag: str, headers: HeaderMap) -> int | None:
    """Return 304 or 412 when a condition of the request fails; None otherwise."""
    if not is_conditional(request_headers):
        return None
    modified = parse_http_date(headers.get("last-modified", ""))
    return failed_condition(request_headers, etag=etag, last_modified_s=modified)


def _condition_response(status: int, headers: HeaderMap) -> Response:
    headers["content-length"] = "0"
    if status == 412:
        headers["content-type"] = HTML
        headers.pop("accept-ranges", None)
    return Response(status, headers)


def _parse_part_number(request: Request) -> int | None:
    """Return the requested part number, or None; raises ``HTTPError`` 400."""
    text = request.params.get("part-number")
    if text is None:
        return None
    number = int(text) if is_digits(text) else 0
    if number <= 0:
        raise HTTPError(400, "Part number must be an integer greater than 0")
    if "range" in request.headers:
        raise HTTPError(400, "Range requests are not supported with part number queries")
    return number
