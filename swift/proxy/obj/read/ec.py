"""Reads of erasure coded objects: GET from k archives, HEAD from any one (spec: proxy.md §13).

Archives are searched with the client's ranges turned into whole fragments. Conditions and ranges are then
evaluated here, by the object's headers in the archives. Of several ranges only the first is requested at
once: each of the others opens its archives when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from swift.base.digits import is_digits
from swift.base.etag import unquote_etag
from swift.base.ranges import ByteRanges, Span
from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.cluster.placement import NodeIterator
from swift.ec.codec import CodecError
from swift.ec.geometry import Geometry
from swift.http import fields
from swift.http.body import BodyError, IterableBody
from swift.http.conditional import failed_condition
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.proxy.backend import Backends, is_newest
from swift.proxy.context import ProxyContext
from swift.proxy.obj.location import ObjectLocation
from swift.proxy.obj.read.ec_body import ArchiveFinder, SpanBody, SpanReader
from swift.proxy.obj.read.ec_search import Archives, ArchiveSource, FragmentSearch, close
from swift.proxy.obj.scheme import ETAG, LENGTH, Scheme, Schemes, object_headers
from swift.proxy.reading import ReadPlan, SourceSearch, source_response
from swift.proxy.results import client_headers, without_swift_bytes
from swift.proxy.settings import ProxySettings
from swift.ring.device import Node
from swift.wire.byteranges import Multipart

#: Conditions that the proxy evaluates, because nodes may have metadata of different times.
_PROXY_CONDITIONS = ("if-modified-since", "if-unmodified-since", "range")


#: Maximum number of searches for an object that is being replaced or moved.
SEARCHES_MAX = 3
#: A search that took this long waited for an unresponsive node, and another would wait again, seconds.
SEARCH_AGAIN_WITHIN_S = 1.0


class ArchiveReader:
    """Serves GET and HEAD of erasure coded objects."""

    def __init__(self, context: ProxyContext, backends: Backends, schemes: Schemes):
        self._context = context
        self.backends = backends
        self.rates = context.rates
        self._schemes = schemes

    def read(self, request: Request, location: ObjectLocation, headers: HeaderMap) -> Response:
        """Return the client's response; ``headers`` are those for the backends."""
        also = headers.get(fields.BACKEND_ETAG_IS_AT)
        headers = {**headers, fields.BACKEND_ETAG_IS_AT: f"{also},{ETAG.title()}" if also else ETAG.title()}
        planner = self._context.planner(location.policy.index)
        if request.method == "HEAD":
            nodes = planner.for_read(location.view, location.part, "object")
            return self._head(request, location, headers, nodes, planner.settings)
        scheme = self._schemes.for_policy(location.policy)
        latest = self._context.clock.monotonic() + SEARCH_AGAIN_WITHIN_S
        for _ in range(SEARCHES_MAX):
            nodes = planner.for_fragments(location.view, location.part, scheme.ec)
            if planner.settings.striping_memory:
                nodes.reorder(self.rates.slow_last)
            get = _ArchiveGet(self, planner.settings, request, location, headers, scheme, nodes)
            response = get.respond()
            if not get.may_appear or self._context.clock.monotonic() > latest:
                break
        return response

    def _head(
        self,
        request: Request,
        location: ObjectLocation,
        headers: HeaderMap,
        nodes: NodeIterator,
        settings: ProxySettings,
    ) -> Response:
        newest = is_newest(request.headers)
        timeouts = self.backends.read_timeouts(settings, newest=newest)
        plan = ReadPlan("HEAD", location.path, location.part, headers, request.query, newest, timeouts)
        search = SourceSearch(self.backends, settings, plan, nodes)
        found = search.find()
        response = search.failure() if found is None else source_response(found[0])
        object_headers(response.headers)
        if response.status == 304:
            response.headers["content-length"] = "0"
        return response


