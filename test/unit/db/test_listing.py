"""Listings: the worked examples of the spec, and any query against a plain model of the rules."""

import itertools
import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swift.account.schema import create_tables as create_account_tables
from swift.container.schema import create_tables as create_container_tables
from swift.db.connection import chexor
from swift.db.listing import ListingQuery, RowSource, page, successor

NAMES = ["a", "a/1", "a/b/1", "a/b/2", "b", "b-1", "c/x", "c/y", "d", "photos/", "photos/2020/x", 'z&<"', "é"]
SOURCE = RowSource("object", ("name",), "AND t.storage_policy_index = :policy", {"policy": 0})


def database(names):
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE TABLE object (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, deleted INTEGER DEFAULT 0, "
        "storage_policy_index INTEGER DEFAULT 0)"
    )
    connection.execute("CREATE INDEX ix ON object (deleted, name)")
    connection.executemany("INSERT INTO object (name) VALUES (?)", [(name,) for name in names])
    return connection


@pytest.fixture(scope="module")
def spec_database():
    return database(NAMES)


def shown(connection, **parameters):
    parameters.setdefault("limit", 10000)
    return " · ".join(
        f"*{row[-1]}*" if row[-1] is not None else row[0]
        for row in page(connection, SOURCE, ListingQuery(**parameters))
    )


EXAMPLES = [
    ({"limit": 3}, "a · a/1 · a/b/1"),
    ({"marker": "b"}, 'b-1 · c/x · c/y · d · photos/ · photos/2020/x · z&<" · é'),
    ({"end_marker": "b"}, "a · a/1 · a/b/1 · a/b/2"),
    ({"prefix": "a"}, "a · a/1 · a/b/1 · a/b/2"),
    ({"delimiter": "/"}, 'a · *a/* · b · b-1 · *c/* · d · *photos/* · z&<" · é'),
    ({"prefix": "a/", "delimiter": "/"}, "a/1 · *a/b/*"),
    ({"prefix": "a", "delimiter": "/"}, "a · *a/*"),
    ({"delimiter": "/", "marker": "a"}, '*a/* · b · b-1 · *c/* · d · *photos/* · z&<" · é'),
    ({"delimiter": "/", "marker": "a/"}, 'b · b-1 · *c/* · d · *photos/* · z&<" · é'),
    ({"delimiter": "/", "marker": "a0"}, 'b · b-1 · *c/* · d · *photos/* · z&<" · é'),
    ({"prefix": "a/", "delimiter": "/", "marker": "a/b"}, "*a/b/*"),
    ({"prefix": "a/", "delimiter": "/", "marker": "a/b/"}, ""),
    ({"delimiter": "/", "end_marker": "c/"}, "a · *a/* · b · b-1"),
    ({"delimiter": "/", "end_marker": "a/b"}, "a · *a/*"),
    ({"delimiter": "/", "limit": 2}, "a · *a/*"),
    ({"delimiter": "/", "limit": 2, "marker": "a/"}, "b · b-1"),
    ({"reverse": True, "marker": "c/y"}, "c/x · b-1 · b · a/b/2 · a/b/1 · a/1 · a"),
    ({"reverse": True, "end_marker": "c/y"}, 'é · z&<" · photos/2020/x · photos/ · d'),
    ({"reverse": True, "marker": "d", "end_marker": "a/1"}, "c/y · c/x · b-1 · b · a/b/2 · a/b/1"),
    ({"reverse": True, "delimiter": "/"}, 'é · z&<" · *photos/* · d · *c/* · b-1 · b · *a/* · a'),
    ({"reverse": True, "delimiter": "/", "marker": "c/"}, "b-1 · b · *a/* · a"),
    ({"delimiter": "b", "limit": 4}, "a · a/1 · *a/b* · *b*"),
    (
        {"delimiter": "-"},
        'a · a/1 · a/b/1 · a/b/2 · b · *b-* · c/x · c/y · d · photos/ · photos/2020/x · z&<" · é',
    ),
    ({"delimiter": "/b", "limit": 4}, "a · a/1 · *a/b* · b"),
    ({"path": ""}, 'a · b · b-1 · d · photos/ · z&<" · é'),
    ({"path": "a"}, "a/1"),
    ({"path": "a/"}, "a/1"),
    ({"path": "a/b"}, "a/b/1 · a/b/2"),
    ({"path": "photos"}, ""),
    ({"path": "", "reverse": True}, 'é · z&<" · photos/ · d · b-1 · b · a'),
    ({"path": "", "limit": 2, "marker": "b-1"}, "d · photos/"),
    ({"limit": 0}, ""),
    ({"prefix": "\x00"}, ""),
]


@pytest.mark.parametrize("parameters, expected", EXAMPLES, ids=[str(e[0]) for e in EXAMPLES])
def test_worked_examples(spec_database, parameters, expected):
    assert shown(spec_database, **parameters) == expected


def test_path_needs_exactly_one_level_below():
    connection = database(["/lead", "/lead/x"])
    assert shown(connection, path="/") == "/lead"
    assert shown(connection, path="//") == "/lead"


def test_account_examples():
    connection = database(["c1", "l", "r", "x1", "x2", "y-1", "y-2", "z"])
    assert shown(connection, delimiter="-") == "c1 · l · r · x1 · x2 · *y-* · z"
    assert shown(connection, marker="x1", end_marker="z") == "x2 · y-1 · y-2"
    assert shown(connection, reverse=True, limit=2) == "z · y-2"


