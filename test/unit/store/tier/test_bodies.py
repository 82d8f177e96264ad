"""Bodies in the tier: only what was verified is kept, only what is whole and its own is answered."""

from __future__ import annotations

import os
from hashlib import md5

import pytest

from swift.store.api import DELETED, EXPIRED, LIVE, ObjectState
from swift.store.tier.bodies import PIECE_BYTES, BodyCache, CachingObject, PiecedObject, SmallObject
from swift.store.tier.entry import FileFacts, Snapshot, Stamp
from swift.store.tier.extents import owner_of
from test.support.tiers import LostSessions, make_tier

PATH = b"sda/objects/7/abc/" + b"d" * 29 + b"abc"
SMALL = b"small body"


def state_of(body, kind=LIVE):
    etag = md5(body, usedforsecurity=False).hexdigest()
    return ObjectState(kind, {"ETag": etag}, size=len(body))


class Stored:
    """An object of the engine; ``cuts`` are where its pieces end."""

    keep_cache = check_md5 = True

    def __init__(self, body, cuts=(), *, in_memory=True):
        self.state = state_of(body)
        self._body, self._cuts, self._in_memory = body, cuts, in_memory
        self.read = []

    def read_cached(self, size_max):
        return self._body if self._in_memory and len(self._body) <= size_max else None

    def blocks(self, start, stop):
        self.read.append((start, stop))
        at = start
        for cut in (*(cut for cut in self._cuts if start < cut < stop), stop):
            if at < cut:
                yield self._body[at:cut]
            at = cut


class Bench:
    def __init__(self, root, mode="write-through", **dependencies):
        self.tier = make_tier(root, mode, **dependencies)
        self.bodies = BodyCache(self.tier)

    @property
    def start(self):
        return self.tier.entries().start(PATH)

    def snapshot(self):
        return Snapshot(self.start.epoch, 1, Stamp(1, 1))

    def keep(self, body=SMALL):
        etag = state_of(body).etag
        self.bodies.cache_small(PATH, self.start, self.snapshot(), etag, body)
        return self.tier.entries().find(PATH)

    def pieced(self, stored, *, is_verifiable=True):
        bodies, start = self.bodies, self.start
        facts = FileFacts("5.data", b"", len(stored._body), 77)
        keep = lambda key, owner, data: bodies.cache_piece(PATH, key, owner, start, data)  # noqa: E731
        return PiecedObject(stored, bodies, PATH, facts, keep, lambda: is_verifiable)


@pytest.fixture
def make(tmp_path):
    made = []

    def make(*how, **dependencies):
        made.append(Bench(tmp_path, *how, **dependencies))
        return made[-1]

    yield make
    for bench in made:
        bench.tier.close()


@pytest.fixture
def bench(make):
    return make()


# --- small bodies


def test_a_small_body_is_kept_with_its_entry_and_answered_from_it(bench):
    entry = bench.keep()
    assert bench.bodies.small(PATH, entry, state_of(SMALL)) == SMALL
    assert bench.tier.figures["small-data", "sda", "hits"] == 1


def test_a_body_of_another_checksum_or_length_is_not_taken_for_it(bench):
    entry = bench.keep()
    assert bench.bodies.small(PATH, entry, state_of(b"other body")) is None
    assert bench.bodies.small(PATH, entry, state_of(SMALL + b"x")) is None
    assert bench.tier.figures["small-data", "sda", "misses"] == 2


def test_a_body_that_rotted_on_the_ssd_is_not_there(bench, tmp_path):
    entry = bench.keep()
    (log,) = tmp_path.glob("cache/small.log")
    log.write_bytes(log.read_bytes().replace(SMALL, b"small rots"))
    assert bench.bodies.small(PATH, entry, state_of(SMALL)) is None
    os.truncate(log, 3)
    assert bench.bodies.small(PATH, entry, state_of(SMALL)) is None


def test_an_entry_that_changed_meanwhile_keeps_no_body(bench):
    start, snapshot = bench.start, bench.snapshot()
    bench.tier.entries().forget(PATH)
    bench.bodies.cache_small(PATH, start, snapshot, state_of(SMALL).etag, SMALL)
    assert bench.tier.entries().find(PATH) is None
    assert bench.tier.figures["small-data", "sda", "rejected"] == 1


@pytest.mark.parametrize(("size", "is_small"), [(0, False), (1, True), (65536, True), (65537, False)])
def test_what_is_small_is_said_by_its_size(bench, size, is_small):
    assert bench.bodies.is_small(ObjectState(LIVE, size=size)) == is_small


@pytest.mark.parametrize("kind", [DELETED, EXPIRED])
def test_what_is_not_served_has_no_body(bench, kind):
    entry = bench.keep()
    assert bench.bodies.small(PATH, entry, state_of(SMALL, kind)) is None


@pytest.mark.parametrize(("mode", "serves"), [("write-through", True), ("pass-through", False)])
def test_the_mode_says_whether_bodies_are_answered(make, mode, serves):
    bench = make(mode)
    assert bench.bodies.serves("small-data") == bench.bodies.serves("data") == serves
    assert not bench.bodies.serves("no class")