class _ArchiveGet:
    """One GET."""

    def __init__(
        self,
        reader: ArchiveReader,
        settings: ProxySettings,
        request: Request,
        location: ObjectLocation,
        headers: HeaderMap,
        scheme: Scheme,
        nodes: NodeIterator,
    ):
        self._backends = reader.backends
        self._rates = reader.rates
        self._settings = settings
        self._request = request
        self._scheme = scheme
        self._nodes = nodes
        sent = {name: value for name, value in headers.items() if name not in _PROXY_CONDITIONS}
        if "if-unmodified-since" in headers:
            # It is evaluated before If-None-Match.
            sent.pop("if-none-match", None)
        # An old upload is read only if enough nodes have it and none has another one.
        sent[fields.BACKEND_ACCEPT_UNCONFIRMED] = "true"
        newest = is_newest(request.headers)
        timeouts = self._backends.read_timeouts(settings, newest=False)
        self._plan = ReadPlan("GET", location.path, location.part, sent, request.query, newest, timeouts)
        self._open: SpanReader | None = None
        self._pending: list[Node] = []
        #: Enough archives were not found, but may be at the next search.
        self.may_appear = False

    def respond(self) -> Response:
        """Return the client's response."""
        header = self._request.headers.get("range")
        ranges = ByteRanges.parse(header) if header is not None else None
        first = None if ranges is None else self._scheme.geometry.archive_ranges(ByteRanges(ranges[:1]))
        search = FragmentSearch(
            self._backends,
            self._settings,
            self._plan,
            self._nodes,
            self._scheme.ec.data,
            byte_range=None if first is None else str(first),
        )
        chosen = search.find()
        self._pending = search.pending
        if chosen is None:
            self.may_appear = search.may_appear
            response = search.failure()
            object_headers(response.headers)
            return response
        try:
            response = self._respond(chosen, ranges)
        except (BodyError, CodecError) as error:
            self._backends.log_error(str(error), self._plan.headers)
            response = error_response(503)
        if isinstance(response.body, bytes):
            close(chosen.members.values())
            if self._open is not None:
                self._open.close()
        return response

    def _respond(self, chosen: Archives, ranges: ByteRanges | None) -> Response:
        """Return the archives' response to this request; raises ``BodyError`` when they cannot be read."""
        metadata = max((h.headers for h in chosen.members.values()), key=_metadata_time)
        length = _whole_number(metadata.get(LENGTH, ""))
        headers = client_headers(metadata)
        headers.pop("content-range", None)
        object_headers(headers)
        headers["accept-ranges"] = "bytes"
        kind = metadata.get("content-type", "application/octet-stream")
        if fields.BACKEND_REPLICATION not in self._plan.headers:
            kind = without_swift_bytes(kind)
        unmet = failed_condition(
            self._request.headers, etag=self._condition_etag(metadata), last_modified_s=_modified_s(metadata)
        )
        if unmet is not None:
            if unmet == 412:
                del headers["accept-ranges"]
            return Response(unmet, {**headers, "content-type": HTML, "content-length": "0"})
        spans = [Span(0, length)]
        status = 200
        if ranges is not None and not self._ranges_ignored(metadata):
            spans = ranges.resolve(length)
            if not spans:
                return error_response(416, headers={**headers, "content-range": f"bytes */{length}"})
            status = 206 if length else 200
        headers["content-type"] = kind
        return self._ranged(chosen, Response(status, headers), spans, length)

    def _ranged(self, chosen: Archives, response: Response, spans: list[Span], length: int) -> Response:
        headers = response.headers
        geometry = self._scheme.geometry_for(next(iter(chosen.members.values())).headers)
        finder = ArchiveFinder(self._backends, self._plan, self._nodes, chosen, self._pending)
        sources = {index: archive.source for index, archive in chosen.members.items()}

        def body_of(span: Span, opened: dict[int, ArchiveSource]) -> SpanBody:
            codec = self._scheme.codec
            self._open = SpanReader(codec, geometry, finder, length, span, opened, self._rates)
            return SpanBody(self._open, self._ahead(geometry))

        first = body_of(spans[0], sources)
        first.start()
        if len(spans) > 1:
            return self._parts(response, spans, length, first, body_of)
        if response.status == 206:
            headers["content-range"] = spans[0].content_range(length)
        headers["content-length"] = str(spans[0].length)
        whole = first.remaining_bytes
        response.body = first if whole is None else whole
        return response

    def _ahead(self, geometry: Geometry) -> int:
        """Return how many decoded segments may wait, besides the one being sent and the one being decoded."""
        return max(1, self._settings.striping_memory // max(1, geometry.segment_size) - 2)

    def _parts(
        self,
        response: Response,
        spans: list[Span],
        length: int,
        first: SpanBody,
        body_of: Callable[[Span, dict[int, ArchiveSource]], SpanBody],
    ) -> Response:
        framing = Multipart(spans, length, response.headers["content-type"])
        bodies = iter([first])

        def read(span: Span) -> Iterator[bytes]:
            body = next(bodies, None) or body_of(span, {})
            try:
                yield from body
            finally:
                body.close()

        response.headers["content-type"] = framing.content_type
        response.headers["content-length"] = str(framing.length)
        response.body = IterableBody(framing.body(read), framing.length, first.close)
        return response

    def _condition_etag(self, metadata: HeaderMap) -> str | None:
        for name in self._plan.headers[fields.BACKEND_ETAG_IS_AT].lower().split(","):
            value = metadata.get(name.strip())
            if value is not None:
                return unquote_etag(value)
        return None

    def _ranges_ignored(self, metadata: HeaderMap) -> bool:
        names = self._request.headers.get(fields.BACKEND_IGNORE_RANGE, "").lower().split(",")
        return any(name.strip() in metadata for name in names if name.strip())


def _metadata_time(headers: HeaderMap) -> Timestamp:
    """Return when the metadata in a node's response was posted."""
    try:
        return Timestamp(headers.get(fields.BACKEND_TIMESTAMP) or headers.get("x-timestamp"))
    except InvalidTimestamp:
        return ZERO


def _modified_s(headers: HeaderMap) -> int:
    return _metadata_time(headers).ceil_seconds


def _whole_number(text: str) -> int:
    if not is_digits(text):
        raise BodyError(f"an archive has an invalid object size: {text!r}")
    return int(text)
