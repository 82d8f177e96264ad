"""Upload targets: nodes that take a copy or an archive, in one round or in several.

``open_targets`` finds as many as an upload needs. A failure of any kind excludes a target; the sender sees
which are left. In one round the body is followed by the final response. In two (spec: proxy.md §13) the node
first reports that it has everything. For a conditional write it also reports which writer it reserved the
object for (``wire.reservation``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from swift import green
from swift.base.timestamp import ZERO
from swift.cluster.collect import ResultQueue, collect
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.cluster.transport import BackendResponse, Exchange, NodeRequest, TransportError
from swift.http.headers import HeaderMap
from swift.proxy.backend import Backends
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.proxy.obj.location import WriteLocation
from swift.ring.device import Node
from swift.wire import etagtrailer, reservation


class TargetQueue(Protocol):
    """The queue of bytes for one target; ``queues.SendQueue`` is one."""

    def put(self, send: Callable[[], None], size: int, sent: Callable[[], None] | None = None) -> None:
        """Queue a call of ``send``, for ``size`` bytes; ``sent`` is called afterwards."""

    def end(self) -> None:
        """Wait until everything was sent; nothing may be put any more."""

    def drop(self) -> None:
        """Send nothing any more."""


class UploadTarget:
    """One node that takes a body."""

    __slots__ = (
        "node",
        "headers",
        "index",
        "alive",
        "awaited",
        "is_stored",
        "can_reserve",
        "is_reserved",
        "reserved_for",
        "predecessor",
        "refusal",
        "is_sent",
        "queue",
        "_exchange",
        "_backends",
    )

    def __init__(
        self,
        node: Node,
        exchange: Exchange,
        headers: HeaderMap,
        backends: Backends,
        *,
        is_sent: bool = False,
    ):
        self.node = node
        #: The attempt that it was opened for.
        self.headers = headers
        #: The index of its archive; decided when all nodes are known.
        self.index = -1
        self.alive = True
        #: A green thread reads the response, and ends the exchange in any case.
        self.awaited = False
        #: The node has what it needs and waits for the confirmation.
        self.is_stored = False
        #: The node can reserve the object to one writer.
        self.can_reserve = reservation.is_offered(exchange.continue_headers)
        #: It has reserved the object for us; always True where it makes no reservations.
        self.is_reserved = False
        #: The other writer that has the reservation, zero when it is unknown.
        self.reserved_for = ZERO
        #: The version that the node has, by which it evaluates the condition; None when it does not say.
        self.predecessor = reservation.parse_predecessor(exchange.continue_headers)
        #: The final response that came instead of waiting for the confirmation.
        self.refusal: BackendResponse | None = None
        #: The first stage was sent with the head.
        self.is_sent = is_sent
        #: Bytes wait here until the node takes them; None: the sender waits.
        self.queue: TargetQueue | None = None
        self._exchange = exchange
        self._backends = backends

    @property
    def accepts_etag(self) -> bool:
        """True if the node accepts the proxy's MD5."""
        return etagtrailer.is_offered(self._exchange.continue_headers)

    def _failed(self, error: TransportError) -> None:
        self.alive = False
        self._backends.record_failure(self.node, error, self.headers)

    def send(
        self,
        *pieces: bytes | memoryview,
        held: int | None = None,
        sent: Callable[[], None] | None = None,
    ) -> None:
        """Send body bytes.

        Those that go through a queue hold ``held`` bytes of memory, if that is more than their own, until
        ``sent`` is called.
        """
        if self.queue is None:
            self._send(pieces)
        else:
            size = sum(map(len, pieces)) if held is None else held
            self.queue.put(partial(self._send, pieces), size, sent)

    def _send(self, pieces: Sequence[bytes | memoryview]) -> None:
        if not self.alive:
            return
        try:
            for piece in pieces:
                if piece:
                    self._exchange.send(piece)
        except TransportError as error:
            self._failed(error)

    def finish(self, *pieces: bytes, trailers: HeaderMap | None = None) -> None:
        """Send the last bytes and the end of a body, with trailers for a node that accepts our MD5."""
        self.send(*pieces)
        if self.queue is None:
            self._finish(trailers)
        else:
            self.queue.put(partial(self._finish, trailers), 0)

    def _finish(self, trailers: HeaderMap | None) -> None:
        if not self.alive:
            return
        try:
            self._exchange.finish(trailers if trailers is not None and self.accepts_etag else None)
        except TransportError as error:
            self._failed(error)

    def _end_queue(self) -> None:
        """Wait until the queue is empty; from now on the sender waits for the node."""
        queue, self.queue = self.queue, None
        if queue is not None:
            queue.end()

    def await_stored(self) -> None:
        """Wait until the node has everything of this round; sets ``is_stored``, or ``refusal``."""
        self._end_queue()
        if not self.alive:
            return
        try:
            early = self._exchange.wait_continue()
        except TransportError as error:
            self._failed(error)
            return
        if early is None:
            self.is_stored = True
            reported = self._exchange.continue_headers
            self.is_reserved = not self.can_reserve or reservation.is_held(reported)
            self.reserved_for = reservation.parse_holder(reported)
            self.predecessor = reservation.parse_predecessor(reported)
            return
        self.alive = False
        self._backends.record_status(self.node, early.status)
        with suppress(TransportError):
            early.read()
        early.node, early.attempt = self.node, self.headers
        self.refusal = early

    def release(self, release: bytes) -> None:
        """Release a node's reservation; the node need not respond."""
        if self.alive and self.is_reserved and self.can_reserve:
            self.finish(release)

    def final_response(self) -> BackendResponse | None:
        """Return the node's final response, None when it fails."""
        self._end_queue()
        if not self.alive:
            return None
        response = self._backends.response(self.node, self._exchange, self.headers)
        if response is None:
            return None
        try:
            response.read()
        except TransportError:
            return None
        response.node, response.attempt = self.node, self.headers
        return response

    def abandon(self) -> None:
        """Drop the connection unless its response is awaited; an upload without an end is not stored."""
        if self.awaited:
            return
        if self.queue is not None:
            self.queue.drop()
        self._exchange.abort()

    def exclude(self) -> None:
        """Go on without this node."""
        self.alive = False
        self.abandon()

    def __repr__(self) -> str:
        return f"<UploadTarget #{self.index} {self.node.key} {'alive' if self.alive else 'failed'}>"


