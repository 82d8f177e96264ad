"""What pages of replicas say together, and which containers are listed so."""

import pytest

from swift.proxy.stronglisting import is_wanted, merge


def row(name, when="1"):
    return {"name": name, "last_modified": when}


def test_what_all_have_is_sure_and_the_newest_counts():
    merged = merge([[row("a", "1"), row("b")], [row("a", "2"), row("b")]], 10)
    assert merged.rows == [(row("a", "2"), True), (row("b"), True)] and merged.marker == ""


def test_what_some_have_is_in_doubt():
    merged = merge([[row("a")], [row("a"), row("b")], [{"subdir": "c/"}]], 10)
    assert [(r.get("name"), sure) for r, sure in merged.rows] == [("a", False), ("b", False), (None, False)]


@pytest.mark.parametrize("reverse", [False, True])
def test_behind_the_end_of_a_full_page_nothing_is_said(reverse):
    names = ["a", "b", "c", "d"][:: -1 if reverse else 1]
    full, short = [row(n) for n in names[:2]], [row(n) for n in names[1:]]
    merged = merge([full, short], 2, reverse=reverse)
    assert [r["name"] for r, _ in merged.rows] == names[:2] and merged.marker == names[1]


def test_names_are_in_the_order_of_their_bytes():
    names = ["Z", "a", "é", "\uffee", "\U0001f600"]
    assert [r["name"] for r, _ in merge([[row(n) for n in names], []], 10).rows] == names


@pytest.mark.parametrize(
    "setting, mark, wanted",
    [
        ("all", None, True),
        ("all", "false", True),
        ("marked", "true", True),
        ("marked", "off", False),
        ("off", "true", False),
    ],
)
def test_who_is_listed_so(setting, mark, wanted):
    assert is_wanted(setting, mark) is wanted
