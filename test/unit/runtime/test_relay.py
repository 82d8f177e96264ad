"""A body reaches the client whole and not longer than announced, spliced or copied."""

import os

import pytest

from swift.http.body import BodyError, ResponseBody
from swift.runtime.relay import PIPE_SIZES, SPLICE_BYTES_MIN, relay_body


class Sent:
    """A connection that keeps what it is given; what went through a pipe apart."""

    is_tls = False

    def __init__(self):
        self.copied, self.spliced = [], []

    def send_all(self, data):
        self.copied.append(bytes(data))

    def send_pipe(self, source, size):
        self.spliced.append(os.read(source, size))
        assert len(self.spliced[-1]) == size

    @property
    def all(self):
        return b"".join(self.spliced + self.copied)


class Socketlike(ResponseBody):
    """A body that gives up to ``step`` bytes at a time to a pipe, and from ``copied_from`` on none."""

    def __init__(self, data, *, step=PIPE_SIZES[0], copied_from=None):
        self.data, self.step, self.at = data, step, 0
        self.copied_from = len(data) if copied_from is None else copied_from

    def splice_into(self, pipe, size):
        size = min(size, self.step, max(0, self.copied_from - self.at))
        done = os.write(pipe, self.data[self.at : self.at + size]) if size else 0
        self.at += done
        return done

    def read_into(self, buffer):
        piece = self.data[self.at : self.at + min(self.step, len(buffer))]
        buffer[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)


DATA = bytes(n % 251 for n in range(3 * SPLICE_BYTES_MIN + 77))


def relayed(body, announced):
    sent = Sent()
    relay_body(sent, body, announced)
    return sent


@pytest.mark.parametrize("step", [1000, 70_000, PIPE_SIZES[0]])
def test_a_large_body_of_a_socket_goes_through_a_pipe(step):
    sent = relayed(Socketlike(DATA, step=step), len(DATA))
    assert sent.all == DATA and not sent.copied


def test_what_cannot_be_spliced_any_more_is_copied():
    sent = relayed(Socketlike(DATA, copied_from=100_000), len(DATA))
    assert sent.all == DATA and len(b"".join(sent.spliced)) == 100_000


@pytest.mark.parametrize("announced", [10, None])
def test_a_short_body_and_one_of_unknown_length_are_copied(announced):
    sent = relayed(Socketlike(b"0123456789"), announced)
    assert sent.copied == [b"0123456789"] and not sent.spliced


def test_nothing_is_spliced_into_tls():
    sent = Sent()
    sent.is_tls = True
    relay_body(sent, Socketlike(DATA), len(DATA))
    assert sent.all == DATA and not sent.spliced


@pytest.mark.parametrize("size", [5, SPLICE_BYTES_MIN + 5])
def test_a_body_that_ends_early_says_how_much_was_missing(size):
    with pytest.raises(BodyError, match="ended 5 bytes early"):
        relayed(Socketlike(DATA[:size]), size + 5)


@pytest.mark.parametrize("size", [5, SPLICE_BYTES_MIN + 5])
def test_a_body_is_cut_at_what_was_announced(size):
    sent = Sent()
    with pytest.raises(BodyError, match="longer than announced"):
        relay_body(sent, Socketlike(DATA[: size + 1]), size)
    assert sent.all == DATA[:size]


def test_an_empty_body_sends_nothing():
    assert relayed(Socketlike(b""), 0).all == b""


def test_without_pipes_everything_is_copied(monkeypatch):
    def none(_flags):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe2", none)
    sent = relayed(Socketlike(DATA), len(DATA))
    assert sent.all == DATA and not sent.spliced


def test_no_pipe_is_left_open():
    before = len(os.listdir("/proc/self/fd"))
    relayed(Socketlike(DATA), len(DATA))
    with pytest.raises(BodyError):
        relayed(Socketlike(DATA), len(DATA) + 1)
    assert len(os.listdir("/proc/self/fd")) == before
