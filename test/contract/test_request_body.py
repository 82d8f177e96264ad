"""Contract of request bodies (``RequestBody`` in swift/http/body.py)."""

import io
import os

import pytest

from swift.http.body import BytesBody, InMemoryBody, RequestBody
from swift.http.response import Response
from swift.http.transform import TransformedRequestBody, as_request_body
from swift.obj.ssync.receiver import SubrequestBody
from swift.runtime.wsgi import request_from_environ
from test.unit.runtime.conftest import Bench

DATA = os.urandom(100_003)


class Lines:
    """A connection whose next bytes belong to a body."""

    def __init__(self, data):
        self._data = io.BytesIO(data + b"more")

    def take(self, size):
        return self._data.read(min(size, 5000))


def from_foreign_server(data):
    environ = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/v1/a",
        "CONTENT_LENGTH": str(len(data)),
        "wsgi.input": io.BytesIO(data + b"the next request"),
    }
    return request_from_environ(environ).body


KINDS = {
    "bytes": BytesBody,
    "foreign server": from_foreign_server,
    "subrequest of SSYNC": lambda data: SubrequestBody(Lines(data), len(data)),
    "mapped": lambda data: TransformedRequestBody(BytesBody(data), bytes),
    "response": lambda data: as_request_body(Response(200, {}, data)),
    "response in pieces": lambda data: as_request_body(Response(200, {}, InMemoryBody(data))),
}


def check(body, read):
    """Check the contract of one body; ``read`` reads all its bytes in one of the supported ways."""
    assert isinstance(body, RequestBody)
    assert body.received == 0
    got = read(body)
    assert (body.received, body.read(5), body.read(), body.read_into(memoryview(bytearray(5)))) == (
        len(got),
        b"",
        b"",
        0,
    )
    assert body.trailers == {}
    return got


def at_once(body):
    return body.read()


def by_size(body):
    return b"".join(iter(lambda: body.read(777), b""))


def into_buffers(body):
    buffer, got = memoryview(bytearray(7_777)), bytearray()
    while size := body.read_into(buffer):
        got += buffer[:size]
    return bytes(got)


WAYS = [at_once, by_size, into_buffers]


@pytest.mark.parametrize("read", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_of_reading_gives_the_bytes(kind, read):
    body = KINDS[kind](DATA)
    assert body.length == len(DATA)
    assert check(body, read) == DATA


@pytest.mark.parametrize("read", WAYS)
@pytest.mark.parametrize("chunked", [False, True])
def test_every_way_of_reading_a_connection_gives_the_bytes(read, chunked):
    bench = Bench()
    seen = []

    def answer(request):
        assert request.body.length == (None if chunked else len(DATA))
        seen.append(check(request.body, read))
        return Response(200)

    bench.answer = answer
    try:
        wire = bench.wire()
        if chunked:
            wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            wire.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(DATA), DATA))
        else:
            wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(DATA) + DATA)
        assert wire.reply().status == 200
    finally:
        bench.close()
    assert seen == [DATA]


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_can_be_read_partially(kind):
    body = KINDS[kind](DATA)
    first = body.read(10)
    assert DATA.startswith(first)
    assert 0 < len(first) <= 10
    assert body.received >= len(first)
    body.send_continue({})
