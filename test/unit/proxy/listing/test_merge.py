"""Pages of several replicas are merged into one."""

import pytest

from swift.proxy.listing.merge import Page, ReplicaRows, all_rows, merge, nearest_end, row_name
from swift.proxy.listing.plan import Finding


def merge_pages(pages, limit, *, reverse=False):
    """Merge the listings of replicas of one container."""
    found = [ReplicaRows(rows, row_name(rows[-1]) if len(rows) >= limit else "") for rows in pages]
    return merge([found], nearest_end(found, "", reverse=reverse), reverse=reverse)


def row(name, when="1"):
    return {"name": name, "last_modified": when}


def test_what_all_have_is_sure_and_the_newest_counts():
    merged = merge_pages([[row("a", "1"), row("b")], [row("a", "2"), row("b")]], 10)
    assert merged.rows == [(row("a", "2"), True), (row("b"), True)] and merged.end == ""


def test_what_some_have_is_in_doubt():
    merged = merge_pages([[row("a")], [row("a"), row("b")], [{"subdir": "c/"}]], 10)
    assert [(r.get("name"), sure) for r, sure in merged.rows] == [("a", False), ("b", False), (None, False)]


@pytest.mark.parametrize("reverse", [False, True])
def test_behind_the_end_of_a_full_page_nothing_is_said(reverse):
    names = ["a", "b", "c", "d"][:: -1 if reverse else 1]
    full, short = [row(n) for n in names[:2]], [row(n) for n in names[1:]]
    merged = merge_pages([full, short], 2, reverse=reverse)
    assert [r["name"] for r, _ in merged.rows] == names[:2] and merged.end == names[1]


def test_names_are_in_the_order_of_their_bytes():
    names = ["Z", "a", "é", "\uffee", "\U0001f600"]
    assert [r["name"] for r, _ in merge_pages([[row(n) for n in names], []], 10).rows] == names


class Pages:
    """A source of fixed pages; remembers what is requested."""

    def __init__(self, *pages):
        self.pages, self.requested = iter(pages), []

    def page(self, after, limit):
        self.requested.append((after, limit))
        return next(self.pages)


def test_a_listing_goes_on_after_each_page_until_its_limit_or_its_end():
    first, second = Page([row("a"), row("b")], "b9"), Page([row("c"), row("d")], "d")
    source = Pages(first, second)
    assert [r["name"] for r in all_rows(source, "A", 3)] == ["a", "b", "c"]
    assert source.requested == [("A", 3), ("b9", 1)]
    assert all_rows(Pages(Page([row("a")], None)), "", 3) == [row("a")]
    assert all_rows(Pages(first, Finding.SPLIT), "", 3) is Finding.SPLIT
