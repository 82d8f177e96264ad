"""The console's pages for operators: health, devices."""

import json
import time

import pytest

from swift import green
from swift.base.clock import SystemClock
from swift.cluster.health import NodeHealth
from swift.console.core import cluster
from swift.console.operators import health
from swift.operations.health.forecast import DAY_S
from test.support.console import ConsoleWorld
from test.support.recon import FakeServers, make_watch

MARKUP = "<script>alert(1)</script>'\"&\u202e\x00"
#: JSON that no server should respond with.
NONSENSE = [
    None,
    7,
    "text",
    [],
    {},
    [None, 1, "x", [], {}],
    {"/srv/node": [MARKUP, 7, None]},
    {"device_errors": {MARKUP: {"errors": 1e999, "last": 1e300, "error": MARKUP}}},
    {"device_errors": {"sda": {"errors": 3, "last": 1e17, "error": MARKUP}}},
    [{"device": "sda", "mounted": True, "size": -5, "used": 1e17}],
    [{"device": "sda", "mounted": True, "size": 0, "used": 7}],
    {"object_packed_devices": {"sda": {"volumes": 1e17, "live_bytes": -1, "lost_bytes": MARKUP}}},
    {"cache_tier": {"classes": {MARKUP: {"hits": MARKUP, "hit_rate": 1e17}}, "failures": [MARKUP, {}]}},
    {"cache_tier": {"classes": [1], "failures": {}}},
]


@pytest.fixture
def servers():
    return FakeServers(time.time())


@pytest.fixture
def make_world(make_sim, tmp_path, servers):
    folder = tmp_path / "rings-here"
    folder.mkdir()

    def make(**options):
        return ConsoleWorld(make_sim(allow_account_management=True), make_watch(folder, servers, **options))

    return make


@pytest.fixture
def world(make_world):
    return make_world()


def test_health_says_what_is_wrong_and_what_heals_it(world, servers):
    servers.down.add("10.0.0.2")
    page = world.browser("a:op").get("/console/health")
    assert "3 devices, 1 away." in page and '<span class="badge critical">' in page
    assert "object server silent: 10.0.0.2:6200" in page
    assert "start them (swift-init object-server start)" in page
    assert "capacity_history" in page


def test_all_viewers_share_a_collection(world, servers, monkeypatch):
    browser, other = world.browser("a:op"), world.browser("a:op")
    for _ in range(3):
        green.gather([lambda: browser.get("/console/health"), lambda: other.get("/console/health")])
    assert servers.requests.count(("10.0.0.1", 6200, "time")) == 1
    monkeypatch.setattr(cluster, "FRESH_S", -1.0)
    browser.get("/console/health")
    assert servers.requests.count(("10.0.0.1", 6200, "time")) == 2


def test_a_slow_collection_leaves_the_older_state_to_viewers(monkeypatch):
    taken = []

    def collect():
        taken.append(len(taken))
        green.sleep(0.3 if len(taken) > 1 else 0)
        return taken[-1]

    now_s = [0.0]
    collection = cluster.Collection(collect, lambda: now_s[0])
    assert collection.latest() == 0
    now_s[0] += 11
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.05)
    assert green.spawn(collection.latest).wait() == 0
    green.sleep(0.5)
    assert collection.latest() == 1 and len(taken) == 2


def test_rings_that_cannot_be_read_are_no_fault_of_the_console(world, servers):
    watch = world.filter._parts.cluster
    with open(f"{watch.swift_dir}/object.ring.gz", "wb") as file:
        file.write(b"no ring")
    browser = world.browser("a:op")
    assert "The state of the cluster is unknown:" in browser.get("/console/health") and browser.status == 200
    assert "object.ring.gz" in browser.get("/console/devices") and browser.status == 503


def test_the_forecast_has_a_curve_and_the_same_figures(make_world, tmp_path, servers):
    history = tmp_path / "capacity.jsonl"
    now_s = time.time()
    lines = [
        {"time": now_s - days * DAY_S, "usage": {"object": {"r1z1": [4e8 - days * 1e7, 1e9]}}}
        for days in (4, 3, 2, 1)
    ]
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = make_world(history=str(history)).browser("a:op").get("/console/health")
    assert '<svg class="curve"' in page and "Usage of policy gold in zone r1z1" in page
    assert "60 days" in page and "10.0 MB a day" in page and "40.0 %" in page
    assert len(history.read_text().splitlines()) == 5


