"""An archive is rebuilt from others of the same upload, or not at all; damaged metadata hurts no other."""

from __future__ import annotations

import io
import time
from hashlib import md5

import pytest

from swift import green
from swift.obj.reconstructor.rebuild import CannotRebuild, SourceArchive, _read_exactly, _verified
from swift.obj.reconstructor.settings import ObjectReconstructorSettings
from swift.obj.reconstructor.task import ObjectReconstructor
from swift.platform.disk import Disk
from swift.store.errors import CorruptBody
from swift.store.metadata import read_metadata, write_metadata
from test.support.object_servers import HASHER, ObjectNodes
from test.unit.obj.reconstructor.test_task import CODEC, archive_of, archives, put, put_archive, reconstruct

BODY = b"body" * 500
#: How long a receiver of these nodes waits for a lock, seconds.
LOCK_S = 5


@pytest.fixture
def nodes(tmp_path):
    made = ObjectNodes(tmp_path, 4)
    yield made
    made.stop()


def damage(node, name, index):
    """Have the archive of an object on a node say another index in its metadata."""
    digest = HASHER.hexdigest("a", "c", name)
    (path,) = node.path.glob(f"objects-1/*/*/{digest}/*.data")
    metadata = read_metadata(Disk(), str(path))
    assert metadata["X-Object-Sysmeta-Ec-Frag-Index"] == "0"
    write_metadata(Disk(), str(path), {**metadata, "X-Object-Sysmeta-Ec-Frag-Index": index})


# --- pieces


class Closing:
    """A source of fragments that knows whether it was let go of."""

    def __init__(self, index, data, error=None):
        self.closed = 0
        self._file = io.BytesIO(data)
        self._error = error
        self.source = SourceArchive(index, self._read, self._close)

    def _read(self, size):
        if self._error is not None:
            raise self._error
        return self._file.read(size)

    def _close(self):
        self.closed += 1


def rebuilt(sources, index, etag):
    pieces = _verified(
        CODEC,
        [each.source for each in sources],
        index,
        len(archives(b"x" * 1000)[0]),
        {"X-Object-Sysmeta-Ec-Etag": etag},
    )
    return b"".join(pieces)


@pytest.mark.parametrize(("have", "lost"), [((0, 1), 2), ((0, 2), 1), ((1, 2), 0)])
def test_any_two_of_three_give_the_third(have, lost):
    made = archives(BODY)
    sources = [Closing(index, made[index]) for index in have]
    assert rebuilt(sources, lost, md5(BODY).hexdigest()) == made[lost]
    assert [each.closed for each in sources] == [1, 1]


def test_the_last_piece_stays_when_the_object_is_another():
    made = archives(BODY)
    sources = [Closing(index, made[index]) for index in (0, 1)]
    pieces = _verified(
        CODEC,
        [each.source for each in sources],
        2,
        len(archives(b"x" * 1000)[0]),
        {"X-Object-Sysmeta-Ec-Etag": "0" * 32},
    )
    given = b""
    with pytest.raises(CannotRebuild, match="MD5"):
        for piece in pieces:
            given += piece
    assert len(given) < len(made[2])
    assert [each.closed for each in sources] == [1, 1]


@pytest.mark.parametrize("cut", [0, 1, 500])
def test_an_archive_that_is_too_short_gives_nothing(cut):
    made = archives(BODY)
    sources = [Closing(0, made[0]), Closing(1, made[1][: len(made[1]) - cut - 1])]
    with pytest.raises(CannotRebuild):
        rebuilt(sources, 2, md5(BODY).hexdigest())
    assert [each.closed for each in sources] == [1, 1]


def test_a_source_that_breaks_is_said_and_all_are_let_go_of():
    sources = [Closing(0, archives(BODY)[0]), Closing(1, b"", CorruptBody("rot"))]
    with pytest.raises(CannotRebuild, match="rot"):
        rebuilt(sources, 2, md5(BODY).hexdigest())
    assert [each.closed for each in sources] == [1, 1]


def test_reads_are_put_together_to_whole_fragments():
    assert _read_exactly(io.BytesIO(b"abcdef").read, 4) == b"abcd"
    drops = iter([b"a", b"b", b"", b"c"])
    assert _read_exactly(lambda _size: next(drops), 4) == b"ab"


# --- nodes


@pytest.mark.parametrize("index", ["x", "", "-1", "7", "²"])
def test_an_archive_that_does_not_know_its_index_hurts_no_other(nodes, index):
    for name in ("bad", "good"):
        put(nodes, 0, name, BODY, indexes=(0, 1))
    damage(nodes[0], "bad", index)
    reconstruct(nodes, 0)
    assert archive_of(nodes, 2, 0, "good") == archives(BODY)[2]


def test_nodes_that_have_strays_of_each_other_bring_them_home_at_the_same_time(nodes):
    for number in range(4):
        part = (number + 1) % 4
        put(nodes, part, "o", BODY, indexes=(0, 1))
        put_archive(nodes[number], part, "o", 2, BODY)
    settings = ObjectReconstructorSettings(conn_timeout=2.0)
    began_s = time.monotonic()
    green.gather([nodes.runner(number, ObjectReconstructor, settings).run_once for number in range(4)])
    assert time.monotonic() - began_s < LOCK_S
    for number in range(4):
        part = (number + 1) % 4
        assert archive_of(nodes, (part + 2) % 4, part, "o") == archives(BODY)[2]
        assert not (nodes[number].path / f"objects-1/{part}").exists()
