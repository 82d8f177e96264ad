"""The versions of one object, when the store does not do what it should (middleware.md §9.1)."""

import json

import pytest

from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.middleware.versioned_writes.archive import DELETE_MARKER_TYPE, ArchivedVersion, VersionArchive

STAMP = "1700000000.00000"


class Store:
    """Answers by method and path, else 404; remembers what was stored."""

    def __init__(self, **answers):
        self.answers = {name.replace("__", " /v1/"): answer for name, answer in answers.items()}
        self.asked = []
        self.stored = {}

    def handle(self, request):
        self.asked.append(request)
        answer = self.answers.get(f"{request.method} {request.raw_path}", self.answers.get(request.method))
        if isinstance(answer, int):
            return error_response(answer)
        if request.method == "PUT":
            self.stored[request.raw_path] = request.headers, request.body.read()
            return Response(201)
        return Response(answer[0], dict(answer[1]), answer[2]) if answer else error_response(404)


def archive(store, name="o", headers=None):
    request = Request("DELETE", f"/v1/a/v/{name}", dict(headers or {}))
    return VersionArchive(store.handle, request, request.entity, "old", 1024)


def status_of(call, *args):
    with pytest.raises(HTTPError) as caught:
        call(*args)
    return caught.value.response.status


def found(body=b"data", **headers):
    return 200, {"x-timestamp": STAMP, "etag": '"e"', "content-length": str(len(body)), **headers}, body


def listed(*rows):
    return 200, {}, json.dumps(rows).encode()


def test_what_is_kept_is_what_was_said_and_nothing_of_how_it_was_answered():
    said = {"x-object-meta-m": "1", "content-type": "t/x", "x-delete-at": "9999999999"}
    told = {"date": "today", "x-trans-id": "tx", "last-modified": "x", "x-backend-secret": "1"}
    store = Store(GET=found(**said, **told))
    archive(store).archive_current()
    headers, body = store.stored[f"/v1/a/old/001o/{STAMP}"]
    assert body == b"data"
    assert {name: headers[name] for name in (*said, "etag", "content-length")} == {
        **said,
        "etag": "e",
        "content-length": "4",
    }
    assert told.keys().isdisjoint(headers)


def test_the_size_of_a_large_object_goes_with_its_manifest():
    large = {"x-static-large-object": "True", fields.SYSMETA_SLO_SIZE: "77", "content-type": "t/x"}
    store = Store(GET=found(**large))
    archive(store).archive_current()
    [(headers, _body)] = store.stored.values()
    assert headers["content-type"] == "t/x;swift_bytes=77"


def test_the_length_of_a_name_is_that_of_its_bytes():
    store = Store(GET=found())
    archive(store, "%C3%A9%0Aa").archive_current()
    assert list(store.stored) == [f"/v1/a/old/004%C3%A9%0Aa/{STAMP}"]


def test_nothing_is_kept_of_what_is_not_there():
    store = Store()
    archive(store).archive_current()
    assert store.stored == {}


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ({"GET": 503}, 503),
        ({"GET": 403}, 503),
        ({"GET": (200, {}, b"data")}, 503),
        ({"GET": found(**{"x-timestamp": "junk"})}, 503),
        ({"GET": found(), "PUT": 404}, 412),
        ({"GET": found(), "PUT": 413}, 413),
        ({"GET": found(), "PUT": 503}, 503),
        ({"GET": found(), "PUT": 302}, 503),
    ],
)
def test_what_may_not_have_been_kept_is_an_error(answers, status):
    store = Store(**answers)
    assert status_of(archive(store).archive_current) == status
    assert store.stored == {}


def test_a_mark_has_the_time_of_the_deletion():
    store = Store()
    archive(store, headers={"x-timestamp": STAMP}).put_delete_marker()
    headers, body = store.stored[f"/v1/a/old/001o/{STAMP}"]
    assert (headers["content-type"], body) == (DELETE_MARKER_TYPE, b"")


@pytest.mark.parametrize(("answer", "status"), [(404, 412), (503, 503)])
def test_a_mark_that_cannot_be_stored_is_an_error(answer, status):
    assert status_of(archive(Store(PUT=answer)).put_delete_marker) == status


def test_a_deletion_at_no_time_leaves_no_mark():
    store = Store()
    assert status_of(archive(store, headers={"x-timestamp": "junk"}).put_delete_marker) == 400
    assert store.stored == {}


def test_the_newest_come_first_and_marks_are_known():
    rows = [
        {"name": "001o/2", "content_type": DELETE_MARKER_TYPE},
        {"name": "001o/1", "content_type": "text/plain"},
        {"subdir": "001o/"},
    ]
    store = Store(GET=listed(*rows))
    assert archive(store).list_newest() == [ArchivedVersion("001o/2", True), ArchivedVersion("001o/1", False)]
    assert store.asked[0].params["reverse"] == "on" and store.asked[0].params["prefix"] == "001o/"


@pytest.mark.parametrize("answer", [404, (204, {}, b""), listed()])
def test_where_nothing_is_listed_there_are_no_versions(answer):
    assert archive(Store(GET=answer)).list_newest() == []


def test_a_listing_that_fails_is_not_an_empty_one():
    assert status_of(archive(Store(GET=503)).list_newest) == 503


def test_a_version_that_came_back_is_no_version_any_more():
    store = Store(GET=found(), DELETE=204)
    assert archive(store).restore_version(ArchivedVersion(f"001o/{STAMP}", False))
    assert [request.method for request in store.asked] == ["GET", "PUT", "DELETE"]
    assert store.stored["/v1/a/v/o"][1] == b"data"


def test_a_version_that_went_meanwhile_does_not_come_back():
    store = Store()
    assert not archive(store).restore_version(ArchivedVersion("001o/1", False))
    assert [request.method for request in store.asked] == ["GET"]


@pytest.mark.parametrize(
    "answers",
    [
        {"GET": 503},
        *({"GET": found(), "PUT": status} for status in (202, 503, 404)),
    ],
)
def test_a_version_that_cannot_come_back_stays_a_version(answers):
    store = Store(**answers)
    assert status_of(archive(store).restore_version, ArchivedVersion("001o/1", False)) == 503
    assert "DELETE" not in [request.method for request in store.asked]


def test_a_version_may_be_gone_before_it_is_removed():
    archive(Store(DELETE=404)).delete_version(ArchivedVersion("001o/1", False))
    assert status_of(archive(Store(DELETE=503)).delete_version, ArchivedVersion("001o/1", False)) == 503


def test_nobody_says_that_there_is_no_object_who_does_not_know():
    assert archive(Store(HEAD=found())).current_exists()
    assert not archive(Store()).current_exists()
    assert status_of(archive(Store(HEAD=503)).current_exists) == 503


def test_all_is_asked_with_rights_of_its_own():
    store = Store(GET=found())
    archive(store).archive_current()
    for request in store.asked:
        assert request.env["swift.authorize_override"] and request.env[environkeys.SYMLINK_OVERRIDE]
        assert "x-auth-token" not in request.headers
