"""Listings of buckets in pages: whole, in order, and whatever names there are (middleware.md §20)."""

from bisect import bisect_right
from urllib.parse import quote

import pytest

from swift.s3.api.listing import LAST_CHARACTER, Page, list_with_common_prefixes, may_split_timestamps

NAMES = ("a b", "d/1", "d/2", "d/e/3", "x&<>\"'", "z", "ü")


@pytest.fixture
def full(s3):
    for name in NAMES:
        assert s3.sim("PUT", f"/AUTH_test/bucket/{quoted(name)}", {}, b"x").status == 201
    return s3


def quoted(name):
    return quote(name, safe="")


def pages(s3, start, following):
    """The keys and prefixes of all pages; ``following`` says how the next one is asked for."""
    found, query = [], start
    for _ in range(20):
        answer = s3("GET", f"/bucket?{query}")
        assert answer.status == 200, answer
        keys = [e.text for c in answer.tree.iter("Contents") for e in c.iter("Key")]
        found.append((keys, [e.text for c in answer.tree.iter("CommonPrefixes") for e in c.iter("Prefix")]))
        if answer.texts("IsTruncated") == ["false"]:
            return found
        query = f"{start}&{following(answer)}"
    raise AssertionError("it lists for ever")


def test_pages_of_both_versions_have_every_name_once(full):
    for size in (1, 3, 100):
        one = pages(full, f"max-keys={size}", lambda page: f"marker={quoted(page.texts('Key')[-1])}")
        two = pages(
            full,
            f"list-type=2&max-keys={size}",
            lambda page: f"continuation-token={quoted(page.texts('NextContinuationToken')[0])}",
        )
        assert one == two
        assert [key for keys, _ in one for key in keys] == sorted(NAMES)


def test_prefixes_count_as_names_and_come_once(full):
    found = pages(
        full, "delimiter=%2F&max-keys=2", lambda page: f"marker={quoted(page.texts('NextMarker')[0])}"
    )
    assert [len(keys) + len(prefixes) for keys, prefixes in found] == [2, 2, 1]
    assert [prefix for _, prefixes in found for prefix in prefixes] == ["d/"]
    found = pages(full, "delimiter=%2F&prefix=d%2F", str)
    assert found == [(["d/1", "d/2"], ["d/e/"])]


def test_nothing_is_wanted_and_nothing_is_said_to_follow(full):
    for kind in ("", "list-type=2&", "versions&"):
        answer = full("GET", f"/bucket?{kind}max-keys=0&prefix=nothing&marker=z")
        assert (answer.texts("Key"), answer.texts("IsTruncated")) == ([], ["false"])


def test_names_may_be_written_quoted(full):
    answer = full("GET", "/bucket?encoding-type=url&delimiter=%26&prefix=")
    assert answer.texts("Key")[0] == "a%20b" and "%C3%BC" in answer.texts("Key")
    assert "x%26" in answer.texts("Prefix")
    assert (answer.texts("EncodingType"), answer.texts("Delimiter")) == (["url"], ["%26"])


def test_an_owner_is_told_when_it_is_asked_for(full):
    assert full("GET", "/bucket?list-type=2").texts("Owner") == []
    assert full("GET", "/bucket?list-type=2&fetch-owner=true").texts("ID") == ["test:tester"] * len(NAMES)
    assert full("GET", "/bucket").texts("ID") == ["test:tester"] * len(NAMES)


def test_a_token_goes_before_a_beginning(full):
    token = full("GET", "/bucket?list-type=2&max-keys=5").texts("NextContinuationToken")[0]
    answer = full("GET", f"/bucket?list-type=2&start-after=a&continuation-token={quoted(token)}")
    assert (answer.texts("Key"), answer.texts("KeyCount")) == (["z", "ü"], ["2"])
    assert full("GET", "/bucket?list-type=2&start-after=x").texts("Key") == ["x&<>\"'", "z", "ü"]


WRONG = [
    ("list-type=", "InvalidArgument"),
    ("list-type=x", "InvalidArgument"),
    ("list-type=2&continuation-token=%25%25", "InvalidArgument"),
    ("list-type=2&continuation-token=%C3%BC", "InvalidArgument"),
    ("list-type=2&continuation-token=AGE%3D", "InvalidArgument"),
    ("list-type=2&continuation-token=%2Fw%3D%3D", "InvalidArgument"),
    ("encoding-type=base64", "InvalidArgument"),
    ("max-keys=-1", "InvalidArgument"),
    ("max-keys=many", "InvalidArgument"),
    ("max-keys=", "InvalidArgument"),
    ("prefix=%FF", "InvalidArgument"),
    ("delimiter=%FF", "InvalidArgument"),
    ("marker=%FF", "InvalidArgument"),
    ("versions&version-id-marker=1", "InvalidArgument"),
    ("versions&version-id-marker=", "InvalidArgument"),
    ("versions&key-marker=a&version-id-marker=odd", "InvalidArgument"),
]


