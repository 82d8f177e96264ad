"""The bridge to foreign filters and servers (PEP 3333)."""

import io

import pytest

from swift.http.request import Request
from swift.runtime.wsgi import environ_of, request_from_environ


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
    environ = environ_of(Request("GET", "/", {"host": host}))
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
