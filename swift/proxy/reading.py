"""GET and HEAD: the search for a good source among the nodes (spec: proxy.md §10).

``SourceSearch`` requests nodes one after the other, or overlapping with ``concurrent_gets`` and while one is
unresponsive, and evaluates their responses. It works for every kind of entity.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from swift.base.entity import EntityPath
from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.cluster.collect import ResultQueue, Until, collect
from swift.cluster.health import SUSPECT_S
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import half
from swift.cluster.transport import (
    BackendResponse,
    Exchange,
    NodeRequest,
    Timeouts,
    TransportError,
    replication_address,
)
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response, error_response
from swift.proxy.backend import BUSY, Backends
from swift.proxy.results import (
    best_response,
    client_headers,
    client_response,
    has_timestamp,
    is_unreadable,
    with_deletion_time,
)
from swift.proxy.settings import ProxySettings
from swift.ring.device import Node

_TIMESTAMP_HEADERS = (
    fields.BACKEND_DATA_TIMESTAMP,
    fields.BACKEND_TIMESTAMP,
    "x-put-timestamp",
    "x-timestamp",
)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The request of a read: the request line, headers and the kind of entity."""

    method: str
    path: EntityPath
    part: int
    headers: HeaderMap
    query: str
    newest: bool
    timeouts: Timeouts
    use_replication: bool = False

    def request(self, node: Node, headers: HeaderMap | None = None) -> NodeRequest:
        """Return the request to a node, with other headers than the first request's if they are given."""
        path = f"/{node.device}/{self.part}{self.path.quoted}"
        return NodeRequest(
            replication_address(node) if self.use_replication else node,
            self.method,
            f"{path}?{self.query}" if self.query else path,
            self.headers if headers is None else headers,
            b"",
            self.timeouts,
        )

    def accepting_unconfirmed(self) -> ReadPlan:
        """Return the plan for nodes that may have an old state: all of them are compared."""
        headers = {**self.headers, fields.BACKEND_ACCEPT_UNCONFIRMED: "true"}
        return replace(self, headers=headers, newest=True)

    def request_rest(self, node: Node, byte_range: str) -> NodeRequest:
        """Return a request for other bytes of the same entity, without the first request's conditions."""
        return self.request(node, {**rest_headers(self.headers), "range": byte_range})

    @property
    def is_object(self) -> bool:
        """Objects have tombstones, ranges and resuming."""
        return self.path.obj is not None


def _timestamp(headers: HeaderMap) -> Timestamp:
    for name in _TIMESTAMP_HEADERS:
        stamp = _parsed(headers.get(name))
        if stamp is not None:
            return stamp
    return ZERO


def _parsed(text: str | None) -> Timestamp | None:
    """Return the timestamp in a header, None if it is none."""
    try:
        return Timestamp(text) if text else None
    except InvalidTimestamp:
        return None


def _version(headers: HeaderMap) -> tuple[Timestamp, Timestamp]:
    """Return what makes a response newer than another: its data, then metadata posted since."""
    return _timestamp(headers), _parsed(headers.get(fields.BACKEND_TIMESTAMP)) or ZERO


