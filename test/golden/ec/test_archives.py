"""The peer's fragment archives decode, and ours are byte for byte the same (replication.md §4)."""

import itertools
import json
import random
import tarfile
from hashlib import md5, sha256
from pathlib import Path

import pytest

from swift.ec.archive import ArchiveEncoder, Segmenter, archive_length, geometry_of
from swift.ec.codec import Codec
from swift.ec.fragment import check_fragment

DATA = Path(__file__).parent.parent / "data" / "objects"
TREE = json.loads((DATA / "tree-ec42.json").read_text())
CODEC = Codec(TREE["ec_type"], TREE["k"], TREE["m"])
GEOMETRY = geometry_of(CODEC, TREE["segment_size"])
WHOLE = {name: facts for name, facts in TREE["objects"].items() if facts.get("body_size")}


def body_of(facts):
    """The recipe of the golden set."""
    digests, number = b"", 0
    while len(digests) < facts["body_size"]:
        digests += sha256(str(number).encode()).digest()
        number += 1
    return digests[: facts["body_size"]]


@pytest.fixture(scope="module")
def archives():
    """(object hash, timestamp, index) → bytes of the archive."""
    found = {}
    with tarfile.open(DATA / "tree-ec42.tar.gz") as tar:
        for member in tar.getmembers():
            if member.name.endswith(".data"):
                name = Path(member.name)
                stamp, index = name.stem.split("#")[:2]
                found[name.parts[-2], stamp, int(index)] = tar.extractfile(member).read()
    return found


def archives_of(archives, facts):
    """The six archives of an object, of its oldest timestamp (newer ones are not durable)."""
    own = {(stamp, index): data for (h, stamp, index), data in archives.items() if h == facts["hash"]}
    oldest = min(stamp for stamp, _ in own)
    return [own[oldest, index] for index in range(6)]


def test_the_fragment_size_is_the_recorded_one():
    assert GEOMETRY.fragment_size == TREE["fragment_size"]


def without_versions(archive):
    """An archive without the versions of libraries in its headers, and the checksums over them."""
    archive = bytearray(archive)
    for at in range(0, len(archive), GEOMETRY.fragment_size):
        # Backend version; library version and checksum of the header (replication.md §4).
        archive[at + 55 : at + 59] = archive[at + 63 : at + 67] = archive[at + 67 : at + 71] = bytes(4)
    return bytes(archive)


@pytest.mark.parametrize("name", WHOLE)
def test_our_archives_are_the_peer_s(archives, name):
    body = body_of(WHOLE[name])
    assert md5(body).hexdigest() == WHOLE[name]["body_md5"]
    segmenter, encoder = Segmenter(GEOMETRY.segment_size), ArchiveEncoder(CODEC)
    segments = segmenter.feed(body)
    rest = segmenter.rest()
    ours = [b""] * 6
    for segment in [*segments, *([rest] if rest else [])]:
        for index, fragment in enumerate(encoder.encode(segment)):
            ours[index] += fragment
    theirs = archives_of(archives, WHOLE[name])
    assert list(map(without_versions, ours)) == list(map(without_versions, theirs))
    assert len(ours[0]) == archive_length(CODEC, GEOMETRY, len(body))
    assert encoder.etag == WHOLE[name]["body_md5"]


@pytest.mark.parametrize("name", WHOLE)
def test_the_peer_s_archives_decode_from_any_four(archives, name):
    body, found = body_of(WHOLE[name]), archives_of(archives, WHOLE[name])
    size = GEOMETRY.fragment_size
    combinations = list(itertools.combinations(found, 4))
    random.Random(name).shuffle(combinations)
    for chosen in combinations[:6]:
        decoded = [
            CODEC.decode([archive[at : at + size] for archive in chosen])
            for at in range(0, len(chosen[0]), size)
        ]
        assert b"".join(decoded) == body


def test_every_fragment_of_the_peer_says_which_one_it_is(archives):
    size = GEOMETRY.fragment_size
    for (_hash, _stamp, index), archive in archives.items():
        for at in range(0, len(archive), size):
            assert check_fragment(archive[at : at + size]).index == index
