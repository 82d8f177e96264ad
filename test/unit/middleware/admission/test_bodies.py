"""What is moved is drawn from a grant, whichever way it is moved, and nothing more."""

import os

import pytest

from swift.http.body import BytesBody, ClientDisconnected, IterableBody, as_response_body, iter_body_bytes
from swift.middleware.admission.bodies import MeteredDownload, MeteredUpload

DATA = b"0123456789"


@pytest.fixture
def drawn():
    return []


def read_by_pieces(body):
    return b"".join(iter_body_bytes(body))


def read_by_size(body):
    return b"".join(iter(lambda: body.read(3), b""))


def read_into_buffers(body):
    found, buffer = b"", bytearray(4)
    while size := body.read_into(memoryview(buffer)):
        found += buffer[:size]
    return found


def read_by_splice(body):
    out, into = os.pipe()
    try:
        found = b""
        while size := body.splice_into(into, 4):
            found += os.read(out, size)
        return found
    finally:
        os.close(out)
        os.close(into)


@pytest.mark.parametrize(
    "read", [read_by_pieces, read_by_size, read_into_buffers], ids=lambda read: read.__name__
)
@pytest.mark.parametrize("source", [DATA, IterableBody([b"01234", b"", b"56789"])], ids=["bytes", "pieces"])
def test_a_download_draws_all_that_it_gives(drawn, read, source):
    source = IterableBody([b"01234", b"", b"56789"]) if isinstance(source, IterableBody) else source
    assert read(MeteredDownload(as_response_body(source), drawn.append)) == DATA
    assert sum(drawn) == len(DATA) and 0 not in drawn


def test_what_goes_through_a_pipe_is_drawn_too(drawn):
    class Spliced(IterableBody):
        left = 10

        def splice_into(self, pipe, size):
            size = min(size, self.left)
            self.left -= size
            return os.write(pipe, b"x" * size) if size else 0

    assert read_by_splice(MeteredDownload(Spliced([]), drawn.append)) == b"x" * 10
    assert drawn == [4, 4, 2]


def test_a_download_has_the_length_of_what_it_gives_and_closes_it(drawn):
    closed = []
    body = MeteredDownload(IterableBody([DATA], 10, lambda: closed.append(1)), drawn.append)
    assert body.length == 10
    body.close()
    assert closed == [1]


@pytest.mark.parametrize("read", [read_by_size, read_into_buffers, lambda body: body.read()])
def test_an_upload_draws_all_that_it_takes(drawn, read):
    body = MeteredUpload(BytesBody(DATA), drawn.append)
    assert (body.length, read(body), body.received) == (10, DATA, 10)
    assert sum(drawn) == len(DATA) and 0 not in drawn


def test_who_may_take_no_more_has_taken_what_was_drawn():
    def refuse(size):
        raise ClientDisconnected("over")

    source = BytesBody(DATA)
    with pytest.raises(ClientDisconnected):
        MeteredUpload(source, refuse).read(3)
    assert source.received == 3
