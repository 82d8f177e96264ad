"""What may have ended is found in listings, page by page, and nothing is found twice or left out."""

import pytest

from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http.response import error_response
from swift.s3.api.partreferences import row_timestamp
from swift.s3.config.lifecyclerules import DAY_S, LifecycleRule
from swift.s3.core.metadata import DELETE_MARKER_TYPE
from swift.s3.core.names import REGISTRY, registry_path
from swift.s3.daemons.walk import (
    UPLOADS_PER_UNIT,
    BucketWalk,
    CurrentCandidate,
    NoncurrentCandidate,
    RegisteredBucket,
    UploadCandidates,
    registered_buckets,
    unregister_bucket,
)
from test.support.filters import Listed, row

ENTRY = RegisteredBucket("a", "b", Timestamp(0))
RULES = (LifecycleRule("r", days=1),)
NOW_S = 20 * DAY_S


def walked(kind, listed, rules=RULES, size=2, after=""):
    """The units of a walk, and what was noted."""
    noted = []
    walk = BucketWalk(listed.client, ENTRY, rules, NOW_S, size)
    return list(getattr(walk, f"{kind}_candidates")(after, noted.append)), noted


def version(name, days, number, **more):
    return row(name, days, version_id=str(number), is_latest=False, **more)


def latest(name, days, number, **more):
    return {**version(name, days, number, **more), "is_latest": True}


def mark(made, name, days, number):
    return {**made(name, days, number), "content_type": DELETE_MARKER_TYPE, "bytes": 0}


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_objects_that_are_old_enough_are_found_whatever_the_pages(size):
    listed = Listed(b=[row("a", 1), row("b", 19.5), row("c", 18), row("d", 2), row("é", 3)])
    units, noted = walked("object", listed, size=size)
    assert units == [CurrentCandidate(ENTRY, RULES, name) for name in ("a", "c", "d", "é")]
    assert noted == sorted(noted) and noted[-1] == "é"


def test_a_walk_goes_on_behind_what_was_done():
    listed = Listed(b=[row(name, 1) for name in "abc"])
    assert [unit.key for unit in walked("object", listed, after="a")[0]] == ["b", "c"]
    listed = Listed(b=[latest(name, 1, 1) for name in "abc"])
    assert [unit.key for unit in walked("version", listed, after="a")[0]] == ["b", "c"]


def test_an_empty_bucket_and_one_that_is_gone_have_nothing():
    for listed in (Listed(b=[]), Listed()):
        assert walked("object", listed) == walked("version", listed) == walked("upload", listed) == ([], [])


def test_a_listing_that_fails_is_not_an_empty_one():
    listed = Listed(b=[])
    listed.answers["GET", "/v1/a/b"] = 503
    with pytest.raises(UnexpectedResponse):
        walked("object", listed)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_version_is_former_since_the_next_newer_one_came(size):
    rules = (LifecycleRule("r", noncurrent_days=1),)
    rows = [
        latest("k", 19.5, 4),
        version("k", 18, 3),
        version("k", 17, 2),
        version("k", 1, 1),
        latest("l", 1, 9),
    ]
    units, noted = walked("version", Listed(b=rows), rules, size)
    assert units == [
        NoncurrentCandidate(ENTRY, list(rules), "k", "2", is_marker=False),
        NoncurrentCandidate(ENTRY, list(rules), "k", "1", is_marker=False),
    ]
    assert set(noted) <= {"k"}, "more versions of the last name may come"


def test_of_the_newest_that_is_not_current_nobody_knows_since_when():
    rules = (LifecycleRule("r", noncurrent_days=1),)
    rows = [version("k", 3, 3), version("k", 2, 2), latest("k", 1, 1)]
    assert [unit.version for unit in walked("version", Listed(b=rows), rules)[0]] == ["2"]


def test_some_newer_versions_are_kept():
    rules = (LifecycleRule("r", noncurrent_days=1, newer_versions=1),)
    rows = [latest("k", 4, 4), version("k", 3, 3), version("k", 2, 2), version("k", 1, 1)]
    assert [unit.version for unit in walked("version", Listed(b=rows), rules)[0]] == ["2", "1"]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_delete_marker_ends_only_when_it_is_alone(size):
    rules = (LifecycleRule("r", expires_delete_markers=True),)
    rows = [mark(latest, "alone", 2, 1), mark(latest, "k", 2, 2), version("k", 1, 1), mark(latest, "z", 1, 5)]
    units, _ = walked("version", Listed(b=rows), rules, size)
    assert units == [
        NoncurrentCandidate(ENTRY, (), name, n, is_marker=True) for name, n in (("alone", "1"), ("z", "5"))
    ]


