"""The console: log-in, sessions, and what protects them."""

import json
from dataclasses import replace

import pytest

from swift.console.core.session import COOKIE
from swift.console.core.visit import Access
from swift.console.filter import ROUTES
from swift.http import environkeys
from swift.http.request import Request
from test.support.console import HOST, ConsoleWorld, put, swift


@pytest.fixture
def world(make_sim):
    return ConsoleWorld(make_sim(allow_account_management=True), oidc_providers=("corp",))


def test_a_log_in_leads_to_the_page_that_was_wanted(world):
    browser = world.browser()
    browser.get("/console/buckets", prefix="a&b")
    assert browser.status == 200 and browser.path().startswith("/console/login?next=/console/buckets")
    assert "/auth/oidc/corp/login?return_to=%2Fconsole" in browser.page
    field = '<input type="hidden" name="next" value="/console/buckets?prefix=a%26b">'
    assert field in browser.page
    browser.post("/console/login", user="t:owner", key="owner-password", next="/console/buckets?prefix=a%26b")
    assert browser.address == "/console/buckets?prefix=a%26b"
    cookie = browser.cookies[COOKIE]
    assert cookie.startswith("AUTH_sat") and "t:owner" in browser.page


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/consoles",
        "/v1/AUTH_t",
        "",
        "javascript:",
        "/console/../v1/AUTH_t/public/page.html",
        "/console/%2E%2e/v1/AUTH_t/public/page.html",
        "/console/./x/..",
        "/console\\@evil.example",
    ],
)
def test_a_log_in_leads_nowhere_else(world, address):
    browser = world.browser()
    browser.post("/console/login", user="t:owner", key="owner-password", next=address)
    assert browser.address == "/console"


@pytest.mark.parametrize("key", ["wrong", "a\r\nX-Auth-Admin: yes", "\x00", "é", "\ud800", ""])
def test_a_wrong_key_begins_no_session(world, key):
    browser = world.browser()
    browser.post("/console/login", user="t:owner", key=key.encode("utf-8", "surrogatepass"))
    assert browser.status in (400, 401) and not browser.cookies


def test_an_access_key_begins_a_session(world):
    world.op("CreateAccessKey", user="t:owner", access_key="OWNER", secret_key="owner-secret")
    browser = world.browser()
    browser.post("/console/login", user="OWNER", key="owner-secret")
    assert browser.address == "/console" and "t:owner" in browser.page


def test_a_log_out_ends_the_token_everywhere(world):
    browser = world.browser("t:owner")
    token = browser.cookies[COOKIE]
    browser.get("/console")
    browser.post("/console/logout")
    assert browser.address == "/console/login" and not browser.cookies
    other = world.browser()
    other.cookies[COOKIE] = token
    other.get("/console")
    assert other.path().startswith("/console/login")


def test_the_session_cookie_is_kept_from_scripts_and_other_sites(world):
    browser = world.browser()
    browser.post("/console/login", user="t:owner", key="owner-password")
    # The redirect set it; the page after it did not.
    assert "set-cookie" not in browser.headers
    form = {"content-type": "application/x-www-form-urlencoded"}
    body = b"user=t:owner&key=owner-password"
    response = world.send(Request("POST", "/console/login", {**form, "content-length": "31"}, body))
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-") and cookie.endswith("; Path=/; HttpOnly; Secure; SameSite=Strict")


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)
@pytest.mark.parametrize("path", ["/console/buckets/make", "/console/login", "/console/logout"])
def test_other_sites_change_nothing(world, headers, path):
    browser = world.browser("t:owner")
    browser.get("/console")
    browser.post(path, headers, bucket="made", user="t:user", key="user-password")
    assert browser.status == 403
    assert world.browser("t:owner").get("/console/buckets").count("made") == 0


@pytest.mark.parametrize("csrf", ["", "x", "é"])
def test_a_form_without_the_pages_token_changes_nothing(world, csrf):
    browser = world.browser("t:owner")
    browser.post("/console/buckets/make", csrf=csrf, bucket="made")
    assert browser.status == 403 and "made" not in browser.get("/console/buckets")


def test_the_token_of_another_session_is_refused(world):
    other = world.browser("t:owner")
    browser = world.browser("t:owner")
    browser.post("/console/buckets/make", csrf=other.csrf, bucket="made")
    assert browser.status == 403


def test_an_ended_session_leads_to_the_log_in_and_back(world):
    browser = world.browser("t:owner")
    browser.get("/console/buckets")
    world.made.clock.now += 10 * 86400
    world.filter._parts.sessions._kept._kept.clear()
    browser.get("/console/buckets?prefix=x")
    assert browser.path() == "/console/login?next=/console/buckets?prefix=x"
    assert browser.send("GET", "/console/buckets")["log_in"] == "/console/login"
    assert browser.status == 401


def test_every_page_keeps_others_out(world):
    browser = world.browser()
    browser.get("/console/login")
    policy = browser.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert browser.headers["x-content-type-options"] == "nosniff"
    assert browser.headers["cache-control"] == "no-store"
    assert " style=" not in browser.page and " onclick" not in browser.page


def test_pages_of_operators_refuse_others(world):
    browser = world.browser("t:owner")
    for route in ROUTES:
        if route.access is Access.OPERATORS and route.method == "GET":
            browser.get(f"/console{route.path}")
            assert browser.status == 403, route


