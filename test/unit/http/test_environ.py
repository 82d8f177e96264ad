"""A request and its WSGI environ are equal whoever changes one of them."""

import io

import pytest

from swift.http.environ import apply_environ_changes, complete_environ, environ_entries, request_from_environ
from swift.http.request import Request


@pytest.mark.parametrize(
    ("host", "name", "port"),
    [
        ("[::1]:8080", "::1", "8080"),
        ("[fe80::1]", "fe80::1", "80"),
        ("10.0.0.1:8080", "10.0.0.1", "8080"),
        ("example.com", "example.com", "80"),
        ("[::1", "::1", "80"),
        ("", "", "80"),
    ],
)
def test_a_host_has_a_name_and_a_port(host, name, port):
    environ = complete_environ(Request("GET", "/", {"host": host}))
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == (name, port)


@pytest.mark.parametrize(
    ("text", "length"), [("12", 12), ("", 0), ("\u0661\u0662", 0), ("+5", 0), ("\xb2", 0), ("9" * 5000, 0)]
)
def test_only_ascii_digits_are_a_length(text, length):
    environ = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/v1/a",
        "CONTENT_LENGTH": text,
        "wsgi.input": io.BytesIO(b""),
    }
    assert request_from_environ(environ).body.length == length


def a_request(**headers):
    return Request("PUT", "/v1/a/c%20x/%2Fo", {"content-type": "a/b", **headers}, b"body", query="x=1")


def test_the_environ_is_a_genuine_dictionary_of_texts():
    environ = complete_environ(a_request(host="h:1", **{"x-object-meta-a": "\xe4"}))
    assert type(environ) is dict
    assert environ["REQUEST_METHOD"] == "PUT"
    assert environ["PATH_INFO"] == "/v1/a/c x//o"
    assert environ["QUERY_STRING"] == "x=1"
    assert (environ["CONTENT_TYPE"], environ["HTTP_X_OBJECT_META_A"]) == ("a/b", "\xe4")
    assert environ["wsgi.input"].read() == b"body"


def test_there_and_back_nothing_changes():
    request = a_request(host="h", **{"x-a": "1"})
    again = request_from_environ(complete_environ(request))
    for name in ("method", "raw_path", "query", "headers", "env", "body", "http_minor", "scheme"):
        assert getattr(again, name) == getattr(request, name), name


def test_what_the_request_lost_the_environ_loses():
    request = a_request(**{"x-a": "1"})
    request.acl = ".r:*"
    complete_environ(request)
    del request.headers["x-a"], request.headers["content-type"]
    request.acl = None
    environ = complete_environ(request)
    assert not {"HTTP_X_A", "CONTENT_TYPE", "swob.ACL"} & set(environ)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"REQUEST_METHOD": "GET"}, {"method": "GET"}),
        ({"QUERY_STRING": "y=2"}, {"query": "y=2"}),
        ({"PATH_INFO": "/v1/b/\xc3\xa4 %"}, {"raw_path": "/v1/b/%C3%A4%20%25"}),
        ({"SCRIPT_NAME": "/v1", "PATH_INFO": "/a/c x//o"}, {"raw_path": "/v1/a/c%20x/%2Fo"}),
        ({"HTTP_X_NEW_ONE": "n"}, {"headers": {"content-type": "a/b", "x-new-one": "n"}}),
        ({"CONTENT_TYPE": "c/d"}, {"headers": {"content-type": "c/d"}}),
        ({"CONTENT_TYPE": None}, {"headers": {}}),
        ({"swob.ACL": "acl"}, {"acl": "acl"}),
    ],
)
def test_what_somebody_changed_in_the_environ_is_taken_back(change, expected):
    request = a_request()
    environ, entries = complete_environ(request), environ_entries(request)
    for key, value in change.items():
        if value is None:
            del environ[key]
        else:
            environ[key] = value
    apply_environ_changes(request, entries)
    assert {name: getattr(request, name) for name in expected} == expected


def test_a_header_with_an_underscore_cannot_become_an_internal_one():
    request = a_request(x_backend_redirect="1")
    entries = environ_entries(request)
    assert "x-backend-redirect" not in request_from_environ(complete_environ(request)).headers
    apply_environ_changes(request, entries)
    assert request.headers["x_backend_redirect"] == "1"
