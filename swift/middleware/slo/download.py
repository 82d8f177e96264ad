"""GET and HEAD of what a manifest stands for (spec: middleware.md §5.2).

Size and ETag of the whole are kept beside the manifest, so that conditions, HEAD and bad ranges are answered
without reading it. The bytes come from ``middleware.segments``; manifests in manifests are read when the
stream gets to them.
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
    SegmentBroken,
    SegmentPace,
    SegmentSource,
    home_of,
    segment_request,
    version_query,
)
from swift.middleware.slo.manifest import (
    MANIFEST_BYTES_MAX,
    BadManifest,
    Part,
    overlapping,
    parse_stored,
    part_span,
    raw_text,
    total_bytes,
    whole_etag,
)
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import SOURCE
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log
from swift.wire.byteranges import Multipart

#: Manifests in manifests, the outermost counted.
DEPTH_MAX = 10
_GET_MANIFEST = "multipart-manifest=get"
#: Statuses of a manifest that was found, whatever the request's conditions and ranges made of it.
_FOUND = frozenset((200, 206, 304, 412, 416))
_OF_MANIFEST = ("content-length", "content-range", "transfer-encoding")


class Download:
    """Serves what manifests stand for."""

    def __init__(self, forward: Handle, settings: SloSettings, log: Log):
        self._forward = forward
        self._log = log
        self._pace = SegmentPace(
            settings.rate_limit_after_segment,
            settings.rate_limit_segments_per_sec,
            settings.max_get_time,
            settings.rate_limit_under_size,
            settings.read_ahead_bytes,
        )

    # the manifest itself

    def manifest(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the answer to ``multipart-manifest=get``."""
        response = self._forward(request)
        if response.status not in _FOUND or not is_manifest(response):
            return response
        if request.params.get("format") == "raw":
            return self._raw(request, version, path, response)
        if not response.headers.get("content-type", "").startswith("multipart/byteranges"):
            response.headers["content-type"] = "application/json; charset=utf-8"
        return response

    def _raw(self, request: Request, version: str, path: EntityPath, response: Response) -> Response:
        """Return the manifest as it can be uploaded again.

        Conditions are about this text, ranges are ignored.
        """
        try:
            if request.method == "GET" and response.status == 200:
                headers, parts = response.headers, _parts_of(response)
            else:
                drained(response)
                sub = segment_request(
                    request, version, "GET", path, version_query(request, _GET_MANIFEST), SOURCE
                )
                headers, parts = self.ask_manifest(sub)
        except (BodyError, BadManifest) as error:
            return self.failed(request, error)
        text = raw_text(parts)
        etag = md5(text, usedforsecurity=False).hexdigest()
        headers["etag"] = etag
        headers["content-length"] = str(len(text))
        failed = _failed(request.headers, etag, headers)
        return Response(200, headers, text) if failed is None else _unmet(failed, headers)

    # what it stands for

    def whole(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the answer to a GET or HEAD; of other objects that of the rest of the pipeline."""
        headers = request.headers
        own = {
            fields.BACKEND_ETAG_IS_AT: fields.SYSMETA_SLO_ETAG,
            fields.BACKEND_IGNORE_RANGE: "x-static-large-object",
        }
        before = {name: headers[name] for name in own if name in headers}
        for name, value in own.items():
            headers[name] = f"{before[name]},{value}" if name in before else value
        response = self._forward(request)
        for name in own:
            headers.pop(name, None)
        headers.update(before)
        if response.status not in _FOUND or not is_manifest(response):
            return response
        return _Whole(self, request, version, home_of(response.headers, path), response).answer()

    def source(self, request: Request, version: str) -> SegmentSource:
        """Return the source that opens the segments of one download."""
        return SegmentSource(self._forward, request, version, SOURCE, self._pace, self._log)

    def ask_manifest(self, sub: Request) -> tuple[HeaderMap, list[Part]]:
        """Headers and parts of the manifest that a sub-request is for; raises ``BodyError``."""
        with open_response(self._forward, sub) as response:
            if not response.is_success or not is_manifest(response):
                raise BodyError(f"{sub.path_qs} answered {response.status}, not a manifest")
            return response.headers, _parts_of(response)

    def failed(self, request: Request, error: Exception) -> Response:
        """Return the answer when not even the first bytes can be had."""
        if not isinstance(error, SegmentBroken):
            text = f"ERROR {request.method} {request.path_qs}: {error}"
            self._log.error(text, txid=request.env.get(environkeys.TRANS_ID))
        return error_response(409)


class _Whole:
    """One request for what a manifest stands for."""

    def __init__(
        self, download: Download, request: Request, version: str, path: EntityPath, response: Response
    ):
        self._download = download
        self._request = request
        self._version = version
        self._path = path
        self._response = response
        self._source = download.source(request, version)
        self._source.homes.add(path)
        self._parts: list[Part] | None = None

    def answer(self) -> Response:
        """Return the response; raises ``HTTPError``."""
        request, response = self._request, self._response
        etag = response.headers.get(fields.SYSMETA_SLO_ETAG, "")
        size = response.headers.get(fields.SYSMETA_SLO_SIZE, "")
        try:
            number = _part_number(request)
        except HTTPError:
            drained(response)
            raise
        known = bool(etag) and is_digits(size)
        try:
            if not known:
                # A manifest of before those were kept: the conditions were judged by the wrong ETag.
                self._load()
                etag, size = whole_etag(self._manifest), str(total_bytes(self._manifest))
            headers = self._headers(etag)
            failed = response.status if known else _failed(request.headers, etag, headers)
            if failed in (304, 412):
                drained(self._response)
                return _unmet(failed, headers)
            if number is not None:
                return self._part(headers, number)
            return self._ranges(headers, int(size))
        except (BodyError, BadManifest) as error:
            drained(self._response)
            return self._download.failed(request, error)

    def _load(self) -> None:
        """Read the manifest, anew unless the response is all of it; raises ``BodyError``, ``BadManifest``."""
        if self._parts is not None:
            return
        if self._response.status == 200 and self._request.method == "GET":
            self._parts = _parts_of(self._response)
            return
        drained(self._response)
        query = version_query(self._request, _GET_MANIFEST)
        sub = self._source.subrequest("GET", self._path, query)
        for name in ("x-newest", fields.BACKEND_ALLOW_RESERVED_NAMES):
            if name in self._request.headers:
                sub.headers[name] = self._request.headers[name]
        headers, self._parts = self._download.ask_manifest(sub)
        self._response = Response(200, headers)

    @property
    def _manifest(self) -> Sequence[Part]:
        self._load()
        assert self._parts is not None
        return self._parts

    def _headers(self, etag: str) -> HeaderMap:
        headers = {n: v for n, v in self._response.headers.items() if n not in _OF_MANIFEST}
        headers["x-manifest-etag"] = unquote_etag(headers.get("etag", ""))
        headers["etag"] = f'"{etag}"'
        headers["accept-ranges"] = "bytes"
        return headers

    def _part(self, headers: HeaderMap, number: int) -> Response:
        parts = self._manifest
        total, span = total_bytes(parts), part_span(parts, number)
        headers["x-parts-count"] = str(len(parts))
        if span is None:
            headers["content-range"] = f"bytes */{total}"
            text = b"" if self._request.method == "HEAD" else b"The requested part number is not satisfiable"
            return Response(416, headers, text)
        if not span.length:
            # No range names an empty part.
            return self._send(200, headers, [span], total)
        headers["content-range"] = span.content_range(total)
        return self._send(206, headers, [span], total)

    def _ranges(self, headers: HeaderMap, total: int) -> Response:
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
        return self._send(status, headers, spans, total)

    def _send(self, status: int, headers: HeaderMap, spans: list[Span], total: int) -> Response:
        layout = None
        if len(spans) > 1:
            layout = Multipart(spans, total, headers.get("content-type", ""))
            headers["content-type"] = layout.content_type
        length = spans[0].length if layout is None else layout.length
        headers["content-length"] = str(length)
        if self._request.method == "HEAD":
            drained(self._response)
            return Response(status, headers)
        if total != total_bytes(self._manifest):
            raise BadManifest(f"its size is not {total} bytes")
        pieces = self._span_pieces(spans[0]) if layout is None else self._framed(layout)
        body = SegmentedBody(pieces, self._source.open, length, memory=self._source.ahead_bytes)
        body.start()
        return Response(status, headers, body)

    # bytes

    def _framed(self, layout: Multipart) -> Iterator[bytes | Segment]:
        for piece in layout.pieces():
            if isinstance(piece, Span):
                yield from self._span_pieces(piece)
            else:
                yield piece

    def _span_pieces(self, span: Span) -> Iterator[bytes | Segment]:
        return self._flattened(self._manifest, self._path.account, span, 1)

    def _flattened(
        self, parts: Sequence[Part], account: str, span: Span, depth: int
    ) -> Iterator[bytes | Segment]:
        """Yield the bytes and segments of a span; raises ``BodyError``."""
        for part, wanted in overlapping(parts, span):
            if not part.name:
                yield part.data[wanted.start : wanted.stop]
            elif part.is_manifest:
                inner, home = self._inner(part.path(account), part, depth)
                yield from self._flattened(inner, home.account, wanted, depth + 1)
            else:
                yield Segment(part.path(account), wanted, part.size, part.etag)

    def _inner(self, path: EntityPath, part: Part, depth: int) -> tuple[list[Part], EntityPath]:
        """Return the parts of a manifest that is a segment, and where it is; raises ``BodyError``."""
        if depth >= DEPTH_MAX:
            raise self._source.broken(f"more than {DEPTH_MAX} manifests in each other")
        sub = self._source.subrequest("GET", path, _GET_MANIFEST)
        try:
            headers, parts = self._download.ask_manifest(sub)
        except (BodyError, BadManifest) as error:
            raise self._source.broken(str(error))
        if whole_etag(parts) != part.etag or total_bytes(parts) != part.size:
            raise self._source.broken(f"segment {path} is no longer what it was")
        home = home_of(headers, path)
        self._source.homes.add(home)
        return parts, home


def is_manifest(response: Response) -> bool:
    """Return True if a response is of the manifest of a static large object."""
    return is_true(response.headers.get("x-static-large-object"))


def _parts_of(response: Response) -> list[Part]:
    """Return the parts of a manifest in a response; raises ``BadManifest`` and ``BodyError``."""
    try:
        text = response.read_body(MANIFEST_BYTES_MAX)
    except ValueError as error:
        raise BadManifest(str(error))
    response.report_end(len(text), True)
    return parse_stored(text)


def _failed(asked_headers: HeaderMap, etag: str, headers: HeaderMap) -> int | None:
    """304 or 412 when the request's conditions say so."""
    if not is_conditional(asked_headers):
        return None
    modified = parse_http_date(headers.get("last-modified", ""))
    return failed_condition(asked_headers, etag=etag, last_modified_s=modified)


def _unmet(status: int, headers: HeaderMap) -> Response:
    headers["content-length"] = "0"
    if status == 412:
        headers["content-type"] = HTML
        headers.pop("accept-ranges", None)
    return Response(status, headers)


def _part_number(request: Request) -> int | None:
    """Return the part that is asked for; raises ``HTTPError`` 400."""
    text = request.params.get("part-number")
    if text is None:
        return None
    number = int(text) if is_digits(text) else 0
    if number <= 0:
        raise HTTPError(400, "Part number must be an integer greater than 0")
    if "range" in request.headers:
        raise HTTPError(400, "Range requests are not supported with part number queries")
    return number
