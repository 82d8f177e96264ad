"""One client connection: what is read belongs to one request only, and no wait is without an end."""

from __future__ import annotations

import os
import socket
import time

import pytest

from swift import green
from swift.green import DeadlineExceeded
from swift.http.body import BadFraming, BodyError, BodyTimeout, ClientDisconnected, FileBody
from swift.runtime.connection import DRAIN_BYTES_MAX, Connection, ConnectionBody, ConnectionClosed
from swift.wire.http1 import BadHead, HeadLimits

LIMITS = HeadLimits()
HEAD = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
MEGABYTE = os.urandom(1 << 20)


class Client:
    """The other end of a connection."""

    def __init__(self, timeout_s=2.0):
        ours, self.sock = socket.socketpair()
        for end in (ours, self.sock):
            end.setblocking(False)
        self.connection = Connection(ours, ("10.0.0.1", 5), timeout_s)

    def sends(self, data, *, ends=False):
        self.sock.send(data)
        if ends:
            self.sock.shutdown(1)
        return self

    def got(self, size):
        """So many bytes of what was sent."""
        data = b""
        while len(data) < size:
            green.wait_readable(self.sock.fileno(), time.monotonic() + 30)
            data += self.sock.recv(size - len(data))
        return data

    def body(self, length=None, *, expects_continue=False):
        return ConnectionBody(self.connection, length, expects_continue=expects_continue)


@pytest.fixture
def make_client():
    made = []

    def make(**options):
        made.append(Client(**options))
        return made[-1]

    yield make
    for client in made:
        client.sock.close()
        client.connection.close()


@pytest.fixture
def client(make_client):
    return make_client()


# --- heads


def test_heads_come_one_after_the_other_and_what_follows_is_kept(client):
    client.sends(HEAD + b"\r\n\n" + HEAD + b"body")
    assert client.connection.read_head(LIMITS, 1.0) == HEAD
    assert client.connection.read_head(LIMITS, 1.0) == HEAD
    assert client.connection.buffer == b"body"


def test_a_head_may_come_in_single_bytes(client):
    green.spawn_detached(lambda: [client.sends(bytes([byte])) and green.sleep() for byte in b"\r\n" + HEAD])
    assert client.connection.read_head(LIMITS, 1.0) == HEAD


@pytest.mark.parametrize("before", [b"", b"\r\n", b"GET / HT"])
def test_a_client_that_leaves_before_its_head_is_done_is_done(client, before):
    client.sends(before, ends=True)
    assert client.connection.read_head(LIMITS, 1.0) is None


@pytest.mark.parametrize("before", [b"", b"\r\n\r\n"])
def test_a_client_that_says_nothing_is_done(make_client, before):
    client = make_client(timeout_s=0.01).sends(before)
    assert client.connection.read_head(LIMITS, 0.01) is None


def test_a_client_that_does_not_finish_its_head_is_late(make_client):
    client = make_client(timeout_s=0.01).sends(b"GET / HT")
    with pytest.raises(DeadlineExceeded):
        client.connection.read_head(LIMITS, 5.0)


@pytest.mark.parametrize("data", [b"GET /" + b"a" * 9000, b"GET / HTTP/1.1\r\nA: " + b"b" * 66_000])
def test_a_head_that_is_too_long_is_refused_before_its_end(client, data):
    with pytest.raises(BadHead):
        client.sends(data).connection.read_head(LIMITS, 1.0)


def test_a_connection_knows_what_it_waits_for(client):
    connection = client.connection
    assert connection.idle and connection.head_started_at and not connection.is_parked
    client.sends(HEAD).connection.read_head(LIMITS, 1.0)
    assert not connection.idle and not connection.head_started_at and not connection.is_parked
    connection.send_all(b"answer")
    client.sends(b"", ends=True).connection.read_head(LIMITS, 1.0)
    assert connection.is_parked


# --- bodies


def test_a_counted_body_ends_where_the_next_request_begins(client):
    client.sends(b"hello" + HEAD)
    body = client.body(5)
    assert (body.read(2), body.read(), body.read(), body.received, body.finished) == (
        b"he",
        b"llo",
        b"",
        5,
        True,
    )
    assert client.connection.read_head(LIMITS, 1.0) == HEAD


