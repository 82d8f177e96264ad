"""Contract of reservations of object engines (``ObjectStore.reserve``)."""

from __future__ import annotations

import os

import pytest

from swift.base.clock import ManualClock
from swift.store.api import ABSENT, LIVE
from swift.store.errors import AlreadyReserved
from swift.wire.reservation import FORGOTTEN_AFTER_S, LEASE_S
from test.contract.test_store import EC, NOW, FileBench, key_of, put, ts


@pytest.fixture
def files(tmp_path):
    return FileBench(tmp_path)


def is_taken(store, by=None):
    """Return True if another writer (``by``, if given) has reserved the object."""
    try:
        store.reserve(key_of(), ts(9))
    except AlreadyReserved as error:
        return by is None or error.writer == by
    return False


def test_an_object_is_reserved_for_one_writer_at_a_time(store):
    first = store.reserve(key_of(), ts(1))
    assert first.holds()
    assert is_taken(store, by=ts(1))
    first.release()
    assert not first.holds()
    second = store.reserve(key_of(), ts(2))
    assert second.holds()
    first.release()
    assert second.holds(), "a reservation is released only once"
    assert is_taken(store)


def test_a_reservation_covers_one_object_of_one_policy(store):
    assert store.reserve(key_of(), ts(2)).holds()
    assert store.reserve(key_of("p"), ts(2)).holds()
    assert store.reserve(key_of(policy=EC), ts(2)).holds()


def test_an_expired_reservation_is_invalid_but_still_excludes_others(bench):
    reservation = bench.store.reserve(key_of(), ts(1))
    bench.clock.advance(LEASE_S - 0.1)
    assert reservation.holds()
    bench.clock.advance(0.2)
    assert not reservation.holds()
    assert is_taken(bench.store)


def test_writers_without_a_reservation_do_not_wait(store):
    reservation = store.reserve(key_of(), ts(1))
    put(store, key_of(), ts(10))
    assert store.stat(key_of(), NOW).kind == LIVE
    reservation.release()


def test_another_process_sees_the_reservation(files):
    reservation = files.store.reserve(key_of(), ts(1))
    assert is_taken(files.make())
    reservation.release()
    assert files.make().reserve(key_of(), ts(2)).holds()


def test_a_released_reservation_leaves_nothing(files):
    files.store.reserve(key_of(), ts(1)).release()
    assert list(files.root.glob("sda/tmp/*")) == []


@pytest.mark.process
def test_a_reservation_of_a_killed_process_expires(files):
    child = os.fork()
    if not child:
        os._exit(0 if files.store.reserve(key_of(), ts(1)).holds() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert is_taken(files.store)
    files.clock.advance(FORGOTTEN_AFTER_S - 0.1)
    assert is_taken(files.store)
    files.clock.advance(0.2)
    assert files.store.reserve(key_of(), ts(2)).holds()


def test_no_reservation_is_granted_soon_after_a_boot(files):
    """A power cut may lose a reservation's file while its writer still commits on other nodes."""
    clock = files.clock = ManualClock(FORGOTTEN_AFTER_S - 1)
    store = files.make()
    assert is_taken(store)
    clock.advance(2)
    assert store.reserve(key_of(), ts(2)).holds()


def test_an_uncommitted_archive_can_be_aborted(bench):
    key = key_of(policy=EC)
    put(bench.store, key, ts(10), fragment=2, commit=False)
    with bench.store.edit(key, NOW, create=False) as edit:
        edit.abort(ts(10), 2)
    assert bench.names(key) == []
    assert bench.store.stat(key, NOW).kind == ABSENT


def test_abort_keeps_durable_archives_and_those_of_other_uploads(bench):
    key = key_of(policy=EC)
    put(bench.store, key, ts(10), fragment=2)
    put(bench.store, key, ts(11), fragment=3, commit=False)
    before = bench.names(key)
    with bench.store.edit(key, NOW, create=False) as edit:
        edit.abort(ts(10), 2)
        edit.abort(ts(12), 2)
        edit.abort(ts(11), 2)
    assert bench.names(key) == before


def test_only_newer_writers_follow_a_vanished_writer(store):
    """Objects that the vanished writer stored on other nodes are older than those of newer writers."""
    store.reserve(key_of(), ts(5)).abandon()
    for older in (ts(4), ts(5)):
        with pytest.raises(AlreadyReserved) as caught:
            store.reserve(key_of(), older)
        assert (caught.value.is_over, caught.value.writer) == (True, ts(5))
    newer = store.reserve(key_of(), ts(6))
    assert newer.holds()


def test_releasing_a_reservation_keeps_the_record_of_vanished_writers(store):
    store.reserve(key_of(), ts(5)).abandon()
    store.reserve(key_of(), ts(7)).release()
    with pytest.raises(AlreadyReserved) as caught:
        store.reserve(key_of(), ts(4))
    assert (caught.value.is_over, caught.value.writer) == (True, ts(5))
    assert store.reserve(key_of(), ts(6)).holds()


def test_a_stored_object_supersedes_the_record_of_vanished_writers(store):
    store.reserve(key_of(), ts(5)).abandon()
    store.reserve(key_of(), ts(7)).complete()
    assert store.reserve(key_of(), ts(4)).holds()


def test_a_completed_reservation_leaves_nothing(files):
    files.store.reserve(key_of(), ts(1)).abandon()
    files.store.reserve(key_of(), ts(2)).complete()
    assert list(files.root.glob("sda/tmp/*")) == []


def test_the_record_of_vanished_writers_outlives_the_process(files):
    files.store.reserve(key_of(), ts(5)).abandon()
    files.store.reserve(key_of(), ts(7)).release()
    with pytest.raises(AlreadyReserved) as caught:
        files.make().reserve(key_of(), ts(4))
    assert caught.value.is_over
