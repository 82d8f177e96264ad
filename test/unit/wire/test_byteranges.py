"""Bodies of several ranges: framing, and what is left of one after a break (public-api.md §9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.ranges import ByteRanges, Span
from swift.wire.byteranges import Multipart, parse_layout

BODY = bytes(range(200))
RANGES = ByteRanges.parse("bytes=0-9,50-99,-3")
LAYOUT = Multipart(RANGES.resolve(200), 200, "text/plain", "b" * 32)
WHOLE = b"".join(LAYOUT.body(lambda span: [BODY[span.start : span.stop]]))


def joined(pieces):
    return b"".join(BODY[p.start : p.stop] if isinstance(p, Span) else p for p in pieces)


def test_the_announced_length_is_the_true_one():
    assert LAYOUT.length == len(WHOLE)


@given(st.integers(0, len(WHOLE)))
def test_what_was_sent_and_the_rest_are_the_whole(sent):
    assert WHOLE[:sent] + joined(LAYOUT.pieces_after(sent)) == WHOLE


def test_a_body_s_beginning_tells_its_layout():
    found = parse_layout(WHOLE[:120], RANGES)
    assert (found.boundary, found.length, joined(found.pieces_after(0))) == ("b" * 32, len(WHOLE), WHOLE)


@pytest.mark.parametrize("beginning", [b"", WHOLE[:60], b"x" + WHOLE, WHOLE.replace(b"--b", b"-b", 1)])
def test_a_beginning_that_is_too_short_or_strange_tells_nothing(beginning):
    assert parse_layout(beginning, RANGES) is None


def test_ranges_that_lead_to_one_part_have_no_layout():
    assert parse_layout(WHOLE, ByteRanges.parse("bytes=0-9,500-")) is None
