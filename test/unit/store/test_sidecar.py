"""Chunk checksums cover every byte and are ignored when they do not fit."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.checksum import CHUNKS_MAX, ChunkSums
from swift.store.verified import Sidecar, encode_sums

CHUNK = 1 << 16


@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=6))
def test_sums_do_not_depend_on_how_the_body_was_cut(sizes):
    body = os.urandom(sum(sizes))
    sums = ChunkSums(CHUNK)
    position = 0
    for size in sizes:
        sums.update(body[position : position + size])
        position += size
    sidecar = Sidecar.decode(encode_sums(sums), len(body))
    for number in range(-(-len(body) // CHUNK)):
        chunk = body[number * CHUNK : (number + 1) * CHUNK]
        assert sidecar.matches(number, (chunk[:1], chunk[1:]))
        assert not sidecar.matches(number, (bytes([chunk[0] ^ 1]) + chunk[1:],))


def test_an_empty_or_endless_body_has_none():
    assert encode_sums(ChunkSums(CHUNK)) is None
    endless = ChunkSums(1)
    endless.update(b"x" * (CHUNKS_MAX + 1))
    assert encode_sums(endless) is None


@pytest.mark.parametrize("value", [None, b"", b"2:16:abcd", b"1:16", b"1:x:abcd", b"1:16:abc", b"1:99:abcd"])
def test_what_is_no_sidecar_is_none(value):
    assert Sidecar.decode(value, 100) is None


def test_a_sidecar_of_another_length_is_none():
    sums = ChunkSums(CHUNK)
    sums.update(b"x" * (CHUNK + 1))
    assert Sidecar.decode(encode_sums(sums), CHUNK + 1) is not None
    assert Sidecar.decode(encode_sums(sums), CHUNK) is None
