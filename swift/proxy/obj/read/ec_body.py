"""The bytes of an erasure coded object from its archives (spec: proxy.md §13).

``SpanReader`` reads segments of one upload in order: one fragment from each of k sources, decoded. A source
that fails, or sends what is no fragment, is replaced by another archive of the same upload from any node that
may have one, starting at the segment where it failed. One that is late is not waited for: another archive is
read beside it, and whichever comes first is used. ``SpanBody`` gives the wanted bytes of those segments and
fetches some segments ahead of what is being sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from swift import green
from swift.base.ranges import Span
from swift.cluster.collect import Arrivals, Until, collect
from swift.cluster.fragmentsets import Holding
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
    for_rest,
    holding_of,
    request_archive,
)
from swift.proxy.obj.read.plan import BYTES_MIN, Rates
from swift.proxy.reading import ReadPlan
from swift.ring.device import Node

#: A fragment is late when nothing has come for so many times as long as segments take, and at least so long.
LATE_FACTOR = 4.0
LATE_MIN_S = 0.5
#: A source that was waited for during such a share of a download has shown its rate.
PACED_SHARE = 0.5
#: How much the last segment says of how long segments take.
_LEARN = 0.2


@dataclass(frozen=True, slots=True)
class _Piece:
    """A fragment from a source; None when it gave none and is gone."""

    index: int
    source: ArchiveSource
    data: bytes | None


class ArchiveFinder:
    """Opens archives of one upload at any place."""

    def __init__(
        self,
        backends: Backends,
        asked: ReadPlan,
        nodes: NodeIterator,
        chosen: Archives,
        pending: Iterable[Node] = (),
    ):
        self.backends = backends
        self.headers = asked.headers
        self.timestamp = chosen.timestamp
        self._plan = for_rest(asked)
        self._nodes = nodes
        self._etag = chosen.etag
        known = [*chosen.members.values(), *chosen.spares]
        #: Nodes that are known to have an archive of this upload.
        self._holders = [holding.source.node for holding in known]
        #: Nodes that were asked once and were too late to answer.
        self._pending = list(pending)
        self._richer = [source.node for source, _ in chosen.elsewhere]

    def candidates(self, busy: Iterable[Node]) -> Iterator[Node]:
        """Nodes to ask, the best first: holders, those never heard of, then those with several archives."""
        taken = {node.id for node in busy}
        for node in [node for node in self._holders if node.id not in taken]:
            yield node
        while self._pending:
            yield self._pending.pop(0)
        for node in self._nodes:
            if node.id not in taken:
                yield node
        yield from self._richer

    def failed(self, node: Node, reason: str) -> None:
        """Do not count on a node any more."""
        self.backends.failed(node, reason, self.headers)
        self._holders = [holder for holder in self._holders if holder.id != node.id]
        self._richer = [holder for holder in self._richer if holder.id != node.id]

    def late(self, node: Node) -> None:
        """Ask a node only when no other is left: it takes long."""
        self._holders = [holder for holder in self._holders if holder.id != node.id]
        self._richer.append(node)

    def open(self, node: Node, held: Iterable[int], wanted: Span) -> Holding[ArchiveSource] | None:
        """Bytes of another archive than the held ones from this node, None when it has none."""
        preferences = f'[{{"timestamp": "{self.timestamp.internal}", "exclude": {sorted(held)}}}]'
        byte_range = f"bytes={wanted.start}-{wanted.stop - 1}"
        reply = request_archive(self.backends, self._plan, node, preferences, byte_range)
        if reply is None:
            return None
        holding = holding_of(node, reply)
        if (
            holding is None
            or holding.timestamp != self.timestamp
            or holding.etag != self._etag
            or not holding.source.covers(wanted)
        ):
            reply.stream.close()
            return None
        if all(holder.id != node.id for holder in self._holders):
            self._holders.append(node)
        return holding


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
        rates: Rates,
    ):
        self.span = span
        self.segments = geometry.segments(span)
        self._codec = codec
        self._geometry = geometry
        self._finder = finder
        self._length = length
        #: Fragments that give a segment: k, but codes of exclusive ors want more when some are lost.
        self._need = codec.data
        self._sources: dict[int, ArchiveSource] = {}
        self._rates = rates
        self._began_s = time.monotonic()
        #: How long segments take.
        self._segment_s = 0.0
        wanted = geometry.archive_span(self.segments)
        for index, source in sources.items():
            if source.covers(wanted):
                self._sources[index] = source
            else:
                source.close()

    def segment(self, number: int) -> bytes:
        """One decoded segment, cut to the span; raises ``BodyError`` when no nodes can give it."""
        offset = self._geometry.offset(number)
        size = self._codec.fragment_length(self._geometry.segment_length(number, self._length))
        fragments: dict[int, bytes] = {}
        while True:
            self._fill(number)
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
        began, arrivals = time.monotonic(), Arrivals[_Piece | None]()
        under_way = {index: source for index, source in self._sources.items() if index not in fragments}
        for index, source in under_way.items():
            arrivals.start(self._read, index, source, offset, size, otherwise=None)
        spare = self._codec.fragments - self._codec.data
        beside = iter(range(spare))

        def read_another() -> bool:
            if next(beside, None) is None or not under_way:
                return False
            arrivals.start(self._read_beside, number, offset, size, otherwise=None)
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
            self._finder.late(source.node)
            self._rates.record(source.node, max(BYTES_MIN, source.got), source.waited_s + took)
        arrivals.abandon(lambda piece: None if piece is None else piece.source.close())

    def _read(self, index: int, source: ArchiveSource, offset: int, size: int) -> _Piece:
        """A fragment from a source; one that fails is gone."""
        began = time.monotonic()
        try:
            piece = source.read(offset, size)
            source.got += len(piece)
            source.waited_s += time.monotonic() - began
            if check_fragment(piece).index != index:
                raise SourceFailed(f"{source.node.key} sent a fragment of another archive")
            return _Piece(index, source, piece)
        except (TransportError, BadFragment) as error:
            if self._sources.get(index) is source:
                del self._sources[index]
            source.close()
            self._finder.failed(source.node, str(error))
            return _Piece(index, source, None)

    def _read_beside(self, number: int, offset: int, size: int) -> _Piece | None:
        """A fragment of another archive than those that are being read; None when there is none."""
        wanted = self._geometry.archive_span(range(number, self.segments.stop))
        for node in self._finder.candidates([source.node for source in self._sources.values()]):
            holding = self._finder.open(node, list(self._sources), wanted)
            if holding is not None:
                return self._read(holding.index, holding.source, offset, size)
        return None

    def _drop(self, index: int, reason: str) -> None:
        source = self._sources.pop(index, None)
        if source is not None:
            source.close()
            self._finder.failed(source.node, reason)

    def _drop_invalid(self, fragments: dict[int, bytes]) -> bool:
        """Let the sources go whose fragments the library does not accept; whether there were any."""
        invalid = [index for index, piece in fragments.items() if not self._codec.is_valid(piece)]
        for index in invalid:
            del fragments[index]
            self._drop(index, "sent a damaged fragment")
        return bool(invalid)

    def _fill(self, number: int) -> None:
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
            for holding in green.gather([partial(self._finder.open, node, held, wanted) for node in batch]):
                if holding is None:
                    continue
                if holding.index in self._sources:
                    holding.source.close()
                else:
                    self._sources[holding.index] = holding.source
            missing = self._need - len(self._sources)

    def close(self) -> None:
        """Let all sources go, and remember what they brought."""
        sources, self._sources = self._sources, {}
        took = time.monotonic() - self._began_s
        for source in sources.values():
            # One that was ready before it was read from may do more than was seen.
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
    def whole(self) -> bytes | None:
        """All bytes when they are in memory, and nothing more is needed."""
        if len(self._ready) != self.length:
            return None
        self.close()
        return self._ready

    def _next(self) -> bytes:
        """The next segment's bytes, empty at the end; raises ``BodyError``."""
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