def test_what_was_asked_for_is_told_again(full):
    told = full("GET", "/bucket?list-type=2&continuation-token=&start-after=&max-keys=5000")
    assert told.texts("ContinuationToken") == told.texts("StartAfter") == [""]
    assert told.texts("MaxKeys") == ["5000"]
    assert told.texts("Key") == full("GET", "/bucket?list-type=1").texts("Key")


def test_the_owner_comes_before_the_class(full):
    full.versioning("bucket", "Enabled")
    for query in ("", "list-type=2&fetch-owner=true", "versions"):
        body = full("GET", f"/bucket?{query}").body
        assert b"</Owner><StorageClass>" in body and b"</StorageClass><Owner>" not in body


@pytest.mark.parametrize("delimiter", [".", "1", "x.1"])
def test_versions_are_folded_at_any_delimiter(s3, delimiter):
    s3("PUT", "/bucket")
    s3.versioning("bucket", "Enabled")
    for name in ("a", f"b{delimiter}c", f"b{delimiter}d", "z"):
        for _ in range(2):
            s3("PUT", f"/bucket/{name}", {}, b"x")
    whole = s3("GET", f"/bucket?versions&delimiter={delimiter}")
    assert whole.texts("Key") == ["a", "a", "z", "z"]
    assert [prefix.text for prefix in whole.tree.findall("CommonPrefixes/Prefix")] == [f"b{delimiter}"]
    keys, prefixes, query = [], [], ""
    while True:
        page = s3("GET", f"/bucket?versions&delimiter={delimiter}&max-keys=1{query}")
        keys += page.texts("Key")
        prefixes += [prefix.text for prefix in page.tree.findall("CommonPrefixes/Prefix")]
        if page.texts("IsTruncated") == ["false"]:
            break
        query = f"&key-marker={page.texts('NextKeyMarker')[0]}"
        for version in page.texts("NextVersionIdMarker"):
            query += f"&version-id-marker={version}"
    assert (keys, prefixes) == (["a", "a", "z", "z"], [f"b{delimiter}"])


def test_what_cannot_be_asked_for_is_refused(full):
    for query, code in WRONG:
        assert full("GET", f"/bucket?{query}").code == code, query
    assert full("GET", "/no-bucket").code == full("GET", "/no-bucket?versions").code == "NoSuchBucket"


def test_odd_questions_are_no_faults(full):
    full.versioning("bucket", "Enabled")
    for query in (
        "prefix=%00",
        "marker=%00",
        "delimiter=%00",
        "delimiter=dd",
        f"prefix={'x' * 5000}",
        f"marker={'x' * 5000}",
        "versions&key-marker=a&version-id-marker=odd",
        "versions&key-marker=%00&version-id-marker=null",
        "versions&key-marker=a&version-id-marker=null",
    ):
        answer = full("GET", f"/bucket?{query}")
        assert answer.status == 200 or answer.code, query


def test_versions_and_markers_are_told_in_one_order(full):
    full.versioning("bucket", "Enabled")
    ids = [full("PUT", "/bucket/k", {}, body).headers["x-amz-version-id"] for body in (b"1", b"22")]
    marker = full("DELETE", "/bucket/k").headers["x-amz-version-id"]
    answer = full("GET", "/bucket?versions&prefix=k")
    kinds = [element.tag for element in answer.tree if element.tag in ("Version", "DeleteMarker")]
    assert kinds == ["DeleteMarker", "Version", "Version"]
    assert answer.texts("VersionId") == [marker, *reversed(ids)]
    assert answer.texts("IsLatest") == ["true", "false", "false"]
    page = full("GET", "/bucket?versions&prefix=k&max-keys=2")
    [key], [version] = page.texts("NextKeyMarker"), page.texts("NextVersionIdMarker")
    rest = full("GET", f"/bucket?versions&prefix=k&key-marker={key}&version-id-marker={version}")
    assert rest.texts("VersionId") == ids[:1]


# --- common prefixes of listings that are folded here, and what they cost -----------------------------


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
        return list_with_common_prefixes(
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
    assert [d for d in ("/", "ab", "", "a.b", "1", ".", "x9") if may_split_timestamps(d)] == [
        "a.b",
        "1",
        ".",
        "x9",
    ]


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
    assert LAST_CHARACTER > "z"


def test_nothing_is_read_twice_where_nothing_folds():
    rows = Rows([f"n{'x' * number}" for number in range(300)])
    assert len(rows.fold(limit=100).rows) == 100
    assert rows.requests == 2 and rows.read <= 101
