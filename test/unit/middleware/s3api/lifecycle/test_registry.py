"""Which buckets have a lifecycle: told in order, and forgotten only when nothing was set meanwhile."""

import pytest

from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient, UnexpectedAnswer
from swift.http.response import error_response
from swift.middleware.s3api.lifecycle.registry import (
    HOME,
    RegisteredBucket,
    entries,
    forget,
    place_of,
    time_of,
)
from test.support.filters import Listed, row

HOME_PATH = "/v1" + HOME.quoted


def registry(*rows):
    listed = Listed()
    listed.rows[HOME_PATH] = list(rows)
    return listed


def test_each_entry_names_an_account_and_a_bucket():
    listed = registry(row("AUTH_é/b", 3), row("a/b", 1), row("a/c/d", 2))
    assert list(entries(listed.client)) == [
        RegisteredBucket("AUTH_é", "b", Timestamp(3 * 86400)),
        RegisteredBucket("a", "b", Timestamp(86400)),
        RegisteredBucket("a", "c/d", Timestamp(2 * 86400)),
    ]


def test_what_is_no_entry_is_passed_over():
    assert list(entries(registry(row("a"), row("/b"), row("a/"), row("/")).client)) == []


def test_nobody_has_a_lifecycle_where_there_is_no_registry():
    assert list(entries(Listed().client)) == []


def test_an_entry_is_found_where_it_is_put():
    entry = RegisteredBucket("AUTH_a", "b", Timestamp(0))
    assert place_of(*entry[:2]) == HOME._replace(obj=entry.name)
    assert (entry.path.account, entry.path.container, entry.path.obj) == ("AUTH_a", "b", None)


@pytest.mark.parametrize("status", [204, 404, 409])
def test_an_entry_is_forgotten_as_it_was_seen_and_no_later_one(status):
    asked = []

    def handle(request):
        asked.append(request)
        return error_response(status)

    seen = Timestamp("1700000000.00000")
    forget(InternalClient(handle, "test", tries=1), RegisteredBucket("a", "b", seen))
    [request] = asked
    assert (request.method, request.raw_path) == ("DELETE", f"{HOME_PATH}/a/b")
    given = Timestamp(request.headers["x-timestamp"])
    assert seen < given < Timestamp("1700000000.00001")


def test_a_registry_that_does_not_answer_is_an_error():
    client = InternalClient(lambda request: error_response(503), "test", tries=1)
    for call in (
        lambda: list(entries(client)),
        lambda: forget(client, RegisteredBucket("a", "b", Timestamp(1))),
    ):
        with pytest.raises(UnexpectedAnswer):
            call()


def test_a_row_has_its_time_and_one_without_is_of_now():
    assert time_of("1970-01-02T00:00:00.000010") == Timestamp(86400.00001)
    before = Timestamp.now()
    for text in ("", "None", "soon", "1969-12-31T23:59:59", "0001-01-01", "9999-99-99"):
        assert time_of(text) >= before, text
