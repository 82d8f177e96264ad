"""Dynamic large objects: a manifest names a container and a prefix, a GET joins what is there.

Spec: middleware.md §6. The etag and length come from the first listing page; beyond it neither is known.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from hashlib import md5
from typing import Any
from urllib.parse import quote, unquote

from swift import green
from swift.base.entity import quote_path
from swift.base.ranges import ByteRanges, Span
from swift.compose import cluster_of
from swift.config.kinds import COUNT, SECONDS
from swift.config.schema import Settings, option
from swift.gateway.subrequest import asked, drained, make_subrequest
from swift.http.body import BodyError
from swift.http.conditional import failed_condition, parse_http_date
from swift.http.headers import utf8_value, with_prefix
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response, error_response
from swift.http.segments import SegmentedBody
from swift.middleware.filter import Conf, Filter, factory_of, parse_options

_PARTS = "multipart/byteranges"
_FORMAT_ERROR = "X-Object-Manifest must be in the format container/prefix"
#: A manifest may answer any of these, depending on the conditions of the request.
_FOUND = frozenset((200, 206, 304, 412, 416))


@dataclass(frozen=True)
class DloSettings(Settings):
    """``[filter:dlo]``."""

    rate_limit_after_segment: int = option(10, "Segments sent before the rate limit begins.", kind=COUNT)
    rate_limit_segments_per_sec: float = option(1.0, "Segments a second then; 0 is no limit.", kind=SECONDS)
    max_get_time: float = option(86400.0, "Seconds a download may take.", kind=SECONDS)


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: its object name, size and the wanted bytes of it."""

    name: str
    size: int
    span: Span


class Dlo(Filter):
    """Serves manifests as the objects they stand for."""

    def __init__(self, app: Any, settings: DloSettings, page_rows: int):
        super().__init__(app)
        self._settings = settings
        self._page_rows = page_rows

    def handle(self, request: Request) -> Response:
        """Join segments on GET and HEAD, check manifests on PUT."""
        entity = request.entity
        if entity is None or entity.path.obj is None:
            return self.forward(request)
        if request.method == "PUT":
            if "x-object-manifest" in request.headers:
                _check_manifest(request)
            return self.forward(request)
        if request.method not in ("GET", "HEAD") or request.params.get("multipart-manifest") == "get":
            return self.forward(request)
        response = self.forward(request)
        manifest = response.headers.get("x-object-manifest")
        if manifest is None or response.status not in _FOUND:
            return response
        drained(response)
        if response.status in (412, 416) or response.headers.get("content-type", "").startswith(_PARTS):
            # Conditions and ranges are for the whole: the manifest's own 412, 416 or parts hide what it is.
            again = make_subrequest(request, "HEAD", request.raw_path, source="DLO")
            _pass_token(request, again)
            plain = drained(self.forward(again))
            response = plain if "x-object-manifest" in plain.headers else response
        return self._serve(
            request, response, f"/{entity.version}/{quote_path(entity.path.account)}", manifest
        )

    def _serve(self, request: Request, manifest: Response, base: str, value: str) -> Response:
        container, prefix = (utf8_value(unquote(part, "latin-1")) for part in value.partition("/")[::2])
        if "/" in container:
            # No container has such a name; as a path it would be an object.
            raise HTTPError(404)
        rows = self._page(request, base, container, prefix, "")
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
        return self._answer(request, headers, base, container, prefix, rows, total)

    def _answer(
        self,
        request: Request,
        headers: dict[str, str],
        base: str,
        container: str,
        prefix: str,
        rows: list[dict[str, Any]],
        total: int | None,
    ) -> Response:
        span, status = None, 200
        if total is not None:
            span = Span(0, total)
            ranges = ByteRanges.parse(request.headers.get("range", ""))
            if ranges is not None and len(ranges) == 1:
                spans = ranges.resolve(total)
                if not spans:
                    what = {"content-range": f"bytes */{total}", "accept-ranges": "bytes"}
                    return error_response(416, headers=what)
                if total and request.method == "GET":
                    span, status = spans[0], 206
                    headers["content-range"] = span.content_range(total)
            headers["content-length"] = str(span.length)
        if request.method == "HEAD":
            return Response(status, headers)
        segments = cut(rows, span)
        source = _Source(self, request, base, container, self._settings)
        body: Any
        if span is None:
            body = _PagedBody(self, request, base, container, prefix, segments, rows[-1]["name"], source)
        else:
            body = SegmentedBody(segments, source.open, span.length)
        try:
            body.start()
        except BodyError as error:
            return error_response(409, str(error))
        return Response(status, headers, body)

    def _page(
        self, request: Request, base: str, container: str, prefix: str, marker: str
    ) -> list[dict[str, Any]]:
        """One listing page of segments; raises ``HTTPError`` with the listing's status."""
        query = f"format=json&prefix={quote(prefix, safe='')}"
        if marker:
            query += f"&marker={quote(marker, safe='')}"
        path = f"{base}/{quote(container, safe='~')}"
        sub = make_subrequest(
            request, "GET", path, query=query, source="DLO", agent="%(orig)s DLO MultipartGET"
        )
        _pass_token(request, sub)
        with asked(self.forward, sub) as response:
            if not response.is_success:
                raise HTTPError(response.status, headers=with_prefix(response.headers, "www-auth"))
            body = response.read_body()
        rows = json.loads(body) if body else []
        return [row for row in rows if "name" in row]


