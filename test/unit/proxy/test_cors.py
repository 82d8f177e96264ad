"""Which pages of other origins may do what, and what they may see of the answer (public-api.md §14)."""

import pytest

from swift.gateway.info import ContainerInfo
from swift.http.request import Request
from swift.http.response import Response
from swift.proxy.cors import add_cors_headers, is_origin_allowed, preflight_response
from swift.proxy.settings import ProxySettings

METHODS = ("GET", "HEAD", "PUT")


def container(origins=None, **more):
    return ContainerInfo(200, cors={"allow_origin": origins, **more})


def asked_before(headers, info, **settings):
    return preflight_response(
        ProxySettings(**settings), info, Request("OPTIONS", "/v1/a/c", headers), METHODS
    )


def decorated(info, headers=None, origin="http://a", **settings):
    response = Response(200, dict(headers or {}))
    add_cors_headers(ProxySettings(**settings), info, Request("GET", "/v1/a/c", {"origin": origin}), response)
    return response.headers


@pytest.mark.parametrize(
    ("listed", "of_proxy", "origin", "allowed"),
    [
        (None, (), "http://a", False),
        ("", (), "http://a", False),
        ("http://a", (), "http://a", True),
        ("http://a  http://b\t", (), "http://b", True),
        ("http://a", (), "http://a.evil", False),
        ("http://a", (), "HTTP://A", False),
        ("http://a", (), "null", False),
        ("http://a http://b", (), "http://a http://b", False),
        ("*", (), "null", True),
        ("http://a *", (), "http://z", True),
        ("http://*", (), "http://z", False),
        (None, ("http://b",), "http://b", True),
        ("http://a", ("*",), "http://z", True),
    ],
)
def test_which_origins_are_allowed(listed, of_proxy, origin, allowed):
    assert is_origin_allowed(ProxySettings(cors_allow_origin=of_proxy), container(listed), origin) is allowed


@pytest.mark.parametrize(
    ("origin", "info"), [(None, container("*")), ("", container("*")), ("http://a", None)]
)
def test_who_asks_for_no_other_origin_is_told_the_methods(origin, info):
    response = asked_before({} if origin is None else {"origin": origin}, info)
    assert (response.status, response.headers["allow"]) == (200, "GET, HEAD, PUT")
    assert not any(name.startswith("access-control") for name in response.headers)


@pytest.mark.parametrize("method", [None, "", "DELETE", "get", "GET, PUT"])
def test_a_method_that_there_is_not_is_refused(method):
    requests = {} if method is None else {"access-control-request-method": method}
    response = asked_before({"origin": "http://a", **requests}, container("*"))
    assert response.status == 401
    assert not any(name.startswith("access-control") for name in response.headers)


def test_an_origin_that_is_not_listed_is_refused():
    requests = {"origin": "http://z", "access-control-request-method": "GET"}
    assert asked_before(requests, container("http://a")).status == 401


def test_a_listed_origin_is_told_what_it_may_and_caches_that_others_may_not():
    requests = {
        "origin": "http://a",
        "access-control-request-method": "PUT",
        "access-control-request-headers": "X-B, , X-A,X-B",
    }
    response = asked_before(requests, container("http://a http://b", max_age="60"))
    assert response.status == 200
    assert response.headers["access-control-allow-origin"] == "http://a"
    assert response.headers["access-control-allow-methods"] == "GET, HEAD, PUT"
    assert response.headers["access-control-max-age"] == "60"
    assert response.headers["access-control-allow-headers"] == "X-B, X-A"
    assert response.headers["vary"] == "Origin, Access-Control-Request-Headers"


def test_what_anybody_may_is_the_same_for_all_origins():
    requests = {"origin": "http://a", "access-control-request-method": "GET"}
    headers = asked_before(requests, container(" * ")).headers
    assert headers["access-control-allow-origin"] == "*"
    assert "vary" not in headers and "access-control-allow-headers" not in headers


def test_an_origin_that_is_not_allowed_sees_nothing_unless_the_proxy_is_lax():
    assert decorated(container("http://b")) == {}
    lax = decorated(container("http://b"), strict_cors_mode=False)
    assert lax["access-control-allow-origin"] == "http://a"


def test_a_page_sees_metadata_and_what_is_listed_each_once():
    info = container("*", expose_headers="X-Mine,x-other  ETag")
    sent = {"x-object-meta-color": "1", "x-container-meta-kind": "2", "x-backend-x": "3"}
    headers = decorated(info, sent, cors_expose_headers=("X-Proxy",))
    exposed = headers["access-control-expose-headers"].split(", ")
    for name in ("x-object-meta-color", "x-container-meta-kind", "x-mine", "x-other", "x-proxy"):
        assert exposed.count(name) == 1
    assert exposed.count("etag") == 1
    assert "x-backend-x" not in exposed
    assert headers["access-control-allow-origin"] == "*" and "vary" not in headers


def test_a_cache_is_told_that_the_answer_is_for_one_origin_besides_what_it_was_told():
    assert decorated(container("http://a"))["vary"] == "Origin"
    assert decorated(container("http://a"), {"vary": "Accept"})["vary"] == "Accept, Origin"


def test_what_a_filter_said_stays():
    said = {"access-control-allow-origin": "http://s3", "access-control-expose-headers": "x-amz"}
    assert decorated(container("*"), said) == said


def test_an_empty_origin_is_none():
    assert not any(name.startswith("access-control") for name in decorated(container("*"), origin=""))
