"""Contract of pending container updates of object engines (``PendingUpdates``)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swift.base.errors import DeviceUnavailable
from swift.store.api import AsyncUpdate, UpdateRef
from swift.store.errors import Damaged
from swift.store.handle import StoreHandle
from test.contract.test_store import BENCHES, EC, GOLD, NAMES, FileBench, key_of, running, ts


@pytest.fixture(params=BENCHES, ids=NAMES)
def kept(request, tmp_path):
    with running(request.param, tmp_path) as made:
        yield StoreHandle(made.store, "sda").updates


def update_of(name="o", at=10, op="PUT"):
    return AsyncUpdate(op, key_of(name).path, {"X-Timestamp": ts(at).internal}, "unsharded", None)


def save(kept, name="o", at=10, policy=GOLD):
    kept.save("sda", policy, update_of(name, at), ts(at))


def refs(kept, policy=GOLD):
    """The updates of each object, newest first."""
    found = []
    for group in kept.groups("sda", policy):
        objects, strange = kept.objects("sda", policy, group)
        assert strange == []
        found += objects
    return found


def test_a_fresh_device_has_no_updates(kept):
    assert kept.groups("sda", GOLD) == []
    assert kept.unknown_policies("sda", [GOLD]) == []


def test_saved_updates_are_found_and_read_unchanged(kept):
    save(kept)
    ((ref,),) = refs(kept)
    pending = kept.load(ref)
    assert (pending.ref, pending.timestamp, pending.update) == (ref, ts(10), update_of())
    assert (pending.successes, pending.redirects) == ((), ())


def test_updates_are_grouped_by_object_newest_first(kept):
    for name in ("o", "p"):
        for at in (11, 13, 12):
            save(kept, name, at)
    found = {kept.load(newest[0]).update.path: newest for newest in refs(kept)}
    assert set(found) == {key_of("o").path, key_of("p").path}
    for newest in found.values():
        assert [kept.load(ref).timestamp for ref in newest] == [ts(13), ts(12), ts(11)]


def test_policies_keep_their_updates_apart(kept):
    save(kept, policy=EC)
    assert refs(kept, GOLD) == []
    assert len(refs(kept, EC)) == 1
    assert len(kept.unknown_policies("sda", [GOLD])) == 1
    assert kept.unknown_policies("sda", [GOLD, EC]) == []


def test_progress_is_saved_in_place(kept):
    save(kept)
    ((ref,),) = refs(kept)
    pending = replace(kept.load(ref), successes=(3, 5), redirects=("a/shard",))
    kept.rewrite(pending)
    assert kept.load(ref) == pending
    assert refs(kept) == [[ref]]


def test_a_delivered_update_is_removed_once(kept):
    save(kept, at=10)
    save(kept, at=11)
    ((newer, older),) = refs(kept)
    assert kept.remove(older)
    assert kept.load(older) is None
    assert not kept.remove(older)
    assert refs(kept) == [[newer]]
    assert kept.remove(newer)
    assert kept.groups("sda", GOLD) == []


def test_a_quarantined_update_is_not_found(kept):
    save(kept)
    ((ref,),) = refs(kept)
    assert kept.quarantine(ref) is not None
    assert kept.load(ref) is None
    assert kept.quarantine(ref) is None


def test_a_missing_device_raises_an_error(kept):
    ref = UpdateRef("sdz", GOLD, f"{key_of().hash}-{ts(10).internal}")
    calls = [
        lambda: kept.save("sdz", GOLD, update_of(), ts(10)),
        lambda: kept.groups("sdz", GOLD),
        lambda: kept.load(ref),
        lambda: kept.remove(ref),
    ]
    for call in calls:
        with pytest.raises(DeviceUnavailable):
            call()


def test_a_damaged_update_is_told_from_a_missing_one(tmp_path):
    bench = FileBench(tmp_path)
    kept = bench.store.updates
    save(kept)
    ((ref,),) = refs(kept)
    bench.break_update(ref)
    with pytest.raises(Damaged):
        kept.load(ref)