def test_a_broken_ssd_is_a_miss_and_told_once(make, tmp_path):
    told = []
    bench = make(notice=told.append)
    entry = bench.keep()
    bench.tier._close_logs()
    (tmp_path / "cache/small.log").unlink()
    (tmp_path / "cache/small.log").mkdir()
    assert bench.bodies.small(PATH, entry, state_of(SMALL)) is None
    assert len(told) == 1 and "is disabled" in told[0]


def test_what_the_processes_share_may_be_lost_while_a_body_is_read(make):
    sessions = LostSessions()
    bench = make(**sessions.dependencies)
    start, snapshot = bench.start, bench.snapshot()
    keep = lambda data: bench.bodies.cache_small(PATH, start, snapshot, "0" * 32, data)  # noqa: E731
    sessions.lose(bench.tier)
    assert b"".join(CachingObject(Stored(SMALL), keep).blocks(0, len(SMALL))) == SMALL
    bench.bodies.cache_piece(PATH, b"x/0", 1, start, b"x")
    assert bench.bodies.piece(PATH, b"x/0", 1) is None


class TestAnObjectFromTheTier:
    def test_any_part_of_it_can_be_read(self):
        found = SmallObject(state_of(SMALL), SMALL)
        for start, stop in ((0, 10), (0, 3), (4, 10), (5, 5), (7, 2)):
            assert b"".join(found.blocks(start, stop)) == SMALL[start:stop]
            assert b"".join(found.pieces(start, stop)) == SMALL[start:stop]
        assert found.read_cached(10) == SMALL
        assert found.read_cached(9) is None
        found.close()
        found.close()


class TestKeeping:
    @pytest.fixture
    def kept(self):
        return []

    @pytest.mark.parametrize("cuts", [(), (3,), (1, 2, 9)])
    def test_a_body_is_kept_once_it_was_read_whole(self, kept, cuts):
        found = CachingObject(Stored(SMALL, cuts), kept.append)
        assert b"".join(found.pieces(0, len(SMALL))) == SMALL
        assert kept == [SMALL]

    def test_a_part_is_not_kept_nor_what_a_reader_left(self, kept):
        found = CachingObject(Stored(SMALL, (3,)), kept.append)
        assert b"".join(found.blocks(0, 5)) == SMALL[:5]
        assert b"".join(found.blocks(1, 10)) == SMALL[1:]
        next(found.blocks(0, 10))
        assert kept == []

    def test_what_nobody_verifies_is_not_kept(self, kept):
        stored = Stored(SMALL)
        stored.check_md5 = False
        found = CachingObject(stored, kept.append)
        assert found.read_cached(100) == b"".join(found.blocks(0, 10)) == SMALL
        assert kept == []

    def test_what_memory_had_is_kept_and_what_it_had_not_is_not(self, kept):
        assert CachingObject(Stored(SMALL), kept.append).read_cached(100) == SMALL
        assert CachingObject(Stored(SMALL, in_memory=False), kept.append).read_cached(100) is None
        assert kept == [SMALL]


# --- pieces of larger ones

LARGE = os.urandom(2 * PIECE_BYTES + 5)


def test_pieces_come_from_the_disk_once_and_whole_whatever_was_asked_for(bench):
    stored = Stored(LARGE, (PIECE_BYTES // 3,))
    found = bench.pieced(stored)
    assert (
        b"".join(found.blocks(PIECE_BYTES - 2, PIECE_BYTES + 3)) == LARGE[PIECE_BYTES - 2 : PIECE_BYTES + 3]
    )
    assert stored.read == [(0, PIECE_BYTES), (PIECE_BYTES, 2 * PIECE_BYTES)]
    assert b"".join(found.pieces(0, len(LARGE))) == LARGE
    assert stored.read[2:] == [(2 * PIECE_BYTES, len(LARGE))]
    assert b"".join(bench.pieced(Stored(LARGE)).blocks(5, 5)) == b""


def test_what_cannot_be_verified_piece_by_piece_comes_from_the_disk_to_its_end(bench):
    stored = Stored(LARGE)
    found = bench.pieced(stored, is_verifiable=False)
    for _ in range(2):
        assert b"".join(found.blocks(3, len(LARGE) - 1)) == LARGE[3:-1]
    assert stored.read == [(3, len(LARGE) - 1)] * 2


def test_pieces_of_another_body_in_the_same_place_are_not_taken(bench):
    b"".join(bench.pieced(Stored(LARGE)).blocks(0, len(LARGE)))
    other = bytes(len(LARGE))
    stored = Stored(other)
    assert b"".join(bench.pieced(stored).blocks(0, len(other))) == other
    assert len(stored.read) == 3


def test_a_piece_of_a_body_that_changed_meanwhile_is_not_kept(bench):
    start = bench.start
    bench.tier.entries().forget(PATH)
    bench.bodies.cache_piece(PATH, b"x/0", owner_of("ab", 0), start, b"piece")
    assert bench.bodies.piece(PATH, b"x/0", owner_of("ab", 0)) is None
    assert bench.tier.figures["data", "sda", "rejected"] == 1


def test_a_body_larger_than_its_log_is_not_kept(make, tmp_path):
    bench = make()
    room = bench.tier.rules["small-data"].bytes_max
    assert bench.bodies.write_small(bench.tier.entries(), bench.snapshot(), "ab", bytes(room)) is None
