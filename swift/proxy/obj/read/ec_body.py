"""The bytes of an erasure coded object from its archives (spec: proxy.md §13).

``SpanReader`` reads segments of one upload in order: one fragment from each of k sources, decoded. A source
that fails, or sends an invalid fragment, is replaced by another archive of the same upload from any node that
may have one, starting at the segment where it failed. When one is late, another archive is read beside it,
and the first of both is used. ``SpanBody`` gives the wanted bytes of those segments and fetches some segments
ahead of the one being sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from swift import green
from swift.base.ranges import Span
from swift.cluster.collect import ResultQueue, Until, collect
from swift.cluster.fragmentsets import FoundArchive
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import TransportError
from swift.ec.codec import Codec, NotEnoughFragments
from swift.ec.fragment import BadFragment, check_fragment
from swift.ec.geometry import Geometry
from swift.http.body import BodyError, ResponseBody
from swift.http.readahead import PrefetchWindow
from swift.proxy.backend import Backends
from swift.proxy.obj.read.ec_search import (
    Archives,
    ArchiveSource,
    SourceFailed,
    found_archive_of,
    request_archive,
    unconditional_plan,
)
from swift.proxy.obj.read.plan import BYTES_MIN, TransferRates
from swift.proxy.reading import ReadPlan
from swift.ring.device import Node

#: A fragment is late after so many times the duration of a segment, and at least so many seconds.
LATE_FACTOR = 4.0
LATE_MIN_S = 0.5
#: A source that a download waited for during this share of its time was the bottleneck.
PACED_SHARE = 0.5
#: The weight of the last segment in the average duration of segments.
_LEARN = 0.2


@dataclass(frozen=True, slots=True)
class _FragmentRead:
    """A fragment from a source; ``data`` is None when the source failed and was closed."""

    index: int
    source: ArchiveSource
    data: bytes | None


class ArchiveFinder:
    """Opens archives of one upload at any position."""

    def __init__(
        self,
        backends: Backends,
        plan: ReadPlan,
        nodes: NodeIterator,
        chosen: Archives,
        pending: Iterable[Node] = (),
    ):
        self.backends = backends
        self.headers = plan.headers
        self.timestamp = chosen.timestamp
        self._plan = unconditional_plan(plan)
        self._nodes = nodes
        self._etag = chosen.etag
        known = [*chosen.members.values(), *chosen.spares]
        #: Nodes that are known to have an archive of this upload.
        self._holders = [archive.source.node for archive in known]
        #: Nodes that were requested once and responded too late.
        self._pending = list(pending)
        self._last_resort = [source.node for source, _ in chosen.listed_sources]

    def candidates(self, busy: Iterable[Node]) -> Iterator[Node]:
        """Yield nodes to request, the best first: holders, those not yet requested, then those with
        several archives.
        """
        taken = {node.id for node in busy}
        for node in [node for node in self._holders if node.id not in taken]:
            yield node
        while self._pending:
            yield self._pending.pop(0)
        for node in self._nodes:
            if node.id not in taken:
                yield node
        yield from self._last_resort

    def record_failure(self, node: Node, reason: str) -> None:
        """Record a node's failure and do not use it any more."""
        self.backends.record_failure(node, reason, self.headers)
        self._holders = [holder for holder in self._holders if holder.id != node.id]
        self._last_resort = [holder for holder in self._last_resort if holder.id != node.id]

    def use_last(self, node: Node) -> None:
        """Use a slow node only when no other is left."""
        self._holders = [holder for holder in self._holders if holder.id != node.id]
        self._last_resort.append(node)

    def open(self, node: Node, held: Iterable[int], wanted: Span) -> FoundArchive[ArchiveSource] | None:
        """Open an archive with another index than the ``held`` ones at a node; None when it has none."""
        preferences = f'[{{"timestamp": "{self.timestamp.internal}", "exclude": {sorted(held)}}}]'
        byte_range = f"bytes={wanted.start}-{wanted.stop - 1}"
        response = request_archive(self.backends, self._plan, node, preferences, byte_range)
        if response is None:
            return None
        archive = found_archive_of(node, response)
        if (
            archive is None
            or archive.timestamp != self.timestamp
            or archive.etag != self._etag
            or not archive.source.covers(wanted)
        ):
            response.stream.close()
            return None
        if all(holder.id != node.id for holder in self._holders):
            self._holders.append(node)
        return archive


