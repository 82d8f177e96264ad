"""Erasure coded uploads: from the client's bytes to archives on their way (spec: proxy.md §13).

The body is cut into segments; each gives every node one fragment. While one segment is on its way to the
nodes, the next one is coded and hashed in a thread and the one after it arrives. When the last fragment was
sent every node gets its footers and reports that its archive is on disk. When a quorum has reported, the
nodes are told to commit. Until then nothing of the upload can be read, and an upload that breaks off leaves
nothing behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from swift import green
from swift.base.checksum import chunk_size_for
from swift.base.etag import unquote_etag
from swift.ec.archive import ArchiveEncoder, Segmenter
from swift.green import ThreadPool
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError
from swift.proxy.context import ProxyContext
from swift.proxy.obj.commit.framing import Footers, MultipartFraming, footers_of, is_small
from swift.proxy.obj.commit.targets import UploadTarget
from swift.proxy.obj.location import WriteLocation
from swift.proxy.obj.scheme import (
    ETAG,
    LENGTH,
    PREFIX,
    SEGMENT_SIZE,
    THREAD_BYTES,
    Scheme,
    Schemes,
    match_object_etag,
)
from swift.proxy.obj.write.copies import Upload
from swift.proxy.obj.write.queues import SendQueues, make_send_queues
from swift.wire import etagtrailer

#: Fragments up to this size fit into socket buffers: they are sent to one node after the other.
SERIAL_BYTES = 16 << 10
OVERRIDE = fields.BACKEND_UPDATE_OVERRIDE


class ArchiveUpload(Upload):
    """Encodes one body and sends it to its targets."""

    def __init__(
        self,
        context: ProxyContext,
        threads: ThreadPool,
        request: Request,
        scheme: Scheme,
        framing: MultipartFraming,
        targets: Sequence[UploadTarget],
        need: int,
    ):
        super().__init__()
        length = request.body.length
        archive_length = None if length is None else scheme.archive_length(length)
        chunk = chunk_size_for(archive_length) if any(target.accepts_etag for target in targets) else None
        self._encoder = ArchiveEncoder(scheme.codec, sums_chunk=chunk)
        self._request = request
        self._scheme = scheme
        self._framing = framing
        self._targets = targets
        self._need = need
        self._threads = threads
        #: The send queues, when nodes are not kept in step.
        self.queues: SendQueues | None = None
        self._coding: green.Task[list[bytes]] | None = None
        self._opening = framing.opening
        self._chunk_bytes = context.settings.client_chunk_size
        self._size_max = context.limits.max_file_size
        self._check()

    def _check(self) -> None:
        """Raise ``HTTPError`` 503 when too few nodes are left."""
        if sum(target.alive for target in self._targets) < self._need:
            raise HTTPError(503)

    # the object

    def send(self) -> None:
        body, segmenter, received = self._request.body, Segmenter(self._scheme.geometry.segment_size), 0
        while piece := body.read(min(self._chunk_bytes, segmenter.missing)):
            received += len(piece)
            if received > self._size_max:
                raise HTTPError(413, "Your request is too large.", content_type=TEXT)
            for segment in segmenter.feed(piece):
                self._push(segment)
        rest = segmenter.rest()
        last = self._push(rest, is_last=True) if rest else self._take_coded()
        self.size, self.etag = self._encoder.size, self._encoder.etag
        self.footers = self._make_footers()
        self._send_fragments(last, self._closings())

    def _push(self, segment: bytes, *, is_last: bool = False) -> list[bytes]:
        """Start to encode a segment and send the one before; return the fragments of the last segment."""
        before = self._take_coded()
        if len(segment) >= THREAD_BYTES:
            self._coding = green.spawn(self._threads.call, self._encoder.encode, segment)
            if before:
                self._send_fragments(before)
            return self._take_coded() if is_last else []
        if before:
            self._send_fragments(before)
        fragments = self._encoder.encode(segment)
        if is_last:
            return fragments
        self._send_fragments(fragments)
        return []

    def _take_coded(self) -> list[bytes]:
        """Wait for the fragments that are being encoded and return them."""
        task, self._coding = self._coding, None
        fragments: list[bytes] = task.wait() if task is not None else []
        return fragments

    def _send_fragments(self, fragments: list[bytes], closings: dict[int, bytes] | None = None) -> None:
        """Send each node its fragment, and with ``closings`` the end of the body."""
        opening, self._opening = self._opening, b""
        calls = []
        for target in self._targets:
            if target.alive:
                pieces = (opening, fragments[target.index] if fragments else b"")
                if closings is None:
                    calls.append(partial(target.send, *pieces))
                else:
                    calls.append(partial(target.finish, *pieces, closings[target.index]))
        if self.queues is None and fragments and len(fragments[0]) > SERIAL_BYTES:
            green.gather(calls)
        else:
            for call in calls:
                call()
        if self.queues is not None and closings is None:
            self.queues.await_room(sum(map(len, fragments)))
        self._check()

    # the footers

    def _make_footers(self) -> Footers:
        """Return the footers that all archives share; raise 422 if the body does not match the client's
        ETag.
        """
        encoder = self._encoder
        added = footers_of(self._request)
        expected = added.pop("etag", None) or self._request.headers.get("etag")
        if expected and unquote_etag(expected) != encoder.etag:
            raise HTTPError(422)
        footers = Footers({OVERRIDE + "etag": encoder.etag, OVERRIDE + "size": str(encoder.size)})
        footers.update({name: value for name, value in added.items() if not name.startswith(PREFIX)})
        footers.update(
            {
                ETAG: encoder.etag,
                LENGTH: str(encoder.size),
                SEGMENT_SIZE: str(self._scheme.geometry.segment_size),
                PREFIX + "scheme": self._scheme.codec.scheme,
            }
        )
        return footers

    def _closings(self) -> dict[int, bytes]:
        """Return the end of each archive's document by fragment index."""
        return {
            index: self._framing.closing(
                {**self.footers, PREFIX + "frag-index": str(index), **self._etag_footers(index)}
            )
            for index in {target.index for target in self._targets}
        }

    def _etag_footers(self, index: int) -> HeaderMap:
        """Return an archive's MD5, and the trailers that let a node trust it."""
        etag, sums = self._encoder.archive_etag(index), self._encoder.archive_sums(index)
        return {"etag": etag, **(etagtrailer.trailers(etag, sums) if sums else {})}