def _pass_token(request: Request, sub: Request) -> None:
    for name in ("x-auth-token", "x-storage-token"):
        if name in request.headers:
            sub.headers[name] = request.headers[name]


def cut(rows: list[dict[str, Any]], span: Span | None) -> list[Segment]:
    """The segments that overlap ``span`` (all for None), each with its wanted bytes; empty ones left out."""
    segments, position = [], 0
    for row in rows:
        size = row["bytes"]
        first = 0 if span is None else max(0, span.start - position)
        last = size if span is None else min(size, span.stop - position)
        if first < last:
            segments.append(Segment(row["name"], size, Span(first, last)))
        position += size
    return segments


class _Source:
    """Opens segments of one download, keeping to its pace and time."""

    def __init__(self, dlo: Dlo, request: Request, base: str, container: str, settings: DloSettings):
        self._dlo = dlo
        self._request = request
        self._base = f"{base}/{quote(container, safe='~')}"
        self._settings = settings
        self._ends = time.monotonic() + settings.max_get_time
        self._opened = 0
        self._next_at = 0.0

    def open(self, segment: Segment) -> Response:
        """The response of one segment; raises ``BodyError``."""
        self._keep_pace()
        if time.monotonic() > self._ends:
            raise BodyError(f"the download took longer than {self._settings.max_get_time:g} s")
        sub = make_subrequest(
            self._request,
            "GET",
            f"{self._base}/{quote_path(segment.name)}",
            query="multipart-manifest=get",
            source="DLO",
            agent="%(orig)s DLO MultipartGET",
        )
        _pass_token(self._request, sub)
        if segment.span.length < segment.size:
            sub.headers["range"] = f"bytes={segment.span.start}-{segment.span.stop - 1}"
        response = self._dlo.forward(sub)
        if response.status not in (200, 206):
            response.discard()
            raise BodyError(f"segment {segment.name} answered {response.status}")
        return response

    def _keep_pace(self) -> None:
        self._opened += 1
        rate = self._settings.rate_limit_segments_per_sec
        if not rate or self._opened <= self._settings.rate_limit_after_segment:
            return
        now = time.monotonic()
        if self._next_at > now:
            green.sleep(self._next_at - now)
        self._next_at = max(now, self._next_at) + 1 / rate


class _PagedBody(SegmentedBody[Segment]):
    """A download of more segments than a listing page has: further pages are fetched as it goes."""

    def __init__(
        self,
        dlo: Dlo,
        request: Request,
        base: str,
        container: str,
        prefix: str,
        segments: list[Segment],
        last: str,
        source: _Source,
    ):
        super().__init__(segments, source.open, None)
        self._fetch = lambda marker: dlo._page(request, base, container, prefix, marker)
        self._last = last

    def _next(self) -> bool:
        while not self._segments and self._last:
            try:
                rows = self._fetch(self._last)
            except HTTPError as error:
                raise BodyError(f"the next page of segments answered {error.response.status}")
            self._last = rows[-1]["name"] if rows else ""
            self._segments = cut(rows, None)
        return super()._next()


def _check_manifest(request: Request) -> None:
    """400 for a manifest that does not name a container and a prefix, as it is written."""
    value = request.headers["x-object-manifest"]
    container, _, prefix = value.partition("/")
    if not container or not prefix or "?" in value or "&" in value or prefix.startswith("/"):
        raise HTTPError(400, _FORMAT_ERROR)


def make_dlo(app: Any, conf: Conf) -> Dlo:
    """The filter of a configuration section."""
    limits = cluster_of(conf).config.limits
    return Dlo(app, parse_options(DloSettings, conf, "dlo"), limits.container_listing_limit)


filter_factory = factory_of(make_dlo)
