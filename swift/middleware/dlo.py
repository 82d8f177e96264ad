"""Dynamic large objects: GET concatenates the objects of the container and prefix in a manifest.

Spec: middleware.md §6. ETag and length come from the first listing page; both are unknown for more segments
than one page holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from typing import NamedTuple
from urllib.parse import quote, unquote

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.ranges import ByteRanges, Span
from swift.base.truth import is_true
from swift.compose import Services
from swift.gateway.subrequest import drained, open_response
from swift.http.body import BodyError
from swift.http.conditional import failed_condition, if_range_matches, parse_http_date
from swift.http.headers import HeaderMap, utf8_value, with_prefix
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response, error_response
from swift.http.segments import SegmentedBody
from swift.middleware.filter import OUTER_FILTERS, App, Filter, FilterDeclaration
from swift.middleware.segments import (
    Segment,
    SegmentSettings,
    SegmentSource,
    content_location_path,
    make_segment_request,
    version_query,
)
from swift.telemetry.log import Log

SUBREQUEST_SOURCE = "DLO"
#: The rows of a listing.
Rows = list[JsonObject]
_MULTIPART_TYPE = "multipart/byteranges"
_FORMAT_ERROR = "X-Object-Manifest must be in the format container/prefix"
#: Statuses of an existing manifest; conditions and ranges of the request can change the status.
_FOUND_STATUSES = frozenset((200, 206, 304, 412, 416))


@dataclass(frozen=True)
class DloSettings(SegmentSettings):
    """``[filter:dlo]``."""


class _SegmentsPrefix(NamedTuple):
    """Container and prefix that a manifest names."""

    container: EntityPath
    prefix: str
    version: str


class Dlo(Filter):
    """Serves manifests as large objects."""

    def __init__(self, app: App, settings: DloSettings, page_rows: int, log: Log):
        super().__init__(app)
        self._settings = settings
        self._page_rows = page_rows
        self._log = log

    def handle(self, request: Request) -> Response:
        """Concatenate segments on GET and HEAD, validate manifests on PUT."""
        entity = request.entity
        if entity is None or entity.path.obj is None:
            return self.forward(request)
        if request.method == "PUT":
            if "x-object-manifest" in request.headers:
                _validate_manifest(request)
            return self.forward(request)
        if request.method not in ("GET", "HEAD") or request.params.get("multipart-manifest") == "get":
            return self.forward(request)
        response = self.forward(request)
        value = response.headers.get("x-object-manifest")
        if value is None or response.status not in _FOUND_STATUSES or _is_static(response):
            return response
        manifest_path = content_location_path(response.headers, entity.path)
        drained(response)
        if response.status in (412, 416) or response.headers.get("content-type", "").startswith(
            _MULTIPART_TYPE
        ):
            # Conditions and ranges apply to the large object, so get the manifest's headers without them.
            head_request = make_segment_request(
                request, entity.version, "HEAD", entity.path, version_query(request), SUBREQUEST_SOURCE
            )
            head = drained(self.forward(head_request))
            response = head if "x-object-manifest" in head.headers else response
        container, prefix = (utf8_value(unquote(part, "latin-1")) for part in value.partition("/")[::2])
        if "/" in container:
            # Container names have no slash; the path would name an object.
            raise HTTPError(404)
        segments_prefix = _SegmentsPrefix(
            EntityPath(manifest_path.account, container), prefix, entity.version
        )
        return self._respond(request, response, segments_prefix)

    def _respond(self, request: Request, manifest: Response, segments_prefix: _SegmentsPrefix) -> Response:
        rows = self._list_segments(request, segments_prefix, "")
        complete = len(rows) < self._page_rows
        total = sum(row["bytes"] for row in rows) if complete else None
        headers = {
            name: text
            for name, text in manifest.headers.items()
            if name not in ("content-length", "etag", "content-range", "transfer-encoding")
        }
        headers["accept-ranges"] = "bytes"
        etag = None
        if complete:
            joined = "".join(row["hash"].strip('"') for row in rows)
            etag = md5(joined.encode(), usedforsecurity=False).hexdigest()
            headers["etag"] = f'"{etag}"'
        modified = parse_http_date(headers.get("last-modified", ""))
        failed = failed_condition(request.headers, etag=etag, last_modified_s=modified)
        if failed is not None:
            headers["content-length"] = "0"
            if failed == 412:
                headers["content-type"] = HTML
                del headers["accept-ranges"]
            return Response(failed, headers)
        ranges = None
        if if_range_matches(request.headers, etag=etag, last_modified_s=modified):
            ranges = ByteRanges.parse(request.headers.get("range", ""))
        return self._send_range(request, headers, segments_prefix, rows, total, ranges)

    def _send_range(
        self,
        request: Request,
        headers: HeaderMap,
        segments_prefix: _SegmentsPrefix,
        rows: Rows,
        total: int | None,
        ranges: ByteRanges | None,
    ) -> Response:
        span, status = None, 200
        if total is not None:
            span = Span(0, total)
            if ranges is not None and len(ranges) == 1:
                spans = ranges.resolve(total)
                if not spans:
                    headers_416 = {"content-range": f"bytes */{total}", "accept-ranges": "bytes"}
                    return error_response(416, headers=headers_416)
                if total and request.method == "GET":
                    span, status = spans[0], 206
                    headers["content-range"] = span.content_range(total)
            headers["content-length"] = str(span.length)
        if request.method == "HEAD":
            return Response(status, headers)
        limit = self._settings.rate_limit()
        source = SegmentSource(
            self.forward, request, segments_prefix.version, SUBREQUEST_SOURCE, limit, self._log
        )
        if span is None:
            segments = self._iter_all_segments(request, segments_prefix, rows, source)
        else:
            segments = segments_in_span(rows, segments_prefix.container, span)
        length = None if span is None else span.length
        body = SegmentedBody(segments, source.open, length, memory=source.read_ahead_bytes)
        try:
            body.start()
        except BodyError as error:
            return error_response(409, str(error))
        return Response(status, headers, body)

    def _iter_all_segments(
        self, request: Request, segments_prefix: _SegmentsPrefix, rows: Rows, source: SegmentSource
    ) -> Iterator[Segment]:
        """Yield the segments of several listing pages; later pages are read during the download."""
        while rows:
            yield from segments_in_span(rows, segments_prefix.container, None)
            try:
                rows = self._list_segments(request, segments_prefix, rows[-1]["name"])
            except HTTPError as error:
                raise source.logged_error(f"the next page of segments answered {error.response.status}")

    def _list_segments(self, request: Request, segments_prefix: _SegmentsPrefix, marker: str) -> Rows:
        """Return one listing page of segments; raises ``HTTPError`` with the listing's status."""
        query = f"format=json&prefix={quote(segments_prefix.prefix, safe='', errors='surrogateescape')}"
        if marker:
            query += f"&marker={quote(marker, safe='')}"
        sub = make_segment_request(
            request, segments_prefix.version, "GET", segments_prefix.container, query, SUBREQUEST_SOURCE
        )
        with open_response(self.forward, sub) as response:
            if not response.is_success:
                raise HTTPError(response.status, headers=with_prefix(response.headers, "www-auth"))
            body = response.read_body()
        rows = json.loads(body) if body else []
        return [row for row in rows if "name" in row]


