"""Container rows of an account: merging (account-container.md §7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.account.rows import ContainerRow, merge, row_of_mapping, row_of_pending
from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp


def t(seconds):
    return Timestamp(seconds).internal


def row(put, delete=None, objects=0, size=0, policy=0):
    return ContainerRow("c", t(put), "0" if delete is None else t(delete), objects, size, 0, policy)


def test_times_grow_and_counts_are_the_last_ones():
    merged = merge(row(5, 3, 7, 70, 1), row(4, 4, 2, 20, 0))
    assert merged[:7] == ("c", t(5), t(4), 2, 20, 0, 0)


def test_a_row_is_deleted_when_it_is_empty_and_was_deleted_last():
    assert merge(None, row(5, 6)).deleted == 1
    assert merge(None, row(5, 6, objects=1)).deleted == 0
    assert merge(row(5, 6), row(7)).deleted == 0


def test_what_a_report_does_not_know_is_kept():
    merged = merge(row(5, 3, 7, 70, 1), ContainerRow("c", None, None, None, None, 0, None))
    assert merged[:7] == ("c", t(5), t(3), 7, 70, 0, 1)


reports = st.builds(row, st.integers(1, 5), st.none() | st.integers(1, 5), st.just(0), st.just(0), st.just(0))


def folded(rows):
    state = None
    for item in rows:
        state = merge(state, item)
    return state


@given(st.lists(reports, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_rows_that_agree_on_counts_converge_in_any_order(rows, random):
    expected = folded(rows)
    shuffled = rows + rows[:2]
    random.shuffle(shuffled)
    assert folded(shuffled) == expected


def test_pending_tuples_of_the_peer_carry_texts():
    parsed = row_of_pending(("g1", "1795228430.50414", "0", "0", "12", 0, "1"))
    assert parsed[:7] == ("g1", "1795228430.50414", "0", 0, 12, 0, 1)
    assert row_of_pending(("g1", "1795228430.50414", "0", 1, 2, 0)).storage_policy_index == 0


@pytest.mark.parametrize(
    "values",
    [
        "x",
        {},
        {"name": ""},
        {"name": "c", "put_timestamp": "x"},
        {"name": "c", "put_timestamp": []},
        {"name": "c", "object_count": "x"},
        {"name": "c", "bytes_used": 1 << 70},
        {"name": "\ud800"},
    ],
    ids=repr,
)
def test_malformed_rows_are_refused(values):
    with pytest.raises(InvalidValue):
        row_of_mapping(values)


def test_malformed_pending_tuples_are_refused():
    for entry in ((), ("c",) * 5, ("c",) * 8):
        with pytest.raises(InvalidValue):
            row_of_pending(entry)
