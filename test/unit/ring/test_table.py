"""The content of a ring file as one value."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring.errors import RingFormatError
from swift.ring.table import (
    RingTable,
    check_assigned,
    check_rows,
    checked_build_version,
    checked_next_part_power,
    checked_part_shift,
    checked_records,
    id_width_for,
    none_id,
    repeats,
)


def row(*ids, code="H"):
    return array(code, ids)


def test_the_last_row_counts_by_its_share():
    assert RingTable(30, (row(0, 1, 2, 3), row(1, 2)), ()).replica_count == 1.5
    assert RingTable(30, (), ()).replica_count == 0.0
    assert (RingTable(30, (), ()).part_power, RingTable(30, (), ()).partition_count) == (2, 4)


@pytest.mark.parametrize(("devices", "width"), [(1, 2), (65535, 2), (65536, 4)])
def test_ids_are_as_wide_as_their_number_asks_for(devices, width):
    assert id_width_for(devices) == width
    assert devices - 1 < none_id(width)


@pytest.mark.parametrize("value", [-1, 33, "30", None, True, 1.0])
def test_a_part_shift_that_cannot_be_is_refused(value):
    with pytest.raises(RingFormatError):
        checked_part_shift(value)


@pytest.mark.parametrize("value", ["1", -1, 33])
def test_a_next_part_power_that_cannot_be_is_refused(value):
    with pytest.raises(RingFormatError):
        checked_next_part_power(value)


def test_numbers_that_may_be_missing_may_be():
    assert checked_next_part_power(None) is None and checked_build_version(None) is None
    with pytest.raises(RingFormatError):
        checked_build_version("1")


@pytest.mark.parametrize("devs", [None, {}, [1], [{"id": 0}]])
def test_a_device_list_that_is_none_is_refused(devs):
    with pytest.raises(RingFormatError):
        checked_records(devs)


def test_rows_that_do_not_fit_are_refused():
    check_rows([row(0, 1), row(0)], 2)
    with pytest.raises(RingFormatError, match="1 of 2"):
        check_rows([row(0), row(0, 1)], 2)
    with pytest.raises(RingFormatError, match="more than"):
        check_rows([row(0, 1), row(0, 1, 2)], 2)


def test_rows_name_devices_that_exist():
    record = {"id": 0}
    check_assigned(RingTable(31, (row(0, 0),), (record, None)))
    with pytest.raises(RingFormatError, match="device 1, which"):
        check_assigned(RingTable(31, (row(0, 1),), (record, None)))


@given(st.integers(2, 12), st.data())
def test_repeats_are_found_in_few_rows_and_in_many(rows, draw):
    numbers = st.lists(st.integers(0, 15), min_size=6, max_size=6)
    table = [draw.draw(numbers) for _ in range(rows)]
    expected = [place for place, ids in enumerate(zip(*table, strict=True)) if len(set(ids)) < rows]
    assert repeats(table) == expected
