"""Rows of listings: links shown as versions, pages of versions, accounts without what is hidden."""

import pytest

from swift.base.timestamp import Timestamp
from swift.middleware.versioned_writes.archive import DELETE_MARKER_TYPE
from swift.middleware.versioned_writes.listing import (
    BadParameter,
    hidden_account_query,
    hidden_listing_parameters,
    merge_account_rows,
    merge_version_rows,
    resolve_version_links,
)
from swift.middleware.versioned_writes.names import Version


def version(name, seconds, kind="a/b"):
    return {"name": Version(name, Timestamp(seconds)).name, "bytes": 3, "hash": "h", "content_type": kind}


def link(name, seconds):
    url = f"/v1/a/c/{name}?version-id={Timestamp(seconds).normal}"
    return {"name": name, "symlink_path": url, "version_symlink": True, "content_type": "a/b"}


def null(name):
    return {"name": name, "bytes": 1, "hash": "n", "content_type": "a/b"}


def told(rows):
    return [
        row["subdir"] if "subdir" in row else (row["name"], row["version_id"][9:10], row["is_latest"])
        for row in rows
    ]


def test_a_link_is_shown_as_its_version():
    row = {
        "name": "o",
        "hash": "d41d8; slo_etag=s",
        "bytes": 0,
        "symlink_path": "/v1/a/%00versions%00c/%00o%008204770570.71501",
        "symlink_etag": "abc",
        "symlink_bytes": 7,
    }
    other = {"name": "l", "hash": "x", "bytes": 0, "symlink_path": "/v1/a/c/o", "symlink_etag": "abc"}
    rows = [row, dict(other), {"subdir": "d/"}]
    resolve_version_links(rows)
    assert rows[0] == {
        "name": "o",
        "hash": "abc; slo_etag=s",
        "bytes": 7,
        "symlink_path": "/v1/a/c/o?version-id=1795229429.28498",
        "version_symlink": True,
    }
    assert rows[1:] == [other, {"subdir": "d/"}]


def test_versions_come_newest_first_and_null_ones_before_them():
    own = [link("a", 3), null("b"), null("z")]
    hidden = [version("a", 3), version("a", 2), version("b", 1)]
    rows = merge_version_rows(own, hidden, reverse=False, limit=10)
    assert told(rows) == [
        ("a", "3", True),
        ("a", "2", False),
        ("b", "", True),
        ("b", "1", False),
        ("z", "", True),
    ]
    assert [row["version_id"] for row in rows if row["bytes"] == 1] == ["null", "null"]


def test_an_object_that_is_gone_is_latest_in_the_mark_of_its_deletion():
    hidden = [
        version("a", 4),
        version("a", 3, DELETE_MARKER_TYPE),
        version("a", 2, DELETE_MARKER_TYPE),
        version("b", 1),
    ]
    rows = merge_version_rows([], hidden, reverse=False, limit=10)
    assert told(rows) == [("a", "4", False), ("a", "3", True), ("a", "2", False), ("b", "1", False)]
    assert told(merge_version_rows([], hidden[::-1], reverse=True, limit=10))[-2] == ("a", "3", True)


def test_a_mark_is_not_the_latest_where_there_is_an_object():
    rows = merge_version_rows(
        [link("a", 1)], [version("a", 2, DELETE_MARKER_TYPE), version("a", 1)], reverse=False, limit=9
    )
    assert told(rows) == [("a", "2", False), ("a", "1", True)]


def test_what_begins_alike_is_told_once():
    own, hidden = [{"subdir": "d/"}, null("x")], [{"subdir": "\0d/"}, {"subdir": "\0e/"}]
    assert told(merge_version_rows(own, hidden, reverse=False, limit=9)) == ["d/", "e/", ("x", "", True)]
    assert told(merge_version_rows(own[::-1], hidden[::-1], reverse=True, limit=2)) == [("x", "", True), "e/"]


def test_what_is_no_version_is_not_told():
    assert merge_version_rows([], [{"name": "\0odd"}], reverse=False, limit=9) == []


@pytest.mark.parametrize(
    "marker, version_marker, expected",
    (
        (None, None, None),
        ("", None, None),
        ("", "null", None),
        ("o", None, "\0o\0:"),
        ("o", "null", "\0o\0"),
        ("o", "1795229429.28498", "\0o\x008204770570.71501"),
        ("o", "0", "\0o\x009999999999.99999"),
    ),
)
def test_a_page_goes_on_where_the_one_before_ended(marker, version_marker, expected):
    found = hidden_listing_parameters(prefix="p", marker=marker, version_marker=version_marker, delimiter="/")
    assert found.get("marker") == expected
    assert (found["prefix"], found["delimiter"]) == ("\0p", "/")


@pytest.mark.parametrize(
    "wrong, text",
    (
        ({"version_marker": "1"}, "version_marker param requires marker"),
        ({"marker": "o", "version_marker": ""}, "invalid version_marker param"),
        ({"marker": "o", "version_marker": "x"}, "invalid version_marker param"),
        ({"delimiter": "a1"}, "invalid delimiter param"),
        ({"delimiter": "."}, "invalid delimiter param"),
        ({"delimiter": "\0"}, "invalid delimiter param"),
    ),
)
def test_what_cannot_be_asked_for_is_refused(wrong, text):
    asked = {"prefix": "", "marker": None, "version_marker": None, "delimiter": "", **wrong}
    with pytest.raises(BadParameter, match=text):
        hidden_listing_parameters(**asked)


def test_versions_count_for_the_container_that_they_belong_to():
    own = [{"name": "a", "count": 1, "bytes": 5}, {"name": "b", "count": 0, "bytes": 0}, {"subdir": "d"}]
    hidden = [
        {"name": "\0versions\0a", "count": 9, "bytes": 7},
        {"name": "\0versions\0c", "count": 2, "bytes": 1},
        {"name": "\0versions\0d", "count": 2, "bytes": 1},
        {"name": "\0other\0e", "count": 2, "bytes": 1},
        {"subdir": "\0versions\0f"},
    ]
    rows = merge_account_rows(own, hidden, reverse=False, limit=9)
    assert rows == [
        {"name": "a", "count": 1, "bytes": 12},
        {"name": "b", "count": 0, "bytes": 0},
        {"name": "c", "count": 0, "bytes": 1},
        {"subdir": "d"},
    ]
    assert merge_account_rows([], hidden[1:2], reverse=True, limit=9)[0]["name"] == "c"


def test_hidden_containers_are_asked_for_by_the_names_of_theirs():
    query = hidden_account_query(
        {"marker": "m", "limit": "3", "format": "xml", "end_marker": "", "prefix": "\xc3\xa9"}
    )
    assert query == "limit=3&prefix=%00versions%00%C3%A9&marker=%00versions%00m&format=json"
    assert hidden_account_query({}) == "prefix=%00versions%00&format=json"
