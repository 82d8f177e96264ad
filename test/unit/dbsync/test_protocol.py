"""What replicas of a database say to each other."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.errors import InvalidValue
from swift.dbsync.protocol import RemoteState, check_identity, row_ids

FACTS = {
    "max_row": 5,
    "hash": "0" * 32,
    "id": "db-1",
    "created_at": "1",
    "put_timestamp": "2",
    "delete_timestamp": "0",
    "metadata": "",
}

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def test_arguments_and_answers_say_the_same():
    assert RemoteState.of_arguments([*FACTS.values()]) == RemoteState.of_mapping(FACTS)


def test_what_older_nodes_leave_out_is_not_known():
    state = RemoteState.of_mapping(FACTS)
    assert (state.count, state.storage_policy_index, state.shard_max_row, state.point) == (
        None,
        None,
        None,
        -1,
    )


def test_times_are_as_columns_hold_them():
    state = RemoteState.of_mapping(FACTS)
    assert (state.created_at, state.delete_timestamp) == ("0000000001.00000", "0")


@pytest.mark.parametrize(
    "change",
    [
        {"max_row": "many"},
        {"max_row": None},
        {"max_row": 1 << 63},
        {"max_row": float("inf")},
        {"hash": None},
        {"id": "../../etc/passwd"},
        {"id": ""},
        {"id": "."},
        {"id": "a\0b"},
        {"id": 5},
        {"created_at": "yesterday"},
        {"created_at": None},
        {"put_timestamp": []},
        {"count": "x"},
        {"storage_policy_index": {}},
        {"status_changed_at": "x"},
        {"shard_max_row": -(1 << 64)},
    ],
    ids=str,
)
def test_a_state_that_cannot_be_is_refused(change):
    with pytest.raises(InvalidValue):
        RemoteState.of_mapping({**FACTS, **change})


@given(st.dictionaries(st.sampled_from([*FACTS, "count", "point"]), ANYTHING))
def test_whatever_comes_is_a_state_or_is_refused(values):
    try:
        RemoteState.of_mapping({**FACTS, **values})
    except InvalidValue:
        pass


def test_too_few_arguments_are_refused():
    with pytest.raises(InvalidValue, match="7 arguments, not 2"):
        RemoteState.of_arguments([1, 2])
    with pytest.raises(InvalidValue):
        RemoteState.of_mapping(json.loads("[]"))


@pytest.mark.parametrize(
    ("theirs", "ours", "whole"), [(0, 101, True), (0, 100, False), (60, 200, True), (100, 200, False)]
)
def test_who_lacks_more_than_half_and_more_than_a_batch_gets_the_whole_database(theirs, ours, whole):
    state = RemoteState.of_mapping({**FACTS, "max_row": theirs})
    assert state.is_much_behind(ours, 100) is whole


def test_rowids_of_a_message_are_whole_numbers():
    assert row_ids([{"ROWID": 1}, {"ROWID": "2"}]) == [1, 2]
    for bad in ({}, {"ROWID": None}, {"ROWID": "x"}, {"ROWID": 1 << 63}):
        with pytest.raises(InvalidValue):
            row_ids([{"ROWID": 1}, bad])


@pytest.mark.parametrize("name", ["a/b", "", ".", "..", "\0", "\ud800", "x" * 256, "ö" * 128, None, 7])
def test_an_identity_is_never_another_path(name):
    with pytest.raises(InvalidValue):
        check_identity(name)
