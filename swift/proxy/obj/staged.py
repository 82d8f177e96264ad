"""One node that takes an upload in two phases: open, data, footers, confirmation (spec: proxy.md §13).

Fragment archives go this way, and whole objects that must not replace what others wrote
(``wire.reservation``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from swift.base.timestamp import ZERO, Timestamp
from swift.cluster.fanout import Answer
from swift.cluster.transport import Exchange, TransportError
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.proxy.backend import Backends
from swift.proxy.obj.documents import Documents
from swift.proxy.obj.target import ObjectTarget
from swift.ring.device import Node
from swift.wire import reservation


class StagedSink:
    """An archive or object on its way to one node; a failure of any kind takes it out."""

    __slots__ = (
        "node",
        "index",
        "headers",
        "alive",
        "stored",
        "promises",
        "held",
        "holder",
        "predecessor",
        "refusal",
        "awaited",
        "_exchange",
        "_backends",
    )

    def __init__(self, node: Node, exchange: Exchange, headers: HeaderMap, backends: Backends):
        self.node = node
        #: Which archive it is; decided when all nodes are known.
        self.index = -1
        self.headers = headers
        self.alive = True
        #: The node has what it needs and waits for the confirmation.
        self.stored = False
        #: The node can promise the object to one writer.
        self.promises = reservation.is_offered(exchange.continue_headers)
        #: It has promised it to us; always, where it knows no promises.
        self.held = False
        #: The other writer that it promised it to, zero when nobody knows.
        self.holder = ZERO
        #: The version that the node judged the condition by; None when it does not say.
        self.predecessor: Timestamp | None = None
        #: The final answer that came instead of waiting for the confirmation.
        self.refusal: Answer | None = None
        #: A green thread reads the answer, and ends the exchange however that goes.
        self.awaited = False
        self._exchange = exchange
        self._backends = backends

    def _failed(self, error: TransportError) -> None:
        self.alive = False
        self._backends.failed(self.node, error, self.headers)

    def send(self, *pieces: bytes) -> None:
        """Send body bytes."""
        if not self.alive:
            return
        try:
            for piece in pieces:
                if piece:
                    self._exchange.send(piece)
        except TransportError as error:
            self._failed(error)

    def finish(self, *pieces: bytes) -> None:
        """Send the last bytes and the end of a body."""
        self.send(*pieces)
        if not self.alive:
            return
        try:
            self._exchange.finish()
        except TransportError as error:
            self._failed(error)

    def await_stored(self) -> None:
        """Wait until the node has everything of this round: ``stored`` and ``held``, or ``refusal``."""
        try:
            early = self._exchange.wait_continue()
        except TransportError as error:
            self._failed(error)
            return
        if early is None:
            self.stored = True
            said = self._exchange.continue_headers
            self.held = not self.promises or reservation.is_held(said)
            self.holder = reservation.holder_of(said)
            self.predecessor = reservation.predecessor_of(said)
            return
        self.alive = False
        self._backends.judge(self.node, early.status)
        try:
            text = early.body.read_all()
        except TransportError:
            text = b""
        self.refusal = Answer(early.status, early.reason, early.headers, text, self.node, self.headers)

    def give_back(self, release: bytes) -> None:
        """Tell a node that promised the object that it is free; whether it hears it is its own affair."""
        if self.alive and self.held and self.promises:
            self.finish(release)

    def answer(self) -> Answer | None:
        """The node's final answer, None when it fails."""
        reply = self._backends.reply(self.node, self._exchange, self.headers)
        if reply is None:
            return None
        try:
            body = reply.body.read_all()
        except TransportError:
            return None
        return Answer(reply.status, reply.reason, reply.headers, body, self.node, self.headers)

    def abandon(self) -> None:
        """Drop the connection unless its answer is read, if late: what has no end is not stored."""
        if not self.awaited:
            self._exchange.abort()

    def __repr__(self) -> str:
        return f"<StagedSink #{self.index} {self.node.key} {'alive' if self.alive else 'failed'}>"


def open_sink(
    backends: Backends,
    nodes: Iterator[Node],
    target: ObjectTarget,
    documents: Documents,
    headers: HeaderMap,
) -> StagedSink | Answer | None:
    """The next node that is ready for the body, or a final answer that came instead."""
    headers["expect"] = "100-continue"
    for node in nodes:
        exchange = backends.open(node, target.part, "PUT", target.path, headers)
        if exchange is None:
            continue
        try:
            early = exchange.wait_continue()
        except TransportError as error:
            backends.failed(node, error, headers)
            continue
        if early is None:
            if documents.understood(exchange.continue_headers):
                return StagedSink(node, exchange, headers, backends)
            exchange.abort()
            backends.failed(node, "the node does not take uploads in two phases", headers)
            continue
        backends.judge(node, early.status)
        exchange.abort()
        if early.status < 500:
            return Answer(early.status, early.reason, early.headers, node=node, attempt=headers)
    return None


def spread(sinks: Sequence[StagedSink], piece: bytes) -> None:
    """Send the same bytes to all; raises ``HTTPError`` 503 when none is left."""
    for sink in sinks:
        sink.send(piece)
    if not any(sink.alive for sink in sinks):
        raise HTTPError(503)


def assign_indexes(sinks: Sequence[StagedSink], fragments: int, copies: int) -> None:
    """Give each node its archive: primaries the one of their place, handoffs what is missing most."""
    missing = Counter(dict.fromkeys(range(fragments), copies))
    handoffs = []
    for sink in sinks:
        if sink.node.index is None:
            handoffs.append(sink)
        else:
            sink.index = sink.node.index % fragments
            missing[sink.index] -= 1
    for sink in handoffs:
        sink.index = max(range(fragments), key=lambda index: (missing[index], -index))
        missing[sink.index] -= 1
