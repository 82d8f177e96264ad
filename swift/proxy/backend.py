"""One request to one node for the proxy: headers, timeouts, error limiting (spec: proxy.md §7, §9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swift.base.entity import EntityPath
from swift.base.truth import is_true
from swift.cluster.health import SUSPECT_S, UNRESPONSIVE_S, Probe
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import (
    BackendResponse,
    BrokenOff,
    Destination,
    Exchange,
    MalformedResponse,
    NodeRequest,
    NodeTimeouts,
    TimedOut,
    Timeouts,
    TransportError,
)
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.proxy.context import ProxyContext
from swift.proxy.settings import ProxySettings
from swift.ring.device import Node

#: Hop-by-hop and connection bound headers of the client that must not reach a backend, credentials of
#: container sync, which storage servers refuse, and traces, which they would believe.
_NOT_FORWARDED = frozenset(
    (
        "host",
        "connection",
        "keep-alive",
        "proxy-connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "transfer-encoding",
        "content-length",
        "http2-settings",
        "x-container-sync-auth",
        "x-container-sync-key",
        "traceparent",
        "tracestate",
    )
)

_BACKEND = fields.BACKEND + "-"
#: A node that works, but not for this request.
BUSY = 529


def backend_headers(context: ProxyContext, request: Request, *, transfer: bool) -> HeaderMap:
    """Return the headers of every backend request made for ``request``.

    With ``transfer`` all of the client's end-to-end headers go along (object requests, GET and HEAD),
    otherwise only ``X-Backend-*`` and X-Timestamp.
    """
    source = request.headers
    if transfer:
        headers = {name: value for name, value in source.items() if name not in _NOT_FORWARDED}
    else:
        headers = {name: value for name, value in source.items() if name.startswith(_BACKEND)}
    headers["x-timestamp"] = request.timestamp.internal
    headers["x-trans-id"] = request.env.get(environkeys.TRANS_ID, "-")
    headers["user-agent"] = context.agent
    headers["referer"] = f"{request.method} {request.url}"
    return headers


def hosts_and_devices(nodes: Sequence[Node]) -> tuple[str, str]:
    """Return hosts and devices as two lists in the form that object servers read."""
    if len(nodes) == 1:
        # The usual case.
        return nodes[0].key.rpartition("/")[0], nodes[0].device
    return (
        ",".join([node.key.rpartition("/")[0] for node in nodes]),
        ",".join([node.device for node in nodes]),
    )


def is_newest(headers: HeaderMap) -> bool:
    """Return True if the client requests the newest of all replicas."""
    return is_true(headers.get("x-newest"))


class Backends:
    """Sends requests to nodes and records their health.

    A response below 500 counts for a node. A failure or a response from 500 on counts against it, except that
    of a busy device.
    """

    def __init__(self, context: ProxyContext):
        self._context = context
        self._transport = context.transport
        #: Keys of the nodes that are known to make reservations (``wire.reservation``).
        self._reserving_nodes: set[str] = set()
        self._records_timings = any(
            settings.sorting_method == "timing"
            for settings in (context.settings, *context.policy_settings.values())
        )

    def read_timeouts(self, settings: ProxySettings, *, newest: bool) -> Timeouts:
        """Return the timeouts of a read; short ones if another node can take it over."""
        node_timeout_s = settings.node_timeout
        if not newest and settings.recoverable_node_timeout >= 0:
            node_timeout_s = settings.recoverable_node_timeout
        return NodeTimeouts(self._context.settings.conn_timeout, node_timeout_s)

    @property
    def write_timeouts(self) -> Timeouts:
        """The timeouts of every request but a read."""
        return self._context.settings

    def make_request(
        self, node: Node, part: int, method: str, path: EntityPath, headers: HeaderMap, query: str = ""
    ) -> NodeRequest:
        """Return a small request without a body to the node of an entity."""
        target = f"/{node.device}/{part}{path.quoted}"
        if query:
            target = f"{target}?{query}"
        return NodeRequest.with_length(node, method, target, headers, b"", self._context.settings)

    def stream(self, request: NodeRequest) -> Exchange | None:
        """Start an exchange; return None when the node cannot be reached, which counts against it."""
        node = request.node
        started = self._context.clock.monotonic()
        policy = request.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0")
        probe = Probe(node, request.path.partition("?")[0], policy)
        self._context.health.requested(node.key, started, probe)
        try:
            exchange = self._transport.stream(request)
        except TransportError as error:
            self.record_failure(node, error, request.headers)
            return None
        if self._records_timings:
            self._context.timings.record(node, self._context.clock.monotonic() - started)
        return exchange

    def is_unresponsive(self, node: Destination) -> bool:
        """Return True if the node has responded to nothing for a while."""
        return self._context.health.is_unresponsive(node.key)

    def is_late(self, node: Destination, exchange: Exchange) -> bool:
        """Wait for the beginning of a response; return True if the node is unresponsive meanwhile."""
        if exchange.wait_response_start(SUSPECT_S):
            return False
        self.suspect(node, is_first=True)
        while not exchange.wait_response_start(SUSPECT_S / 4):
            if self.is_unresponsive(node):
                return True
            self.suspect(node)
        return False

    def fails_over(self, node: Destination, exchange: Exchange, nodes: NodeIterator) -> bool:
        """Wait for the beginning of a response; return True if the node is unresponsive and others are left.

        The exchange has ended then; ``nodes`` gives the node again after the others.
        """
        if not self.is_late(node, exchange) or not nodes.defer(node):
            return False
        self.log_unresponsive(node)
        exchange.abort()
        return True

    def log_unresponsive(self, node: Destination) -> None:
        """Log that a request is sent to other nodes because one does not respond."""
        self._context.telemetry.log.error(
            f"ERROR {node.key} is unresponsive for {UNRESPONSIVE_S} s; trying other nodes first"
        )

    def suspect(self, node: Destination, *, is_first: bool = False) -> None:
        """Have a node probed, unless that was just done; ``is_first`` when a request begins to be late."""
        health = self._context.health
        (health.suspect_request if is_first else health.suspect)(node.key)

    def record_ready(self, node: Destination) -> None:
        """Record that a node waits for the body, which is a response."""
        self._context.health.responded(node.key)

    def response(self, node: Destination, exchange: Exchange, headers: HeaderMap) -> BackendResponse | None:
        """Wait for the response, its body as a stream; return None when it does not come."""
        try:
            response = exchange.response()
        except TransportError as error:
            self.record_failure(node, error, headers)
            return None
        self.record_status(node, response.status)
        if "date" in response.headers:
            self._context.clocks.compare(node.key, response.headers["date"])
        return response

    def stream_response(self, request: NodeRequest) -> BackendResponse | None:
        """Return the response to a request without a body to be sent; None when it does not come."""
        exchange = self.stream(request)
        return None if exchange is None else self.response(request.node, exchange, request.headers)

    def request(self, request: NodeRequest, nodes: NodeIterator | None = None) -> BackendResponse | None:
        """Return a whole small response.

        None for failures and 5xx, and for an unresponsive node, so that the next of ``nodes`` is tried.
        """
        node = request.node
        exchange = self.stream(request)
        if exchange is None or (nodes is not None and self.fails_over(node, exchange, nodes)):
            return None
        response = self.response(request.node, exchange, request.headers)
        if response is None:
            return None
        try:
            response.read()
        except TransportError as error:
            self.record_failure(node, error, request.headers)
            return None
        if response.status >= 500 or (nodes is not None and self.is_clock_behind(node, response, nodes)):
            return None
        return response

    def is_reserving(self, node: Destination) -> bool:
        """Return True if a node reported with its last response that it makes reservations."""
        return node.key in self._reserving_nodes

    def set_reserving(self, node: Destination, can_reserve: bool) -> None:
        """Record whether a node reported that it makes reservations."""
        if can_reserve:
            self._reserving_nodes.add(node.key)
        else:
            self._reserving_nodes.discard(node.key)

    def record_status(self, node: Destination, status: int) -> None:
        """Count a response's status for or against the node."""
        if status < 500:
            self._context.health.succeeded(node.key)
        elif status == BUSY:
            # Its device is overloaded now; the next request may use the node again.
            return
        elif status == 507:
            self._context.telemetry.log.error(f"507 Insufficient Storage: {node.key}")
            self._context.health.avoid(node.key)
        else:
            self._context.health.failed(node.key)

    def log_error(self, text: str, headers: HeaderMap) -> None:
        """Log an error of the request that ``headers`` were made for."""
        self._context.telemetry.log.error(f"ERROR {text}", txid=headers.get("x-trans-id"))

    def log_debug(self, text: Callable[[], object], headers: HeaderMap) -> None:
        """Log the result of ``text`` for the request of ``headers`` if debug logging is on."""
        log = self._context.telemetry.log
        if log.is_debug_enabled:
            log.debug(str(text()), txid=headers.get("x-trans-id"))

    def record_failure(self, node: Destination, error: TransportError | str, headers: HeaderMap) -> None:
        """Record that a node failed to respond properly."""
        # A node that sends a malformed response is reachable: one object's fault must not exclude the node.
        limited = False
        if isinstance(error, MalformedResponse):
            self._context.health.responded(node.key)
        else:
            slow, reached = isinstance(error, TimedOut), isinstance(error, str | BrokenOff)
            limited = self._context.health.failed(node.key, slow=slow, reached=reached)
        suffix = "; node is now error-limited" if limited else ""
        self._context.telemetry.log.error(
            f"ERROR with {node.key}: {error}{suffix}", txid=headers.get("x-trans-id")
        )

    def is_clock_behind(self, node: Destination, response: BackendResponse, nodes: NodeIterator) -> bool:
        """Return True if the node refuses a change because its clock is behind this proxy's."""
        ahead_s = response.headers.get(fields.BACKEND_TIMESTAMP_AHEAD)
        if ahead_s is None:
            return False
        nodes.clock_ahead_s = ahead_s
        self._context.telemetry.log.error(
            f"ERROR {node.key} refuses a change dated {ahead_s} s ahead of its clock; trying another node"
        )
        return True
