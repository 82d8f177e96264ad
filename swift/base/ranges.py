"""Byte ranges: the Range header parsed and resolved (spec: public-api.md §9, RFC 9110 §14).

A header that does not parse is ignored as a whole (None); a parsed one resolves against a length to
half-open ``(start, stop)`` pairs. Abusive sets resolve to nothing, like unsatisfiable ones.
"""

from __future__ import annotations

import re
from typing import NamedTuple

RANGES_MAX = 50
OVERLAPPING_PAIRS_MAX = 2
UNORDERED_RANGES_MIN = 8


class Span(NamedTuple):
    """Half-open byte positions ``start <= position < stop``."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Bytes in the span."""
        return self.stop - self.start

    def content_range(self, total: int) -> str:
        """Return the Content-Range value of this span of a body of ``total`` bytes."""
        return f"bytes {self.start}-{self.stop - 1}/{total}"


class ByteRanges(tuple[tuple[int | None, int | None], ...]):
    """``(first, last)`` pairs as in the header: ``a-b``, ``a-`` (last None), ``-n`` (first None)."""

    __slots__ = ()

    @classmethod
    def parse(cls, header: str) -> ByteRanges | None:
        """Parse a Range header value; None when it is malformed and so must be ignored.

        Spaces count for nothing. As the peer reads them, the first position of a pair is whatever ``int``
        takes (a sign, tabs, underscores), the last only digits.
        """
        text = header.replace(" ", "")
        unit, separator, specs = text.partition("=")
        if not separator or unit.lower() != "bytes":
            return None
        pairs = []
        for spec in specs.split(","):
            first, dash, last = spec.partition("-")
            if not dash or not (first or last):
                return None
            if last and not last.isdigit():
                return None
            try:
                pair = (int(first) if first else None, int(last) if last else None)
            except ValueError:
                return None
            if pair[0] is not None and pair[1] is not None and pair[1] < pair[0]:
                return None
            pairs.append(pair)
        return cls(pairs)

    def __str__(self) -> str:
        return "bytes=" + ",".join(
            f"{'' if first is None else first}-{'' if last is None else last}" for first, last in self
        )

    def resolve(self, length: int) -> list[Span]:
        """Return the satisfiable spans for a body of ``length`` bytes, in request order.

        Empty means 416, except that a suffix range of an empty body means the whole (empty) body: that
        case returns ``[Span(0, 0)]``.
        """
        spans = []
        for first, last in self:
            if first is None:
                if not last:
                    continue
                if length == 0:
                    return [Span(0, 0)]
                spans.append(Span(max(0, length - last), length))
            elif first < length:
                spans.append(Span(first, length if last is None else min(last + 1, length)))
        return [] if len(spans) > 1 and _abusive(spans) else spans


def _abusive(spans: list[Span]) -> bool:
    if len(spans) > RANGES_MAX:
        return True
    overlapping = unordered = 0
    for i, a in enumerate(spans):
        if i and spans[i - 1].start > a.start:
            unordered += 1
        for b in spans[i + 1 :]:
            if b.start < a.start < b.stop or b.start < a.stop < b.stop or a.start < b.start < a.stop:
                overlapping += 1
    if overlapping > OVERLAPPING_PAIRS_MAX:
        return True
    return len(spans) >= UNORDERED_RANGES_MIN and unordered > 0


_CONTENT_RANGE = re.compile(r"bytes (\d{1,20})-(\d{1,20})/(?:\d+|\*)\Z")


def remaining_range(content_range: str | None, sent: int) -> str:
    """Return the Range header that continues a body after ``sent`` of its bytes arrived.

    ``content_range`` is the header of the answer that broke off: it says which bytes those were whatever
    form of range was asked for. Without it (a whole entity) they were the first ones.
    """
    match = _CONTENT_RANGE.match(content_range) if content_range else None
    if match is None:
        return f"bytes={sent}-"
    return f"bytes={int(match[1]) + sent}-{match[2]}"
