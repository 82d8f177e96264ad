"""The proxy routes by method and path, refuses invalid paths, and returns 500 only for internal errors."""

from __future__ import annotations

import pytest

from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import Response


def ask(sim, method, path, headers=None, env=None):
    """Send a request with an unmodified path."""
    env = {"swift.cache": sim.cache, "swift_owner": True, **(env or {})}
    return sim.handle(Request(method, path, dict(headers or {}), env=env))


def test_the_root_is_an_html_page_without_a_query_only(sim):
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
def test_invalid_paths_are_refused(sim, path, status):
    assert ask(sim, "GET", path).status == status


@pytest.mark.parametrize("method", ["PATCH", "TRACE", "get", "_route", "UPDATE", ""])
@pytest.mark.parametrize("path", ["/v1/a", "/v1/a/c", "/v1/a/c/o"])
def test_unknown_methods_get_405_with_the_allowed_methods(sim, method, path):
    response = ask(sim, method, path)
    assert response.status == 405
    assert "GET" in response.headers["allow"] and "UPDATE" not in response.headers["allow"]


def test_accounts_are_created_and_deleted_by_operators_only(make_sim):
    sim = make_sim()
    assert ask(sim, "PUT", "/v1/new", {"content-length": "0"}).status == 405
    assert ask(sim, "DELETE", "/v1/new").status == 405
    managing = make_sim(allow_account_management=True, root=sim.root / "second")
    assert ask(managing, "PUT", "/v1/new", {"content-length": "0"}).status == 201
    assert ask(managing, "DELETE", "/v1/new").status == 204


def test_internal_methods_are_not_available_to_clients(sim):
    headers = {fields.BACKEND_ALLOW_PRIVATE_METHODS: "true", "content-length": "2"}
    assert ask(sim, "UPDATE", "/v1/a/c").status == 405
    assert ask(sim, "UPDATE", "/v1/a/c", headers).status != 405


@pytest.mark.parametrize("stamp", ["soon", "", "-1", "1e400", "nan", "99999999999"])
def test_an_invalid_timestamp_is_refused(sim, stamp):
    response = ask(sim, "PUT", "/v1/a/c", {"x-timestamp": stamp, "content-length": "0"})
    assert response.status == 400 and b"X-Timestamp" in response.read_body()


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.com", 403), ("evil.com:8080", 403), ("[::1]:80", 403), ("good.com", 204), ("", 204)],
)
def test_denied_hosts_are_refused(make_sim, host, status):
    sim = make_sim(deny_host_headers=("evil.com", "[::1]"))
    sim("PUT", "/a/c")
    assert ask(sim, "HEAD", "/v1/a/c", {"host": host}).status == status


def test_x_storage_token_is_accepted_as_x_auth_token(sim):
    request = Request("HEAD", "/v1/a/c", {"x-storage-token": "t"}, env={"swift.cache": sim.cache})
    sim.handle(request)
    assert request.headers["x-auth-token"] == "t"
    assert request.headers["x-trans-id"].startswith("tx")


def test_an_unauthorized_request_reaches_no_server(sim):
    sim.transport.requests.clear()
    denied = ask(
        sim, "PUT", "/v1/a/c2", {"content-length": "0"}, {environkeys.AUTHORIZE: lambda _r: Response(403)}
    )
    assert denied.status == 403 and sim.transport.requests == []


def test_object_access_is_authorized_after_the_container_acl_is_known(sim):
    sim("PUT", "/a/c/o", {}, b"x")
    seen = []

    def authorise(request):
        seen.append(request.acl)
        return None if request.acl == ".r:*" else Response(401)

    assert ask(sim, "GET", "/v1/a/c/o", env={environkeys.AUTHORIZE: authorise}).status == 401
    sim("POST", "/a/c", {"x-container-read": ".r:*"})
    assert ask(sim, "GET", "/v1/a/c/o", env={environkeys.AUTHORIZE: authorise}).status == 200
    assert ".r:*" in seen


def test_an_internal_error_is_500_without_details(sim):
    def authorise(_request):
        raise ZeroDivisionError("secret")

    response = ask(sim, "GET", "/v1/a", env={environkeys.AUTHORIZE: authorise})
    assert response.status == 500 and b"secret" not in response.read_body()
