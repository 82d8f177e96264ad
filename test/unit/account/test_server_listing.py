"""What a page of an account's listing is as JSON."""

from __future__ import annotations

import pytest

from swift.account.server import as_rows
from swift.policy.policy import Policies, Policy

POLICIES = Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")])


def rows(*page):
    return as_rows(page, POLICIES)


def test_a_container_has_its_counts_its_time_and_its_policy():
    assert rows(("ö", 3, 7, "1402436408.91203", 1, None)) == [
        {
            "name": "ö",
            "count": 3,
            "bytes": 7,
            "last_modified": "2014-06-10T21:40:08.912030",
            "storage_policy": "silver",
        }
    ]


def test_a_directory_is_only_its_name():
    assert rows(("a/x", 3, 7, "1402436408.91203", 1, "a/")) == [{"subdir": "a/"}]


def test_an_empty_name_of_a_directory_is_one_as_well():
    assert rows(("/x", 3, 7, "1402436408.91203", 1, "")) == [{"subdir": ""}]


def test_a_policy_that_is_not_known_here_has_no_name_to_show():
    (row,) = rows(("c", 3, 7, "1402436408.91203", 5, None))
    assert "storage_policy" not in row and row["count"] == 3


@pytest.mark.parametrize("put", [None, "", "0", "never", "9" * 400])
def test_a_time_that_nobody_can_read_is_the_beginning_of_time(put):
    assert rows(("c", 0, 0, put, 0, None))[0]["last_modified"] == "1970-01-01T00:00:00.000000"


def test_the_order_of_the_page_is_kept():
    page = [(name, 0, 0, "1.00000", 0, None) for name in "bac"]
    assert [row["name"] for row in rows(*page)] == ["b", "a", "c"]
