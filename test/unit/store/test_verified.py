"""Bodies are verified before they are sent, and read with few requests."""

from __future__ import annotations

import errno
import os

import pytest

from swift.base.checksum import CHUNK_BYTES
from swift.base.clock import ManualClock
from swift.base.timestamp import Timestamp
from swift.http.body import FileBody
from swift.platform.disk import Disk
from swift.store.api import ABSENT, LIVE
from swift.store.errors import CorruptBody
from swift.store.verified import (
    BELIEVED_S,
    CHECKED_BYTES,
    FILES_MAX,
    REMEMBERED_BYTES,
    SIDECAR_ATTRIBUTE,
    SMALL_BYTES,
    RecentChecks,
)
from test.support.disks import CHUNKS, KEY, LARGE, NOW, NOW_S, data_file, flip, make_store, put, read


def test_a_range_read_notices_damage_inside_its_chunks_only(tmp_path):
    store = make_store(tmp_path)
    put(store, LARGE)
    flip(data_file(tmp_path), (1 << 20) + 5)
    assert read(store, 0, 1000) == LARGE[:1000]
    with pytest.raises(CorruptBody):
        read(store, 1 << 20, (1 << 20) + 10)
    assert store.stat(KEY, NOW).kind == ABSENT


def test_a_wrong_sidecar_does_not_cost_the_object(tmp_path):
    store = make_store(tmp_path)
    put(store, LARGE)
    value = bytearray(os.getxattr(data_file(tmp_path), SIDECAR_ATTRIBUTE))
    value[-1] ^= 1
    os.setxattr(data_file(tmp_path), SIDECAR_ATTRIBUTE, bytes(value))
    assert read(store, 0, len(LARGE)) == LARGE
    assert store.stat(KEY, NOW).kind == LIVE


@pytest.mark.parametrize("position", [0, 1 << 20, len(LARGE) - 1])
def test_without_a_sidecar_the_last_piece_of_a_damaged_body_is_held_back(tmp_path, position):
    store = make_store(tmp_path)
    put(store, LARGE)
    os.removexattr(data_file(tmp_path), SIDECAR_ATTRIBUTE)
    assert read(store, 0, len(LARGE)) == LARGE
    assert read(store, 5, 100_000) == LARGE[5:100_000]
    flip(data_file(tmp_path), position)
    stored, got = store.open(KEY, NOW), b""
    with pytest.raises(CorruptBody):
        for block in stored.blocks(0, len(LARGE)):
            got += block
    assert len(got) < len(LARGE)
    stored.close()


def test_small_bodies_need_no_sidecar(tmp_path):
    put(make_store(tmp_path), b"x" * 65536)
    assert SIDECAR_ATTRIBUTE not in os.listxattr(data_file(tmp_path))


def test_attributes_without_room_for_the_sidecar_store_the_body_all_the_same(tmp_path):
    class Cramped(Disk):
        def setxattr(self, file, name, value):
            if name == SIDECAR_ATTRIBUTE:
                raise OSError(errno.ENOSPC, "no")
            os.setxattr(file, name, value)

    store = make_store(tmp_path, Cramped())
    put(store, LARGE)
    assert read(store, 0, len(LARGE)) == LARGE


def test_a_body_replaced_after_it_was_opened_is_not_quarantined(tmp_path):
    store = make_store(tmp_path)
    put(store, LARGE)
    stored = store.open(KEY, NOW)
    flip(data_file(tmp_path), 5)
    put(store, b"newer", Timestamp(NOW_S + 1))
    with pytest.raises(CorruptBody):
        list(stored.blocks(0, len(LARGE)))
    stored.close()
    assert store.stat(KEY, NOW).kind == LIVE


# --- what was checked a moment ago --------------------------------------------------------------------


class Resident(Disk):
    """A disk whose page cache holds what the test says."""

    holds = True

    def __init__(self):
        #: Which chunks were read to be verified, by their begin.
        self.verified = []
        self.largest = 0

    def read_cached(self, fd, size_bytes, offset=0):
        return os.pread(fd, size_bytes, offset) if self.holds else None

    def pread(self, fd, size_bytes, offset):
        if offset % CHUNK_BYTES == 0:
            self.verified.append(offset)
        self.largest = max(self.largest, size_bytes)
        return os.pread(fd, size_bytes, offset)


def kinds(store, start=0, stop=None):
    """What the pieces of a read are: ``bytes``, or the length of a range of the file."""
    stored = store.open(KEY, NOW)
    try:
        return [
            piece.length if isinstance(piece, FileBody) else "bytes"
            for piece in stored.pieces(start, stop or len(LARGE))
        ]
    finally:
        stored.close()


@pytest.fixture
def resident(tmp_path):
    disk = Resident()
    store = make_store(tmp_path, disk)
    put(store, LARGE)
    return store, disk


def test_chunks_are_verified_and_then_sent_from_the_file(resident):
    store, disk = resident
    assert kinds(store) == [1 << 20, 1 << 20, 17]
    assert disk.verified == CHUNKS