class ArchiveCoder:
    """Every node gets a fragment archive, always in two rounds."""

    def __init__(self, context: ProxyContext, schemes: Schemes):
        self._context = context
        self._schemes = schemes

    def framing(self, request: Request, *, is_conditional: bool) -> MultipartFraming:
        return MultipartFraming(
            commit=True,
            reserve=is_conditional,
            offers_etag=not is_small(request, self._context.settings.client_chunk_size),
        )

    def frame(
        self,
        attempts: Sequence[HeaderMap],
        location: WriteLocation,
        framing: MultipartFraming | None,
        length: int | None,
    ) -> None:
        assert framing is not None, "archives have footers"
        scheme = self._schemes.for_policy(location.policy)
        sent = framing.headers(None if length is None else scheme.archive_length(length))
        for headers in attempts:
            headers.pop("etag", None)
            if framing.reserve:
                match_object_etag(headers)
            headers.update(sent)

    def start(
        self,
        request: Request,
        location: WriteLocation,
        framing: MultipartFraming | None,
        targets: Sequence[UploadTarget],
        need: int,
    ) -> Upload:
        assert framing is not None, "archives have footers"
        scheme, context = self._schemes.for_policy(location.policy), self._context
        assign_indexes(targets, scheme.ec.fragments, scheme.ec.duplication)
        length = None if request.body.length is None else scheme.archive_length(request.body.length)
        unit = scheme.geometry.fragment_size
        queues = make_send_queues(context, location, targets, need, length=length, unit=unit, is_shared=False)
        upload = ArchiveUpload(context, self._schemes.threads, request, scheme, framing, targets, need)
        upload.queues = queues
        return upload


def assign_indexes(targets: Sequence[UploadTarget], fragments: int, copies: int) -> None:
    """Assign each node an archive: primaries by their ring index, handoffs the indexes most missing."""
    missing = Counter(dict.fromkeys(range(fragments), copies))
    handoffs = []
    for target in targets:
        if target.node.index is None:
            handoffs.append(target)
        else:
            target.index = target.node.index % fragments
            missing[target.index] -= 1
    for target in handoffs:
        target.index = max(range(fragments), key=lambda index: (missing[index], -index))
        missing[target.index] -= 1
