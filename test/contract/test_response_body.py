"""Contract of response bodies (``ResponseBody`` in swift/http/body.py)."""

import os

import pytest

from swift import green
from swift.cluster.exchange import HttpTransport
from swift.cluster.pool import ConnectionPool
from swift.cluster.transport import NodeAddress, NodeRequest, NodeTimeouts
from swift.http.body import FileBody, InMemoryBody, IterableBody, ResponseBody, iter_body_bytes
from swift.http.request import Request
from swift.http.response import Response
from swift.http.segments import SegmentedBody
from swift.http.transform import TransformedBody, as_request_body
from swift.obj.get import BlockBody
from swift.platform import sockets
from swift.runtime.wsgi import call_wsgi
from swift.telemetry.metrics import Registry
from test.unit.runtime.conftest import Bench

DATA = os.urandom(150_001)


class Source:
    """A resource that a body keeps open; it must be closed exactly once."""

    def __init__(self):
        self.closed = 0

    def close(self):
        self.closed += 1


def file_of(data, source):
    fd = os.memfd_create("body")
    os.write(fd, b"before" + data + b"after")

    def release():
        os.close(fd)
        source.close()

    return FileBody(fd, 6, len(data), release)


def in_pieces(data, source):
    """Return a body of alternating bytes and file ranges, as an object server sends it."""

    def pieces():
        yield data[:7]
        middle = file_of(data[7:-5], Source())
        yield middle
        middle.close()
        yield b""
        yield data[-5:]

    return IterableBody(pieces(), len(data), source.close)


def blocks(data, source):
    body = BlockBody(iter([data[:70_000], data[70_000:]]), len(data), source)
    assert body.only_block() is None
    return body


class Filling(ResponseBody):
    """A body that only fills buffers, with few bytes at a time, as a socket does."""

    def __init__(self, data, source):
        self.length = len(data)
        self._rest = data
        self._source = source

    def read_into(self, buffer):
        size = min(len(buffer), 40_000, len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self):
        if self._source is not None:
            self._source.close()
        self._source = None


def segments(data, source):
    made = {
        "bytes": lambda data: data,
        "file": lambda data: file_of(data, Source()),
        "foreign": lambda data: foreign(data, Source()),
        "filling": lambda data: Filling(data, source),
    }
    names = list(made)
    cuts = [data[:10], data[10:60_000], data[60_000:60_001], data[60_001:]]

    def opened(number):
        return Response(200, {}, made[names[number]](cuts[number]))

    return SegmentedBody(range(len(cuts)), opened, len(data))


def foreign(data, source):
    """Return the response body of a foreign WSGI application."""

    class Iterable:
        def __iter__(self):
            return iter([data[:1000], b"", data[1000:]])

        def close(self):
            source.close()

    def app(environ, start_response):
        start_response("200 OK", [("Content-Length", str(len(data)))])
        return Iterable()

    return call_wsgi(app, Request("GET", "/")).body