class SpanReader:
    """Decodes the segments of a span, in order."""

    def __init__(
        self,
        codec: Codec,
        geometry: Geometry,
        finder: ArchiveFinder,
        length: int,
        span: Span,
        sources: dict[int, ArchiveSource],
        rates: TransferRates,
    ):
        self.span = span
        self.segments = geometry.segments(span)
        self._codec = codec
        self._geometry = geometry
        self._finder = finder
        self._length = length
        #: Fragments that give a segment: k, but XOR codes need more when some are lost.
        self._need = codec.data
        self._sources: dict[int, ArchiveSource] = {}
        self._rates = rates
        self._began_s = time.monotonic()
        #: Recent durations of segments.
        self._segment_s = 0.0
        wanted = geometry.archive_span(self.segments)
        for index, source in sources.items():
            if source.covers(wanted):
                self._sources[index] = source
            else:
                source.close()

    def segment(self, number: int) -> bytes:
        """Return one decoded segment, cut to the span; raises ``BodyError`` when no nodes can give it."""
        offset = self._geometry.offset(number)
        size = self._codec.fragment_length(self._geometry.segment_length(number, self._length))
        fragments: dict[int, bytes] = {}
        while True:
            self._open_missing(number)
            self._collect(number, offset, size, fragments)
            if len(fragments) < self._need:
                continue
            try:
                segment = self._codec.decode(list(fragments.values()))
            except NotEnoughFragments as error:
                if not self._drop_invalid(fragments):
                    self._need += 1
                if self._need > self._codec.fragments:
                    raise BodyError(str(error))
                continue
            return segment[self._geometry.within(number, self.span)]

    def _collect(self, number: int, offset: int, size: int, fragments: dict[int, bytes]) -> None:
        """Read what is missing of a segment from all sources; fewer than are needed when sources failed."""
        began, arrivals = time.monotonic(), ResultQueue[_FragmentRead | None]()
        under_way = {index: source for index, source in self._sources.items() if index not in fragments}
        for index, source in under_way.items():
            arrivals.start(self._read, index, source, offset, size, default=None)
        spare = self._codec.fragments - self._codec.data
        beside = iter(range(spare))

        def read_another() -> bool:
            if next(beside, None) is None or not under_way:
                return False
            arrivals.start(self._read_other, number, offset, size, default=None)
            return True

        late_s = max(LATE_MIN_S, LATE_FACTOR * self._segment_s)
        enough = Until(lambda: len(fragments) >= self._need)
        for piece in collect(arrivals, enough, pause_s=late_s, on_quiet=read_another):
            if piece is None:
                continue
            is_ours = under_way.get(piece.index) is piece.source
            if is_ours:
                del under_way[piece.index]
            if piece.data is None:
                continue
            if not is_ours and piece.index in self._sources:
                piece.source.close()
                continue
            self._sources[piece.index] = piece.source
            fragments[piece.index] = piece.data
        took = time.monotonic() - began
        self._segment_s += _LEARN * (took - self._segment_s)
        for index, source in under_way.items() if enough.reached else ():
            # It still reads; closing the source now would break that, so it is closed when the read ends.
            if self._sources.get(index) is source:
                del self._sources[index]
            self._finder.use_last(source.node)
            self._rates.record(source.node, max(BYTES_MIN, source.got), source.waited_s + took)
        arrivals.abandon(lambda piece: None if piece is None else piece.source.close())

    def _read(self, index: int, source: ArchiveSource, offset: int, size: int) -> _FragmentRead:
        """Read a fragment from a source; close a source that fails."""
        began = time.monotonic()
        try:
            piece = source.read(offset, size)
            source.got += len(piece)
            source.waited_s += time.monotonic() - began
            if check_fragment(piece).index != index:
                raise SourceFailed(f"{source.node.key} sent a fragment of another archive")
            return _FragmentRead(index, source, piece)
        except (TransportError, BadFragment) as error:
            if self._sources.get(index) is source:
                del self._sources[index]
            source.close()
            self._finder.record_failure(source.node, str(error))
            return _FragmentRead(index, source, None)

    def _read_other(self, number: int, offset: int, size: int) -> _FragmentRead | None:
        """Read a fragment of an archive that is not being read yet; return None when there is none."""
        wanted = self._geometry.archive_span(range(number, self.segments.stop))
        for node in self._finder.candidates([source.node for source in self._sources.values()]):
            archive = self._finder.open(node, list(self._sources), wanted)
            if archive is not None:
                return self._read(archive.index, archive.source, offset, size)
        return None

    def _close_failed(self, index: int, reason: str) -> None:
        source = self._sources.pop(index, None)
        if source is not None:
            source.close()
            self._finder.record_failure(source.node, reason)

    def _drop_invalid(self, fragments: dict[int, bytes]) -> bool:
        """Close the sources whose fragments the library rejects; return True if there were any."""
        invalid = [index for index, piece in fragments.items() if not self._codec.is_valid(piece)]
        for index in invalid:
            del fragments[index]
            self._close_failed(index, "sent a damaged fragment")
        return bool(invalid)

    def _open_missing(self, number: int) -> None:
        """Open further archives until there are enough; raises ``BodyError``."""
        missing = self._need - len(self._sources)
        if missing <= 0:
            return
        wanted = self._geometry.archive_span(range(number, self.segments.stop))
        candidates = self._finder.candidates([source.node for source in self._sources.values()])
        while missing > 0:
            batch = [node for _, node in zip(range(missing), candidates, strict=False)]
            if not batch:
                raise BodyError(f"{missing} archives of {self._finder.timestamp.internal} are missing")
            held = list(self._sources)
            for archive in green.gather([partial(self._finder.open, node, held, wanted) for node in batch]):
                if archive is None:
                    continue
                if archive.index in self._sources:
                    archive.source.close()
                else:
                    self._sources[archive.index] = archive.source
            missing = self._need - len(self._sources)

    def close(self) -> None:
        """Let all sources go, and remember what they brought."""
        sources, self._sources = self._sources, {}
        took = time.monotonic() - self._began_s
        for source in sources.values():
            # A source that was never waited for may be faster than its measured rate.
            if source.waited_s >= PACED_SHARE * took:
                self._rates.record(source.node, source.got, source.waited_s)
            source.close()


