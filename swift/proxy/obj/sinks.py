"""Moving the body of an upload to several nodes at once.

Every piece goes to all nodes before the next one is read; a node that fails is dropped, and below a quorum
the upload ends. The MD5 is computed here, in a thread beside the sending, for the nodes that believe it
(``wire.etagtrailer``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import md5
from typing import Any, TypeVar

from swift import green
from swift.base.checksum import ChunkSums, chunk_size_for
from swift.cluster.fanout import Answer
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import Exchange, TransportError
from swift.http import fields
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.response import TEXT, HTTPError
from swift.platform.buffers import Buffers
from swift.platform.threads import ThreadPool
from swift.proxy.backend import Backends
from swift.ring.device import Node
from swift.wire import etagtrailer

#: What is read from the client at once when it has sent as much.
PIECE_BYTES = 512 << 10
#: Memory that idle uploads leave for the next ones, in pieces.
KEPT_PIECES = 4
#: Smaller pieces are hashed on the event loop: handing them to a thread would cost more.
THREAD_BYTES = 128 << 10


T = TypeVar("T")


def open_all(
    open_one: Callable[[HeaderMap], T | None], attempts: Sequence[HeaderMap], nodes: NodeIterator, need: int
) -> list[T | None]:
    """Open a node for every attempt at once; None where none is left.

    Avoided nodes are asked only when fewer than ``need`` were found otherwise.
    """
    nodes.asks_avoided = False
    opened = green.gather([partial(open_one, headers) for headers in attempts])
    missing = [i for i, found in enumerate(opened) if found is None]
    if len(opened) - len(missing) < need:
        nodes.asks_avoided = True
        late = green.gather([partial(open_one, attempts[i]) for i in missing])
        for i, found in zip(missing, late, strict=True):
            opened[i] = found
    return opened


def stream_headers(length: int | None) -> HeaderMap:
    """How a body is framed towards nodes: in chunks, because trailers may follow it.

    Its end then is explicit, so an upload that breaks off is never taken for a shorter one.
    """
    headers = {"transfer-encoding": "chunked", etagtrailer.OFFER: etagtrailer.CRC32}
    if length is not None:
        headers[fields.BACKEND_OBJ_CONTENT_LENGTH] = str(length)
    return headers


class Sink:
    """One node that takes a body."""

    __slots__ = ("node", "exchange", "headers", "alive", "awaited")

    def __init__(self, node: Node, exchange: Exchange, headers: HeaderMap):
        self.node = node
        self.exchange = exchange
        self.headers = headers
        self.alive = True
        #: A green thread reads the answer, and ends the exchange however that goes.
        self.awaited = False

    @property
    def trusts(self) -> bool:
        """Whether the node believes our MD5."""
        return etagtrailer.is_offered(self.exchange.continue_headers)

    def send(self, piece: bytes | memoryview, backends: Backends) -> None:
        """Send a piece; a failure takes this node out."""
        if not self.alive:
            return
        try:
            self.exchange.send(piece)
        except TransportError as error:
            self.alive = False
            backends.failed(self.node, error, self.headers)

    def finish(self, trailers: HeaderMap, backends: Backends) -> None:
        """End the body."""
        if not self.alive:
            return
        try:
            self.exchange.finish(trailers if self.trusts else None)
        except TransportError as error:
            self.alive = False
            backends.failed(self.node, error, self.headers)

    def answer(self, backends: Backends) -> Answer | None:
        """The node's final answer, None when it fails."""
        reply = backends.reply(self.node, self.exchange, self.headers)
        if reply is None:
            return None
        try:
            body = reply.body.read_all()
        except TransportError:
            return None
        return Answer(reply.status, reply.reason, reply.headers, body, self.node, self.headers)

    def abandon(self) -> None:
        """Drop the connection unless its answer is read, if late."""
        if not self.awaited:
            self.exchange.abort()


class Digests:
    """The MD5 and the chunk checksums of a body."""

    def __init__(self, length: int | None):
        self._md5 = md5(usedforsecurity=False)
        self._sums = ChunkSums(chunk_size_for(length))

    def update(self, piece: memoryview) -> None:
        """Take the next bytes; lets other threads run meanwhile."""
        self._md5.update(piece)
        self._sums.update(piece)

    def trailers(self) -> HeaderMap:
        """What nodes are told."""
        return etagtrailer.trailers(self._md5.hexdigest(), self._sums.digest())


class Pump:
    """Moves bodies from clients to nodes."""

    def __init__(self, backends: Backends, size_max: int):
        self._backends = backends
        self._size_max = size_max
        self._threads = ThreadPool(2, "md5")
        self._buffers = Buffers(PIECE_BYTES, KEPT_PIECES)

    def send(self, piece: bytes | memoryview, sinks: list[Sink], need: int) -> None:
        """Send bytes to all sinks; raises ``HTTPError`` 503 when too few are left."""
        for sink in sinks:
            sink.send(piece, self._backends)
        if sum(sink.alive for sink in sinks) < need:
            raise HTTPError(503)

    def move(self, body: RequestBody, sinks: list[Sink], need: int) -> tuple[int, HeaderMap]:
        """Send a body to all sinks; its size, and trailers for those that believe our MD5.

        Raises ``HTTPError`` 413 or 503 and body errors.
        """
        buffer = self._buffers.take()
        digests = Digests(body.length) if any(sink.trusts for sink in sinks) else None
        received = 0
        while size := body.read_into(buffer):
            received += size
            if received > self._size_max:
                raise HTTPError(413, "Your request is too large.", content_type=TEXT)
            piece = buffer[:size]
            hashing = self._hash(digests, piece)
            self.send(piece, sinks, need)
            if hashing is not None:
                hashing.wait()
        # Not after an error: a thread may still hash what is in it.
        self._buffers.give(buffer)
        return received, {} if digests is None else digests.trailers()

    def _hash(self, digests: Digests | None, piece: memoryview) -> Any:
        """Hash a piece; what to wait for before its buffer is used again, None when it is done."""
        if digests is None:
            return None
        if len(piece) < THREAD_BYTES:
            digests.update(piece)
            return None
        return green.spawn(self._threads.call, digests.update, piece)
