"""Spans of exchanges with nodes, by OpenTelemetry; imported only where traces are configured.

An exchange belongs to the request whose transaction id its headers have. Green threads that send to nodes are
started and reused in many places, and none of them passes a context on; the id is there already.

A span begins before the connection is taken from the pool. It ends when the response's body has ended, when
the exchange fails or is aborted. Queries and headers, which may have signatures and tokens, are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Unpack
from urllib.parse import unquote

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from swift.base.calls import T, Ts
from swift.cluster.transport import BackendResponse, Exchange, NodeRequest, Transport
from swift.http import environkeys
from swift.http.body import FileBody, ResponseBody
from swift.http.headers import HeaderMap
from swift.http.request import Request

#: The header that names the trace and its current span (W3C Trace Context).
TRACEPARENT = "traceparent"
#: Methods that are recorded as they are; clients may send any other word.
METHODS = frozenset(
    (
        *("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "COPY"),
        *("REPLICATE", "SSYNC", "UPDATE"),
    )
)
#: Characters of a value; longer ones are cut off.
VALUE_MAX = 1024
#: Stands for the name of an object.
HIDDEN_OBJECT = "{object}"

Attributes = dict[str, str | int]


def text_value(text: str) -> str:
    """Return a text that the exporter can encode: bounded, and without halves of surrogate pairs."""
    return text[:VALUE_MAX].encode("utf-8", "replace").decode()


def method_attributes(method: str) -> Attributes:
    """Return the attributes of a method."""
    if method in METHODS:
        return {"http.request.method": method}
    return {"http.request.method": "_OTHER", "http.request.method_original": text_value(method)}


def span_name(method: str, route: str) -> str:
    """Return the name of a span, one of few."""
    return f"{method if method in METHODS else 'HTTP'} {route}".rstrip()


def node_attributes(method: str, raw_path: str, *, has_object_names: bool) -> tuple[str, Attributes]:
    """Return the route and the attributes of a path of storage servers, ``/device/partition[/entity]``."""
    parts = unquote(raw_path.partition("?")[0], errors="replace").lstrip("/").split("/", 4)
    if len(parts) < 2 or not parts[1].isdecimal():
        return "", {"url.path": text_value("/" + "/".join(parts))}
    attributes: Attributes = {}
    if len(parts) == 5 and not has_object_names:
        parts[4] = HIDDEN_OBJECT
    attributes["url.path"] = text_value("/" + "/".join(parts))
    names: tuple[str, ...] = (
        *("swift.device", "swift.partition"),
        *("swift.account", "swift.container", "swift.object"),
    )
    if method in ("REPLICATE", "SSYNC"):
        # Suffixes and hashes follow.
        names, parts = names[:2], parts[:2]
    for name, value in zip(names, parts, strict=False):
        if value != HIDDEN_OBJECT:
            attributes[name] = text_value(value)
    route = "".join(f"/{{{name.removeprefix('swift.')}}}" for name in names[: len(parts)])
    return route, attributes


class RequestSpan:
    """The span of a request that is being served."""

    __slots__ = ("request", "span", "traceparent", "transaction_id")

    def __init__(self, span: Span, request: Request):
        context = span.get_span_context()
        self.span = span
        self.request = request
        #: The header of requests to nodes.
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        self.transaction_id = ""


class ActiveSpans:
    """The spans of the requests that a server is serving, found by transaction id."""

    def __init__(self, transaction_id: Callable[[Request], str | None]):
        """``transaction_id`` returns None while a request has none yet."""
        self._transaction_id = transaction_id
        self._identified: dict[str, list[RequestSpan]] = {}
        self._unidentified: list[RequestSpan] = []

    def add(self, active: RequestSpan) -> None:
        """Take a span until ``remove``."""
        self._unidentified.append(active)

    def remove(self, active: RequestSpan) -> None:
        """Forget a span."""
        if not active.transaction_id:
            self._unidentified.remove(active)
            return
        same = self._identified[active.transaction_id]
        same.remove(active)
        if not same:
            del self._identified[active.transaction_id]

    def find(self, headers: HeaderMap) -> RequestSpan | None:
        """Return the span of the request for which these headers are sent to a node.

        The devices of one server may take part in a transaction at the same time: the referer, which storage
        servers send with it, tells them apart.
        """
        if self._unidentified:
            self._identify()
        same = self._identified.get(headers.get("x-trans-id", ""))
        if not same:
            return None
        if len(same) > 1:
            referer = headers.get("referer")
            for active in same:
                if referer == f"{active.request.method} {active.request.url}":
                    return active
        return same[0]

    def _identify(self) -> None:
        still = []
        for active in self._unidentified:
            found = self._transaction_id(active.request)
            if found:
                active.transaction_id = found
                self._identified.setdefault(found, []).append(active)
            else:
                still.append(active)
        self._unidentified = still

    def __len__(self) -> int:
        return len(self._unidentified) + sum(map(len, self._identified.values()))

    def __repr__(self) -> str:
        return f"<ActiveSpans {len(self)}>"


def transaction_id_of_client(request: Request) -> str | None:
    """Return the id that the proxy gave a request."""
    found = request.env.get(environkeys.TRANS_ID)
    return found if isinstance(found, str) else None


def transaction_id_of_node(request: Request) -> str | None:
    """Return the id that the proxy sent to a storage server."""
    return request.headers.get("x-trans-id")


class _ExchangeSpan:
    """The span of one exchange; ends once."""

    __slots__ = ("_span",)

    def __init__(self, span: Span):
        self._span: Span | None = span

    def respond(self, response: BackendResponse) -> BackendResponse:
        """Record the status of a response; the span ends with its body."""
        span = self._span
        if span is not None:
            span.set_attribute("http.response.status_code", response.status)
            if response.status >= 400:
                span.set_attribute("error.type", str(response.status))
                span.set_status(Status(StatusCode.ERROR))
            body = response.stream
            if body.remaining_bytes is not None:
                self.end()
            else:
                response.stream = _TracedBody(body, self)
        return response

    def call(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Return ``function(*args)``; an error of it ends the span."""
        try:
            return function(*args)
        except BaseException as error:
            self.fail(type(error).__name__)
            raise

    def fail(self, error_type: str) -> None:
        """End the span with an error; its text, which may have anything, is not recorded."""
        if self._span is not None:
            self._span.set_attribute("error.type", error_type)
            self._span.set_status(Status(StatusCode.ERROR))
            self.end()

    def end(self) -> None:
        """End the span."""
        span, self._span = self._span, None
        if span is not None:
            span.end()

    def __del__(self) -> None:
        self.fail("abandoned")