def test_verifying_needs_little_memory(resident):
    store, disk = resident
    kinds(store)
    assert disk.largest == CHECKED_BYTES


def test_what_was_verified_a_moment_ago_is_not_read_for_that_again(resident):
    store, disk = resident
    kinds(store)
    assert kinds(store) == [len(LARGE)]
    assert disk.verified == CHUNKS


def test_only_the_chunks_that_were_not_verified_are(resident):
    store, disk = resident
    kinds(store, 0, 10)
    assert kinds(store, 5, len(LARGE))[0] == (1 << 20) - 5
    assert disk.verified == CHUNKS


def test_what_left_the_memory_is_verified_again(resident):
    store, disk = resident
    kinds(store)
    disk.holds = False
    assert set(kinds(store)) == {"bytes"}


def test_where_nothing_stays_in_memory_only_one_chunk_is_read_twice(resident):
    store, disk = resident
    disk.holds = False
    assert set(kinds(store)) == {"bytes"}
    assert disk.verified == [CHUNKS[0], *CHUNKS]


def test_a_check_is_believed_for_a_minute(resident):
    store, disk = resident
    kinds(store)
    store.core.clock.advance(BELIEVED_S)
    kinds(store)
    assert disk.verified == CHUNKS * 2


def test_a_file_that_was_changed_is_verified_again_and_found_damaged(resident, tmp_path):
    store, _disk = resident
    kinds(store)
    flip(data_file(tmp_path), 5)
    with pytest.raises(CorruptBody):
        kinds(store)


def test_an_object_that_is_not_to_stay_in_memory_is_never_sent_from_the_file(resident):
    store, _disk = resident
    kinds(store)
    stored = store.open(KEY, NOW)
    stored.keep_cache = False
    assert all(isinstance(piece, bytes) for piece in stored.pieces(0, len(LARGE)))
    stored.close()


@pytest.mark.parametrize("size", [100, SMALL_BYTES + 1])
@pytest.mark.parametrize("keep", [True, False])
def test_what_is_not_to_stay_in_memory_is_dropped_as_it_is_read(tmp_path, size, keep):
    class Watched(Disk):
        dropped = 0

        def drop_cache(self, fd, offset, length):
            self.dropped += length

    disk = Watched()
    store = make_store(tmp_path, disk)
    put(store, b"x" * size)
    disk.dropped = 0
    stored = store.open(KEY, NOW)
    stored.keep_cache = keep
    assert len(b"".join(stored.blocks(0, size))) == size
    stored.close()
    assert disk.dropped == (0 if keep else size)


def test_only_so_many_files_are_remembered():
    checks = RecentChecks(ManualClock(NOW_S))
    for number in range(FILES_MAX + 1):
        checks.add((1, number, 1), 0)
    assert not checks.knows((1, 0, 1), 0)
    assert checks.knows((1, FILES_MAX, 1), 0)
    assert not checks.knows((1, FILES_MAX, 1), 1)


@pytest.mark.parametrize(("size", "is_remembered"), [(REMEMBERED_BYTES, True), (REMEMBERED_BYTES - 1, False)])
def test_a_small_body_in_memory_is_verified_once_a_minute(tmp_path, size, is_remembered):
    class Rotten(Resident):
        rots = False

        def read_cached(self, fd, size_bytes, offset=0):
            data = super().read_cached(fd, size_bytes, offset)
            return data[:-1] + b"?" if self.rots else data

    disk = Rotten()
    store = make_store(tmp_path, disk)
    put(store, b"x" * size)

    def quickly():
        stored = store.open(KEY, NOW)
        try:
            return stored.read_cached(1 << 20)
        finally:
            stored.close()

    assert quickly() == b"x" * size
    disk.rots = True
    if is_remembered:
        assert quickly() is not None
        store.core.clock.advance(BELIEVED_S)
    with pytest.raises(CorruptBody):
        quickly()


# --- few requests of the device -----------------------------------------------------------------------


class Asked(Disk):
    """A disk that remembers what it was told would be read."""

    def __init__(self):
        self.asked = []

    def prefetch(self, fd, offset, length):
        self.asked.append((offset, length))
        super().prefetch(fd, offset, length)


@pytest.mark.parametrize("how", ["blocks", "pieces"])
def test_each_chunk_is_asked_for_at_once_and_nothing_beyond_the_wanted_ones(tmp_path, how):
    disk = Asked()
    store = make_store(tmp_path, disk)
    put(store, LARGE)
    stored = store.open(KEY, NOW)
    for _piece in getattr(stored, how)((1 << 20) + 5, (1 << 20) + 6):
        pass
    assert set(disk.asked) == {(1 << 20, CHUNK_BYTES)}
    stored.close()


@pytest.mark.parametrize("size", [1, SMALL_BYTES, CHECKED_BYTES])
def test_what_the_kernel_reads_in_one_go_is_not_asked_for(tmp_path, size):
    disk = Asked()
    store = make_store(tmp_path, disk)
    put(store, b"x" * size)
    assert read(store, 0, size) == b"x" * size
    assert not disk.asked
