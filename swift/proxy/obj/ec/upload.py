"""One erasure coded upload in progress: from the client's bytes to confirmed archives (spec: proxy.md §13).

Each node has a green thread of its own once its data was sent: it waits until the archive is on disk, then
for the verdict over all nodes, and confirms. A node that is late for the quorum so still confirms its
archive, without anybody waiting for it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from swift import green
from swift.base.etag import unquote_etag
from swift.cluster.fanout import Answer
from swift.cluster.quorum import best_status
from swift.ec.archive import ArchiveEncoder, Segmenter
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError
from swift.platform.threads import ThreadPool
from swift.proxy.obj.documents import Documents, Footers, footers_of
from swift.proxy.obj.ec.scheme import ETAG, LENGTH, PREFIX, SEGMENT_SIZE, THREAD_BYTES, Scheme
from swift.proxy.obj.ec.sink import ArchiveSink
from swift.proxy.settings import ProxySettings

#: Fragments up to this size fit into socket buffers: they are sent to one node after the other.
SERIAL_BYTES = 16 << 10
OVERRIDE = "x-backend-container-update-override-"


class ArchiveUpload:
    """Moves one body to its sinks; below ``need`` of them it ends with 503."""

    def __init__(
        self,
        request: Request,
        scheme: Scheme,
        documents: Documents,
        sinks: Sequence[ArchiveSink],
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

    # the two phases

    def commit(self, settings: ProxySettings) -> list[Answer]:
        """Wait until a quorum stored its archives, confirm, and wait for a quorum of answers.

        Raises ``HTTPError`` when too few nodes stored theirs, none of which then counts: 503, or what a
        quorum refused the object with.
        """
        phases = _Phases([sink for sink in self._sinks if sink.alive], self._documents.confirmation)
        try:
            if phases.count_stored(self._need) < self._need:
                raise phases.refusal(self._need)
            phases.confirmed = True
        finally:
            phases.verdict.set()
        return phases.answers(self._need, settings.post_quorum_timeout)


class _Phases:
    """The end of an upload: one green thread a node, and what they report."""

    def __init__(self, sinks: Sequence[ArchiveSink], confirmation: bytes):
        self.verdict = green.Event()
        self.confirmed = False
        self._confirmation = confirmation
        self._reports = green.Mailbox()
        self._stored_waiting = self._answers_waiting = len(sinks)
        self._answers: list[Answer] = []
        #: What nodes said instead of storing their archive.
        self._refusals: list[Answer] = []
        for sink in sinks:
            sink.awaited = True
            green.spawn_detached(self._finish, sink)

    def _finish(self, sink: ArchiveSink) -> None:
        answer: Answer | None = None
        try:
            refusal = sink.await_stored()
            if refusal is not None:
                self._refusals.append(refusal)
            self._reports.put(("stored", sink.stored))
            self.verdict.wait()
            if sink.stored and self.confirmed:
                sink.finish(self._confirmation)
                if sink.alive:
                    answer = sink.answer()
        finally:
            sink.awaited = answer is not None
            sink.abandon()
            self._reports.put(("answer", answer))

    def count_stored(self, need: int) -> int:
        """Nodes with an archive on disk, at most ``need``."""
        stored = 0
        while self._stored_waiting and stored < need:
            stored += bool(self._next_report(None)[1])
        return stored

    def refusal(self, need: int) -> HTTPError:
        """Why too few nodes stored their archive, once all have said so."""
        position = best_status([answer.status for answer in self._refusals], need)
        if position is None:
            return HTTPError(503)
        answer = self._refusals[position]
        return HTTPError(answer.status, answer.body.decode("latin-1"))

    def _next_report(self, deadline: float | None) -> tuple[str, Any]:
        kind, value = self._reports.get(deadline)
        if kind == "stored":
            self._stored_waiting -= 1
        else:
            self._answers_waiting -= 1
            if value is not None:
                self._answers.append(value)
        return kind, value

    def answers(self, need: int, grace_s: float) -> list[Answer]:
        """Final answers, the rest of them for a moment after a quorum agreed."""
        deadline = None
        while self._answers_waiting:
            try:
                self._next_report(deadline)
            except green.DeadlineExceeded:
                break
            agreed = sum(1 for answer in self._answers if answer.status // 100 == 2)
            if deadline is None and agreed >= need:
                deadline = time.monotonic() + grace_s
        return self._answers