class _TracedBody(ResponseBody):
    """A response's body as it arrives; its end ends the span."""

    __slots__ = ("length", "_source", "_span", "_left")

    def __init__(self, source: ResponseBody, span: _ExchangeSpan):
        self.length = source.length
        self._source = source
        self._span = span
        self._left = source.length

    def _read(self, size: int) -> int:
        if self._left is not None:
            self._left -= size
        if not size or self._left == 0:
            self._span.end()
        return size

    def read_into(self, buffer: memoryview) -> int:
        """See ``ResponseBody``."""
        return self._read(self._span.call(self._source.read_into, buffer))

    def read(self, size: int) -> bytes:
        """See ``ResponseBody``."""
        data = self._span.call(self._source.read, size)
        self._read(len(data))
        return data

    def read_all(self) -> bytes:
        """See ``ResponseBody``."""
        data = self._span.call(self._source.read_all)
        self._span.end()
        return data

    def splice_into(self, pipe: int, size: int) -> int:
        """See ``ResponseBody``."""
        moved = self._span.call(self._source.splice_into, pipe, size)
        return self._read(moved) if moved else 0

    def __iter__(self) -> Iterator[bytes | FileBody]:
        pieces = iter(self._source)
        while (piece := self._span.call(next, pieces, None)) is not None:
            yield piece
        self._span.end()

    def close(self) -> None:
        """Release the body below; its rest is not needed, e.g. as another node was quicker."""
        self._source.close()
        self._span.end()


