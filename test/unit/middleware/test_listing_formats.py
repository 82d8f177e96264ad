"""Listings in the format the client wants."""

import json

import pytest

from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.listing_formats import JSON_BYTES_MAX, ListingFormats

OBJECT = {
    "name": "\u0142<o>",
    "hash": "e",
    "bytes": 5,
    "content_type": "t/p",
    "last_modified": "2026-01-01T00:00:00.000000",
}
JSON = "application/json; charset=utf-8"


class App:
    """A container whose listing is JSON."""

    def __init__(self, rows=(OBJECT,), status=200, kind=JSON, body=None, **headers):
        self.body = json.dumps(list(rows)).encode() if body is None else body
        self.status, self.kind, self.headers = status, kind, headers

    def handle(self, request):
        self.seen = request.query
        headers = {"content-type": self.kind, "content-length": str(len(self.body)), **self.headers}
        return Response(self.status, headers, b"" if request.method == "HEAD" else self.body)


def ask(app, query="", accept=None, path="/v1/a/c", method="GET", headers=None):
    sent = {**({} if accept is None else {"accept": accept}), **(headers or {})}
    return ListingFormats(app).handle(Request(method, path, sent, query=query))


@pytest.mark.parametrize(
    ("query", "accept", "kind"),
    [
        ("", None, "text/plain"),
        ("format=json", None, "application/json"),
        ("format=xml", None, "application/xml"),
        ("", "application/xml", "application/xml"),
        ("", "text/xml", "text/xml"),
        ("format=plain", "application/xml", "text/plain"),
    ],
)
def test_parameter_and_accept_choose_the_format(query, accept, kind):
    response = ask(App(), query, accept)
    assert response.headers["content-type"].startswith(kind)
    assert int(response.headers["content-length"]) == len(response.body)
    assert ("vary" in response.headers) is not query.startswith("format=")


def test_names_are_lines_or_escaped():
    assert ask(App()).body == "\u0142<o>\n".encode()
    assert "<name>\u0142&lt;o&gt;</name>".encode() in ask(App(), "format=xml").body


def test_below_it_a_listing_is_json_and_the_question_stays_as_it_was():
    app = App()
    request = Request("GET", "/v1/a/c", {}, query="format=xml&limit=3")
    ListingFormats(app).handle(request)
    assert app.seen == "limit=3&format=json"
    assert request.query == "format=xml&limit=3"


def test_nothing_to_list_is_204():
    response = ask(App(rows=()))
    assert (response.status, response.body) == (204, b"")
    assert ask(App(rows=()), "format=json").body == b"[]"


def test_names_of_the_house_are_not_shown_unless_asked_for():
    rows = [OBJECT, {**OBJECT, "name": "\0hidden"}, {"subdir": "\0too/"}]
    assert ask(App(rows)).body == "\u0142<o>\n".encode()
    assert [row["name"] for row in json.loads(ask(App(rows), "format=json").body)] == ["\u0142<o>"]
    shown = ask(App(rows), "format=json", headers={"x-backend-allow-reserved-names": "true"})
    assert len(json.loads(shown.body)) == 3


@pytest.mark.parametrize("status", [404, 503])
def test_an_error_is_passed_on(status):
    app = App(status=status, kind="text/html", body=b"<html>")
    assert ask(app, "format=xml").body == b"<html>"


def test_what_is_too_large_is_passed_on_as_the_json_it_is():
    app = App(**{"content-length": str(JSON_BYTES_MAX + 1)})
    assert ask(app, "format=xml").headers["content-type"] == JSON


@pytest.mark.parametrize("path", ["/v1/a/c/o", "/info", "/v9/a/c"])
def test_what_is_no_listing_is_left_alone(path):
    app = App()
    assert ask(app, "format=xml", path=path).headers["content-type"] == JSON
    assert app.seen == "format=xml"


def test_a_head_has_the_type_and_no_body():
    response = ask(App(), "format=xml", method="HEAD")
    assert response.headers["content-type"].startswith("application/xml")
    assert response.headers["content-length"] == "0"


@pytest.mark.parametrize(
    ("query", "accept"), [("versions&format=xml", None), ("versions", "text/xml"), ("versions", "text/plain")]
)
def test_versions_are_json_only_for_those_who_may_list_them(query, accept):
    """A refusal of the rest of the pipeline comes before 406."""
    for status in (400, 401, 403, 404, 412):
        assert ask(App(status=status, kind="text/html"), query, accept).status == status
    assert ask(App(), query, accept).status == 406
    assert ask(App(), "versions").status == 200