def test_a_former_marker_has_no_tags():
    rules = (
        LifecycleRule("r", noncurrent_days=1, tags=(("k", "v"),)),
        LifecycleRule("s", prefix="k", noncurrent_days=1),
    )
    rows = [latest("k", 3, 3), mark(version, "k", 2, 2), latest("l", 3, 3), mark(version, "l", 2, 2)]
    assert walked("version", Listed(b=rows), rules)[0] == [
        NoncurrentCandidate(ENTRY, [rules[1]], "k", "2", is_marker=True)
    ]


def test_uploads_are_markers_and_neither_parts_nor_anything_else():
    rules = (LifecycleRule("r", abort_days=1),)
    rows = [row("a/b/id", 1), row("a/b/id/1", 1), row("a/new", 19.5), row("/id", 1), row("odd", 1)]
    listed = Listed(**{"b+segments": sorted(rows, key=lambda one: one["name"])})
    units, _ = walked("upload", listed, rules)
    assert units == [UploadCandidates(ENTRY, [("a/b", "id")])]


def test_many_uploads_are_aborted_some_at_a_time():
    rules = (LifecycleRule("r", abort_days=1),)
    count = UPLOADS_PER_UNIT + 3
    listed = Listed(**{"b+segments": [row(f"k{n:04}/id", 1) for n in range(count)]})
    units, _ = walked("upload", listed, rules, size=7)
    assert [len(unit.uploads) for unit in units] == [UPLOADS_PER_UNIT, 3]
    assert [key for unit in units for key, _ in unit.uploads] == [f"k{n:04}" for n in range(count)]


def test_a_page_is_asked_for_by_quoted_names():
    listed = Listed(b=[row("a&b=c", 1)])
    [page, *_] = listed.client.pages(ENTRY.path, size=5, prefix="a&b=")
    assert [one["name"] for one in page] == ["a&b=c"]
    assert listed.asked[0].query == "format=json&limit=5&prefix=a%26b%3D"


# --- which buckets have a lifecycle: told in order, and forgotten only when nothing was set meanwhile ---


HOME_PATH = "/v1" + REGISTRY.quoted


def registry(*rows):
    listed = Listed()
    listed.rows[HOME_PATH] = list(rows)
    return listed


def test_each_entry_names_an_account_and_a_bucket():
    listed = registry(row("AUTH_é/b", 3), row("a/b", 1), row("a/c/d", 2))
    assert list(registered_buckets(listed.client)) == [
        RegisteredBucket("AUTH_é", "b", Timestamp(3 * 86400)),
        RegisteredBucket("a", "b", Timestamp(86400)),
        RegisteredBucket("a", "c/d", Timestamp(2 * 86400)),
    ]


def test_what_is_no_entry_is_passed_over():
    assert list(registered_buckets(registry(row("a"), row("/b"), row("a/"), row("/")).client)) == []


def test_nobody_has_a_lifecycle_where_there_is_no_registry():
    assert list(registered_buckets(Listed().client)) == []


def test_an_entry_is_found_where_it_is_put():
    entry = RegisteredBucket("AUTH_a", "b", Timestamp(0))
    assert registry_path(*entry[:2]) == REGISTRY._replace(obj=entry.name)
    assert (entry.path.account, entry.path.container, entry.path.obj) == ("AUTH_a", "b", None)


@pytest.mark.parametrize("status", [204, 404, 409])
def test_an_entry_is_forgotten_as_it_was_seen_and_no_later_one(status):
    asked = []

    def handle(request):
        asked.append(request)
        return error_response(status)

    seen = Timestamp("1700000000.00000")
    unregister_bucket(InternalClient(handle, "test", tries=1), RegisteredBucket("a", "b", seen))
    [request] = asked
    assert (request.method, request.raw_path) == ("DELETE", f"{HOME_PATH}/a/b")
    given = Timestamp(request.headers["x-timestamp"])
    assert seen < given < Timestamp("1700000000.00001")


def test_a_registry_that_does_not_answer_is_an_error():
    client = InternalClient(lambda request: error_response(503), "test", tries=1)
    for call in (
        lambda: list(registered_buckets(client)),
        lambda: unregister_bucket(client, RegisteredBucket("a", "b", Timestamp(1))),
    ):
        with pytest.raises(UnexpectedResponse):
            call()


def test_a_row_has_its_time_and_one_without_is_of_now():
    assert row_timestamp("1970-01-02T00:00:00.000010") == Timestamp(86400.00001)
    before = Timestamp.now()
    for text in ("", "None", "soon", "1969-12-31T23:59:59", "0001-01-01", "9999-99-99"):
        assert row_timestamp(text) >= before, text