class FailedReads:
    """Responses of nodes with nothing to read, from which the client's is chosen (spec: proxy.md §10)."""

    def __init__(self, settings: ProxySettings, primary_count: int):
        self.responses: list[BackendResponse] = []
        self._suppressible = min(settings.rebalance_missing_suppression_count, primary_count - 1)
        #: A node has the entity and cannot read it.
        self._is_unreadable = False

    def add_failure(self) -> None:
        """Count a node without a response."""
        self.responses.append(BackendResponse(503, reason="Service Unavailable"))

    def add(self, response: BackendResponse, *, is_handoff: bool) -> int:
        """Add a failed response, which may become the client's; return the status that it counts as."""
        status = response.status if response.status >= 400 else 404
        body = b""
        with suppress(TransportError):
            body = response.stream.read_all()
        self._is_unreadable = self._is_unreadable or is_unreadable(response.headers)
        if not has_timestamp(response.headers):
            if is_handoff and (status == 404 or status >= 500):
                return status
            if status == 404 and self._suppressible > 0:
                self._suppressible -= 1
                return status
        reason = response.reason if status == response.status else ""
        self.responses.append(BackendResponse(status, response.headers, body, reason))
        return status

    def best(self, *, is_deleted: bool) -> Response:
        """Return the client's response.

        If the entity ``is_deleted``, one node that knows it is enough, as one copy would be. Otherwise an
        unreadable entity is 503.
        """
        found = best_response(self.responses, len(self.responses), half(len(self.responses)))
        if found.status >= 500 and is_deleted:
            deletions = [r for r in self.responses if r.status in (404, 410) and has_timestamp(r.headers)]
            found = client_response(deletions[0]) if deletions else found
        return (
            error_response(503) if found.status == 404 and self._is_unreadable and not is_deleted else found
        )


