"""Objects of any cut become archives with the right checksums (proxy.md §13)."""

import random
from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.checksum import ChunkSums
from swift.ec.archive import ArchiveEncoder, Segmenter, archive_length, geometry_of
from swift.ec.codec import Codec

CODEC = Codec("liberasurecode_rs_vand", 2, 1)


@given(st.lists(st.binary(min_size=1, max_size=40)), st.integers(1, 25))
def test_segments_are_the_stream_in_pieces_of_one_size(pieces, size):
    segmenter = Segmenter(size)
    segments = [segment for piece in pieces for segment in segmenter.feed(piece)]
    rest = segmenter.rest()
    assert all(len(segment) == size for segment in segments)
    assert len(rest) < size
    assert b"".join(segments) + rest == b"".join(pieces)
    assert segmenter.missing == size


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 4097, 6000, 20000])
def test_archives_have_the_announced_length_and_their_own_etag(length):
    body = random.Random(length).randbytes(length)
    geometry = geometry_of(CODEC, 4096)
    segmenter, encoder = Segmenter(4096), ArchiveEncoder(CODEC)
    segments = segmenter.feed(body) if body else []
    rest = segmenter.rest()
    archives = [b""] * 3
    for segment in [*segments, *([rest] if rest else [])]:
        for index, fragment in enumerate(encoder.encode(segment)):
            archives[index] += fragment
    assert {len(a) for a in archives} == {archive_length(CODEC, geometry, length)}
    assert [encoder.archive_etag(i) for i in range(3)] == [md5(a).hexdigest() for a in archives]
    assert (encoder.etag, encoder.size) == (md5(body).hexdigest(), length)
    assert encoder.archive_sums(0) is None


def test_checksums_of_an_archive_s_chunks_are_kept_when_somebody_wants_them():
    body = random.Random(7).randbytes(20000)
    encoder, archives = ArchiveEncoder(CODEC, sums_chunk=1024), [b""] * 3
    for start in range(0, len(body), 4096):
        for index, fragment in enumerate(encoder.encode(body[start : start + 4096])):
            archives[index] += fragment
    for index, archive in enumerate(archives):
        sums = ChunkSums(1024)
        sums.update(archive)
        assert encoder.archive_sums(index) == sums.digest()


def test_the_golden_length():
    assert archive_length(CODEC, geometry_of(CODEC, 4096), 6000) == 3160
