"""Positions of the bytes of an erasure coded object: pure arithmetic (spec: proxy.md §13, replication.md
§4).

An object is cut into segments of ``segment_size`` bytes, the last one shorter. Every segment gives each
fragment archive one fragment; those of full segments have ``fragment_size`` bytes. So a byte range of the
object becomes a range of whole segments, and that one a range of every archive.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.ranges import ByteRanges, Span


@dataclass(frozen=True, slots=True)
class Geometry:
    """Segments of one object, or of all objects of a policy."""

    segment_size: int
    fragment_size: int

    def segment_length(self, number: int, length: int) -> int:
        """Bytes of segment ``number`` of an object of ``length`` bytes."""
        return min(self.segment_size, length - number * self.segment_size)

    def segments(self, span: Span) -> range:
        """Numbers of the segments that hold the bytes of ``span``."""
        if span.stop <= span.start:
            return range(0)
        return range(span.start // self.segment_size, (span.stop - 1) // self.segment_size + 1)

    def within(self, number: int, span: Span) -> slice:
        """Return the part of segment ``number`` that belongs to ``span``."""
        start = number * self.segment_size
        return slice(max(0, span.start - start), min(self.segment_size, span.stop - start))

    def offset(self, number: int) -> int:
        """Return the offset of segment ``number``'s fragment in every archive."""
        return number * self.fragment_size

    def archive_span(self, segments: range) -> Span:
        """Return the bytes of an archive that hold these segments; the last fragment may be shorter."""
        return Span(self.offset(segments.start), self.offset(segments.stop))

    def archive_range(self, first: int | None, last: int | None) -> tuple[int | None, int | None]:
        """Return a member of a client's Range header as archives are asked for it, their length unknown.

        A suffix asks for one segment more, because it counts back from inside the last one.
        """
        segment, fragment = self.segment_size, self.fragment_size
        if first is None:
            suffix = last or 0
            return None, (-(-suffix // segment) + 1) * fragment if suffix else 0
        start = first // segment * fragment
        return start, None if last is None else (last // segment + 1) * fragment - 1

    def archive_ranges(self, ranges: ByteRanges) -> ByteRanges:
        """``archive_range`` of every member."""
        return ByteRanges(self.archive_range(first, last) for first, last in ranges)
