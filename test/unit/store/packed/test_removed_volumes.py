"""Volumes that an operator removed: what they said is lost, and their numbers do not come again."""

from __future__ import annotations

import pytest

from swift.store.packed import rows
from swift.store.packed.space import PackedSpace
from test.sim.packedworld import no_space
from test.unit.store.packed.test_device import PARTITION, Bench


class SpaceBench(Bench):
    """One device, also as the compactor looks at it."""

    def __init__(self):
        super().__init__()
        self.core = self

    def device(self, _name):
        return self.process()

    def notice(self, text):
        self.notices.append(text)

    def remove(self, number):
        self.machine.disk.unlink(self.process().volumes.path(number))

    def forget(self):
        return PackedSpace(self).forget_volumes("sda")

    @property
    def mark(self):
        return rows.unconfirmed(self.process().index)


@pytest.fixture
def bench():
    made = SpaceBench()
    made.put(1)
    made.put(2, by=1, replaces=[1])
    return made


def test_a_volume_that_an_index_before_knew_and_that_is_gone_is_a_loss(bench):
    bench.remove(2)
    bench.process().index.discard()
    assert bench.seconds() == [1] and bench.mark
    assert any("records of volume 2" in text and "lost" in text for text in bench.notices)


def test_rows_of_a_volume_in_which_something_lived_are_forgotten_with_a_mark(bench):
    bench.remove(2)
    assert bench.forget() == [2] and bench.mark
    assert bench.process().confirmation.is_unconfirmed(0, PARTITION)
    assert bench.forget() == []
    bench.machine.file = None
    bench.kill()
    assert bench.seconds() == [1] and bench.mark


def test_a_volume_in_which_nothing_lived_is_no_loss(bench):
    bench.remove(1)
    bench.kill()
    bench.process(1).index.discard()
    assert bench.seconds(by=1) == [2] and not bench.mark


@pytest.mark.parametrize("is_made_again", (False, True))
def test_the_number_of_a_removed_volume_does_not_come_again(bench, is_made_again):
    """A record says that what was there is gone: a new one would be taken for it."""
    position = bench.put(3, replaces=[2])
    bench.remove(2)
    if is_made_again:
        bench.process().index.discard()
        bench.entries()
    bench.forget()
    bench.kill(1)
    bench.put(5, by=1)
    assert position.volume == 1 and 5 in bench.made_again()


def test_without_room_for_a_volume_above_the_rows_stay(bench):
    bench.remove(2)
    bench.fail("open", no_space())
    assert bench.forget() == []
    bench.mend()
    assert bench.forget() == [2]
