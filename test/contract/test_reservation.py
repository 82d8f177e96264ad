"""What every object engine promises about promises (``ObjectStore.reserve``)."""

from __future__ import annotations

import os

import pytest

from swift.base.clock import ManualClock
from swift.store.api import ABSENT, LIVE
from swift.store.errors import AlreadyReserved
from swift.wire.reservation import FORGOTTEN_AFTER_S, LEASE_S
from test.contract.test_store import BENCHES, EC, NAMES, NOW, FileBench, key_of, put, running, ts


@pytest.fixture(params=BENCHES, ids=NAMES)
def bench(request, tmp_path):
    with running(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def store(bench):
    return bench.store


@pytest.fixture
def files(tmp_path):
    return FileBench(tmp_path)


def is_taken(store, by=None):
    """Whether somebody else has the object; ``by`` is who."""
    try:
        store.reserve(key_of(), ts(9))
    except AlreadyReserved as error:
        return by is None or error.writer == by
    return False


def test_an_object_is_promised_to_one_writer_at_a_time(store):
    first = store.reserve(key_of(), ts(1))
    assert first.holds()
    assert is_taken(store, by=ts(1))
    first.release()
    assert not first.holds()
    second = store.reserve(key_of(), ts(2))
    assert second.holds()
    first.release()
    assert second.holds(), "what was given back is given back once"
    assert is_taken(store)


def test_a_promise_is_about_one_object_of_one_policy(store):
    assert store.reserve(key_of(), ts(2)).holds()
    assert store.reserve(key_of("p"), ts(2)).holds()
    assert store.reserve(key_of(policy=EC), ts(2)).holds()


def test_a_promise_is_good_for_a_lease_and_keeps_others_away_after_it(bench):
    promise = bench.store.reserve(key_of(), ts(1))
    bench.clock.advance(LEASE_S - 0.1)
    assert promise.holds()
    bench.clock.advance(0.2)
    assert not promise.holds()
    assert is_taken(bench.store)


def test_writers_that_ask_for_no_promise_are_not_held_up(store):
    promise = store.reserve(key_of(), ts(1))
    put(store, key_of(), ts(10))
    assert store.stat(key_of(), NOW).kind == LIVE
    promise.release()


def test_another_process_sees_the_promise(files):
    promise = files.store.reserve(key_of(), ts(1))
    assert is_taken(files.make())
    promise.release()
    assert files.make().reserve(key_of(), ts(2)).holds()


def test_nothing_is_left_of_a_promise_that_was_given_back(files):
    files.store.reserve(key_of(), ts(1)).release()
    assert list(files.root.glob("sda/tmp/*")) == []


@pytest.mark.process
def test_what_a_killed_process_promised_is_promised_again_when_nobody_can_rely_on_it(files):
    child = os.fork()
    if not child:
        os._exit(0 if files.store.reserve(key_of(), ts(1)).holds() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert is_taken(files.store)
    files.clock.advance(FORGOTTEN_AFTER_S - 0.1)
    assert is_taken(files.store)
    files.clock.advance(0.2)
    assert files.store.reserve(key_of(), ts(2)).holds()


def test_nothing_is_promised_soon_after_a_boot(files):
    """The file of a promise may be lost with the power; its writer may commit elsewhere yet."""
    clock = files.clock = ManualClock(FORGOTTEN_AFTER_S - 1)
    store = files.make()
    assert is_taken(store)
    clock.advance(2)
    assert store.reserve(key_of(), ts(2)).holds()


def test_an_archive_that_is_not_committed_can_be_withdrawn(bench):
    key = key_of(policy=EC)
    put(bench.store, key, ts(10), fragment=2, commit=False)
    with bench.store.edit(key, NOW, create=False) as edit:
        edit.abort(ts(10), 2)
    assert bench.names(key) == []
    assert bench.store.stat(key, NOW).kind == ABSENT


def test_withdrawing_spares_what_is_durable_and_what_is_others(bench):
    key = key_of(policy=EC)
    put(bench.store, key, ts(10), fragment=2)
    put(bench.store, key, ts(11), fragment=3, commit=False)
    before = bench.names(key)
    with bench.store.edit(key, NOW, create=False) as edit:
        edit.abort(ts(10), 2)
        edit.abort(ts(12), 2)
        edit.abort(ts(11), 2)
    assert bench.names(key) == before


def test_a_writer_that_went_away_is_followed_by_newer_ones_only(store):
    """What it stored on other nodes is older than theirs, wherever it turns up."""
    store.reserve(key_of(), ts(5)).abandon()
    for older in (ts(4), ts(5)):
        with pytest.raises(AlreadyReserved) as told:
            store.reserve(key_of(), older)
        assert (told.value.is_over, told.value.writer) == (True, ts(5))
    newer = store.reserve(key_of(), ts(6))
    assert newer.holds()


def test_who_gives_a_promise_back_leaves_the_memory_of_those_who_vanished_before(store):
    store.reserve(key_of(), ts(5)).abandon()
    store.reserve(key_of(), ts(7)).release()
    with pytest.raises(AlreadyReserved) as told:
        store.reserve(key_of(), ts(4))
    assert (told.value.is_over, told.value.writer) == (True, ts(5))
    assert store.reserve(key_of(), ts(6)).holds()


def test_what_is_stored_supersedes_those_who_vanished_before(store):
    store.reserve(key_of(), ts(5)).abandon()
    store.reserve(key_of(), ts(7)).complete()
    assert store.reserve(key_of(), ts(4)).holds()


def test_nothing_is_left_of_a_promise_that_was_fulfilled(files):
    files.store.reserve(key_of(), ts(1)).abandon()
    files.store.reserve(key_of(), ts(2)).complete()
    assert list(files.root.glob("sda/tmp/*")) == []


def test_what_is_remembered_of_those_who_vanished_outlives_the_process(files):
    files.store.reserve(key_of(), ts(5)).abandon()
    files.store.reserve(key_of(), ts(7)).release()
    with pytest.raises(AlreadyReserved) as told:
        files.make().reserve(key_of(), ts(4))
    assert told.value.is_over
