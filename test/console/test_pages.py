"""Every page of the console in Chromium: what axe-core finds, narrow and dark screens, sizes, times."""

import json
import statistics
import time
import urllib.request

import pytest

from swift.console.core.visit import Access
from swift.console.filter import ROUTES
from test.support.chromium import needs_chromium

pytestmark = [pytest.mark.process, needs_chromium]
BUCKET = "pages-bucket"
#: Path → the query of a page that needs one.
QUERIES = {
    "/bucket": f"bucket={BUCKET}",
    "/bucket/access": f"bucket={BUCKET}",
    "/browse": f"bucket={BUCKET}",
    "/object": f"bucket={BUCKET}&name=a%20name",
    "/delete": f"bucket={BUCKET}&prefix=folder/",
    "/share": f"bucket={BUCKET}&name=a%20name",
    "/uploads": f"bucket={BUCKET}",
    "/rings/preview": "ring=object&device=0&action=weight&weight=1",
    "/users/user": "user=test:tester",
    "/users/group": "group=test:readers",
    "/users/role": "role=test:reader",
    "/users/policy": "policy=test:readonly",
}
#: Responses that are no pages.
NO_PAGES = ("/static/", "/usage.csv", "/accounts.csv", "/download", "/content", "/session", "/upload/")
PAGES = sorted(
    route.path
    for route in ROUTES
    if route.method == "GET" and not route.path.startswith(NO_PAGES) and not route.path.endswith("/events")
)
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::test:user/tester"},
            "Action": "sts:AssumeRole",
        }
    ],
}


@pytest.fixture(scope="module")
def stored(cluster):
    """Make what the pages show."""
    token = cluster.tokens.get("test:tester") or _log_in(cluster)
    for operation, parameters in [
        ("CreateGroup", {"group": "test:readers"}),
        ("CreateRole", {"role": "test:reader", "trust": json.dumps(TRUST), "policies": ["readonly"]}),
    ]:
        _send(cluster, "POST", "/auth/identity", token, {"operation": operation, "parameters": parameters})
    _send(cluster, "PUT", f"/v1/AUTH_test/{BUCKET}", token)
    _send(cluster, "PUT", f"/v1/AUTH_test/{BUCKET}/a%20name", token, {"some": "text"})
    _send(cluster, "PUT", f"/v1/AUTH_test/{BUCKET}/folder/one", token, {})


def _log_in(cluster):
    request = urllib.request.Request(
        cluster.plan.auth_url,
        headers={"X-Auth-User": cluster.plan.user, "X-Auth-Key": cluster.plan.key},
    )
    with urllib.request.urlopen(request) as response:
        return response.headers["X-Auth-Token"]


def _send(cluster, method, path, token, value=None):
    data = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(
        cluster.plan.url + path, data, {"X-Auth-Token": token, "Content-Type": "text/plain"}, method=method
    )
    with urllib.request.urlopen(request) as response:
        assert response.status < 300


def address_of(cluster, path):
    query = QUERIES.get(path)
    return f"{cluster.plan.url}/console{path}" + (f"?{query}" if query else "")


def open_page(page, cluster, path):
    response = page.goto(address_of(cluster, path))
    assert response.status == 200, page.content()
    page.wait_for_load_state()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(cluster, stored, visit, axe, scheme):
    page = visit(color_scheme=scheme)
    found = {}
    for path in PAGES:
        open_page(page, cluster, path)
        page.evaluate(axe)
        result = page.evaluate("axe.run()")
        bad = [
            f"{each['id']}: {node['html'][:200]}"
            for each in result["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"][:3]
        ]
        if bad:
            found[path] = bad
    assert not found, json.dumps(found, indent=1)


def test_the_log_in_page_is_accessible(visit, axe):
    page = visit(user=None)
    page.evaluate(axe)
    result = page.evaluate("axe.run()")
    assert not [each["id"] for each in result["violations"] if each["impact"] in ("serious", "critical")]


@pytest.mark.long
def test_no_page_is_wider_than_a_narrow_screen(cluster, stored, visit):
    page = visit(viewport={"width": 360, "height": 700})
    wide = []
    for path in PAGES:
        open_page(page, cluster, path)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 360:
            wide.append((path, width))
    assert not wide


@pytest.mark.long
def test_every_page_is_reached_by_keyboard_and_has_one_heading(cluster, stored, visit):
    page = visit()
    for path in PAGES:
        open_page(page, cluster, path)
        assert page.locator("h1").count() == 1, path
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip", path
        unnamed = page.eval_on_selector_all(
            "main input:not([type=hidden]), main select, main textarea",
            "list => list.filter(e => !e.labels.length && !e.ariaLabel).map(e => e.outerHTML)",
        )
        assert not unnamed, (path, unnamed)


def test_first_pages_are_small_and_soon_there(cluster, stored, visit):
    page = visit()
    sizes = {}
    page.on("response", lambda response: sizes.update({response.url: len(response.body())}))
    page.goto(f"{cluster.plan.url}/console/buckets")
    page.wait_for_load_state("networkidle")
    assert sum(sizes.values()) < 150_000, sizes
    cookies = "; ".join(f"{each['name']}={each['value']}" for each in page.context.cookies())
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        request = urllib.request.Request(f"{cluster.plan.url}/console/buckets", headers={"Cookie": cookies})
        with urllib.request.urlopen(request) as response:
            assert b"<h1>" in response.read()
        times.append(time.perf_counter() - begin)
    print(f"median of the first page: {statistics.median(times) * 1000:.0f} ms")


@pytest.mark.long
def test_no_page_for_users_needs_an_operator(cluster, stored, visit):
    operators = {route.path for route in ROUTES if route.access is Access.OPERATORS}
    page = visit("test:tester3", f"{cluster.plan.key}3")
    for path in PAGES:
        response = page.goto(address_of(cluster, path))
        if path in operators:
            assert response.status == 403, path
        else:
            assert response.status in (200, 403, 404), path
        assert "Traceback" not in page.content()
