"""Uploads of replicated objects: every node gets the body as it comes (spec: proxy.md §11).

``write.put`` opens nodes, evaluates their responses and responds to the client, for all uploads alike. A
coder frames the attempts and starts an ``Upload``, which moves one body: ``CopyCoder`` here,
``write.ec.ArchiveCoder`` for erasure coded objects. Every piece goes to all nodes before the next one is
read, or into their send queues (``write.queues``). A node that fails is dropped, and below a quorum the
upload ends. The MD5 is computed here, in a thread beside the sending, for the nodes that accept it
(``wire.etagtrailer``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from hashlib import md5
from typing import Any

from swift import green
from swift.base.checksum import ChunkSums, chunk_size_for
from swift.green import ThreadPool
from swift.http import fields
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError
from swift.platform.buffers import BufferPool
from swift.platform.fastcrc import crc32
from swift.proxy.context import ProxyContext
from swift.proxy.obj.commit.framing import Footers, MultipartFraming, footers_of, is_small, wants_footers
from swift.proxy.obj.commit.targets import UploadTarget
from swift.proxy.obj.location import WriteLocation
from swift.proxy.obj.write.queues import SendQueues, make_send_queues
from swift.wire import etagtrailer


class Upload(ABC):
    """One body on its way to its targets."""

    def __init__(self) -> None:
        #: Bytes of the object; known, like the rest, after ``send``.
        self.size = 0
        #: The object's MD5, empty where only nodes know it.
        self.etag = ""
        #: The MD5 that the proxy computed for nodes which do not compute it themselves.
        self.received_etag = ""
        #: Footers that filters added, and overrides for the container's row.
        self.footers = Footers()

    @abstractmethod
    def send(self) -> None:
        """Read the body and send every target its part, to the end of the first round.

        Raises ``HTTPError`` 413, 422, and 503 when too few targets are left; and body errors.
        """


#: Bytes that are read from the client at once, if it has sent as many.
READ_BYTES = 512 << 10
#: Buffers that finished uploads leave for the next ones.
SPARE_BUFFERS = 4
#: Smaller pieces are hashed on the event loop: handing them to a thread would cost more.
THREAD_BYTES = 128 << 10
#: Reads up to this size are copied into the queues; for larger ones the buffer itself is queued.
COPY_BYTES_MAX = READ_BYTES // 2


def _nothing() -> None:
    pass


def stream_headers(length: int | None) -> HeaderMap:
    """Return the headers of a body to nodes: in chunks, because trailers may follow it.

    Its end then is explicit, so an upload that breaks off is never taken for a shorter one.
    """
    headers = {"transfer-encoding": "chunked", etagtrailer.OFFER: etagtrailer.CRC32}
    if length is not None:
        headers[fields.BACKEND_OBJ_CONTENT_LENGTH] = str(length)
    return headers


class Digests:
    """The MD5 and the chunk checksums of a body."""

    def __init__(self, length: int | None):
        self._md5 = md5(usedforsecurity=False)
        self._sums = ChunkSums(chunk_size_for(length), crc32())

    def update(self, piece: memoryview) -> None:
        """Add the next bytes; other threads may run meanwhile."""
        self._md5.update(piece)
        self._sums.update(piece)

    def trailers(self) -> HeaderMap:
        """Return the trailers with the digests."""
        return etagtrailer.trailers(self._md5.hexdigest(), self._sums.digest())


class BodyFanout:
    """Moves bodies from clients to nodes."""

    def __init__(self, size_max: int):
        self._size_max = size_max
        self._threads = ThreadPool(2, "md5")
        self._buffers = BufferPool(READ_BYTES, SPARE_BUFFERS)

    def send(self, piece: bytes | memoryview, targets: Sequence[UploadTarget], need: int) -> None:
        """Send bytes to all targets; raises ``HTTPError`` 503 when too few are left."""
        for target in targets:
            target.send(piece)
        if sum(target.alive for target in targets) < need:
            raise HTTPError(503)

    def move(
        self, body: RequestBody, targets: Sequence[UploadTarget], need: int, queues: SendQueues | None = None
    ) -> tuple[int, HeaderMap]:
        """Send a body to all targets; return its size, and trailers for nodes that accept the proxy's MD5.

        Raises ``HTTPError`` 413 or 503 and body errors.
        """
        buffer = self._buffers.acquire()
        digests = Digests(body.length) if any(target.accepts_etag for target in targets) else None
        received = 0
        while size := body.read_into(buffer):
            received += size
            if received > self._size_max:
                raise HTTPError(413, "Your request is too large.", content_type=TEXT)
            piece = buffer[:size]
            hashing = self._hash(digests, piece)
            if queues is None:
                self.send(piece, targets, need)
            if hashing is not None:
                hashing.wait()
            if queues is not None:
                # The piece is hashed, so its buffer may be reused once it was sent to the last node.
                buffer = self._queue(queues, buffer, size)
        # Not after an error: a thread may still hash the buffer.
        self._buffers.release(buffer)
        return received, {} if digests is None else digests.trailers()

    def _queue(self, queues: SendQueues, buffer: memoryview, size: int) -> memoryview:
        """Put what was read into the queues; return the buffer for what comes next."""
        if size <= COPY_BYTES_MAX:
            queues.send(bytes(buffer[:size]), size, _nothing)
        else:
            queues.send(buffer[:size], READ_BYTES, partial(self._buffers.release, buffer))
            buffer = self._buffers.acquire()
        queues.await_room(READ_BYTES)
        return buffer

    def _hash(self, digests: Digests | None, piece: memoryview) -> Any:
        """Hash a piece; return a task to wait for before the buffer is reused, None when it is done."""
        if digests is None:
            return None
        if len(piece) < THREAD_BYTES:
            digests.update(piece)
            return None
        return green.spawn(self._threads.call, digests.update, piece)


class CopyUpload(Upload):
    """Moves one body, and footers if there are any, to its targets."""

    def __init__(
        self,
        request: Request,
        framing: MultipartFraming | None,
        targets: Sequence[UploadTarget],
        need: int,
        fanout: BodyFanout,
        queues: SendQueues | None,
    ):
        super().__init__()
        self._request = request
        self._framing = framing
        self._targets = targets
        self._need = need
        self._fanout = fanout
        self._queues = queues

    def send(self) -> None:
        fanout, framing = self._fanout, self._framing
        if framing is not None:
            fanout.send(framing.opening, self._targets, self._need)
        self.size, trailers = fanout.move(self._request.body, self._targets, self._need, self._queues)
        self.received_etag = trailers.get(etagtrailer.ETAG, "")
        if framing is not None:
            self.footers = footers_of(self._request)
            fanout.send(framing.closing({**self.footers, **trailers}), self._targets, self._need)
        for target in self._targets:
            target.finish(trailers=None if framing else trailers)


class CopyCoder:
    """Every node gets the object itself; a second round only for conditions."""

    def __init__(self, context: ProxyContext):
        self._context = context
        self._fanout = BodyFanout(context.limits.max_file_size)

    def framing(self, request: Request, *, is_conditional: bool) -> MultipartFraming | None:
        """Return the framing of a streamed upload; None when its body is just the object."""
        if not is_conditional and not wants_footers(request):
            return None
        offers_etag = not is_small(request, self._context.settings.client_chunk_size)
        return MultipartFraming(commit=is_conditional, reserve=is_conditional, offers_etag=offers_etag)

    def frame(
        self,
        attempts: Sequence[HeaderMap],
        location: WriteLocation,
        framing: MultipartFraming | None,
        length: int | None,
    ) -> None:
        """Set the headers of the body's framing; ``length`` is the object's, if it is known."""
        sent = stream_headers(length) if framing is None else framing.headers(length)
        for headers in attempts:
            headers.update(sent)

    def start(
        self,
        request: Request,
        location: WriteLocation,
        framing: MultipartFraming | None,
        targets: Sequence[UploadTarget],
        need: int,
    ) -> Upload:
        """Start an upload to these targets; with fewer than ``need`` it ends with 503."""
        length = request.body.length
        queues = make_send_queues(
            self._context, location, targets, need, length=length, unit=READ_BYTES, is_shared=True
        )
        return CopyUpload(request, framing, targets, need, self._fanout, queues)