class SpanBody(ResponseBody):
    """The bytes of a span, to be relayed; up to ``ahead`` segments wait for the client."""

    def __init__(self, reader: SpanReader, ahead: int = 1):
        self.length: int | None = reader.span.length
        self._reader = reader
        self._numbers = iter(reader.segments)
        self._window: PrefetchWindow[bytes] = PrefetchWindow(
            self._fetch, has_room=lambda: len(self._window) < ahead
        )
        self._ready = b""
        self._rest: memoryview = memoryview(b"")

    def start(self) -> None:
        """Decode the first segment now, so that its failure can still become a status; ``BodyError``."""
        self._ready = self._next()

    @property
    def remaining_bytes(self) -> bytes | None:
        """All bytes when they are in memory, and nothing more is needed."""
        if len(self._ready) != self.length:
            return None
        self.close()
        return self._ready

    def _next(self) -> bytes:
        """Return the next segment's bytes, empty at the end; raises ``BodyError``."""
        return self._window.get() or b""

    def _fetch(self) -> bytes | None:
        number = next(self._numbers, None)
        return None if number is None else self._reader.segment(number)

    def __iter__(self) -> Iterator[bytes]:
        data, self._ready = self._ready or self._next(), b""
        while data:
            self._window.prefetch()
            yield data
            data = self._next()
        self._reader.close()

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with what is there; 0 at the end; raises ``BodyError``."""
        if not self._rest:
            data, self._ready = self._ready or self._next(), b""
            if not data:
                self._reader.close()
                return 0
            self._window.prefetch()
            self._rest = memoryview(data)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        """Stop fetching and let the sources and the memory go."""
        self._rest = memoryview(b"")
        # Closing a connection under a green thread that waits for it is not allowed.
        self._window.close(self._reader.close)
