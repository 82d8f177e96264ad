"""Upload targets: nodes that take a copy or an archive, in one round or in several.

``open_targets`` finds as many as an upload needs. A failure of any kind takes a target out; the sender sees
which are left. In one round the body is followed by the final response. In two (spec: proxy.md §13) the node
first says that it has everything, and, of a conditional write, for whom it reserved the object
(``wire.reservation``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from swift import green
from swift.base.timestamp import ZERO
from swift.cluster.collect import Arrivals, collect
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.cluster.transport import BackendResponse, Exchange, NodeRequest, TransportError
from swift.http.headers import HeaderMap
from swift.proxy.backend import Backends
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.proxy.obj.location import ObjectLocation
from swift.ring.device import Node
from swift.wire import etagtrailer, reservation


class TargetQueue(Protocol):
    """The queue of bytes for one target; ``queues.SendQueue`` is one."""

    def put(self, send: Callable[[], None], size: int, sent: Callable[[], None] | None = None) -> None:
        """Have ``send`` called when it is its turn, for ``size`` bytes, and ``sent`` afterwards."""

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
        "stored",
        "reserves",
        "held",
        "holder",
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
        #: Which archive it is; decided when all nodes are known.
        self.index = -1
        self.alive = True
        #: A green thread reads the answer, and ends the exchange however that goes.
        self.awaited = False
        #: The node has what it needs and waits for the confirmation.
        self.stored = False
        #: The node can reserve the object to one writer.
        self.reserves = reservation.is_offered(exchange.continue_headers)
        #: It has reserved it for us; always, where it knows no reservations.
        self.held = False
        #: The other writer that it reserved it for, zero when it is unknown.
        self.holder = ZERO
        #: The version that the node knows, or judged the condition by; None when it does not say.
        self.predecessor = reservation.predecessor_of(exchange.continue_headers)
        #: The final answer that came instead of waiting for the confirmation.
        self.refusal: BackendResponse | None = None
        #: The first stage went with the head.
        self.is_sent = is_sent
        #: What is sent waits here until the node takes it; None: the sender waits.
        self.queue: TargetQueue | None = None
        self._exchange = exchange
        self._backends = backends

    @property
    def trusts(self) -> bool:
        """Return True if the node believes our MD5."""
        return etagtrailer.is_offered(self._exchange.continue_headers)

    def _failed(self, error: TransportError) -> None:
        self.alive = False
        self._backends.failed(self.node, error, self.headers)

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
        """Send the last bytes and the end of a body, with trailers for a node that believes our MD5."""
        self.send(*pieces)
        if self.queue is None:
            self._finish(trailers)
        else:
            self.queue.put(partial(self._finish, trailers), 0)

    def _finish(self, trailers: HeaderMap | None) -> None:
        if not self.alive:
            return
        try:
            self._exchange.finish(trailers if trailers is not None and self.trusts else None)
        except TransportError as error:
            self._failed(error)

    def _end_queue(self) -> None:
        """Everything was sent that waited; from now on the sender waits."""
        queue, self.queue = self.queue, None
        if queue is not None:
            queue.end()

    def await_stored(self) -> None:
        """Wait until the node has everything of this round: ``stored`` and ``held``, or ``refusal``."""
        self._end_queue()
        if not self.alive:
            return
        try:
            early = self._exchange.wait_continue()
        except TransportError as error:
            self._failed(error)
            return
        if early is None:
            self.stored = True
            said = self._exchange.continue_headers
            self.held = not self.reserves or reservation.is_held(said)
            self.holder = reservation.holder_of(said)
            self.predecessor = reservation.predecessor_of(said)
            return
        self.alive = False
        self._backends.judge(self.node, early.status)
        with suppress(TransportError):
            early.read()
        early.node, early.attempt = self.node, self.headers
        self.refusal = early

    def give_back(self, release: bytes) -> None:
        """Tell a node that reserved the object that it is free; whether it hears it is its own affair."""
        if self.alive and self.held and self.reserves:
            self.finish(release)

    def answer(self) -> BackendResponse | None:
        """The node's final answer, None when it fails."""
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
        """Drop the connection unless its answer is read, if late: what has no end is not stored."""
        if self.awaited:
            return
        if self.queue is not None:
            self.queue.drop()
        self._exchange.abort()

    def leave(self) -> None:
        """Go on without this node."""
        self.alive = False
        self.abandon()

    def __repr__(self) -> str:
        return f"<UploadTarget #{self.index} {self.node.key} {'alive' if self.alive else 'failed'}>"


