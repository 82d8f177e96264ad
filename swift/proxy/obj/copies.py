"""Replicated objects: every node gets the body as it comes (spec: proxy.md §11).

Every piece goes to all nodes before the next one is read, or into their lines (``proxy.obj.lines``); a node
that fails is dropped, and below a quorum the upload ends. The MD5 is computed here, in a thread beside the
sending, for the nodes that believe it (``wire.etagtrailer``).
"""

from __future__ import annotations

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
from swift.platform.buffers import Buffers
from swift.platform.fastcrc import crc32
from swift.proxy.context import ProxyContext
from swift.proxy.obj.coder import Coder, Upload, is_small
from swift.proxy.obj.documents import Documents, footers_of, wants_footers
from swift.proxy.obj.lines import UploadLines, lines_of
from swift.proxy.obj.sinks import Sink
from swift.proxy.obj.target import ObjectTarget
from swift.wire import etagtrailer

#: What is read from the client at once when it has sent as much.
PIECE_BYTES = 512 << 10
#: Memory that idle uploads leave for the next ones, in pieces.
KEPT_PIECES = 4
#: Smaller pieces are hashed on the event loop: handing them to a thread would cost more.
THREAD_BYTES = 128 << 10
#: So much of a buffer is copied when it goes into lines; with more in it the buffer itself does.
COPIED_BYTES = PIECE_BYTES // 2


def _nothing() -> None:
    pass


def stream_headers(length: int | None) -> HeaderMap:
    """How a body is framed towards nodes: in chunks, because trailers may follow it.

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
        """Take the next bytes; lets other threads run meanwhile."""
        self._md5.update(piece)
        self._sums.update(piece)

    def trailers(self) -> HeaderMap:
        """What nodes are told."""
        return etagtrailer.trailers(self._md5.hexdigest(), self._sums.digest())


class Pump:
    """Moves bodies from clients to nodes."""

    def __init__(self, size_max: int):
        self._size_max = size_max
        self._threads = ThreadPool(2, "md5")
        self._buffers = Buffers(PIECE_BYTES, KEPT_PIECES)

    def send(self, piece: bytes | memoryview, sinks: Sequence[Sink], need: int) -> None:
        """Send bytes to all sinks; raises ``HTTPError`` 503 when too few are left."""
        for sink in sinks:
            sink.send(piece)
        if sum(sink.alive for sink in sinks) < need:
            raise HTTPError(503)

    def move(
        self, body: RequestBody, sinks: Sequence[Sink], need: int, lines: UploadLines | None = None
    ) -> tuple[int, HeaderMap]:
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
            if lines is None:
                self.send(piece, sinks, need)
            if hashing is not None:
                hashing.wait()
            if lines is not None:
                # Hashed already: whoever has sent it last may have it filled again.
                buffer = self._queue(lines, buffer, size)
        # Not after an error: a thread may still hash what is in it.
        self._buffers.give(buffer)
        return received, {} if digests is None else digests.trailers()

    def _queue(self, lines: UploadLines, buffer: memoryview, size: int) -> memoryview:
        """Leave what was read in the lines; the buffer for what comes next."""
        if size <= COPIED_BYTES:
            lines.send(bytes(buffer[:size]), size, _nothing)
        else:
            lines.send(buffer[:size], PIECE_BYTES, partial(self._buffers.give, buffer))
            buffer = self._buffers.take()
        lines.await_room(PIECE_BYTES)
        return buffer

    def _hash(self, digests: Digests | None, piece: memoryview) -> Any:
        """Hash a piece; what to wait for before its buffer is used again, None when it is done."""
        if digests is None:
            return None
        if len(piece) < THREAD_BYTES:
            digests.update(piece)
            return None
        return green.spawn(self._threads.call, digests.update, piece)


class CopyUpload(Upload):
    """Moves one body, and footers if there are any, to its sinks."""

    def __init__(
        self,
        request: Request,
        documents: Documents | None,
        sinks: Sequence[Sink],
        need: int,
        pump: Pump,
        lines: UploadLines | None,
    ):
        super().__init__()
        self._request = request
        self._documents = documents
        self._sinks = sinks
        self._need = need
        self._pump = pump
        self._lines = lines

    def send(self) -> None:
        """See ``Upload``."""
        pump, documents = self._pump, self._documents
        if documents is not None:
            pump.send(documents.opening, self._sinks, self._need)
        self.size, trailers = pump.move(self._request.body, self._sinks, self._need, self._lines)
        self.received_etag = trailers.get(etagtrailer.ETAG, "")
        if documents is not None:
            self.footers = footers_of(self._request)
            pump.send(documents.closing({**self.footers, **trailers}), self._sinks, self._need)
        for sink in self._sinks:
            sink.finish(trailers=None if documents else trailers)


class CopyCoder(Coder):
    """Every node gets the object itself; a second round only for conditions."""

    def __init__(self, context: ProxyContext):
        self._context = context
        self._pump = Pump(context.limits.max_file_size)

    def documents(self, request: Request, *, is_conditional: bool) -> Documents | None:
        """See ``Coder``."""
        if not is_conditional and not wants_footers(request):
            return None
        brings_etag = not is_small(request, self._context)
        return Documents(commit=is_conditional, reserve=is_conditional, brings_etag=brings_etag)

    def frame(
        self,
        attempts: Sequence[HeaderMap],
        target: ObjectTarget,
        documents: Documents | None,
        length: int | None,
    ) -> None:
        """See ``Coder``."""
        framing = stream_headers(length) if documents is None else documents.headers(length)
        for headers in attempts:
            headers.update(framing)

    def start(
        self,
        request: Request,
        target: ObjectTarget,
        documents: Documents | None,
        sinks: Sequence[Sink],
        need: int,
    ) -> Upload:
        """See ``Coder``."""
        length = request.body.length
        lines = lines_of(self._context, target, sinks, need, length=length, unit=PIECE_BYTES, is_shared=True)
        return CopyUpload(request, documents, sinks, need, self._pump, lines)