def test_events_bring_the_part_that_changes_until_the_session_ends(world, servers, monkeypatch):
    monkeypatch.setattr(health, "FRESH_S", 0.01)
    browser = world.browser("a:op")
    request = browser.request("/console/health/events")
    response = world.filter.handle(request)
    assert response.headers["content-type"] == "text/event-stream"
    events = iter(response.body)
    first = next(events)
    assert first.startswith(b"data: ") and first.endswith(b"\n\n") and b"3 devices, 0 away" in first
    assert all(line.startswith(b"data: ") for line in first.strip().split(b"\n"))
    assert b"<html" not in first
    watch = world.filter._parts.cluster
    assert watch.streams == 1
    browser.get("/console/health")
    browser.post("/console/logout")
    assert list(events) == []
    response.body.close()
    response.body.close()
    assert watch.streams == 0


def test_the_number_of_event_streams_is_bounded(world, monkeypatch):
    monkeypatch.setattr(health, "STREAMS_MAX", 1)
    browser = world.browser("a:op")
    response = world.filter.handle(browser.request("/console/health/events"))
    browser.get("/console/health/events")
    assert browser.status == 503
    response.discard()
    assert world.filter.handle(browser.request("/console/health/events")).status == 200


def test_devices_have_their_place_state_and_use(world, servers):
    servers.own["10.0.0.1"] = {
        "diskusage": [{"device": "sda", "mounted": True, "size": 100, "used": 99}],
        "deviceerrors/object": {"device_errors": {"sda": {"errors": 4, "last": time.time(), "error": "EIO"}}},
    }
    servers.own["10.0.0.2"] = {"devices": {"/srv/node": []}}
    servers.checks["cachetier"] = {
        "cache_tier": {"classes": {"ssd": {"hits": 9, "misses": 1, "hit_rate": 0.9}}}
    }
    browser = world.browser("a:op")
    page = browser.get("/console/devices")
    assert "3 devices." in page and "99 bytes of 100 bytes" in page and "4 (EIO)" in page
    # The worst is first, with the way to replace it.
    rows = page[page.index("<tbody>") :]
    assert rows.index("10.0.0.2/sda") < rows.index("10.0.0.1/sda") < rows.index("10.0.0.3/sda")
    assert "this disk is the one to replace" in page and "The disk is not mounted or not there" in page
    assert "90.0 %" in page
    rows = browser.get("/console/devices", state="failing")
    assert "1 devices." in rows
    rows = browser.get("/console/devices", order="device", falling="1", ring="object", q="sda")
    rows = rows[rows.index("<tbody>") :]
    assert rows.index("10.0.0.3/sda") < rows.index("10.0.0.1/sda")
    browser.get("/console/devices", place="x")
    assert browser.status == 400


def test_devices_that_this_proxy_avoids_are_marked(make_world):
    nodes = NodeHealth(SystemClock())
    nodes.avoid("10.0.0.3:6200/sda")
    page = make_world(nodes=nodes).browser("a:op").get("/console/devices", state="slow")
    assert "1 devices." in page and "This proxy avoids it at present" in page


PAGES = ["/console/health", "/console/devices"]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_whatever_a_server_reports_is_inert(world, servers, page, nonsense):
    servers.own["10.0.0.1"] = dict.fromkeys(servers.checks, nonsense) | {
        check: nonsense
        for check in (*cluster.CHECKS, "deviceerrors/object", "compactor/object", "copies/object")
    }
    browser = world.browser("a:op")
    text = browser.get(page)
    assert browser.status == 200, text
    assert "<script>alert" not in text and "\u202e" not in text and "\x00" not in text


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_no_style_and_script_of_their_own(world, page):
    text = world.browser("a:op").get(page)
    assert " style=" not in text and " onclick" not in text and "<script>" not in text
    assert text.count("<h1>") == 1 and "/console/static/operators.css" in text


@pytest.mark.parametrize("page", PAGES)
def test_others_do_not_see_the_pages(world, page):
    browser = world.browser("t:owner")
    browser.get(page)
    assert browser.status == 403
