"""Bodies, beside what all of them promise: what each kind does of its own."""

import os

import pytest

from swift.http.body import (
    FILE_CHUNK_BYTES,
    BadFraming,
    BodyError,
    BodyTimeout,
    BytesBody,
    ClientDisconnected,
    FileBody,
    InMemoryBody,
    IterableBody,
    ResponseBody,
    as_response_body,
    iter_body_bytes,
)


def file_of(data, offset, length, on_close=lambda: None):
    fd = os.memfd_create("body")
    os.write(fd, data)
    return FileBody(fd, offset, length, on_close)


class Counted:
    """How often something was released."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1


@pytest.mark.parametrize(
    ("error", "status"), [(BodyError, 499), (ClientDisconnected, 499), (BodyTimeout, 408), (BadFraming, 400)]
)
def test_what_the_client_is_told_of_its_own_doing(error, status):
    assert error("x").status == status and issubclass(error, BodyError)


# --- what a request brings


@pytest.mark.parametrize(("chunked", "length"), [(False, 5), (True, None)])
def test_bytes_are_read_in_any_pieces_and_then_there_are_none(chunked, length):
    body = BytesBody(b"hello", chunked=chunked)
    assert (body.length, body.read(2), body.read(0), body.received) == (length, b"he", b"", 2)
    assert (body.read(99), body.read(), body.read(1), body.received) == (b"llo", b"", b"", 5)


def test_bytes_that_are_read_whole_are_not_copied():
    data = b"hello"
    assert BytesBody(data).read() is data
    assert BytesBody(data).read(99) is data


def test_a_body_that_nobody_waits_to_send_takes_no_notice_of_being_asked():
    body = BytesBody(b"x")
    body.send_continue({"a": "b"})
    body.begin_next_body()
    assert (body.read(), body.trailers) == (b"x", {})


# --- what a response sends


def test_what_is_in_memory_is_whole_until_it_is_read():
    body = InMemoryBody(b"hello")
    assert (body.remaining_bytes, body.read(2), body.remaining_bytes, list(body), body.remaining_bytes) == (
        b"hello",
        b"he",
        b"llo",
        [b"llo"],
        b"",
    )
    assert (list(body), body.read(5), body.read_all()) == ([], b"", b"")
    body.close()


def test_bytes_and_bodies_are_both_bodies():
    body = InMemoryBody(b"x")
    assert as_response_body(body) is body
    assert as_response_body(b"y").remaining_bytes == b"y"


@pytest.mark.parametrize(
    "make", [lambda done: file_of(b"x", 0, 1, done), lambda done: IterableBody([b"x"], 1, done)]
)
def test_what_stands_behind_a_body_is_released_once(make):
    done = Counted()
    body = make(done)
    body.close()
    body.close()
    assert done.times == 1


def test_a_release_that_fails_is_not_tried_again():
    body = IterableBody([], 0, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        body.close()
    body.close()


def test_a_part_of_a_file_is_those_bytes_however_many_there_are():
    data = os.urandom(FILE_CHUNK_BYTES + 100)
    body = file_of(data, 7, FILE_CHUNK_BYTES + 50)
    assert b"".join(iter_body_bytes(body)) == data[7 : FILE_CHUNK_BYTES + 57]
    assert file_of(data, 7, 0).read_all() == b""
    assert file_of(data, 7, 5).read(99) == data[7:12]


def test_a_file_that_ends_early_breaks_the_body_off_after_what_there_is():
    chunks = iter_body_bytes(file_of(b"short", 2, 99))
    assert next(chunks) == b"ort"
    with pytest.raises(BodyError, match="96 bytes early"):
        next(chunks)


def test_a_file_that_cannot_be_read_breaks_the_body_off():
    fd = os.open("/", os.O_RDONLY)
    for read in (FileBody.read_all, lambda body: body.read(5)):
        with pytest.raises(BodyError, match="cannot be read"):
            read(FileBody(fd, 0, 5, lambda: None))
    os.close(fd)


def test_bytes_and_files_come_in_their_order_through_small_buffers():
    body = IterableBody([b"ab", b"", file_of(b"xcdex", 1, 3), b"f"])
    buffer, got = memoryview(bytearray(2)), []
    while size := body.read_into(buffer):
        got.append(bytes(buffer[:size]))
    assert got == [b"ab", b"cd", b"e", b"f"]
    assert (body.read_into(buffer), body.read(1), body.length) == (0, b"", None)


def test_an_error_between_pieces_comes_after_the_pieces_before_it():
    def pieces():
        yield b"ab"
        raise BodyError("gone")

    body = IterableBody(pieces())
    assert body.read(1) + body.read(1) == b"ab"
    with pytest.raises(BodyError, match="gone"):
        body.read(1)


def test_a_body_that_fills_buffers_can_be_had_in_pieces():
    class Three(ResponseBody):
        length = 3
        left = 3

        def read_into(self, buffer):
            size = min(self.left, 2)
            buffer[:size] = b"x" * size
            self.left -= size
            return size

    assert list(Three()) == [b"xx", b"x"]
    assert (Three.fills_buffers, IterableBody.fills_buffers) == (True, False)
    assert (Three().remaining_bytes, Three().splice_into(-1, 5)) == (None, 0)
