"""Many bodies are sent as one, and the next is opened before it is needed (swift/http/segments.py)."""

import os

import pytest

from swift import green
from swift.http.body import BodyError, ResponseBody
from swift.http.response import Response
from swift.http.segments import PREFETCH_BELOW_BYTES, SegmentedBody


class Slow(ResponseBody):
    """A segment of zeros that is read in small steps."""

    def __init__(self, size, step=1 << 20):
        self.length = size
        self.left = size
        self.step = step
        self.closed = False

    def read_into(self, buffer):
        size = min(self.left, self.step, len(buffer))
        buffer[:size] = bytes(size)
        self.left -= size
        return size

    def close(self):
        self.closed = True


class Store:
    """Opens segments by number and remembers what it opened."""

    def __init__(self, sizes, waits=None):
        self.bodies = [Slow(size) for size in sizes]
        self.opened = []
        self.ends = []
        self.waits = waits or {}

    def open(self, number):
        self.opened.append(number)
        if number in self.waits:
            self.waits[number].wait()
        body = self.bodies[number]
        response = Response(200, {}, body)
        response.on_response_end(lambda sent, complete: self.ends.append((number, sent, complete)))
        return response

    def joined(self):
        return SegmentedBody(range(len(self.bodies)), self.open, None)


def read(body, size=1 << 20):
    got = body.read_into(memoryview(bytearray(size)))
    green.sleep(0)
    return got


def test_the_first_segment_is_opened_by_start_and_the_next_only_when_little_is_left():
    store = Store([PREFETCH_BELOW_BYTES + (3 << 20), 10, 10])
    body = store.joined()
    body.start()
    assert store.opened == [0]
    read(body)
    read(body)
    assert store.opened == [0], "more than is read ahead is still left"
    read(body)
    assert store.opened == [0, 1]


def test_one_segment_at_most_is_open_ahead():
    store = Store([10, 10, 10, 10])
    body = store.joined()
    assert read(body, 1) == 1
    assert store.opened == [0, 1]
    assert read(body, 1) == 1
    assert store.opened == [0, 1]


def test_reading_goes_on_while_the_next_one_is_being_opened():
    ready = green.Event()
    store = Store([3, 3], waits={1: ready})
    body = store.joined()
    assert [read(body, 1) for _ in range(3)] == [1, 1, 1]
    assert store.opened == [0, 1]
    ready.set()
    assert [read(body, 1) for _ in range(4)] == [1, 1, 1, 0]
    assert store.ends == [(0, 3, True), (1, 3, True)]


def test_a_failure_ahead_is_raised_only_when_its_turn_has_come():
    def pieces():
        yield 0
        raise BodyError("no more")

    store = Store([2])
    body = SegmentedBody(pieces(), store.open, None)
    assert [read(body, 1), read(body, 1)] == [1, 1]
    with pytest.raises(BodyError, match="no more"):
        read(body)


def test_a_segment_that_ends_early_breaks_the_body():
    store = Store([5, 5])
    store.bodies[0].left = 3
    body = store.joined()
    read(body)
    with pytest.raises(BodyError, match="sent 3 of 5 bytes"):
        read(body)
    assert store.ends[0] == (0, 3, False)


def test_a_segment_that_gives_too_much_breaks_the_body():
    store = Store([5, 5])
    store.bodies[0].left = 6
    with pytest.raises(BodyError, match="more than 5 bytes"):
        read(store.joined())


def test_a_segment_is_not_asked_for_more_than_it_has():
    class Breaking(Slow):
        """A connection that breaks when somebody waits for its end."""

        def read_into(self, buffer):
            if not self.left:
                raise BodyError("broke off")
            return super().read_into(buffer)

    store = Store([3, 3])
    store.bodies = [Breaking(3), Breaking(3)]
    assert [read(store.joined()) for _ in range(1)] == [3]
    store.bodies = [Breaking(3), Breaking(3)]
    assert store.joined().read_all() == bytes(6)


def test_closing_releases_the_open_segment_and_the_one_ahead():
    store = Store([5, 5, 5])
    body = store.joined()
    read(body, 1)
    body.close()
    assert [b.closed for b in store.bodies] == [True, True, False]
    assert store.ends == [(1, 0, False), (0, 1, False)]
    assert read(body) == 0


def test_a_segment_whose_opening_outlives_the_body_is_released_when_it_comes():
    ready = green.Event()
    store = Store([5, 5], waits={1: ready})
    body = store.joined()
    read(body, 1)
    body.close()
    assert not store.bodies[1].closed
    ready.set()
    green.sleep(0)
    green.sleep(0)
    assert store.bodies[1].closed


def test_bytes_between_segments_are_sent_as_they_are_and_the_first_segment_is_opened_behind_them():
    store = Store([2])
    body = SegmentedBody([b"--head", 0, b"tail"], store.open, 12)
    body.start()
    assert store.opened == [0]
    assert body.read_all() == b"--head\0\0tail"


def test_what_cannot_be_spliced_goes_through_the_pipe_all_the_same():
    store = Store([2])
    body = SegmentedBody([b"head", 0, b"tail"], store.open, 10)
    source, sink = os.pipe()
    try:
        moved = [body.splice_into(sink, 65536) for _ in range(4)]
        assert moved == [4, 2, 4, 0]
        assert os.read(source, 100) == b"head\0\0tail"
    finally:
        os.close(source)
        os.close(sink)
