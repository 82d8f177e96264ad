"""Common prefixes of listings that are folded here, and what they cost."""

from bisect import bisect_right

import pytest

from swift.s3.api.listing import AFTER_ALL, Page, cuts_times, folded_page


class Rows:
    """Objects with some versions each, newest first; counts requests and rows."""

    def __init__(self, names, versions=1):
        self.places = sorted((name, number) for name in names for number in range(versions))
        self.requests = self.read = 0

    def page(self, limit, marker, version):
        place = (marker, int(version) if version else 10**9)
        start = bisect_right(self.places, place) if marker else 0
        rows = [{"name": name, "version_id": str(n)} for name, n in self.places[start : start + limit]]
        self.requests += 1
        self.read += len(rows)
        return Page(rows, start + limit < len(self.places))

    def fold(self, *, delimiter=".", prefix="", marker="", version_marker="", limit=1000):
        self.places = [place for place in self.places if place[0].startswith(prefix)]
        return folded_page(
            self.page,
            prefix=prefix,
            delimiter=delimiter,
            marker=marker,
            version_marker=version_marker,
            limit=limit,
        )


def shown(page):
    return [row.get("subdir") or f"{row['name']}#{row['version_id']}" for row in page.rows]


def test_only_delimiters_with_digits_or_dots_are_folded_here():
    assert [d for d in ("/", "ab", "", "a.b", "1", ".", "x9") if cuts_times(d)] == ["a.b", "1", ".", "x9"]


def test_names_fold_at_the_delimiter_and_versions_of_the_others_stay():
    rows = Rows(["a", "b.1", "b.2", "c", "d.x.y"], versions=2)
    assert shown(rows.fold()) == ["a#0", "a#1", "b.", "c#0", "c#1", "d."]
    assert shown(Rows(["a", "b.1", "b.2"], versions=2).fold(prefix="b.")) == [
        "b.1#0",
        "b.1#1",
        "b.2#0",
        "b.2#1",
    ]
    assert shown(rows.fold(prefix="d.")) == ["d.x."]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_pages_join_to_the_whole(limit):
    rows = Rows(["a", "b.1", "b.2", "c", "d.x.y", "e"], versions=2)
    whole, found, marker, version = shown(rows.fold()), [], "", ""
    while True:
        page = rows.fold(marker=marker, version_marker=version, limit=limit)
        assert len(page.rows) <= limit
        found += shown(page)
        if not page.is_truncated:
            break
        last = page.rows[-1]
        marker, version = last.get("subdir") or last["name"], last.get("version_id", "")
    assert found == whole


def test_a_listing_costs_what_it_answers_and_not_what_its_prefixes_hold():
    rows = Rows([f"{letter}.{number}" for letter in "abcd" for number in range(5000)])
    assert shown(rows.fold()) == ["a.", "b.", "c.", "d."]
    assert rows.requests <= 5 and rows.read <= 1000 + 4 * 8
    assert AFTER_ALL > "z"


def test_nothing_is_read_twice_where_nothing_folds():
    rows = Rows([f"n{'x' * number}" for number in range(300)])
    assert len(rows.fold(limit=100).rows) == 100
    assert rows.requests == 2 and rows.read <= 101
