"""Browsers get a web site from a container, with the rights they have (middleware.md §11)."""

import json

import pytest

from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.staticweb.filter import StaticWeb, StaticWebSettings


class App:
    """A container with objects; remembers who asked for what."""

    def __init__(self, **meta):
        self.meta = {f"x-container-meta-web-{name.replace('_', '-')}": value for name, value in meta.items()}
        self.objects = {"index.html": b"INDEX", "sub/index.html": b"SUB", "list/a": b"x", "404err": b"E404"}
        self.readable = True
        self.asked = []

    def handle(self, request):
        path = request.entity.path
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            return Response(204, dict(self.meta) if path.container else {})
        self.asked.append(request)
        if not self.readable:
            return error_response(401)
        if path.obj is None:
            names = [name for name in self.objects if name.startswith(request.params.get("prefix", ""))]
            rows = json.dumps([{"subdir": name} for name in names])
            return Response(200, {"content-type": "application/json"}, rows.encode())
        if path.obj not in self.objects:
            return error_response(404)
        body = self.objects[path.obj]
        return Response(200, {"content-type": "text/html", "content-length": str(len(body))}, body)


def visit(app, path, headers=None, env=None, *, method="GET", **options):
    web = StaticWeb(app, StaticWebSettings.parse(options))
    request = Request(
        method, f"/v1/a/c{path}", {"host": "h:1", **(headers or {})}, query="q=1", env=env or {}
    )
    return web.handle(request)


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/", 200, b"INDEX"),
        ("/sub/", 200, b"SUB"),
        ("/index.html", 200, b"INDEX"),
        ("/none", 404, b"E404"),
        ("/list/", 404, b"E404"),
    ],
)
def test_a_site_has_indexes_and_error_pages(path, status, body):
    answer = visit(App(index="index.html", error="err"), path)
    assert (answer.status, answer.read_body()) == (status, body)


@pytest.mark.parametrize(
    ("base", "start"),
    [("", "http://h:1"), ("https://", "https://h:1"), ("https://other:2", "https://other:2")],
)
def test_a_directory_is_redirected_to_its_slash(base, start):
    for path in ("", "/sub", "/list"):
        answer = visit(App(index="index.html", listings="t"), path, url_base=base)
        assert (answer.status, answer.headers["location"]) == (301, f"{start}/v1/a/c{path}/")


def test_redirects_are_quoted():
    app = App(listings="t")
    app.objects['a"\r\nX/b'] = b""
    assert visit(app, "/a%22%0d%0aX").headers["location"] == "http://h:1/v1/a/c/a%22%0D%0AX/"


def test_who_has_a_token_gets_the_api_unless_the_site_is_asked_for():
    known = {"REMOTE_USER": "test,test:tester"}
    app = App(index="index.html")
    assert visit(app, "/", env=known).headers["content-type"] == "application/json"
    assert visit(app, "/", {"x-web-mode": "true"}, env=known).read_body() == b"INDEX"
    assert visit(app, "/", env={"REMOTE_USER": ".wsgi.tempurl"}).read_body() == b"INDEX"


@pytest.mark.parametrize("path", ["/sub", "/list/"])
def test_redirects_and_listings_hand_a_temporary_url_on(path):
    env = {"REMOTE_USER": ".wsgi.tempurl", "swift.tempurl.link": ("temp_url_sig=s&inline", "list/")}
    app = App(listings="t")
    answer = visit(app, path, env=env)
    if answer.status == 301:
        assert answer.headers["location"] == "http://h:1/v1/a/c/sub/?temp_url_sig=s&inline"
    else:
        page = answer.read_body().decode()
        assert 'href="./a?temp_url_sig=s&amp;inline"' in page
        assert "../" not in page


def test_nothing_is_read_with_more_rights_than_the_visitors():
    app = App(index="index.html", listings="t", error="err")
    callback = object()
    for path in ("", "/", "/sub", "/sub/", "/list", "/list/", "/none", "/none/"):
        visit(app, path, env={"swift.authorize": callback})
    assert app.asked
    for request in app.asked:
        assert request.env["swift.authorize"] is callback
        assert "swift_owner" not in request.env
        assert request.method in ("GET", "HEAD")


def test_a_container_that_may_not_be_read_has_no_pages():
    app = App(index="index.html", listings="t")
    app.readable = False
    for path in ("", "/", "/sub/", "/none"):
        assert visit(app, path).status == 401


@pytest.mark.parametrize(("headers", "status"), [({}, 200), ({"x-web-mode": "true"}, 404)])
def test_a_container_without_a_site_is_the_api(headers, status):
    assert visit(App(), "/", headers).status == status


def test_writing_and_accounts_are_not_for_browsers():
    app = App(index="index.html")
    web = StaticWeb(app, StaticWebSettings())
    for method, path in (
        ("PUT", "/v1/a/c/o"),
        ("POST", "/v1/a/c/"),
        ("GET", "/v1/a"),
        ("OPTIONS", "/v1/a/c"),
    ):
        request = Request(method, path)
        web.handle(request)
        assert app.asked[-1] is request
