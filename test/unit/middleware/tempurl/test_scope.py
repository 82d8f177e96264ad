"""A signature bounds a request and everything that filters ask on its behalf (middleware.md §3)."""

import pytest

from swift.base.entity import EntityPath
from swift.http.request import Request
from swift.middleware.tempurl.scope import SignedScope, invalid_link_response
from test.support.checks import every

ACCOUNT, CONTAINER = EntityPath("a"), EntityPath("a", "c")


def allows(scope, method, path, source=None, query=""):
    env = {"swift_owner": True}
    if source is not None:
        env["swift.source"] = source
    request = Request(method, path, env=env, query=query)
    denial = scope.authorise(request)
    assert denial is None or (denial.status, env["swift_owner"]) == (401, True)
    return denial is None and env["swift_owner"] is False


def signed(name, *, prefix=False, reading=True, key_owner=ACCOUNT):
    return SignedScope(key_owner, CONTAINER, name, is_prefix=prefix, is_reading=reading)


@pytest.mark.parametrize("source", [None, "SW", "SSC", "EA", "BD", "VW", "other"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_stays_at_the_signed_object_or_prefix(method, source):
    assert allows(signed("o"), method, "/v1/a/c/o", source)
    assert not allows(signed("o"), method, "/v1/a/c/o2", source)
    assert not allows(signed("o"), method, "/v1/a/d/o", source)
    assert allows(signed("p/", prefix=True), method, "/v1/a/c/p/x", source)
    assert not allows(signed("p/", prefix=True), method, "/v1/a/c/q", source)


@every("source", [None, "SW", "SSC", "SLO", "DLO", "SYM", "EA", "BD"])
@every("method", ["PUT", "POST", "DELETE", "COPY", "GET", "HEAD"])
def test_a_link_for_writing_reaches_nothing_else(method, source):
    scope = signed("o", reading=False)
    assert allows(scope, method, "/v1/a/c/o", source)
    for path in ("/v1/a/c/other", "/v1/a/d/o", "/v1/a/c", "/v1/a"):
        assert not allows(scope, method, path, source)


@pytest.mark.parametrize("source", ["SLO", "DLO", "SYM"])
def test_what_a_stored_object_refers_to_is_read_where_the_key_governs(source):
    assert allows(signed("o"), "GET", "/v1/a/segments/1", source)
    assert allows(signed("o"), "GET", "/v1/a/segments", source)
    assert allows(signed("o", key_owner=CONTAINER), "GET", "/v1/a/c/1", source)
    assert not allows(signed("o", key_owner=CONTAINER), "GET", "/v1/a/segments/1", source)
    assert not allows(signed("o"), "GET", "/v1/b/segments/1", source)
    assert not allows(signed("o"), "GET", "/v1/a", source)
    assert not allows(signed("o"), "GET", "/v1/a/%00c/1", source)
    assert not allows(signed("o"), "DELETE", "/v1/a/segments/1", source)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_only_staticweb_lists_and_only_below_the_prefix(method):
    everything, folder, one = signed("", prefix=True), signed("p/ä", prefix=True), signed("p/")
    assert allows(everything, method, "/v1/a/c", "SW")
    assert not allows(everything, method, "/v1/a/c")
    assert allows(folder, method, "/v1/a/c", "SW", "prefix=p%2F%C3%A4b%2F&delimiter=/")
    for query in ("", "prefix=p%2F", "prefix=q"):
        assert not allows(folder, method, "/v1/a/c", "SW", query)
    assert not allows(one, method, "/v1/a/c", "SW", "prefix=p%2F")
    assert not allows(signed("", prefix=True, reading=False), method, "/v1/a/c", "SW")


def test_a_refusal_says_the_same_whatever_is_wrong():
    assert (
        invalid_link_response(Request("GET", "/v1/a/c/o")).read_body()
        == b"401 Unauthorized: Temp URL invalid\n"
    )
    assert invalid_link_response(Request("HEAD", "/v1/a/c/o")).read_body() == b""