def _to_any(_node: Node) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class TargetOpener:
    """The requests that find the targets of one write."""

    backends: Backends
    location: WriteLocation
    nodes: NodeIterator
    #: The framing of its stages; None when the body is just the object.
    framing: MultipartFraming | None
    method: str = "PUT"
    #: A whole first stage, sent with the head to nodes for which ``may_send_stage`` is true.
    stage: bytes = b""
    may_send_stage: Callable[[Node], bool] = _to_any
    #: Nodes that have no room for it.
    full_nodes: list[Node] = field(default_factory=list)

    def open(self, headers: HeaderMap) -> UploadTarget | BackendResponse | None:
        """Return the next node that is ready for the body, or a final response that came instead."""
        backends, location = self.backends, self.location
        headers["expect"] = "100-continue"
        for node in self.nodes:
            ahead = self.stage if self.stage and self.may_send_stage(node) else b""
            sent_headers = headers if node.index is not None else without_version_conditions(headers)
            path = f"/{node.device}/{location.part}{location.path.quoted}"
            request = NodeRequest(node, self.method, path, sent_headers, ahead, backends.write_timeouts)
            exchange = backends.stream(request)
            if exchange is None or backends.fails_over(node, exchange, self.nodes):
                continue
            try:
                early = exchange.wait_continue()
            except TransportError as error:
                backends.record_failure(node, error, headers)
                continue
            if early is None:
                backends.record_ready(node)
                if self.framing is None or self.framing.is_supported_by(exchange.continue_headers):
                    target = UploadTarget(node, exchange, headers, backends, is_sent=bool(ahead))
                    if self.stage:
                        backends.set_reserving(node, target.can_reserve)
                    return target
                exchange.abort()
                backends.record_failure(node, "the node does not take such uploads", headers)
                continue
            backends.record_status(node, early.status)
            exchange.abort()
            if early.status == 507:
                self.full_nodes.append(node)
            if early.status < 500:
                early.node, early.attempt = node, headers
                if not backends.is_clock_behind(node, early, self.nodes):
                    return early
        return None


def without_version_conditions(headers: HeaderMap) -> HeaderMap:
    """Return the headers for a handoff, which may not have the version that a condition is about."""
    return {name: value for name, value in headers.items() if name not in reservation.VERSION_HEADERS}


def open_targets(
    opening: TargetOpener, attempts: Sequence[HeaderMap], need: int
) -> tuple[list[UploadTarget], list[BackendResponse]]:
    """Open a node for every attempt at once; return the targets, and the responses of other nodes.

    Avoided nodes are used only when fewer than ``need`` others responded.
    """
    nodes = opening.nodes
    nodes.uses_avoided = False
    opened = green.gather([partial(opening.open, headers) for headers in attempts])
    missing = [i for i, found in enumerate(opened) if found is None]
    if len(opened) - len(missing) < need:
        nodes.uses_avoided = True
        late = green.gather([partial(opening.open, attempts[i]) for i in missing])
        for i, found in zip(missing, late, strict=True):
            opened[i] = found
    targets = [found for found in opened if isinstance(found, UploadTarget)]
    return targets, [found for found in opened if isinstance(found, BackendResponse)]


def final_responses(targets: Sequence[UploadTarget], need: int, grace_s: float) -> list[BackendResponse]:
    """Wait for the final responses to complete bodies; ``need`` that agree are enough."""
    arrivals: ResultQueue[BackendResponse | None] = ResultQueue()
    for target in targets:
        if target.alive:
            target.awaited = True
            arrivals.start(target.final_response, default=None)
    decider = WriteQuorum(len(targets), need)
    responses = []
    for response in collect(arrivals, decider, grace_s=grace_s):
        if response is not None:
            responses.append(response)
            decider.add(response.status)
    return responses
