"""Listings in pages are followed by the place of their last row."""

import pytest

from swift.base.pages import follow_pages

NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("start", "limit", "pages", "asked"),
    [
        ("", 1, [["a", "b"], ["c", "d"]], ["", "b", "d"]),
        ("a", 1, [["b", "c"], ["d"]], ["a", "c", "d"]),
        ("a", 2, [["b", "c"], ["d"]], ["a", "c"]),
        ("d", 2, [], ["d"]),
    ],
)
def test_each_page_begins_after_the_last_row_of_the_one_before(start, limit, pages, asked):
    seen = []

    def read(marker):
        seen.append(marker)
        return [{"name": name} for name in NAMES if name > marker][:2]

    found = follow_pages(read, start, lambda row: row["name"], limit=limit)
    assert [[row["name"] for row in page] for page in found] == pages
    assert seen == asked