class _TracedExchange:
    """An exchange whose span ends with it (``Exchange``)."""

    __slots__ = ("_exchange", "_span", "_final")

    def __init__(self, exchange: Exchange, span: _ExchangeSpan):
        self._exchange = exchange
        self._span = span
        self._final: BackendResponse | None = None

    @property
    def continue_headers(self) -> HeaderMap:
        """See ``Exchange``."""
        return self._exchange.continue_headers

    def send(self, data: bytes | memoryview) -> None:
        """See ``Exchange``."""
        self._span.call(self._exchange.send, data)

    def finish(self, trailers: HeaderMap | None = None) -> None:
        """See ``Exchange``."""
        self._span.call(self._exchange.finish, trailers)

    def wait_continue(self) -> BackendResponse | None:
        """See ``Exchange``."""
        early = self._span.call(self._exchange.wait_continue)
        return None if early is None else self._take(early)

    def wait_response_start(self, within_s: float) -> bool:
        """See ``Exchange``."""
        return self._exchange.wait_response_start(within_s)

    def response(self) -> BackendResponse:
        """See ``Exchange``."""
        return self._take(self._span.call(self._exchange.response))

    def _take(self, response: BackendResponse) -> BackendResponse:
        if response is not self._final:
            self._final = self._span.respond(response)
        return response

    def duplex(self, timeout_s: float) -> BackendResponse:
        """See ``Exchange``."""
        return self._take(self._span.call(self._exchange.duplex, timeout_s))

    def abort(self) -> None:
        """See ``Exchange``."""
        self._exchange.abort()
        self._span.fail("aborted")


class TracedTransport:
    """Sends requests to nodes with a span for each exchange that belongs to an active request."""

    def __init__(self, transport: Transport, tracer: Tracer, active: ActiveSpans, *, has_object_names: bool):
        self._transport = transport
        self._tracer = tracer
        self._active = active
        self._has_object_names = has_object_names

    def request(self, request: NodeRequest) -> BackendResponse:
        """See ``Transport``."""
        request, span = self._start(request)
        if span is None:
            return self._transport.request(request)
        return span.respond(span.call(self._transport.request, request))

    def stream(self, request: NodeRequest) -> Exchange:
        """See ``Transport``."""
        request, span = self._start(request)
        if span is None:
            return self._transport.stream(request)
        return _TracedExchange(span.call(self._transport.stream, request), span)

    def _start(self, request: NodeRequest) -> tuple[NodeRequest, _ExchangeSpan | None]:
        """Return the request with its trace, and its span if that is recorded."""
        parent = self._active.find(request.headers)
        if parent is None:
            return request, None
        if not parent.span.is_recording():
            # The node must not decide for itself.
            return _with_trace(request, parent.traceparent), None
        route, attributes = node_attributes(
            request.method, request.path, has_object_names=self._has_object_names
        )
        node, method = request.node, request.method
        host = f"[{node.ip}]" if ":" in node.ip else node.ip
        attributes |= {
            **method_attributes(method),
            "server.address": node.ip,
            "server.port": node.port,
            "url.full": f"http://{host}:{node.port}{attributes.pop('url.path')}",
            "swift.transaction_id": text_value(parent.transaction_id),
        }
        span = self._tracer.start_span(
            span_name(method, route),
            context=set_span_in_context(parent.span),
            kind=SpanKind.CLIENT,
            attributes=attributes,
        )
        return _with_trace(request, RequestSpan(span, parent.request).traceparent), _ExchangeSpan(span)

    def __repr__(self) -> str:
        return f"<TracedTransport {self._transport!r}>"


def _with_trace(request: NodeRequest, traceparent: str) -> NodeRequest:
    return replace(request, headers={**request.headers, TRACEPARENT: traceparent})
