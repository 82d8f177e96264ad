"""Ranges of objects, segments and archives map onto each other without losing a byte (proxy.md §13)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.ranges import ByteRanges, Span
from swift.ec.geometry import Geometry

SMALL = Geometry(1024, 526)


@pytest.mark.parametrize(
    ("asked", "archive"),
    [
        ("0-9", "0-525"),
        ("100-1500", "0-1051"),
        ("1024-", "526-"),
        ("-50", "-1052"),
        ("1023-1024", "0-1051"),
        ("-1024", "-1052"),
        ("-1025", "-1578"),
        ("-0", "-0"),
        ("0-9,2048-2049", "0-525,1052-1577"),
    ],
)
def test_ranges_are_asked_for_as_the_peer_does(asked, archive):
    assert str(SMALL.archive_ranges(ByteRanges.parse(f"bytes={asked}"))) == f"bytes={archive}"


def test_the_live_example_of_the_spec():
    geometry = Geometry(4096, 2128)
    assert str(geometry.archive_ranges(ByteRanges.parse("bytes=10-20"))) == "bytes=0-2127"


geometries = st.builds(Geometry, st.integers(1, 300), st.integers(1, 200))
members = st.one_of(
    st.tuples(st.integers(0, 2000), st.none()),
    st.tuples(st.none(), st.integers(1, 2000)),
    st.tuples(st.integers(0, 2000), st.integers(0, 500)).map(lambda pair: (pair[0], pair[0] + pair[1])),
)


@given(geometries, st.integers(1, 2000), members)
def test_what_is_asked_of_archives_holds_every_wanted_segment_whole(geometry, length, member):
    ranges = ByteRanges((member,))
    spans = ranges.resolve(length)
    full, rest = divmod(length, geometry.segment_size)
    archive = full * geometry.fragment_size + (1 if rest else 0)
    found = geometry.archive_ranges(ranges).resolve(archive)
    if not spans:
        return
    expected = geometry.archive_span(geometry.segments(spans[0]))
    assert found[0].start <= expected.start
    assert found[0].stop >= min(expected.stop, archive)


@given(geometries, st.data(), st.integers(1, 2000))
def test_the_parts_of_all_segments_of_a_span_are_the_span(geometry, data, length):
    start = data.draw(st.integers(0, length - 1))
    span = Span(start, data.draw(st.integers(start + 1, length)))
    body = bytes(number % 251 for number in range(length))
    size = geometry.segment_size
    parts = [
        body[number * size : (number + 1) * size][geometry.within(number, span)]
        for number in geometry.segments(span)
    ]
    assert all(parts)
    assert b"".join(parts) == body[span.start : span.stop]


def test_an_empty_span_needs_no_segment():
    assert list(SMALL.segments(Span(5, 5))) == []
