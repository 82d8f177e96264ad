"""Hints in the pages of errors, and the page at the root."""

import pytest

from swift.http.environkeys import SOURCE
from swift.http.request import Request
from swift.http.response import TEXT, error_response
from swift.proxy.hints import add_hint, front_page


def hinted(method, path, status, text=None, **options):
    response = error_response(status, text, content_type=options.pop("content_type", None))
    plain = response.body
    add_hint(Request(method, path, **options), response)
    return plain, response


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("PUT", "/v1/a/c/o", 404, "container does not exist"),
        ("GET", "/v1/a/c/o", 404, "no such object"),
        ("DELETE", "/v1/a/c", 409, "not empty"),
        ("PUT", "/v1/a/c", 409, "storage policy"),
        ("PUT", "/v1/a/c/o", 422, "ETag"),
        ("DELETE", "/v1/a/c/o", 409, "newer change"),
        ("GET", "/v1/a", 404, "account_autocreate"),
    ],
)
def test_a_default_page_says_what_to_do_after_the_words_of_the_peer(method, path, status, words):
    plain, response = hinted(method, path, status)
    body = response.body.decode()
    assert body.startswith(plain.decode().removesuffix("</html>"))
    assert words in body and body.endswith("</p></html>")


def test_the_length_follows():
    response = error_response(404, headers={"content-length": "70"})
    add_hint(Request("PUT", "/v1/a/c/o"), response)
    assert response.headers["content-length"] == str(len(response.body))


@pytest.mark.parametrize(
    ("method", "path", "status", "options"),
    [
        ("PUT", "/v1/a/c/o", 404, {"text": "Container is being deleted"}),
        ("PUT", "/v1/a/c/o", 404, {"env": {SOURCE: "SLO"}}),
        ("HEAD", "/v1/a/c/o", 404, {}),
        ("GET", "/v1/a/c/o", 422, {}),
        ("GET", "/auth", 404, {}),
        ("GET", "/v1/a/c/o", 503, {}),
        ("GET", "/v1/a/c/o", 404, {"content_type": TEXT}),
    ],
)
def test_other_answers_are_left_alone(method, path, status, options):
    plain, response = hinted(method, path, status, **options)
    assert response.body == plain


def test_the_root_tells_a_person_what_is_here():
    page = front_page(Request("GET", "/"))
    assert (page.status, page.headers["content-length"]) == (200, str(len(page.body)))
    assert b'href="/info"' in page.body
    assert front_page(Request("HEAD", "/")).body == b""
