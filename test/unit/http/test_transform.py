"""Bodies over bodies: transformed, observed, and carried from a response to a request."""

import zlib

import pytest

from swift.http.body import BodyError, BytesBody, IterableBody
from swift.http.response import Response
from swift.http.transform import SourceBodyError, TransformedBody, TransformedRequestBody, as_request_body

DATA = b"0123456789" * 10_000


def in_pieces(size=999):
    return IterableBody([DATA[start : start + size] for start in range(0, len(DATA), size)], len(DATA))


def test_a_codec_that_holds_bytes_back_gives_them_at_the_end():
    packer = zlib.compressobj()
    body = TransformedBody(in_pieces(), packer.compress, last=packer.flush, keeps_length=False)
    assert body.length is None
    assert zlib.decompress(body.read_all()) == DATA


@pytest.mark.parametrize("size", [1, 1000, 1 << 20, -1])
def test_so_it_does_for_requests(size):
    packer = zlib.compressobj()
    source = BytesBody(DATA)
    body = TransformedRequestBody(source, packer.compress, last=packer.flush, keeps_length=False)
    assert body.length is None
    packed = body.read() if size < 0 else b"".join(iter(lambda: body.read(size), b""))
    assert zlib.decompress(packed) == DATA
    assert body.received == len(DATA)


def test_wrappers_pass_on_what_belongs_to_the_sender():
    class Sender(BytesBody):
        def __init__(self):
            super().__init__(b"x", chunked=True)
            self.said = []

        @property
        def trailers(self):
            return {"x-sum": "1"}

        def send_continue(self, headers):
            self.said.append(headers)

        def begin_next_body(self):
            self.said.append("next")

    sender = Sender()
    body = TransformedRequestBody(sender, bytes)
    body.send_continue({"x-a": "b"})
    body.begin_next_body()
    assert (sender.said, body.trailers) == ([{"x-a": "b"}, "next"], {"x-sum": "1"})


def breaking():
    yield b"abc"
    raise BodyError("gone")


@pytest.mark.parametrize(
    ("announced", "content"),
    [
        ("10", IterableBody(breaking())),
        ("10", IterableBody([b"abc"])),
        ("2", IterableBody([b"abc"])),
    ],
    ids=["breaks off", "too short", "too long"],
)
def test_a_copy_of_a_body_that_is_not_as_announced_fails_with_503(announced, content):
    ends = []
    response = Response(200, {"content-length": announced}, content)
    response.on_response_end(lambda sent, complete: ends.append(complete))
    with pytest.raises(SourceBodyError) as failure, as_request_body(response) as body:
        assert body.length == int(announced)
        body.read()
    assert failure.value.status == 503
    assert ends == [False]


def test_a_response_of_unknown_length_is_a_chunked_request():
    with as_request_body(Response(200, {}, IterableBody([b"ab", b"c"]))) as body:
        assert (body.length, body.read()) == (None, b"abc")