def test_a_chunked_body_ends_where_the_next_request_begins(client):
    client.sends(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: 1\r\n\r\n" + HEAD)
    body = client.body()
    assert not body.finished
    assert (body.read(2), body.read(), body.trailers, body.finished) == (b"ab", b"cde", {"a": "1"}, True)
    assert client.connection.read_head(LIMITS, 1.0) == HEAD


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_may_be_read_into_a_buffer_of_any_size(client, chunked):
    sent = b"5\r\nhello\r\n0\r\n\r\n" if chunked else b"hello"
    client.sends(sent + HEAD)
    body, got, buffer = client.body(None if chunked else 5), b"", memoryview(bytearray(2))
    while size := body.read_into(buffer):
        got += bytes(buffer[:size])
    assert (got, body.received, body.finished) == (b"hello", 5, True)
    assert client.connection.read_head(LIMITS, 1.0) == HEAD


READS = [
    lambda body: body.read(),
    lambda body: body.read(3),
    lambda body: body.read_into(memoryview(bytearray(9))),
]


@pytest.mark.parametrize("read", READS)
def test_a_client_that_leaves_inside_its_body_leaves_it_broken(client, read):
    body = client.sends(b"he", ends=True).body(5)
    with pytest.raises(ClientDisconnected):
        while read(body):
            continue
    with pytest.raises(ClientDisconnected):
        read(body)
    assert not body.finished and not body.is_short


@pytest.mark.parametrize("read", READS)
def test_a_client_that_falls_silent_inside_its_body_is_late(make_client, read):
    body = make_client(timeout_s=0.01).body(5)
    with pytest.raises(BodyTimeout):
        read(body)
    assert not body.finished and not body.is_short


@pytest.mark.parametrize(
    "data", [b"x\r\n", b"-1\r\n", b"5\nhello", b"2\r\nabc\r\n", b"0x2\r\nab\r\n", b"\r\n" * 9]
)
def test_malformed_framing_breaks_the_body_for_good(client, data):
    body = client.sends(data + b"0\r\n\r\n" + HEAD).body()
    with pytest.raises(BadFraming):
        body.read()
    with pytest.raises(BodyError):
        body.read()
    assert not body.finished and not body.is_short and not body.drain()


def test_another_stage_of_a_body_is_read_after_the_first(client):
    client.sends(b"1\r\na\r\n0\r\n\r\n1\r\nb\r\n0\r\n\r\n")
    body = client.body()
    assert body.read() == b"a"
    body.begin_next_body()
    assert (body.finished, body.read(), body.finished) == (False, b"b", True)


def test_a_client_that_waits_is_asked_for_its_body_once(client):
    body = client.sends(b"hello").body(5, expects_continue=True)
    assert not body.is_short, "nobody knows whether a body will come"
    body.read(1)
    body.read()
    client.connection.send_all(b"END")
    told = client.got(len(b"HTTP/1.1 100 Continue\r\n\r\nEND"))
    assert told == b"HTTP/1.1 100 Continue\r\n\r\nEND"


def test_a_client_that_does_not_wait_is_asked_for_nothing(client):
    client.body(5).send_continue({"x": "y"})
    assert client.connection.sent_bytes == 0


def test_asking_a_client_that_has_left_is_an_error_of_its_body(client):
    client.sock.close()
    with pytest.raises(ClientDisconnected):
        client.body(5, expects_continue=True).read()


@pytest.mark.parametrize(
    ("length", "short"), [(0, True), (DRAIN_BYTES_MAX, True), (DRAIN_BYTES_MAX + 1, False), (None, True)]
)
def test_what_is_left_is_worth_reading_when_it_is_short(client, length, short):
    assert client.body(length).is_short is short


def test_what_is_left_is_dropped_up_to_a_limit(client):
    client.sends(b"x" * 100 + HEAD)
    assert client.body(100).drain()
    assert client.connection.read_head(LIMITS, 1.0) == HEAD


def test_a_chunked_body_that_does_not_end_is_given_up(client):
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    client.connection.buffer = chunk * (DRAIN_BYTES_MAX // 0x1000 + 2)
    assert not client.body().drain()


def test_a_client_that_leaves_what_is_left_unsent_is_not_kept(client):
    assert not client.sends(b"x", ends=True).body(100).drain()


# --- answers


@pytest.mark.parametrize("data", [b"", b"x", MEGABYTE, memoryview(MEGABYTE)])
def test_every_byte_is_sent_however_slowly_it_is_taken(client, data):
    task = green.spawn(client.got, len(data))
    client.connection.send_all(data)
    assert (task.wait(), client.connection.sent_bytes) == (bytes(data), len(data))


def test_a_client_that_takes_nothing_is_given_up(make_client):
    client = make_client(timeout_s=0.01)
    with pytest.raises(ConnectionClosed, match="does not take"):
        client.connection.send_all(MEGABYTE)


def test_a_client_that_has_left_takes_nothing(client):
    client.sock.close()
    with pytest.raises(ConnectionClosed):
        client.connection.send_all(b"x")


def file_of(data, offset, length):
    fd = os.memfd_create("file")
    os.write(fd, data)
    return FileBody(fd, offset, length, lambda: os.close(fd))


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_part_of_a_file_is_sent(client, is_tls):
    body = file_of(MEGABYTE, 5, 700_000)
    client.connection.is_tls = is_tls
    task = green.spawn(client.got, 700_000)
    client.connection.send_file(body)
    body.close()
    assert (task.wait(), client.connection.sent_bytes) == (MEGABYTE[5:700_005], 700_000)


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_file_that_is_shorter_than_announced_ends_the_connection(client, is_tls):
    body = file_of(b"short", 0, 9)
    client.connection.is_tls = is_tls
    with pytest.raises(ConnectionClosed, match="before its announced length"):
        client.connection.send_file(body)
    body.close()
    assert client.got(5) == b"short"


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_file_that_cannot_be_read_ends_the_connection(client, is_tls):
    fd = os.open("/", os.O_RDONLY)
    client.connection.is_tls = is_tls
    with pytest.raises(ConnectionClosed):
        client.connection.send_file(FileBody(fd, 0, 9, lambda: None))
    os.close(fd)


def test_what_a_pipe_holds_is_sent(client):
    inlet, outlet = os.pipe2(os.O_NONBLOCK)
    os.write(outlet, MEGABYTE[:60_000])
    task = green.spawn(client.got, 60_000)
    client.connection.send_pipe(inlet, 60_000)
    assert task.wait() == MEGABYTE[:60_000]
    os.close(inlet)
    os.close(outlet)


# --- the end


def test_whoever_waits_for_a_client_sees_the_hang_up(client):
    waiting = green.spawn(client.connection.read_head, LIMITS, 5.0)
    green.sleep()
    client.connection.shutdown()
    assert waiting.wait() is None


def test_hanging_up_and_closing_may_be_done_again(client):
    for _ in range(2):
        client.connection.shutdown()
    for _ in range(2):
        client.connection.close()
    client.connection.shutdown()
    assert "10.0.0.1" in repr(client.connection)
