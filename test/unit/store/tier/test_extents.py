"""Logs of bodies: what is read is what was written, or nothing."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift.store.tier.entry import Extent
from swift.store.tier.extents import ExtentLog, owner_of, place_after, room_for

CAPACITY = 4096


@pytest.fixture
def log(tmp_path):
    made = ExtentLog(str(tmp_path / "log"), CAPACITY)
    yield made
    made.close()


def test_what_was_written_is_read_by_its_owner_alone(log):
    extent = log.write(0, 7, b"body")
    assert extent == Extent(0, 4)
    assert log.read(extent, 7) == b"body"
    assert log.read(extent, 8) is None


@pytest.mark.parametrize(
    "other", [Extent(1, 4), Extent(CAPACITY, 4), Extent(0, 3), Extent(0, 5), Extent(900, 4)]
)
def test_what_is_somewhere_else_is_nothing(log, other):
    log.write(0, 7, b"body")
    assert log.read(other, 7) is None


def test_what_was_written_over_is_nothing(log):
    first = log.write(0, 7, b"a" * 100)
    second = log.write(CAPACITY, 7, b"a" * 100)
    assert log.read(first, 7) is None
    assert log.read(second, 7) == b"a" * 100


@settings(max_examples=60)
@given(st.integers(0, 4000), st.integers(1, 255))
def test_a_changed_byte_makes_it_nothing(tmp_path_factory, object_path, change):
    path = tmp_path_factory.mktemp("log") / "log"
    log = ExtentLog(str(path), CAPACITY)
    extent = log.write(0, 7, bytes(range(200)))
    data = bytearray(path.read_bytes())
    data[object_path % len(data)] ^= change
    path.write_bytes(data)
    assert log.read(extent, 7) is None
    log.close()


def test_a_torn_or_emptied_file_has_nothing(tmp_path, log):
    extent = log.write(0, 7, b"a" * 100)
    os.truncate(tmp_path / "log", 90)
    assert log.read(extent, 7) is None
    os.truncate(tmp_path / "log", 0)
    assert log.read(extent, 7) is None


def test_a_log_that_was_made_smaller_is_cut(tmp_path, log):
    log.write(3000, 7, b"a" * 500)
    smaller = ExtentLog(str(tmp_path / "log"), 1000)
    smaller.write(0, 7, b"b")
    assert os.path.getsize(tmp_path / "log") == 1000
    smaller.close()


@given(st.integers(0, 1 << 60), st.integers(0, CAPACITY - room_for(0)))
def test_a_piece_never_goes_over_the_end(head, length):
    object_path = place_after(head, length, CAPACITY)
    assert object_path >= head and object_path - head < CAPACITY
    assert object_path % CAPACITY + room_for(length) <= CAPACITY


def test_an_owner_is_a_body_and_which_piece_of_it():
    etag = "d41d8cd98f00b204e9800998ecf8427e"
    assert owner_of(etag) == 0xD41D8CD98F00B204
    assert owner_of(etag, 1) != owner_of(etag)
    assert owner_of("no etag") == 0


def test_it_is_open_while_it_is_used_and_opens_again(log):
    extent = log.write(0, 7, b"body")
    log.close()
    log.close()
    assert log.read(extent, 7) == b"body"
