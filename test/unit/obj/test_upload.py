"""A body gets into a draft whole, in order and within its size, whatever the disk and the sender do."""

from __future__ import annotations

import time
from hashlib import md5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift import green
from swift.base.calls import run_inline
from swift.http.body import BodyTimeout, BytesBody, ClientDisconnected, RequestBody
from swift.http.response import HTTPError
from swift.obj.upload import (
    BATCH_BYTES,
    FIRST_BYTES,
    DraftWriter,
    accept_trailers,
    read_small,
    receive_all,
    receive_exactly,
)
from swift.store.handle import OpenDraft
from swift.wire import etagtrailer

LATE = time.monotonic() + 10_000


class IterableBody(RequestBody):
    """A body that comes in pieces of some sizes."""

    def __init__(self, data, sizes, length=None):
        self._data, self._sizes = data, list(sizes)
        self.length = length
        self.received = 0

    def read(self, size=-1):
        step = min(self._sizes.pop(0) if self._sizes else len(self._data), size if size >= 0 else 1 << 30)
        piece, self._data = self._data[:step], self._data[step:]
        return piece

    def read_into(self, buffer):
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class Draft:
    """Keeps what is written; fails at a certain write."""

    def __init__(self, fails_at=None):
        self.data = b""
        self.is_discarded = False
        self.writes = 0
        self.settled = None
        self._fails_at = fails_at

    def may_block(self, size_bytes):
        return True

    def write(self, data):
        self.writes += 1
        if self.writes == self._fails_at:
            raise OSError(5, "Input/output error")
        green.sleep()
        self.data += bytes(data)

    def discard(self):
        self.is_discarded = True

    def accept_etag(self, etag, sums):
        self.settled = etag, sums
        return sums == "good"


def writer_to(draft):
    return DraftWriter(OpenDraft(draft, run_inline))


@pytest.fixture
def draft():
    return Draft()


# --- small ones


@given(st.binary(max_size=50), st.lists(st.integers(1, 9), max_size=20))
def test_a_small_body_is_read_whole_however_it_comes(data, sizes):
    assert read_small(IterableBody(data, sizes, len(data)), len(data)) == data


@pytest.mark.parametrize("size", [3, 5])
def test_a_small_body_of_another_size_is_refused(size):
    with pytest.raises(ClientDisconnected):
        read_small(IterableBody(b"four", [2, 2]), size)


# --- large ones


@settings(max_examples=20)
@given(
    st.integers(0, 3 * BATCH_BYTES + 7) | st.just(FIRST_BYTES) | st.just(BATCH_BYTES),
    st.lists(st.integers(1, BATCH_BYTES), max_size=8),
    st.booleans(),
)
def test_a_large_body_is_written_in_order_while_it_comes(size, sizes, is_known):
    data = bytes(n % 251 for n in range(1009)) * (size // 1009 + 1)
    draft = Draft()
    body = IterableBody(data[:size], sizes)
    known = size if is_known else None
    receive_all(body, writer_to(draft), size=known, size_max=1 << 30, deadline=LATE)
    assert md5(draft.data).digest() == md5(data[:size]).digest()


class Measuring(BytesBody):
    """Remembers how large the buffers are that it is received in."""

    def __init__(self, data):
        super().__init__(data)
        self.buffers = []

    def read_into(self, buffer):
        self.buffers.append(len(buffer.obj))
        return super().read_into(buffer)


def test_what_may_be_small_is_received_in_a_small_buffer(draft):
    for receive in (
        lambda body: receive_all(body, writer_to(draft), size=None, size_max=9, deadline=LATE),
        lambda body: receive_exactly(body, writer_to(draft), 9, LATE),
    ):
        body = Measuring(b"x" * 9)
        receive(body)
        assert set(body.buffers) == {FIRST_BYTES}


@pytest.mark.parametrize("announced", [9, 11])
def test_another_size_than_announced_is_refused(draft, announced):
    with pytest.raises(ClientDisconnected):
        receive_all(BytesBody(b"x" * 10), writer_to(draft), size=announced, size_max=1 << 30, deadline=LATE)


def test_a_body_of_unknown_size_has_a_limit(draft):
    writer = writer_to(draft)
    with pytest.raises(HTTPError) as caught:
        receive_all(BytesBody(b"x" * 10), writer, size=None, size_max=9, deadline=LATE)
    assert caught.value.response.status == 413
    receive_all(BytesBody(b"x" * 9), writer_to(draft), size=None, size_max=9, deadline=LATE)


def test_an_upload_that_takes_too_long_ends(draft):
    with pytest.raises(BodyTimeout):
        receive_all(BytesBody(b"x"), writer_to(draft), size=1, size_max=9, deadline=time.monotonic() - 1)


def test_a_write_that_fails_ends_the_upload_with_its_error():
    body = BytesBody(b"x" * (3 * BATCH_BYTES))
    with pytest.raises(OSError, match="Input/output"):
        receive_all(body, writer_to(Draft(fails_at=2)), size=None, size_max=1 << 30, deadline=LATE)


def test_a_part_of_a_body_leaves_the_rest(draft):
    body = BytesBody(b"abcdefgh")
    receive_exactly(body, writer_to(draft), 5, LATE)
    assert draft.data == b"abcde" and body.read(9) == b"fgh"
    with pytest.raises(ClientDisconnected, match="0 of 2"):
        receive_exactly(body, writer_to(draft), 2, LATE)


def test_a_draft_is_not_thrown_away_under_a_write(draft):
    writer = writer_to(draft)
    writer.write(b"abc")
    writer.abandon()
    assert not draft.is_discarded
    while not draft.is_discarded:
        green.sleep()
    assert draft.data == b"abc"


def test_a_draft_that_nobody_writes_to_goes_at_once(draft):
    writer_to(draft).abandon()
    assert draft.is_discarded


# --- the sender's MD5


GOOD = etagtrailer.trailers("a" * 32, "good")


def test_the_senders_md5_is_taken_when_the_bytes_are_its_own(draft):
    accept_trailers(draft, GOOD)
    assert draft.settled == ("a" * 32, "good")


@pytest.mark.parametrize(
    ("trailers", "error"),
    [
        ({}, ClientDisconnected),
        (etagtrailer.trailers("a" * 32, ""), ClientDisconnected),
        (etagtrailer.trailers("a" * 32, "others"), HTTPError),
        (etagtrailer.trailers("A" * 32, "good"), HTTPError),
        (etagtrailer.trailers("a" * 31, "good"), HTTPError),
        (etagtrailer.trailers("a" * 32 + "\n", "good"), HTTPError),
    ],
)
def test_trailers_that_are_none_or_of_other_bytes_are_refused(draft, trailers, error):
    with pytest.raises(error):
        accept_trailers(draft, trailers)