class SourceSearch:
    """Looks for the response to relay among the nodes of one partition."""

    def __init__(self, backends: Backends, settings: ProxySettings, plan: ReadPlan, nodes: NodeIterator):
        self._backends = backends
        self._settings = settings
        #: The request to the source that was found.
        self.plan = plan.accepting_unconfirmed() if plan.newest and plan.is_object else plan
        self._nodes = nodes
        self._primaries = nodes.primary_count
        #: Nodes that have the object, and lost records that may have been newer.
        self._unconfirmed: list[Node] = []
        #: Primaries that responded, even if they have nothing.
        self._responded = 0
        self._tombstone = ZERO
        self._failed = FailedReads(settings, nodes.primary_count)
        self.best: tuple[BackendResponse, Node] | None = None

    def find(self) -> tuple[BackendResponse, Node] | None:
        """Return the source to read from, or None; ``failure`` then has the response."""
        if self._settings.concurrent_gets and not self.plan.newest:
            self._find_concurrently(self._settings.concurrency_timeout, self._primaries)
        else:
            self._find_in_turn()
        if self.best is None:
            self._find_unconfirmed()
        # A read that resumes at another node may need slow nodes.
        self._nodes.uses_slow = True
        return self.best

    def _find_in_turn(self) -> None:
        """Request one node after the other, and the rest beside one that is unresponsive."""
        for node in self._nodes:
            request = self.plan.request(node)
            exchange = self._backends.stream(request)
            if exchange is not None and self._backends.is_late(node, exchange):
                self._backends.log_unresponsive(node)
                self._find_concurrently(SUSPECT_S, None, (node, exchange, request.headers))
                return
            response = None if exchange is None else self._backends.response(node, exchange, request.headers)
            if self._process_response(node, response):
                return

    def _find_unconfirmed(self) -> None:
        """Look for the newest of objects that may be old, when no other node has one."""
        nodes, self._unconfirmed = self._unconfirmed, []
        if nodes:
            self.plan = self.plan.accepting_unconfirmed()
            for node in nodes:
                self._process_response(node, self._backends.stream_response(self.plan.request(node)))

    def _request(self, node: Node) -> tuple[Node, BackendResponse | None]:
        return node, self._backends.stream_response(self.plan.request(node))

    def _await_response(
        self, node: Node, exchange: Exchange, headers: HeaderMap
    ) -> tuple[Node, BackendResponse | None]:
        return node, self._backends.response(node, exchange, headers)

    def _find_concurrently(
        self, pause_s: float, in_flight_max: int | None, late: tuple[Node, Exchange, HeaderMap] | None = None
    ) -> None:
        """Keep up to ``in_flight_max`` requests in flight, and send another every ``pause_s``.

        ``late`` is a request that was sent before, to a node that does not respond.
        """
        arrivals: ResultQueue[tuple[Node, BackendResponse | None]] = ResultQueue()
        in_flight: list[Node] = []

        def request_next() -> bool:
            has_room = in_flight_max is None or len(in_flight) < in_flight_max
            node = next(self._nodes, None) if has_room else None
            if node is None:
                return False
            in_flight.append(node)
            arrivals.start(self._request, node, default=(node, None))
            return True

        def is_over() -> bool:
            # When a majority has responded, an unresponsive node would only cost a timeout.
            return not self._nodes.uses_slow and all(map(self._backends.is_unresponsive, in_flight))

        if late is not None:
            in_flight.append(late[0])
            arrivals.start(self._await_response, *late, default=(late[0], None))
        request_next()
        for node, response in collect(arrivals, Until(is_over), pause_s=pause_s, on_quiet=request_next):
            in_flight.remove(node)
            if self._process_response(node, response):
                break
            request_next()
        arrivals.abandon(close_late_response)

    def _process_response(self, node: Node, response: BackendResponse | None) -> bool:
        """Process a response; return True when the search is over."""
        if response is None:
            self._failed.add_failure()
            return False
        if response.status == BUSY and fields.BACKEND_UNCONFIRMED in response.headers:
            response.stream.close()
            self._unconfirmed.append(node)
            return False
        is_handoff = node.index is None
        if not is_handoff and response.status < 500:
            self._responded += 1
            # When a majority has responded, an avoided node would only cost a timeout.
            self._nodes.uses_slow = 2 * self._responded <= self._primaries
        if self._is_good(response):
            if not self._tombstone or _timestamp(response.headers) >= self._tombstone:
                return self._update_best(response, node)
            response.stream.close()
            return False
        self._process_failure(response, is_handoff)
        return False

    def _is_good(self, response: BackendResponse) -> bool:
        if response.headers.get("x-put-timestamp") == "0":
            return False
        return 200 <= response.status < 400 or (response.status == 416 and self.plan.is_object)

    def _update_best(self, response: BackendResponse, node: Node) -> bool:
        if not self.plan.newest:
            self.best = (response, node)
            return True
        if self.best is None:
            self.best = (response, node)
        elif _version(response.headers) > _version(self.best[0].headers):
            self.best[0].stream.close()
            self.best = (response, node)
        else:
            response.stream.close()
        return False

    def _process_failure(self, response: BackendResponse, is_handoff: bool) -> None:
        status = self._failed.add(response, is_handoff=is_handoff)
        if status == 404 and self.plan.is_object and has_timestamp(response.headers):
            self._discard_older_than(_parsed(response.headers.get(fields.BACKEND_TIMESTAMP)) or ZERO)

    def _discard_older_than(self, tombstone: Timestamp) -> None:
        self._tombstone = max(self._tombstone, tombstone)
        if self.best is not None and _timestamp(self.best[0].headers) < self._tombstone:
            self.best[0].stream.close()
            self.best = None

    def failure(self) -> Response:
        """Return the response when no source was found."""
        return with_deletion_time(self._failed.best(is_deleted=bool(self._tombstone)), self._failed.responses)


def close_late_response(arrival: tuple[Node, BackendResponse | None]) -> None:
    """Close a source that arrives after the search is over."""
    _node, response = arrival
    if response is not None:
        response.stream.close()


def rest_headers(headers: HeaderMap) -> HeaderMap:
    """Return the headers of a request for other bytes of the same entity, without conditions."""
    return {
        name: value
        for name, value in headers.items()
        if name != fields.BACKEND_IGNORE_RANGE and not name.startswith("if-")
    }


def source_response(response: BackendResponse) -> Response:
    """Return the client's response head for a source; small bodies are already inside."""
    headers = client_headers(response.headers)
    headers["accept-ranges"] = "bytes"
    for name in ("content-length", "content-type"):
        if name in response.headers:
            headers[name] = response.headers[name]
    whole = response.stream.remaining_bytes
    return Response(
        response.status, headers, response.stream if whole is None else whole, reason=response.reason or None
    )
