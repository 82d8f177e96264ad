"""swift/store/packed/rows.py: rows of the index that are not of objects."""

from __future__ import annotations

import pytest

from swift.base.errors import InvalidValue
from swift.store.packed import rows
from swift.store.packed.record import Position
from swift.store.packed.rows import PartitionRow, Spaces, VolumeRow
from test.sim.packedworld import Machine, Process

HASH = bytes.fromhex("85dee760570f953becc718ec26cd501d")


@pytest.fixture
def index():
    machine = Machine(None)
    return machine.open_index(Process(machine))


def test_a_volume_without_a_row_is_empty(index):
    assert rows.read_volume(index, 1) == VolumeRow(0, 0, False)


@pytest.mark.parametrize("row", [VolumeRow(64, 0), VolumeRow(1 << 30, 5, True)])
def test_the_row_of_a_volume_comes_back_as_it_was(index, row):
    with index.writing() as writing:
        rows.write_volume(writing, 7, row)
        rows.write_volume(writing, 300, VolumeRow(128))
    assert rows.volumes(index) == {7: row, 300: VolumeRow(128)}
    with index.writing() as writing:
        rows.delete_volume(writing, 7)
    assert list(rows.volumes(index)) == [300]


def test_unwanted_records_are_known_as_long_as_their_volume(index):
    with index.writing() as writing:
        for position in (Position(1, 7), Position(1, 9), Position(2, 5), Position(256, 1)):
            rows.set_unwanted(writing, position)
    assert rows.unwanted_units(index, 1) == {7, 9}
    with index.writing() as writing:
        rows.delete_volume(writing, 1)
    assert [rows.unwanted_units(index, number) for number in (1, 2)] == [set(), {5}]


def test_a_change_of_a_partition_gives_it_another_number(index):
    with index.writing() as writing:
        rows.touch_partition(writing, 0, 7, 1000)
    first = rows.read_partition(index, 0, 7)
    with index.writing() as writing:
        rows.touch_partition(writing, 0, 7, 2000)
    assert rows.read_partition(index, 0, 7) == PartitionRow(first.sequence + 1, 2000)


def test_a_partition_that_comes_again_does_not_repeat_its_number(index):
    with index.writing() as writing:
        rows.touch_partition(writing, 0, 7, 1000)
        before = rows.read_partition(writing, 0, 7)
        rows.delete_partition(writing, 0, 7)
        assert rows.read_partition(writing, 0, 7) is None
        rows.touch_partition(writing, 0, 7, 1000)
        assert rows.read_partition(writing, 0, 7) != before


def test_partitions_are_told_by_policy_in_order(index):
    numbers = [*range(0, 3 * rows.SOME, 2), 2**32 - 2]
    with index.writing() as writing:
        for number in reversed(numbers):
            rows.touch_partition(writing, 1, number, 0)
        rows.touch_partition(writing, 0, 1, 0)
        rows.touch_partition(writing, 2, 3, 0)
    assert rows.partitions(index, 1) == numbers


def test_an_index_is_complete_when_it_was_said(index):
    assert not rows.is_complete(index)
    with index.writing() as writing:
        rows.set_complete(writing)
    assert rows.is_complete(index)


def test_an_index_has_the_identity_of_its_volumes(index):
    assert rows.owner(index) is None
    with index.writing() as writing:
        rows.set_owner(writing, b"these")
    assert rows.owner(index) == b"these"


def test_an_object_that_was_never_stored_has_no_key(index):
    assert Spaces().find(index, 0, 7, HASH) is None


def test_policies_do_not_share_keys_of_objects(index):
    spaces = Spaces()
    with index.writing() as writing:
        keys = [spaces.make(writing, policy, 8, HASH) for policy in (0, 1)]
    assert keys[0] != keys[1]
    assert [spaces.find(index, policy, 8, HASH) for policy in (0, 1)] == keys
    assert [len(spaces.of_policy(index, policy)) for policy in (0, 1, 2)] == [1, 1, 0]


def test_a_change_that_failed_leaves_no_space_behind(index):
    spaces = Spaces()
    with pytest.raises(ZeroDivisionError), index.writing() as writing:
        spaces.make(writing, 0, 8, HASH)
        raise ZeroDivisionError
    assert spaces.find(index, 0, 8, HASH) is None


def test_too_many_policies_are_refused(index):
    spaces = Spaces()
    with pytest.raises(InvalidValue, match="room"), index.writing() as writing:
        for policy in range(300):
            spaces.make(writing, policy, 8, HASH)
