"""Foreign WSGI filters and callbacks (PEP 3333) among ours."""

import os

import pytest

from swift.http.body import FileBody
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.middleware.filter import Filter
from swift.runtime.wsgi import BadApplication, call_wsgi, handle_of_app


class App:
    """The end of a pipeline."""

    def __init__(self, answer=None):
        self.seen = None
        self.answer = answer or (lambda request: Response(200, {"x-from": "app"}, b"hello"))

    def handle(self, request):
        self.seen = request
        return self.answer(request)


class Foreign:
    """A foreign filter around a function ``(app, environ, start_response)``."""

    def __init__(self, app, act=lambda app, environ, start: app(environ, start)):
        self.app = Filter(app)
        self.act = act

    def __call__(self, environ, start_response):
        return self.act(self.app, environ, start_response)


def through(act, answer=None, **headers):
    app = App(answer)
    request = Request("PUT", "/v1/a", headers, b"body", env={"swift.trans_id": "tx"})
    return handle_of_app(Foreign(app, act))(request), request, app


def test_a_request_passes_a_foreign_filter_unchanged():
    response, request, app = through(lambda app, environ, start: app(environ, start), **{"x-a": "1"})
    assert (response.status, response.headers["x-from"], response.read_body()) == (200, "app", b"hello")
    assert (app.seen.method, app.seen.headers, app.seen.body.read()) == ("PUT", {"x-a": "1"}, b"body")
    assert app.seen.env is request.env


def test_its_changes_reach_both_sides():
    def act(app, environ, start):
        environ["REMOTE_USER"] = "me"
        environ["HTTP_X_B"] = "2"
        environ["PATH_INFO"] = "/v1/other"
        return app(environ, start)

    _response, request, app = through(act)
    for side in (request, app.seen):
        assert (side.env["REMOTE_USER"], side.headers["x-b"], side.raw_path) == ("me", "2", "/v1/other")


def test_what_ours_change_below_is_seen_by_the_foreign_filter_and_above():
    seen = {}

    def act(app, environ, start):
        chunks = app(environ, start)
        seen.update(environ)
        return chunks

    def answer(request):
        request.headers["x-timestamp"] = "1"
        return Response(201)

    _response, request, _app = through(act, answer)
    assert (seen["HTTP_X_TIMESTAMP"], request.headers["x-timestamp"]) == ("1", "1")


def test_a_file_that_is_passed_on_is_still_sent_as_a_file(tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    ended, closed = [], []

    def answer(_request):
        fd = os.open(tmp_path / "f", os.O_RDONLY)
        response = Response(200, {}, FileBody(fd, 2, 5, lambda: (os.close(fd), closed.append(True))))
        response.on_response_end(lambda sent, complete: ended.append((sent, complete)))
        return response

    def act(app, environ, start):
        def start_with_more(status, headers, exc_info=None):
            return start(status, [*headers, ("X-More", "1")], exc_info)

        return app(environ, start_with_more)

    response, _request, _app = through(act, answer)
    assert isinstance(response.body, FileBody)
    assert response.headers["x-more"] == "1"
    assert response.read_body() == b"23456"
    response.report_end(5, True)
    assert (ended, closed) == ([(5, True)], [True])


def generator(app, environ, start):
    yield from app(environ, start)


def writer(app, environ, start):
    write = start("200 OK", [])
    write(b"hel")
    return [b"lo"]


def late(app, environ, start):
    yield b""
    start("200 OK", [])
    yield b"hello"


def second_thoughts(app, environ, start):
    start("500 Oops", [])
    try:
        raise ValueError
    except ValueError:
        import sys

        start("200 OK", [], sys.exc_info())
    return iter([b"he", b"llo"])


@pytest.mark.parametrize("act", [generator, writer, late, second_thoughts])
def test_every_way_of_answering_works(act):
    response, _request, _app = through(act)
    assert (response.status, response.read_body()) == (200, b"hello")


def never(app, environ, start):
    return iter([b"x"])


def nonsense(app, environ, start):
    start("OK", [])
    return [b""]


def twice(app, environ, start):
    start("200 OK", [])
    start("200 OK", [])
    return [b""]


@pytest.mark.parametrize("act", [never, nonsense, twice])
def test_an_application_that_breaks_the_rules_is_an_error_of_the_server(act):
    with pytest.raises(BadApplication):
        through(act)


def test_our_refusals_are_answers_to_a_foreign_filter():
    def answer(_request):
        raise HTTPError(409, "no")

    response, _request, _app = through(lambda app, environ, start: app(environ, start), answer)
    assert (response.status, response.read_body()) == (409, b"no")


# --- callbacks --------------------------------------------------------------------------------------


def asks(request):
    """The proxy: asks the callback."""
    request.acl = "staff"
    denial = request.env["swift.authorize"](request)
    return Response(204) if denial is None else denial


def denied(environ, start_response):
    start_response("403 Forbidden", [("X-Why", environ["REQUEST_METHOD"])])
    return [b"no"]


@pytest.mark.parametrize("verdict", [None, denied])
def test_a_foreign_callback_gets_an_environ_and_may_answer_with_an_application(verdict):
    seen = []

    def callback(req):
        seen.append((req.method, req.path, req.acl, req.headers["X-Auth-Token"], req.remote_user))
        seen.append((req.split_path(2, 4, True), req.environ["swob.ACL"], req.params, sorted(req.headers)))
        req.environ["swift_owner"] = True
        req.headers["X-Added"] = "1"
        return verdict

    def act(app, environ, start):
        environ["swift.authorize"] = callback
        environ["REMOTE_USER"] = "me"
        return app(environ, start)

    response, request, app = through(act, asks, **{"x-auth-token": "t"})
    assert seen[0] == ("PUT", "/v1/a", "staff", "t", "me")
    assert seen[1][:3] == (["v1", "a", None, None], "staff", {})
    assert "X-Auth-Token" in seen[1][3]
    assert app.seen.headers["x-added"] == "1"
    assert request.env["swift_owner"] is True
    if verdict is None:
        assert response.status == 204
    else:
        assert (response.status, response.headers["x-why"], response.read_body()) == (403, "PUT", b"no")


def test_our_callback_may_be_asked_by_a_foreign_filter():
    class Req:
        def __init__(self, environ):
            self.environ = environ

    def ours(request):
        assert isinstance(request, Request)
        request.env["swift_owner"] = True
        return error_response(401) if "x-good" not in request.headers else None

    verdicts = []

    def act(app, environ, start):
        verdicts.append(environ["swift.authorize"](Req(environ)))
        if verdicts[0] is not None:
            return verdicts[0](environ, start)
        return app(environ, start)

    for headers, status in (({}, 401), ({"x-good": "1"}, 204)):
        verdicts.clear()
        app = App(asks)
        request = Request("GET", "/v1/a", dict(headers), env={"swift.authorize": ours})
        response = call_wsgi(Foreign(app, act), request)
        assert response.status == status
        assert request.env["swift.authorize"] is ours
        assert (app.seen is None) == (status == 401)
