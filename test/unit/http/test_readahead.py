"""Several pieces of one object are read at once, in order and within a bound.

See doc/explanation/striping.md.
"""

import gc
import random
import weakref

import pytest

from swift import green
from swift.http.body import BodyError, ResponseBody
from swift.http.readahead import MemoryViewBody, PrefetchWindow, ReadAhead
from swift.http.response import Response
from swift.http.segments import SegmentedBody
from test.support.checks import every


class Gated(ResponseBody):
    """A body that gives nothing until a gate is open."""

    def __init__(self, store, data, *, breaks=False):
        self.length = len(data)
        self._store = store
        self._rest = data
        self._breaks = breaks
        self._began = False

    def read_into(self, buffer):
        if not self._began:
            self._began = True
            self._store.reading += 1
            self._store.most = max(self._store.most, self._store.reading)
            self._store.gate.wait()
        if self._breaks:
            raise BodyError("broken")
        size = min(len(buffer), 1000, len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        green.sleep(0)
        return size

    def close(self):
        self._store.reading -= self._began
        self._began = False
        self._store.closed += 1


class Store:
    def __init__(self, sizes, *, breaks=()):
        draw = random.Random(1)
        self.data = [draw.randbytes(size) for size in sizes]
        self.breaks = breaks
        self.gate = green.Event()
        self.opened = self.closed = self.reading = self.most = 0
        self.ended = []

    def open(self, number):
        self.opened += 1
        data = self.data[number]
        response = Response(200, {"content-length": str(len(data))})
        response.body = Gated(self, data, breaks=number in self.breaks)
        response.on_response_end(lambda sent, complete: self.ended.append((number, sent, complete)))
        return response

    def body(self, memory):
        return SegmentedBody(range(len(self.data)), self.open, None, memory=memory)


def read_all(body, size=700):
    buffer, found = memoryview(bytearray(size)), b""
    while got := body.read_into(buffer):
        found += bytes(buffer[:got])
    body.close()
    return found


def test_so_many_are_read_at_once_as_memory_holds():
    store = Store([5000] * 20)
    body = store.body(20_000)
    task = green.spawn(read_all, body)
    for _ in range(20):
        green.sleep(0)
    # The first one is sent as it comes; three or four wait.
    assert 4 <= store.most <= 5
    store.gate.set()
    assert task.wait() == b"".join(store.data)
    assert store.closed == store.opened == 20


def test_without_memory_one_comes_after_the_other():
    store = Store([5000] * 5)
    store.gate.set()
    assert read_all(store.body(0)) == b"".join(store.data)
    assert store.most == 1


@pytest.mark.long
@every("seed", range(100))
def test_every_byte_comes_once_and_the_bound_is_kept(seed):
    draw = random.Random(seed)
    store = Store([draw.choice((0, 1, 900, 5000, 40_000)) for _ in range(draw.randint(1, 12))])
    store.gate.set()
    memory = draw.choice((1, 5000, 12_000, 200_000))
    body, found, most = store.body(memory), b"", 0
    buffer = memoryview(bytearray(draw.choice((1, 700, 9000)) if len(store.data) < 4 else 3000))
    while got := body.read_into(buffer):
        found += bytes(buffer[:got])
        most = max(most, body._read_ahead.buffered_bytes)
        if draw.random() < 0.2:
            green.sleep(0)
    body.close()
    assert found == b"".join(store.data)
    assert most <= memory
    assert all(complete for _number, _sent, complete in store.ended)
    assert len(store.ended) == len(store.data)


def test_one_that_breaks_off_is_an_error_at_its_place():
    store = Store([5000, 5000, 5000], breaks={1})
    store.gate.set()
    body = store.body(50_000)
    buffer, found = memoryview(bytearray(1000)), 0
    with pytest.raises(BodyError):
        while got := body.read_into(buffer):
            found += got
    body.close()
    assert found == 5000


def test_a_client_that_goes_away_leaves_nothing_open():
    store = Store([5000] * 9)
    store.gate.set()
    body = store.body(20_000)
    assert body.read_into(memoryview(bytearray(10)))
    body.close()
    for _ in range(100):
        green.sleep(0)
    assert store.closed == store.opened
    assert len(store.ended) == store.opened


@pytest.mark.parametrize("memory", [0, 50_000])
def test_a_body_that_was_closed_keeps_no_memory_until_garbage_is_collected(memory):
    store = Store([5000] * 9)
    store.gate.set()
    gc.disable()
    try:
        body = store.body(memory)
        body.read_into(memoryview(bytearray(700)))
        body.close()
        for _ in range(20):
            green.sleep(0)
        found, body = weakref.ref(body), None
        assert found() is None
    finally:
        gc.enable()


def test_an_error_of_the_list_comes_after_what_was_before_it():
    def pieces():
        yield 0
        yield 1
        raise BodyError("the listing broke off")

    store = Store([100, 200])
    store.gate.set()
    body = SegmentedBody(pieces(), store.open, None, memory=10_000)
    buffer, found = memoryview(bytearray(1000)), 0
    with pytest.raises(BodyError, match="listing"):
        while got := body.read_into(buffer):
            found += got
    body.close()
    assert found == 300


def test_it_says_what_it_holds():
    ahead = ReadAhead(lambda: None, 1000)
    assert repr(ahead) == "<ReadAhead 0 pieces, 0 of 1000 bytes>"
    assert MemoryViewBody(memoryview(b"abc")).read_all() == b"abc"


def counted(limit, *, fails_at=None):
    """Return a window over the numbers below 10 with room for ``limit``, and the numbers fetched so far."""
    fetched = []

    def fetch():
        number = len(fetched)
        fetched.append(number)
        if number == fails_at:
            raise BodyError("lost")
        return number if number < 10 else None

    window = PrefetchWindow(fetch, has_room=lambda: len(window) < limit)
    return window, fetched


@pytest.mark.parametrize("limit", [0, 1, 3, 20])
def test_values_come_in_order_and_no_more_are_fetched_than_there_is_room_for(limit):
    window, fetched = counted(limit)
    got = []
    while (value := window.get()) is not None:
        got.append(value)
        window.prefetch()
        green.sleep(0)
        assert len(fetched) <= len(got) + max(1, limit)
    assert got == list(range(10)) and window.get() is None


def test_an_error_is_raised_in_its_place_and_nothing_after_it_is_fetched():
    window, fetched = counted(20, fails_at=2)
    window.prefetch()
    green.sleep(0)
    assert [window.get(), window.get()] == [0, 1]
    with pytest.raises(BodyError):
        window.get()
    assert window.get() is None and fetched == [0, 1, 2]


def test_values_that_others_put_are_waited_for_in_their_order_as_long_as_there_are_others():
    window, others = PrefetchWindow(), {"working": True}

    def work():
        for number in (2, 0, 1):
            green.sleep(0)
            window.put(number, number)
        others["working"] = False
        window.notify()

    green.spawn_detached(work)
    assert [window.get(lambda: others["working"]) for _ in range(4)] == [0, 1, 2, None]


def test_a_window_that_is_closed_releases_what_it_holds_and_what_comes_late():
    gate, released, closed = green.Event(), [], []

    def fetch():
        gate.wait()
        return "late"

    window = PrefetchWindow(fetch, has_room=lambda: True, release=released.append)
    window.put(7, "held")
    window.prefetch()
    green.sleep(0)
    window.close(lambda: closed.append(True))
    assert released == ["held"] and not closed
    gate.set()
    green.sleep(0)
    green.sleep(0)
    assert released == ["held", "late"] and closed