def _to_any(_node: Node) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Opening:
    """The requests that find the targets of one write."""

    backends: Backends
    location: ObjectLocation
    nodes: NodeIterator
    #: The framing of its stages; None when the body is just the object.
    framing: MultipartFraming | None
    method: str = "PUT"
    #: A whole first stage, sent with the head to nodes that ``may_be_sent`` says take it.
    stage: bytes = b""
    may_be_sent: Callable[[Node], bool] = _to_any
    #: Nodes that have no room for it.
    full: list[Node] = field(default_factory=list)

    def open(self, headers: HeaderMap) -> UploadTarget | BackendResponse | None:
        """The next node that is ready for the body, or a final answer that came instead."""
        backends, location = self.backends, self.location
        headers["expect"] = "100-continue"
        for node in self.nodes:
            ahead = self.stage if self.stage and self.may_be_sent(node) else b""
            asked = headers if node.index is not None else without_match(headers)
            path = f"/{node.device}/{location.part}{location.path.quoted}"
            request = NodeRequest(node, self.method, path, asked, ahead, backends.write_timeouts)
            exchange = backends.stream(request)
            if exchange is None or backends.fails_over(node, exchange, self.nodes):
                continue
            try:
                early = exchange.wait_continue()
            except TransportError as error:
                backends.failed(node, error, headers)
                continue
            if early is None:
                backends.ready(node)
                if self.framing is None or self.framing.understood(exchange.continue_headers):
                    target = UploadTarget(node, exchange, headers, backends, is_sent=bool(ahead))
                    if self.stage:
                        backends.remember_reserving(node, target.reserves)
                    return target
                exchange.abort()
                backends.failed(node, "the node does not take such uploads", headers)
                continue
            backends.judge(node, early.status)
            exchange.abort()
            if early.status == 507:
                self.full.append(node)
            if early.status < 500:
                early.node, early.attempt = node, headers
                if not backends.refuses_date(node, early, self.nodes):
                    return early
        return None


def without_match(headers: HeaderMap) -> HeaderMap:
    """Return the headers for a handoff, which may not have the version that a condition is about."""
    return {name: value for name, value in headers.items() if name not in reservation.ABOUT_VERSION}


def open_targets(
    opening: Opening, attempts: Sequence[HeaderMap], need: int
) -> tuple[list[UploadTarget], list[BackendResponse]]:
    """Open a node for every attempt at once: those that take the body, and what others answered instead.

    Avoided nodes are asked only when fewer than ``need`` answered otherwise.
    """
    nodes = opening.nodes
    nodes.asks_avoided = False
    opened = green.gather([partial(opening.open, headers) for headers in attempts])
    missing = [i for i, found in enumerate(opened) if found is None]
    if len(opened) - len(missing) < need:
        nodes.asks_avoided = True
        late = green.gather([partial(opening.open, attempts[i]) for i in missing])
        for i, found in zip(missing, late, strict=True):
            opened[i] = found
    targets = [found for found in opened if isinstance(found, UploadTarget)]
    return targets, [found for found in opened if isinstance(found, BackendResponse)]


def final_answers(targets: Sequence[UploadTarget], need: int, grace_s: float) -> list[BackendResponse]:
    """Return the responses of nodes that were sent all of a body; ``need`` that agree are enough."""
    arrivals: Arrivals[BackendResponse | None] = Arrivals()
    for target in targets:
        if target.alive:
            target.awaited = True
            arrivals.start(target.answer, otherwise=None)
    decider = WriteQuorum(len(targets), need)
    answers = []
    for answer in collect(arrivals, decider, grace_s=grace_s):
        if answer is not None:
            answers.append(answer)
            decider.add(answer.status)
    return answers
