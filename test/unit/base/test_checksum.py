"""Chunk checksums: few per body, the same however the body was cut, different when a byte is."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.checksum import (
    CHUNK_BYTES,
    CHUNK_BYTES_MAX,
    CHUNK_BYTES_UNKNOWN,
    CHUNKS_MAX,
    ChunkSums,
    chunk_size_for,
)

CHUNK = 1 << 10


def sums_of(body, cuts=()):
    sums = ChunkSums(CHUNK)
    for start, stop in zip((0, *cuts), (*cuts, len(body)), strict=True):
        sums.update(body[start:stop])
    return sums


@pytest.mark.parametrize("size", [None, 0, 1, 100 << 20, (640 << 20) + 1, 5 << 30])
def test_the_number_of_chunks_stays_small(size):
    chunk = chunk_size_for(size)
    assert chunk.bit_count() == 1
    assert CHUNK_BYTES <= chunk <= CHUNK_BYTES_MAX
    assert size is None or size <= chunk * CHUNKS_MAX
    assert size is not None or chunk == CHUNK_BYTES_UNKNOWN


@given(st.binary(max_size=5000), st.data())
def test_the_digest_does_not_depend_on_how_the_body_was_cut(body, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    assert sums_of(body, cuts).digest() == sums_of(body).digest()


@given(st.binary(min_size=1, max_size=5000), st.data())
def test_one_wrong_byte_or_a_missing_one_changes_the_digest(body, data):
    place = data.draw(st.integers(0, len(body) - 1))
    wrong = body[:place] + bytes([body[place] ^ data.draw(st.integers(1, 255))]) + body[place + 1 :]
    assert sums_of(wrong).digest() != sums_of(body).digest()
    assert sums_of(body[:-1]).digest() != sums_of(body).digest()


def test_chunks_that_change_places_change_the_digest():
    first, second = os.urandom(CHUNK), os.urandom(CHUNK)
    assert sums_of(first + second).digest() != sums_of(second + first).digest()
