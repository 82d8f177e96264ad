"""Spans of the requests that a server responds to; imported only where traces are configured.

It stands around the whole pipeline, so its spans have what filters refuse. A span begins when the head of the
request was parsed and ends when the last byte of the response's body was sent, or the client was gone.
"""

from __future__ import annotations

from functools import partial

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from swift.base.entity import API_VERSIONS, EntityPath
from swift.cluster.clientspans import (
    HIDDEN_OBJECT,
    TRACEPARENT,
    ActiveSpans,
    Attributes,
    RequestSpan,
    method_attributes,
    node_attributes,
    span_name,
    text_value,
)
from swift.http import environkeys
from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.runtime.wsgi import Handle

#: Paths of a proxy without a name in them.
_PLAIN_PATHS = frozenset(("/info", "/healthcheck", "/auth/v1.0"))
_propagator = TraceContextTextMapPropagator()


class TracedRequests:
    """Passes requests to ``handle`` with a span for each."""

    def __init__(
        self,
        handle: Handle,
        tracer: Tracer,
        active: ActiveSpans,
        *,
        is_proxy: bool,
        trusts_parent: bool,
        has_object_names: bool,
    ):
        """With ``trusts_parent`` a request's span belongs to the trace that its header names."""
        self._handle = handle
        self._tracer = tracer
        self._active = active
        self._is_proxy = is_proxy
        self._trusts_parent = trusts_parent
        self._has_object_names = has_object_names

    def handle(self, request: Request) -> Response:
        """Return the response; what ``handle`` raises is raised."""
        context = Context()
        if self._trusts_parent and TRACEPARENT in request.headers:
            context = _propagator.extract({TRACEPARENT: request.headers[TRACEPARENT]}, context)
        method = request.method
        span = self._tracer.start_span(
            span_name(method, ""), context, SpanKind.SERVER, attributes=method_attributes(method)
        )
        active = RequestSpan(span, request)
        # As the client sent it; filters may change it.
        path = request.raw_path if span.is_recording() else ""
        self._active.add(active)
        try:
            response = self._handle(request)
        except HTTPError as error:
            error.response.on_response_end(partial(self._end, active, method, path, error.response))
            raise
        except BodyError as error:
            self._end(active, method, path, Response(error.status), 0, True)
            raise
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            self._end(active, method, path, Response(500), 0, True)
            raise
        response.on_response_end(partial(self._end, active, method, path, response))
        return response

    def _end(
        self, active: RequestSpan, method: str, path: str, response: Response, sent: int, complete: bool
    ) -> None:
        self._active.remove(active)
        span, request = active.span, active.request
        if span.is_recording():
            route, attributes = self._attributes(request, method, path)
            span.update_name(span_name(method, route))
            attributes["http.response.status_code"] = response.status
            attributes["http.request.body.size"] = request.body.received
            attributes["http.response.body.size"] = sent
            if route:
                attributes["http.route"] = route
            span.set_attributes(attributes)
            _set_status(span, response.status, complete)
        span.end()

    def _attributes(self, request: Request, method: str, path: str) -> tuple[str, Attributes]:
        """Return the route and the attributes that are known at the end."""
        if self._is_proxy:
            route, attributes = self._client_attributes(request, path)
            transaction_id = request.env.get(environkeys.TRANS_ID)
        else:
            route, attributes = node_attributes(method, path, has_object_names=self._has_object_names)
            transaction_id = request.headers.get("x-trans-id")
        if transaction_id:
            attributes["swift.transaction_id"] = text_value(str(transaction_id))
        attributes["url.scheme"] = request.scheme
        if request.remote_addr:
            attributes["network.peer.address"] = request.remote_addr
        return route, attributes

    def _client_attributes(self, request: Request, path: str) -> tuple[str, Attributes]:
        call = request.env.get(environkeys.S3_CALL)
        attributes: Attributes = {}
        if self._has_object_names or path in _PLAIN_PATHS:
            attributes["url.path"] = text_value(path)
        if call:
            account, container, obj = call.get("account"), call.get("bucket"), call.get("key")
            route = "/{bucket}/{key}" if obj else "/{bucket}" if container else "/"
            if call.get("operation"):
                attributes["swift.s3.operation"] = text_value(call["operation"])
        else:
            # Filters that translate host names know it at the end.
            entity = Request("GET", path).entity or request.entity
            if entity is None or entity.version not in API_VERSIONS:
                return "", attributes
            version, (account, container, obj) = entity
            route = f"/{{version}}{_route(entity.path)}"
            shown = EntityPath(account, container, HIDDEN_OBJECT if obj else None)
            attributes.setdefault("url.path", text_value(f"/{version}{shown}"))
        names: dict[str, object] = {"swift.account": account, "swift.container": container}
        if self._has_object_names:
            names["swift.object"] = obj
        attributes |= {name: text_value(str(value)) for name, value in names.items() if value}
        return route, attributes


def _route(path: EntityPath) -> str:
    names = ("account", "container", "object")
    return "".join(f"/{{{name}}}" for name, value in zip(names, path, strict=True) if value is not None)


def _set_status(span: Span, status: int, complete: bool) -> None:
    """Set the span's status; an error of the client is none of the server's."""
    if status >= 500:
        error_type = str(status)
    elif status == 499 or not complete:
        error_type = "client_disconnected" if status == 499 else "incomplete_response"
    else:
        return
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))
