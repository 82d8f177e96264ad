"""swift/store/packed/confirmation.py: what is served of a device that lost records."""

from __future__ import annotations

import pytest

from swift.store.api import LIVE
from swift.store.packed import rows
from swift.store.packed.confirmation import begin, marked
from test.contract.test_store import GOLD, NOW, NOW_S, PackedBench, key_of, put, ts

KEYS = [key_of("o")._replace(partition=str(partition)) for partition in (6, 7)]


class LossyBench(PackedBench):
    """Two partitions of a device that lost records."""

    def __init__(self, root):
        super().__init__(root)
        for key in KEYS:
            put(self.store, key, ts(NOW_S), b"body")
        device = self.device
        self.mark = begin(device.disk, device.directory)
        device.change_index(lambda writing: rows.set_unconfirmed(writing, self.mark))
        device.refresh()

    @property
    def device(self):
        return self.store.devices.device("sda")

    def seen(self):
        """Return for each object if it is unconfirmed, as all reads tell it."""
        found = []
        for key in KEYS:
            stored = self.store.open(key, NOW)
            state = self.store.stat(key, NOW)
            assert state.kind == LIVE and state.is_unconfirmed == stored.state.is_unconfirmed
            stored.close()
            found.append(state.is_unconfirmed)
        return found

    def confirm(self, *partitions):
        self.store.maintenance.confirm("sda", partitions, GOLD)


@pytest.fixture
def bench(tmp_path):
    made = LossyBench(tmp_path)
    yield made
    made.store.close()


def test_objects_are_unconfirmed_until_their_partition_is_confirmed(bench):
    assert bench.seen() == [True, True]
    bench.confirm("6", "9")
    assert bench.seen() == [False, True]
    assert marked(bench.device.disk, bench.device.directory) == bench.mark


def test_after_all_partitions_nothing_is_unconfirmed_in_any_process(bench):
    other = bench.make()
    assert other.stat(KEYS[1], NOW).is_unconfirmed
    bench.confirm("6")
    bench.confirm("7")
    assert bench.seen() == [False, False]
    assert marked(bench.device.disk, bench.device.directory) == b""
    other.devices.device("sda").refresh()
    assert not other.stat(KEYS[1], NOW).is_unconfirmed
    index = bench.device.index
    assert rows.unconfirmed(index) == rows.confirmed(index, 0, 6) == b""
    other.close()


def test_a_partition_that_was_removed_is_not_waited_for(bench):
    """As one of a handoff, which nothing confirms."""
    bench.confirm("6")
    device = bench.device
    device.change_index(lambda writing: rows.delete_partition(writing, 0, 7))
    bench.confirm("6")
    assert marked(device.disk, device.directory) == b"" == rows.unconfirmed(device.index)


def test_an_index_that_is_made_again_begins_anew_until_the_mark_is_gone(bench):
    bench.confirm("6")
    bench.restart()
    assert bench.seen() == [True, True]
    bench.confirm("6", "7")
    bench.restart()
    assert bench.seen() == [False, False]


def test_what_another_process_lost_meanwhile_is_not_confirmed_with_the_rest(bench):
    bench.confirm("6")
    device = bench.device
    mark = begin(device.disk, device.directory)
    device.change_index(lambda writing: rows.set_unconfirmed(writing, mark))
    bench.confirm("7")
    device.refresh()
    assert bench.seen() == [True, True]