def test_paths_that_are_no_pages(world):
    browser = world.browser("t:owner")
    browser.get("/console/none")
    assert browser.status == 404 and "no such page" in browser.page
    browser.get("/console/logout")
    assert browser.status == 405
    browser.get("/console?%ff=1")
    assert browser.status == 400


LOADS = [{"sec-fetch-dest": "document"}, {"sec-fetch-dest": "iframe"}, {"accept": "text/html,*/*;q=0.8"}]


@pytest.mark.parametrize("headers", LOADS)
def test_objects_that_browsers_load_as_pages_have_no_right_to_the_console(world, headers):
    owner = world.browser("t:owner")
    owner.get("/console")
    swift(owner, "PUT", "public", {"x-container-read": ".r:*"})
    put(owner, "page.html", b"<script>fetch('/console')</script>", "public", content_type="text/html")
    put(owner, "a.pdf", b"%PDF", "public", content_type="application/pdf")

    def load(name, sent):
        path = f"/v1/AUTH_t/public/{name}"
        return world.send(Request("GET", path, {"host": HOST, **sent})).headers

    policy = load("page.html", headers)["content-security-policy"]
    assert policy.startswith("sandbox ") and "allow-same-origin" not in policy
    # The viewer of browsers does not work in a sandbox.
    found = load("a.pdf", headers)
    assert "content-security-policy" not in found and found["x-content-type-options"] == "nosniff"
    for sent in ({}, {"accept": "*/*"}, {"sec-fetch-dest": "empty", "accept": "application/json"}):
        assert "content-security-policy" not in load("page.html", sent)
    key = world.op("CreateAccessKey", user="t:owner")["access_key"]
    signed = {"host": HOST, "authorization": f"AWS4-HMAC-SHA256 Credential={key}", **headers}
    found = world.send(Request("GET", "/console/page.html", signed)).headers
    assert found["content-security-policy"].startswith("sandbox ")


def test_a_name_like_the_signature_of_s3_is_no_signature(world):
    browser = world.browser("t:owner")
    browser.get("/console/buckets", prefix="X-Amz-Signature=")
    assert browser.status == 200 and "X-Amz-Signature=" in browser.page


def test_a_limited_key_of_an_operator_is_no_operator(world):
    made = world.op("CreateAccessKey", user="a:op", container="photos", read_only=True)
    browser = world.browser()
    browser.post("/console/login", user=made["access_key"], key=made["secret_key"])
    assert "a:op" in browser.page and "/console/audit" not in browser.page
    browser.get("/console/audit")
    assert browser.status == 403


def test_clients_of_s3_reach_a_bucket_of_the_same_name(world):
    sent = {"host": "h", "authorization": "AWS4-HMAC-SHA256 Credential=x"}
    response = world.send(Request("GET", "/console/key", sent))
    assert b"<Error>" in response.body


def test_a_log_in_by_a_provider_becomes_a_session(world):
    token = world.browser("t:owner").cookies[COOKIE]
    inner = world.filter.app

    def handle(request):
        if request.raw_path.startswith("/auth/oidc/corp/callback"):
            request.env[environkeys.OIDC_SESSION] = (token, "/console/buckets?prefix=%3Cb%3E&x=1")
        return inner.handle(request)

    world.filter._parts = replace(world.filter._parts, forward=handle)
    browser = world.browser()
    page = browser.get("/auth/oidc/corp/callback?code=x")
    assert 'content="0;url=/console/buckets?prefix=%3Cb%3E&amp;x=1"' in page
    assert browser.cookies[COOKIE] == token and "t:owner" in browser.get("/console")


def test_an_unreachable_cluster_is_told_with_the_transaction(world):
    browser = world.browser("t:owner")
    world.filter._parts.sessions._kept._kept.clear()
    world.sim.faults.answers.update(dict.fromkeys(world.sim.transport.apps, 503))
    browser.get("/console/buckets")
    assert browser.status == 503 and "<code>tx1</code>" in browser.page


def test_the_audit_log_has_what_people_do_in_the_console(make_sim):
    lines = []
    world = ConsoleWorld(make_sim(allow_account_management=True), audit=lines.append)
    browser = world.browser("t:owner")
    browser.get("/console/buckets")
    browser.post("/console/buckets/make", bucket="made", versions="yes")
    browser.get("/console/keys")
    browser.post("/console/keys/make", note="x", days="0")
    browser.send("PUT", "/console/upload/whole?bucket=made&name=one", {"content-length": "1"}, b"x")
    browser.post("/console/login", user="t:owner", key="wrong")
    browser.post("/console/buckets/delete", bucket="made")
    found = [
        (each["method"], each["status"], each.get("container"), each.get("user"))
        for each in map(json.loads, lines)
    ]
    for line in [
        ("PUT", 201, "made", "t:owner"),
        ("POST", 200, None, "t:owner"),
        ("GET", 401, None, "t:owner"),
        ("DELETE", 409, "made", "t:owner"),
    ]:
        assert line in found, found
    assert any(each.get("object") == "one" for each in map(json.loads, lines))
    assert all(each["client"] == "10.0.0.9" for each in map(json.loads, lines))
