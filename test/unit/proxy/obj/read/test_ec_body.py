"""Segments of an erasure coded object are sent in order, or not at all."""

import gc
import weakref

import pytest

from swift import green
from swift.base.ranges import Span
from swift.http.body import BodyError
from swift.proxy.obj.read.ec_body import SpanBody


class Reader:
    """Segments by number; an exception is raised."""

    def __init__(self, *segments):
        self._segments = segments
        self.segments = range(len(segments))
        self.span = Span(0, sum(len(s) for s in segments if isinstance(s, bytes)))
        self.closed = 0

    def segment(self, number):
        found = self._segments[number]
        if isinstance(found, Exception):
            raise found
        return found

    def close(self):
        self.closed += 1


def read(body):
    got, buffer = b"", memoryview(bytearray(4))
    while size := body.read_into(buffer):
        got += bytes(buffer[:size])
    return got


@pytest.mark.parametrize("ahead", [1, 2, 10])
def test_segments_come_in_order_however_many_are_fetched_ahead(ahead):
    reader = Reader(*[bytes([n]) * 3 for n in range(20)])
    body = SpanBody(reader, ahead)
    body.start()
    assert read(body) == b"".join(bytes([n]) * 3 for n in range(20))
    assert reader.closed


@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("error", [BodyError("too few archives"), RuntimeError("a fault of ours")])
def test_nothing_behind_a_segment_that_failed_is_sent(ahead, error):
    body = SpanBody(Reader(b"aaa", b"bbb", error, b"ddd", b"eee"), ahead)
    body.start()
    got = b""
    buffer = memoryview(bytearray(10))
    with pytest.raises(type(error)):
        for _ in range(10):
            size = body.read_into(buffer)
            assert size, "it does not end as if it were whole"
            got += bytes(buffer[:size])
    assert got == b"aaabbb"
    body.close()


def test_a_first_segment_that_fails_can_still_become_a_status():
    with pytest.raises(BodyError):
        SpanBody(Reader(BodyError("none"), b"b")).start()


def test_a_short_one_is_whole_at_once_and_lets_its_sources_go():
    reader = Reader(b"abc")
    body = SpanBody(reader)
    body.start()
    assert body.remaining_bytes == b"abc"
    assert reader.closed


def test_a_body_that_was_closed_keeps_no_memory_until_garbage_is_collected():
    gc.disable()
    try:
        body = SpanBody(Reader(*[bytes(100)] * 20), 2)
        body.start()
        body.read_into(memoryview(bytearray(10)))
        body.close()
        green.sleep(0)
        found, body = weakref.ref(body), None
        assert found() is None
    finally:
        gc.enable()
