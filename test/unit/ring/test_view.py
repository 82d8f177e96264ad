"""Lookups skip what is not there, share their answers, and hand off to every other device once."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring.errors import RingError
from swift.ring.table import RingTable
from swift.ring.view import RingView


def make_view(rows, devices, *, part_power=2) -> RingView:
    records = tuple(
        None
        if place is None
        else {
            "id": dev_id,
            "region": place[0],
            "zone": place[1],
            "ip": place[2],
            "port": 6200,
            "replication_ip": place[2],
            "replication_port": 6200,
            "device": f"d{dev_id}",
            "weight": 1.0,
            "meta": "",
        }
        for dev_id, place in enumerate(devices)
    )
    table = RingTable(
        part_shift=32 - part_power, rows=tuple(array("H", row) for row in rows), records=records
    )
    return RingView(table)


FOUR = [(1, 1, "a"), (1, 2, "b"), (1, 3, "c"), (2, 1, "d")]


def test_primaries_are_numbered_in_row_order():
    view = make_view([[0, 1, 2, 3], [1, 2, 3, 0]], FOUR)
    assert [(node.id, node.index) for node in view.primaries(2)] == [(2, 0), (3, 1)]


def test_a_short_row_and_a_repeated_device_are_skipped_and_the_rest_renumbered():
    view = make_view([[0, 1, 2, 3], [0, 2, 3, 0], [3, 3]], FOUR)
    assert [(node.id, node.index) for node in view.primaries(0)] == [(0, 0), (3, 1)]
    assert [(node.id, node.index) for node in view.primaries(2)] == [(2, 0), (3, 1)]
    assert view.replica_count == 2.5


def test_the_same_node_value_is_handed_out_every_time():
    view = make_view([[0, 0, 0, 0], [1, 2, 1, 2]], FOUR)
    assert view.primaries(0)[0] is view.primaries(3)[0]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=3), st.integers(1, 4)
)
def test_the_partitions_of_a_device_are_those_of_which_it_is_a_primary(rows, last):
    view = make_view([*rows[:-1], rows[-1][:last]], FOUR)
    for dev_id in range(5):
        held = {part for part in range(4) if dev_id in view.primary_ids(part)}
        assert view.parts_of(dev_id) == held


def test_part_power_0_has_one_partition():
    view = make_view([[1]], FOUR, part_power=0)
    assert view.partition_of(b"\xff" * 16) == 0
    assert [node.id for node in view.primaries(0)] == [1]


@pytest.mark.parametrize("last", [[2, 3, 0, 1], [2, 3]])
@pytest.mark.parametrize("part", [-1, -4, 4])
def test_a_partition_that_is_none_has_no_nodes(last, part):
    view = make_view([[0, 1, 2, 3], [1, 2, 3, 0], last], FOUR)
    for look in (view.primaries, view.primary_ids, lambda part: list(view.handoffs(part))):
        with pytest.raises(IndexError):
            look(part)


def test_handoffs_prefer_other_regions_then_zones_then_servers():
    devices = [(1, 1, "a"), (1, 1, "a"), (1, 1, "b"), (1, 2, "c"), (2, 1, "d")]
    view = make_view([[0, 1, 2, 3], [4, 4, 4, 4]], devices)
    assert [node.id for node in view.handoffs(0)][0] == 3
    assert [node.handoff_index for node in view.handoffs(0)] == [0, 1, 2]


def test_a_device_without_partitions_is_never_a_handoff():
    view = make_view([[0, 1, 0, 1]], [*FOUR, (3, 1, "e")])
    assert {node.id for node in view.handoffs(0)} == {1}


def test_an_entry_without_a_device_fails_its_own_lookups_only():
    view = make_view([[0, 9, 1, 2], [1, 0, 2, 0]], [*FOUR[:3], None])
    assert [node.id for node in view.primaries(0)] == [0, 1]
    with pytest.raises(RingError, match="assigns partitions to device 9, which does not exist"):
        view.primaries(1)
    assert {node.id for node in view.handoffs(1)} == {1, 2}


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("abc")), min_size=1, max_size=9
    ).flatmap(
        lambda places: st.tuples(
            st.just(places),
            st.lists(
                st.lists(st.integers(0, len(places) - 1), min_size=16, max_size=16), min_size=1, max_size=4
            ),
            st.integers(1, 16),
        )
    ),
    st.integers(0, 15),
)
def test_handoffs_are_a_permutation_of_all_other_devices_with_partitions(made, part):
    places, rows, last = made
    rows = [*rows[:-1], rows[-1][:last]]
    view = make_view(rows, places, part_power=4)
    primaries = (
        {node.id for node in view.primaries(part)} if len(rows[0]) == 16 else set(view.primary_ids(part))
    )
    handoffs = [node.id for node in view.handoffs(part)]
    assert len(handoffs) == len(set(handoffs))
    # For stride 1 the walk skips partition 0, as upstream's does: who is only there is not reached.
    scanned = {row[p] for row in rows for p in range(1, 16) if p < len(row)}
    everyone = {dev_id for row in rows for dev_id in row}
    assert scanned - primaries <= set(handoffs) <= everyone - primaries