def _is_static(response: Response) -> bool:
    """Return True for the manifest of a static large object, which names its segments itself."""
    return is_true(response.headers.get("x-static-large-object"))


def segments_in_span(
    rows: Rows, container: EntityPath, span: Span | None, position: int = 0
) -> Iterator[Segment]:
    """Yield the segments that overlap ``span`` (all for None), each with its range; empty ones are left out.

    The first row begins at ``position`` of the large object.
    """
    for row in rows:
        size = row["bytes"]
        first = 0 if span is None else max(0, span.start - position)
        last = size if span is None else min(size, span.stop - position)
        if first < last:
            yield Segment(container._replace(obj=row["name"]), Span(first, last), size)
        position += size


def _validate_manifest(request: Request) -> None:
    """Raise ``HTTPError`` 400 for a manifest that does not name a container and a prefix."""
    value = request.headers["x-object-manifest"]
    container, _, prefix = value.partition("/")
    if not container or not prefix or "?" in value or "&" in value or prefix.startswith("/"):
        raise HTTPError(400, _FORMAT_ERROR)


def _make_filter(app: App, settings: DloSettings, services: Services) -> Dlo:
    """Return the filter of a configuration section."""
    limits = services.cluster.config.limits
    return Dlo(app, settings, limits.container_listing_limit, services.telemetry().log)


FILTER = FilterDeclaration(
    "dlo",
    DloSettings,
    _make_filter,
    position=240,
    default=True,
    required_after=("copy", *OUTER_FILTERS),
    left_of={"encryption": "its own requests must pass through encryption"},
)
