"""One erasure coded upload: from the client's bytes to archives on their way (spec: proxy.md §13)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from swift import green
from swift.base.etag import unquote_etag
from swift.ec.archive import ArchiveEncoder, Segmenter
from swift.http import fields
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError
from swift.platform.threads import ThreadPool
from swift.proxy.obj.documents import Documents, Footers, footers_of
from swift.proxy.obj.ec.scheme import ETAG, LENGTH, PREFIX, SEGMENT_SIZE, THREAD_BYTES, Scheme
from swift.proxy.obj.staged import StagedSink

#: Fragments up to this size fit into socket buffers: they are sent to one node after the other.
SERIAL_BYTES = 16 << 10
OVERRIDE = fields.BACKEND_UPDATE_OVERRIDE


class ArchiveUpload:
    """Moves one body to its sinks; below ``need`` of them it ends with 503."""

    def __init__(
        self,
        request: Request,
        scheme: Scheme,
        documents: Documents,
        sinks: Sequence[StagedSink],
        need: int,
        threads: ThreadPool,
    ):
        self.encoder = ArchiveEncoder(scheme.codec)
        #: What filters added, and what the container is told; known after ``send``.
        self.footers = Footers()
        self._request = request
        self._scheme = scheme
        self._documents = documents
        self._sinks = sinks
        self._need = need
        self._threads = threads
        self._coding: green.Task | None = None
        self._opening = documents.opening

    def check(self) -> None:
        """Raise ``HTTPError`` 503 when too few nodes are left."""
        if sum(sink.alive for sink in self._sinks) < self._need:
            raise HTTPError(503)

    # the object

    def send(self, chunk_bytes: int, size_max: int) -> None:
        """Send body and footers; raises ``HTTPError`` 413, 422 or 503 and body errors."""
        body, segmenter, received = self._request.body, Segmenter(self._scheme.geometry.segment_size), 0
        while piece := body.read(min(chunk_bytes, segmenter.missing)):
            received += len(piece)
            if received > size_max:
                raise HTTPError(413, "Your request is too large.", content_type=TEXT)
            for segment in segmenter.feed(piece):
                self._push(segment)
        rest = segmenter.rest()
        last = self._push(rest, is_last=True) if rest else self._coded()
        self.footers = self._make_footers()
        self._spread(last, self._closings())

    def _push(self, segment: bytes, *, is_last: bool = False) -> list[bytes]:
        """Begin to code a segment and send the one before; the fragments of the last one."""
        before = self._coded()
        if len(segment) >= THREAD_BYTES:
            self._coding = green.spawn(self._threads.call, self.encoder.encode, segment)
            if before:
                self._spread(before)
            return self._coded() if is_last else []
        if before:
            self._spread(before)
        fragments = self.encoder.encode(segment)
        if is_last:
            return fragments
        self._spread(fragments)
        return []

    def _coded(self) -> list[bytes]:
        """The fragments that are being made."""
        task, self._coding = self._coding, None
        fragments: list[bytes] = task.wait() if task is not None else []
        return fragments

    def _spread(self, fragments: list[bytes], closings: dict[int, bytes] | None = None) -> None:
        """Send each node its fragment, and with ``closings`` the end of the body."""
        opening, self._opening = self._opening, b""
        calls = []
        for sink in self._sinks:
            if sink.alive:
                pieces = (opening, fragments[sink.index] if fragments else b"")
                if closings is None:
                    calls.append(partial(sink.send, *pieces))
                else:
                    calls.append(partial(sink.finish, *pieces, closings[sink.index]))
        if fragments and len(fragments[0]) > SERIAL_BYTES:
            green.gather(calls)
        else:
            for call in calls:
                call()
        self.check()

    # the footers

    def _make_footers(self) -> Footers:
        """The footers that all archives share; 422 when the body is not what the client meant."""
        encoder = self.encoder
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
        """Index → the end of an archive's document."""
        return {
            index: self._documents.closing(
                {**self.footers, PREFIX + "frag-index": str(index), "etag": self.encoder.archive_etag(index)}
            )
            for index in {sink.index for sink in self._sinks}
        }
