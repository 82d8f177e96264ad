"""A small archive that stands for a large one is unpacked in small pieces."""

import bz2
import gzip
import io
import random

import pytest

from swift.http.body import CHUNK_BYTES
from swift.middleware.bulk.unpack import DecompressedReader
from swift.wire.tar import BadTar

PACK = {"tar": bytes, "tar.gz": gzip.compress, "tar.bz2": bz2.compress}
DATA = random.Random(5).randbytes(200_000) + b"\0" * 500_000


def everything(data, kind, *, step=1 << 20, size=1 << 20):
    source = io.BytesIO(data)
    unpacked = DecompressedReader(lambda wanted: source.read(min(wanted, step)), kind)
    pieces = list(iter(lambda: unpacked.read(size), b""))
    assert kind == "tar" or max(map(len, pieces), default=0) <= CHUNK_BYTES
    return b"".join(pieces)


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("step", [1000, 1 << 20])
def test_what_was_packed_comes_out(kind, step):
    assert everything(PACK[kind](DATA), kind, step=step) == DATA


@pytest.mark.parametrize("kind", ["tar.gz", "tar.bz2"])
def test_streams_may_follow_each_other_and_junk_may_follow_them(kind):
    packed = PACK[kind](b"one") + PACK[kind](b"two") + b"\0junk"
    assert everything(packed, kind) == b"onetwo"
    assert everything(packed, kind, step=1) == b"onetwo"


@pytest.mark.parametrize("kind", ["tar.gz", "tar.bz2"])
def test_a_bomb_is_read_as_slowly_as_anything_else(kind):
    bomb = PACK[kind](b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    source = io.BytesIO(bomb)
    unpacked = DecompressedReader(source.read, kind)
    for _ in range(50):
        assert len(unpacked.read(1 << 30)) <= CHUNK_BYTES


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b"", "tar.gz", "not a gzip file"),
        (b"junk", "tar.gz", "not a gzip file"),
        (gzip.compress(b"x", mtime=0)[:8] + b"\xff" * 50, "tar.gz", "not a gzip file"),
        (b"junk", "tar.bz2", "invalid compressed data"),
        (bz2.compress(b"x" * 1000)[:-4] + b"junk" * 10, "tar.bz2", "invalid compressed data"),
    ],
)
def test_what_is_not_packed_so_is_refused(data, kind, text):
    with pytest.raises(BadTar, match=text):
        everything(data, kind)