def test_reserved_names_are_shown_only_when_asked_for():
    connection = database(["\x00r\x001/a", "\x00r\x002", "plain"])
    assert shown(connection) == "plain"
    assert shown(connection, reserved=True) == "\x00r\x001/a · \x00r\x002 · plain"
    assert shown(connection, reserved=True, delimiter="/") == "*\x00r\x001/* · \x00r\x002 · plain"
    assert shown(connection, reserved=True, prefix="\x00r", delimiter="\x00") == "*\x00r\x00*"
    assert shown(connection, reserved=True, marker="\x00r\x001/a") == "\x00r\x002 · plain"


def test_other_policies_and_deleted_rows_are_not_shown():
    connection = database(["a"])
    connection.execute("INSERT INTO object (name, storage_policy_index) VALUES ('b', 1)")
    connection.execute("INSERT INTO object (name, deleted) VALUES ('c', 1)")
    assert shown(connection) == "a"
    assert shown(connection, delimiter="/") == "a"


def test_successor_skips_the_surrogates_and_carries():
    assert successor("a") == "b"
    assert successor("a\ud7ff") == "a\ue000"
    assert successor("a\U0010ffff") == "b"
    assert successor("\U0010ffff") is None


CHOICES = {
    "marker": ("", "d1/", "d5"),
    "end_marker": ("", "d90/5"),
    "prefix": ("", "d", "d3/"),
    "delimiter": ("", "/"),
    "path": (None, "", "d7"),
    "reverse": (False, True),
    "reserved": (False, True),
}
#: Steps of a plan that look at a single row: the start of the walk, and its last entry.
ONE_ROW = ("SCAN walk", "SCAN CONSTANT ROW")


def real_database(create):
    connection = sqlite3.connect(":memory:")
    connection.create_function("chexor", 3, chexor)
    create(connection)
    return connection


@pytest.mark.parametrize(
    ("create", "source", "index"),
    [
        (create_container_tables, SOURCE, "ix_object_deleted_name"),
        (
            create_account_tables,
            RowSource("container", ("name", "object_count")),
            "ix_container_deleted_name",
        ),
    ],
    ids=["container", "account"],
)
def test_every_combination_of_parameters_is_one_query_that_seeks_in_the_index(create, source, index):
    """Nothing is scanned, sorted or made on the way, so that a page costs the same in any database."""
    connection, seen = real_database(create), set()
    for values in itertools.product(*CHOICES.values()):
        query = ListingQuery(10, **dict(zip(CHOICES, values, strict=True)))
        statements = []
        connection.set_trace_callback(statements.append)
        page(connection, source, query)
        connection.set_trace_callback(None)
        assert len(statements) <= 1, query
        seen.update(statements)
    assert len(seen) > 50
    for statement in seen:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        for step in plan:
            if step.startswith(("SCAN", "SEARCH")):
                by_index = f"USING INDEX {index} (deleted=?" in step or f"INDEX {index} (deleted=?" in step
                by_row = "USING INTEGER PRIMARY KEY (rowid=?)" in step
                assert by_index or by_row or step in ONE_ROW, (statement, plan)
            assert "TEMP B-TREE" not in step and "AUTOMATIC" not in step, (statement, plan)


# --- any query against the rules said plainly ---------------------------------------------------------


def model(names, query):
    """§7.3 read literally, without any thought of speed."""
    prefix, delimiter = query.prefix, query.delimiter
    if query.path is not None:
        prefix, delimiter = (query.path.rstrip("/") + "/" if query.path else ""), "/"
    low, high = query.marker, query.end_marker
    if query.reverse:
        low, high = high, low
    entries = []
    for name in sorted(names):
        if not name.startswith(prefix) or (name < "\x01" and not query.reserved):
            continue
        if (low and name <= low) or (high and name >= high):
            continue
        at = name.find(delimiter, len(prefix)) if delimiter else -1
        directory = name[: at + len(delimiter)] if at >= 0 else None
        if query.path is not None:
            if name != prefix and directory in (None, name):
                entries.append(name)
        elif directory is None:
            entries.append(name)
        elif directory != low and f"*{directory}*" not in entries:
            entries.append(f"*{directory}*")
    if query.reverse:
        entries.reverse()
    return entries[: query.limit]


texts = st.text(alphabet="a/-b\x00é\U0001f600", max_size=4)


@given(
    st.sets(st.text(alphabet="a/-b\x00é\U0001f600", min_size=1, max_size=6), max_size=25),
    st.builds(
        ListingQuery,
        limit=st.integers(min_value=0, max_value=6),
        marker=texts,
        end_marker=texts,
        prefix=texts,
        delimiter=st.sampled_from(["", "/", "-", "b", "/b", "//", "é"]),
        path=st.none() | texts,
        reverse=st.booleans(),
        reserved=st.booleans(),
    ),
)
@example({"\x00a"}, ListingQuery(1, marker="\x00/", delimiter="/"))
@example({"a/", "a/b"}, ListingQuery(5, path="", reverse=True))
def test_any_page_is_what_the_rules_say(names, query):
    if query.path is not None and not query.path.rstrip("/") and query.path:
        query = ListingQuery(query.limit, path="")
    rows = page(database(names), SOURCE, query)
    assert [f"*{row[-1]}*" if row[-1] is not None else row[0] for row in rows] == model(names, query)