def link(data, source):
    """Return the response body of a node, as its connection delivers it."""
    listener = sockets.listen("127.0.0.1", 0, 1)

    def serve():
        green.wait_readable(listener.fileno())
        sock, _ = listener.accept()
        listener.close()
        options = memoryview(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        sock.setblocking(False)
        green.wait_readable(sock.fileno())
        sock.recv(65536)
        while options:
            try:
                options = options[sock.send(options) :]
            except BlockingIOError:
                green.wait_writable(sock.fileno())
            except OSError:
                break
        sock.close()
        source.close()

    port = listener.getsockname()[1]
    green.spawn_detached(serve)
    node, timeouts = NodeAddress("127.0.0.1", port), NodeTimeouts(5.0, 5.0)
    request = NodeRequest(node, "GET", "/", {}, b"", timeouts)
    return HttpTransport(ConnectionPool(Registry())).stream(request).response().stream


KINDS = {
    "whole": lambda data, source: InMemoryBody(data),
    "file": file_of,
    "pieces": in_pieces,
    "blocks": blocks,
    "filling": Filling,
    "segments": segments,
    "foreign": foreign,
    "link": link,
    "mapped": lambda data, source: TransformedBody(in_pieces(data, source), bytes),
    "mapped bytes": lambda data, source: TransformedBody(data, bytes),
}
#: What these keep open is not a ``Source``, or goes with the last byte.
WITHOUT_SOURCE = {"whole", "mapped bytes", "segments", "link"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def body(kind, source):
    body = KINDS[kind](DATA, source)
    yield body
    body.close()


def test_every_body_is_a_response_body_and_knows_its_length(body):
    assert isinstance(body, ResponseBody)
    assert body.length == len(DATA)


def test_the_pieces_are_the_bytes(body):
    assert b"".join(iter_body_bytes(body)) == DATA


@pytest.mark.parametrize("size", [1 << 20, 65536, 1000])
def test_buffers_are_filled_until_the_end_and_never_after_it(body, size):
    buffer = memoryview(bytearray(size))
    got = bytearray()
    while filled := body.read_into(buffer):
        got += buffer[:filled]
    assert got == DATA
    assert body.read_into(buffer) == 0


def test_small_reads_return_at_most_the_requested_size(body):
    first = body.read(3)
    assert DATA.startswith(first)
    assert 0 < len(first) <= 3
    rest = b"".join(iter(lambda: body.read(70_000), b""))
    assert first + rest == DATA


def test_bytes_not_spliced_into_a_pipe_are_read_into_a_buffer(body):
    inlet, outlet = os.pipe2(os.O_NONBLOCK)
    got = bytearray()
    buffer = memoryview(bytearray(65536))
    while True:
        if moved := body.splice_into(outlet, 32768):
            got += os.read(inlet, moved)
        elif filled := body.read_into(buffer):
            got += buffer[:filled]
        else:
            break
    os.close(inlet)
    os.close(outlet)
    assert got == DATA


@pytest.mark.parametrize("reads", [0, 1, 1000])
def test_close_releases_resources_exactly_once(body, kind, source, reads):
    buffer = memoryview(bytearray(1000))
    for _ in range(reads):
        if not body.read_into(buffer):
            break
    body.close()
    body.close()
    # Closing waits for a block that is being read.
    green.spawn(lambda: None).wait()
    if kind not in WITHOUT_SOURCE:
        assert source.closed == 1


@pytest.mark.parametrize("announced", [True, False], ids=["counted", "by its length"])
def test_a_client_gets_the_bytes(kind, source, announced):
    bench = Bench()
    try:
        headers = {"content-length": str(len(DATA))} if announced else {}
        bench.answer = lambda request: Response(200, dict(headers), KINDS[kind](DATA, source))
        wire = bench.wire()
        response = wire.ask("GET")
        assert (response.body, response.headers["content-length"]) == (DATA, str(len(DATA)))
        assert wire.ask("GET").body == DATA
    finally:
        bench.close()
    if kind not in WITHOUT_SOURCE:
        assert source.closed == 2


def test_a_client_gets_a_body_of_unknown_length_in_chunks(kind, source):
    bench = Bench()
    try:
        bench.answer = lambda request: Response(
            200, {}, TransformedBody(KINDS[kind](DATA, source), bytes, keeps_length=False)
        )
        response = bench.wire().ask("GET")
        assert (response.body, response.headers["transfer-encoding"]) == (DATA, "chunked")
    finally:
        bench.close()


def test_it_becomes_the_body_of_another_request(body, kind, source):
    ends = []
    response = Response(200, {}, body)
    response.on_response_end(lambda sent, complete: ends.append((sent, complete)))
    with as_request_body(response) as copied:
        assert copied.length == len(DATA)
        assert copied.read() == DATA
    assert ends == [(len(DATA), True)]
    if kind not in WITHOUT_SOURCE:
        assert source.closed == 1


def test_a_class_of_bodies_that_cannot_be_read_is_refused():
    with pytest.raises(TypeError, match="neither"):
        type("Nothing", (ResponseBody,), {})


def test_sockets_are_spliced_and_files_sent_as_files():
    assert not FileBody.fills_buffers
    assert not IterableBody.fills_buffers
    assert Filling.fills_buffers
