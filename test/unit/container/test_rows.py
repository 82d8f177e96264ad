"""Object rows: the cases of account-container.md §7 and that replicas converge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp
from swift.container.rows import (
    ObjectRow,
    merge,
    row_of_mapping,
    row_of_pending,
    rows_of_mappings,
    split_swift_bytes,
    tombstone,
)


def t(seconds):
    return Timestamp(seconds).internal


E = ObjectRow("o", t(10), 5, "text/plain", "e1")


def new(time, **changes):
    return ObjectRow("o", t(time), 9, "image/png", "e2")._replace(**changes)


@pytest.mark.parametrize("time", [9, 10])
def test_an_older_or_equal_row_changes_nothing(time):
    assert merge(E, new(time)) is E


def test_a_newer_row_replaces():
    assert merge(E, new(11)) == new(11)


def test_a_newer_type_and_metadata_leave_the_data_alone():
    merged = merge(E, new(10, ctype_timestamp=t(12), meta_timestamp=t(12)))
    assert merged[:9] == ("o", "0000000010.00000+30d40+0", 5, "image/png", "e1", 0, 0, None, None)


def test_newer_metadata_alone_only_moves_its_time():
    merged = merge(E, new(10, meta_timestamp=t(12)))
    assert merged[:9] == ("o", "0000000010.00000+0+30d40", 5, "text/plain", "e1", 0, 0, None, None)


def test_newer_data_with_newer_metadata():
    merged = merge(E, new(11, meta_timestamp=t(13)))
    assert merged[:9] == ("o", "0000000011.00000+0+30d40", 9, "image/png", "e2", 0, 0, None, None)


def test_a_deletion_is_a_row():
    merged = merge(E, tombstone("o", Timestamp(11), 0))
    assert merged[:9] == ("o", t(11), 0, "application/deleted", "noetag", 1, 0, None, None)


def test_older_data_with_a_newer_type():
    merged = merge(E, new(9, ctype_timestamp=t(12)))
    assert merged[:9] == ("o", "0000000010.00000+30d40+0", 5, "image/png", "e1", 0, 0, None, None)


def test_swift_bytes_travels_with_the_data():
    have = E._replace(content_type="text/plain;swift_bytes=100")
    merged = merge(have, new(10, ctype_timestamp=t(12), content_type="image/png;swift_bytes=7"))
    assert merged.content_type == "image/png;swift_bytes=100"
    merged = merge(E, new(10, ctype_timestamp=t(12), content_type="image/png;swift_bytes=7"))
    assert merged.content_type == "image/png"


def test_splitting_swift_bytes():
    assert split_swift_bytes("a/b; charset=x;swift_bytes=12") == ("a/b; charset=x", "12")
    assert split_swift_bytes("a/b; charset=x") == ("a/b; charset=x", None)


def _content(kind, time):
    """What was written at a time: the same everywhere, as one client writes once."""
    return f"{kind}{time.normal}"


@st.composite
def reports(draw):
    """A row as some object server reports it: each of its three parts written at some time."""
    data = Timestamp(draw(st.integers(min_value=1, max_value=4)))
    ctype = Timestamp(data.seconds + draw(st.integers(min_value=0, max_value=3)))
    meta = Timestamp(ctype.seconds + draw(st.integers(min_value=0, max_value=3)))
    size = int(data.seconds) * 10
    content_type = _content("type/", ctype) + f";swift_bytes={size}"
    deleted = int(data.seconds) % 2
    return ObjectRow(
        "o", data.internal, size, content_type, _content("etag", data), deleted, 0,
        ctype.internal, meta.internal,
    )  # fmt: skip


def folded(rows):
    state = None
    for row in rows:
        state = merge(state, row)
    return state


@given(st.lists(reports(), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_order_and_repetition_converges(rows, random):
    expected = folded(rows)
    shuffled = rows + random.sample(rows, k=random.randrange(len(rows) + 1))
    random.shuffle(shuffled)
    assert folded(shuffled) == expected


@given(reports(), reports(), reports())
def test_merging_is_associative_across_replicas(a, b, c):
    a, b, c = a.packed(), b.packed(), c.packed()
    assert merge(merge(a, b), c) == merge(a, merge(b, c))


@given(reports(), reports())
def test_merging_is_commutative(a, b):
    assert merge(a.packed(), b) == merge(b.packed(), a)


@given(reports())
def test_merging_is_idempotent(a):
    stored = a.packed()
    assert merge(stored, a) is stored


def test_pending_tuples_of_every_age_are_read():
    assert row_of_pending(("o", t(1), 5, "a/b", "e", 0)) == ObjectRow("o", t(1), 5, "a/b", "e")
    assert row_of_pending(("o", t(1), "5", "a/b", "e", 0, "1")).storage_policy_index == 1
    assert row_of_pending(("o", t(1), 5, "a/b", "e", 0, 0, t(2))).ctype_timestamp == t(2)
    full = row_of_pending(("o", t(1), 5, "a/b", "e", 0, 0, None, t(3)))
    assert full.times() == (Timestamp(1), Timestamp(1), Timestamp(3))


BAD = [
    "text",
    [],
    {},
    {"name": "", "created_at": "1"},
    {"name": "o"},
    {"name": "o", "created_at": "not a time"},
    {"name": "o", "created_at": 17},
    {"name": "o", "created_at": "1", "size": "x"},
    {"name": "o", "created_at": "1", "size": 1 << 70},
    {"name": "o", "created_at": "1", "deleted": []},
    {"name": "\ud800", "created_at": "1"},
    {"name": "o", "created_at": "1", "etag": 5},
    {"name": "o", "created_at": "1", "meta_timestamp": "x"},
    {"name": "o", "created_at": "1", "ctype_timestamp": []},
]


@pytest.mark.parametrize("values", BAD, ids=repr)
def test_malformed_rows_are_refused_with_a_sentence(values):
    with pytest.raises(InvalidValue):
        row_of_mapping(values)


def test_malformed_pending_tuples_are_refused():
    for entry in ((), ("o",) * 5, ("o",) * 10, (None, t(1), 5, "a/b", "e", 0)):
        with pytest.raises(InvalidValue):
            row_of_pending(entry)


def one_by_one(items):
    return [row_of_mapping(item) for item in items]


PLAIN = {
    "ROWID": 3,
    "name": "o",
    "created_at": t(10),
    "size": 5,
    "content_type": "text/plain",
    "etag": "e1",
    "deleted": 0,
    "storage_policy_index": 0,
}
STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(1 << 64), max_value=1 << 64),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.sampled_from(
        ["5", "\ud800", t(3), t(3) + "+1f", t(3) + "_1", "0000000001,00000", "\u0660" * 16, "0." * 8]
    ),
    st.lists(st.integers(), max_size=1),
)
CHANGES = st.dictionaries(
    st.sampled_from([*PLAIN, "ctype_timestamp", "meta_timestamp", "other"]), STRANGE, max_size=2
)
ITEMS = st.lists(
    st.builds(
        lambda changes, gone: {k: v for k, v in (PLAIN | changes).items() if k != gone},
        CHANGES,
        st.sampled_from([None] * 9 + list(PLAIN)),
    ),
    max_size=4,
)


@pytest.mark.long
@given(ITEMS)
def test_many_rows_are_read_like_each_of_them(items):
    try:
        expected = one_by_one(items)
    except InvalidValue:
        with pytest.raises(InvalidValue):
            rows_of_mappings(items)
    else:
        found = rows_of_mappings(items)
        assert found == expected
        assert [list(map(type, row)) for row in found] == [list(map(type, row)) for row in expected]


@pytest.mark.parametrize("changes", [
    {"name": "\u00e9"},
    {"created_at": t(10) + "+1f+2"},
    {"created_at": t(10) + "_0000000000000001"},
    {"deleted": 1, "size": -5, "storage_policy_index": 7},
])  # fmt: skip
def test_one_unusual_row_among_many(changes):
    items = [PLAIN, PLAIN | changes, PLAIN | {"name": "p"}]
    assert rows_of_mappings(items) == one_by_one(items)


@pytest.mark.parametrize("values", BAD, ids=repr)
def test_a_malformed_row_among_many_is_refused(values):
    with pytest.raises(InvalidValue):
        rows_of_mappings([PLAIN, values, PLAIN])


def test_no_rows_are_no_rows():
    assert rows_of_mappings([]) == rows_of_mappings(()) == []
