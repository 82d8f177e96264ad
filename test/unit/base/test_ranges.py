"""Byte ranges: what is asked for, what is sent, and what is left after a break."""

from hypothesis import given
from hypothesis import strategies as st

from swift.base.ranges import ByteRanges, Span, remaining_range
from test.support.checks import every


def resolve(header, length):
    ranges = ByteRanges.parse(header)
    return None if ranges is None else [tuple(span) for span in ranges.resolve(length)]


@every(
    ("header", "length", "spans"),
    [
        ("bytes=0-3", 10, [(0, 4)]),
        ("BYTES=0-3", 10, [(0, 4)]),
        ("bytes = 0 - 3 , 5 -", 10, [(0, 4), (5, 10)]),
        ("bytes=5-", 10, [(5, 10)]),
        ("bytes=-3", 10, [(7, 10)]),
        ("bytes=-30", 10, [(0, 10)]),
        ("bytes=5-50", 10, [(5, 10)]),
        ("bytes=-0", 10, []),
        ("bytes=10-", 10, []),
        ("bytes=10-,0-1", 10, [(0, 2)]),
        ("bytes=-5", 0, [(0, 0)]),
        ("bytes=0-", 0, []),
        ("bytes=9-9,8-8,7-7,6-6,5-5,4-4,3-3,2-2", 10, []),
        ("bytes=0-0,0-0,0-0,0-0", 10, [(0, 1)] * 4),
        ("bytes=0-5,1-6,2-7", 10, []),
        ("bytes=0-5,1-6", 10, [(0, 6), (1, 7)]),
        ("bytes=" + ",".join(["0-0"] * 51), 10, []),
        ("bytes=" + ",".join(["0-0"] * 50), 10, [(0, 1)] * 50),
        ("bytes=5-3", 10, None),
        ("bytes=a-b", 10, None),
        ("bytes=1", 10, None),
        ("bytes=-", 10, None),
        ("bytes=", 10, None),
        ("bytes", 10, None),
        ("lines=0-3", 10, None),
        ("bytes=0-3,x", 10, None),
        ("bytes=+1-3", 10, [(1, 4)]),
        ("bytes=1-+3", 10, None),
        ("bytes=-+3", 10, None),
        ("bytes=1_0-,+1_1-", 20, [(10, 20), (11, 20)]),
        ("bytes=0-1_0", 20, None),
        ("bytes=\t1\t-2", 10, [(1, 3)]),
        ("bytes=1-\t2", 10, None),
        ("bytes\t=1-2", 10, None),
        ("bytes=1\t1-", 20, None),
        ("bytes=0-\xb2", 10, None),
        ("bytes=1-" + "9" * 30, 10, [(1, 10)]),
        ("bytes=" + "9" * 30 + "-", 10, []),
        ("bytes=1-" + "9" * 5000, 10, None),
        ("bytes=" + "9" * 5000 + "-", 10, None),
    ],
)
def test_range_headers_resolve_as_the_api_says(header, length, spans):
    assert resolve(header, length) == spans


PAIR = st.one_of(
    st.tuples(st.integers(0, 200), st.none()),
    st.tuples(st.none(), st.integers(0, 200)),
    st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda p: (min(p), max(p))),
)


@given(st.lists(PAIR, min_size=1, max_size=10))
def test_ranges_print_and_parse_back(pairs):
    ranges = ByteRanges(pairs)
    assert ByteRanges.parse(str(ranges)) == ranges


@given(st.lists(PAIR, min_size=1, max_size=10), st.integers(0, 150))
def test_spans_always_lie_inside_the_body(pairs, length):
    for span in ByteRanges(pairs).resolve(length):
        assert 0 <= span.start <= span.stop <= length
        assert span.length > 0 or length == 0


@given(st.text(max_size=40))
def test_any_text_parses_or_is_ignored(text):
    ByteRanges.parse(f"bytes={text}")


@given(pair=PAIR, length=st.integers(1, 150), data=st.data())
def test_after_any_number_of_sent_bytes_the_remaining_range_is_exactly_the_rest(pair, length, data):
    spans = ByteRanges([pair]).resolve(length)
    if not spans:
        return
    (span,) = spans
    sent = data.draw(st.integers(0, span.length - 1))
    asked = remaining_range(span.content_range(length), sent)
    assert ByteRanges.parse(asked).resolve(length) == [Span(span.start + sent, span.stop)]


@given(length=st.integers(1, 150), data=st.data())
def test_without_a_content_range_the_rest_is_that_of_the_whole(length, data):
    sent = data.draw(st.integers(0, length - 1))
    assert ByteRanges.parse(remaining_range(None, sent)).resolve(length) == [Span(sent, length)]
