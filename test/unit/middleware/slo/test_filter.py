"""Which requests are about large objects, and which pass as they are (middleware.md §5)."""

import json

import pytest

from swift.base.hashing import PathHasher
from swift.http import environkeys
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.telemetry.log import silent_log


class App:
    """Answers everything alike; remembers what it was asked."""

    def __init__(self, response=None):
        self.asked = []
        self.response = response

    def handle(self, request):
        self.asked.append(f"{request.method} {request.path_qs}")
        return self.response or Response(200, {"content-type": "t/x", "content-length": "4"}, b"data")


def ask(app, method, path, headers=None, body=b"", query="", **env):
    made = Slo(app, SloSettings(), PathHasher(b"", b"x"), TypeGuesser("/none", ()), silent_log())
    try:
        return made.handle(Request(method, path, dict(headers or {}), body, query=query, env=env))
    except HTTPError as error:
        return error.response


@pytest.mark.parametrize("wanted", ["", "multipart-manifest=get", "multipart-manifest=x", "part-number=1"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_is_no_large_object_is_read_as_it_is(method, wanted):
    app = App()
    answer = ask(app, method, "/v1/a/c/o", query=wanted)
    assert answer.status == 200 and answer.headers["content-type"] == "t/x"
    assert len(app.asked) == 1


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("PUT", "/v1/a/c/o", ""),
        ("PUT", "/v1/a/c/o", "multipart-manifest=delete"),
        ("POST", "/v1/a/c/o", "multipart-manifest=put"),
        ("DELETE", "/v1/a/c/o", ""),
        ("DELETE", "/v1/a/c/o", "multipart-manifest=put"),
        ("PUT", "/v1/a/c", "multipart-manifest=put"),
        ("DELETE", "/v1/a/c", "multipart-manifest=delete"),
        ("GET", "/v1/a", ""),
        ("GET", "/info", "multipart-manifest=get"),
        ("PUT", "/v1/a/c/%ff", "multipart-manifest=put"),
        ("OPTIONS", "/v1/a/c/o", "multipart-manifest=put"),
    ],
)
def test_what_is_not_about_manifests_passes_as_it_came(method, path, query):
    app = App()
    assert ask(app, method, path, query=query).status == 200
    assert app.asked == [f"{method} {path}" + (f"?{query}" if query else "")]


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("value", ["True", "false", ""])
def test_nobody_says_of_its_own_that_an_object_is_large(method, value):
    app = App()
    answer = ask(app, method, "/v1/a/c/o", {"x-static-large-object": value})
    assert (answer.status, app.asked) == (400, [])


def test_who_copies_objects_as_they_are_is_not_disturbed():
    app = App()
    env = {environkeys.SLO_OVERRIDE: True}
    sent = {"x-static-large-object": "True"}
    assert ask(app, "PUT", "/v1/a/c/o", sent, b"[]", "multipart-manifest=put", **env).status == 200
    assert app.asked == ["PUT /v1/a/c/o?multipart-manifest=put"]


def test_a_listing_shows_the_etag_of_the_whole_quoted():
    rows = [{"name": "big", "hash": "m; slo_etag=w"}, {"name": "plain", "hash": "e"}, {"subdir": "d/"}]
    app = App(Response(200, {"content-type": "application/json"}, json.dumps(rows).encode()))
    found = json.loads(ask(app, "GET", "/v1/a/c", query="format=json").read_body())
    assert found == [{"name": "big", "hash": "m", "slo_etag": '"w"'}, *rows[1:]]


@pytest.mark.parametrize("body", [b"junk", b"[1]", b"{}"])
def test_a_manifest_that_is_none_is_stored_by_nobody(body):
    app = App()
    assert ask(app, "PUT", "/v1/a/c/o", {"content-length": "9"}, body, "multipart-manifest=put").status == 400
    assert app.asked == []
