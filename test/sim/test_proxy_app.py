"""The proxy routes by method and path; what names nothing is refused, and only errors of ours are 500."""

from __future__ import annotations

import pytest

from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import Response


def ask(sim, method, path, headers=None, env=None):
    """A request whose path is taken as it is."""
    env = {"swift.cache": sim.cache, "swift_owner": True, **(env or {})}
    return sim.handle(Request(method, path, dict(headers or {}), env=env))


def test_the_root_is_a_page_for_people_and_no_page_with_a_query(sim):
    assert b"Object storage" in ask(sim, "GET", "/").body
    assert ask(sim, "HEAD", "/").body == b""
    assert [ask(sim, method, "/").status for method in ("PUT", "POST", "DELETE")] == [404] * 3


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("", 404),
        ("/v1", 412),
        ("/v1/", 412),
        ("/v1//c", 404),
        ("/v1/a//o", 404),
        ("/v2/a", 400),
        ("/v1.0/a/none", 404),
        ("/v1/%FF", 412),
        ("/v1/a/%00c", 412),
        ("/v1/a/c%00", 412),
        ("/healthcheck", 412),
    ],
)
def test_paths_that_name_nothing(sim, path, status):
    assert ask(sim, "GET", path).status == status


@pytest.mark.parametrize("method", ["PATCH", "TRACE", "get", "_route", "UPDATE", ""])
@pytest.mark.parametrize("path", ["/v1/a", "/v1/a/c", "/v1/a/c/o"])
def test_methods_that_there_are_not_are_told_which_there_are(sim, method, path):
    response = ask(sim, method, path)
    assert response.status == 405
    assert "GET" in response.headers["allow"] and "UPDATE" not in response.headers["allow"]


def test_accounts_are_made_and_removed_by_operators_only(make_sim):
    sim = make_sim()
    assert ask(sim, "PUT", "/v1/new", {"content-length": "0"}).status == 405
    assert ask(sim, "DELETE", "/v1/new").status == 405
    managing = make_sim(allow_account_management=True, root=sim.root / "second")
    assert ask(managing, "PUT", "/v1/new", {"content-length": "0"}).status == 201
    assert ask(managing, "DELETE", "/v1/new").status == 204


def test_what_servers_ask_of_each_other_is_not_for_clients(sim):
    headers = {fields.BACKEND_ALLOW_PRIVATE_METHODS: "true", "content-length": "2"}
    assert ask(sim, "UPDATE", "/v1/a/c").status == 405
    assert ask(sim, "UPDATE", "/v1/a/c", headers).status != 405


@pytest.mark.parametrize("stamp", ["soon", "", "-1", "1e400", "nan", "99999999999"])
def test_a_timestamp_that_is_none_is_refused(sim, stamp):
    response = ask(sim, "PUT", "/v1/a/c", {"x-timestamp": stamp, "content-length": "0"})
    assert response.status == 400 and b"X-Timestamp" in response.read_body()


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.com", 403), ("evil.com:8080", 403), ("[::1]:80", 403), ("good.com", 204), ("", 204)],
)
def test_hosts_that_are_denied(make_sim, host, status):
    sim = make_sim(deny_host_headers=("evil.com", "[::1]"))
    sim("PUT", "/a/c")
    assert ask(sim, "HEAD", "/v1/a/c", {"host": host}).status == status


def test_a_storage_token_stands_in_for_the_other_one(sim):
    request = Request("HEAD", "/v1/a/c", {"x-storage-token": "t"}, env={"swift.cache": sim.cache})
    sim.handle(request)
    assert request.headers["x-auth-token"] == "t"
    assert request.headers["x-trans-id"].startswith("tx")


def test_who_is_denied_at_once_reaches_no_server(sim):
    sim.transport.requests.clear()
    denied = ask(
        sim, "PUT", "/v1/a/c2", {"content-length": "0"}, {environkeys.AUTHORIZE: lambda _r: Response(403)}
    )
    assert denied.status == 403 and sim.transport.requests == []


def test_who_may_read_an_object_is_asked_once_its_container_is_known(sim):
    sim("PUT", "/a/c/o", {}, b"x")
    seen = []

    def authorise(request):
        seen.append(request.acl)
        return None if request.acl == ".r:*" else Response(401)

    assert ask(sim, "GET", "/v1/a/c/o", env={environkeys.AUTHORIZE: authorise}).status == 401
    sim("POST", "/a/c", {"x-container-read": ".r:*"})
    assert ask(sim, "GET", "/v1/a/c/o", env={environkeys.AUTHORIZE: authorise}).status == 200
    assert ".r:*" in seen


def test_an_error_of_ours_is_500_and_tells_the_client_nothing(sim):
    def authorise(_request):
        raise ZeroDivisionError("secret")

    response = ask(sim, "GET", "/v1/a", env={environkeys.AUTHORIZE: authorise})
    assert response.status == 500 and b"secret" not in response.read_body()
