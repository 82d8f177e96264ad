"""An archive is a row of whole fragments of one index, in whatever pieces it is read (replication.md §4)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ec.codec import Codec
from swift.policy.policy import ErasureCode, Policy
from swift.store.api import LIVE, ObjectState
from swift.store.errors import Damaged
from swift.store.maintenance import FragmentWalk, archive_walk

CODEC = Codec("liberasurecode_rs_vand", 2, 1)
SEGMENTS = [random.Random(n).randbytes(length) for n, length in enumerate((500, 500, 77))]
ARCHIVES = [b"".join(parts) for parts in zip(*map(CODEC.encode, SEGMENTS), strict=True)]
EC = Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", 2, 1))


def walk(data, index="1", piece=1 << 20):
    walking = FragmentWalk(index)
    for start in range(0, len(data), piece):
        walking.feed(data[start : start + piece])
    walking.finish()


@pytest.mark.parametrize("index", [0, 1, 2])
@given(piece=st.integers(1, 400))
def test_a_whole_archive_is_walked_in_any_pieces(index, piece):
    walk(ARCHIVES[index], str(index), piece)


def test_an_empty_archive_is_whole():
    walk(b"")


@given(cut=st.integers(1, len(ARCHIVES[1]) - 1), piece=st.integers(1, 400))
def test_an_archive_that_ends_inside_a_fragment_is_damaged(cut, piece):
    if cut in _fragment_ends():
        walk(ARCHIVES[1][:cut], "1", piece)
        return
    with pytest.raises(Damaged, match="inside a fragment"):
        walk(ARCHIVES[1][:cut], "1", piece)


def _fragment_ends():
    ends, total = [], 0
    for segment in SEGMENTS:
        total += len(CODEC.encode(segment)[1])
        ends.append(total)
    return ends


def test_fragments_of_another_index_are_damage():
    with pytest.raises(Damaged, match="index 2 is in the archive of index 1"):
        walk(ARCHIVES[2], "1")


def test_bytes_that_are_no_fragment_are_damage():
    with pytest.raises(Damaged):
        walk(b"x" * 200)
    with pytest.raises(Damaged):
        walk(ARCHIVES[1] + bytes(80), "1")


def test_only_archives_are_walked_and_only_with_the_metadata_they_need():
    names = ("Content-Length", "X-Object-Sysmeta-Ec-Frag-Index", "X-Object-Sysmeta-Ec-Etag")
    whole = dict.fromkeys(names, "1")
    assert archive_walk(Policy(0, "gold"), ObjectState(LIVE)) is None
    assert archive_walk(EC, ObjectState(LIVE, whole)) is not None
    for name in names:
        rest = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(Damaged, match=name):
            archive_walk(EC, ObjectState(LIVE, rest))
