"""The console's pages for operators; rings and the audit log have tests of their own."""

import csv
import io
import json
import time
from dataclasses import replace

import pytest

from swift import green
from swift.base.clock import SystemClock
from swift.cluster.health import NodeHealth
from swift.console.core import cluster
from swift.console.operators import accounts, health
from swift.http.response import Response, error_response
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
    {"object_auditor_stats_ALL": {"passes": MARKUP, "errors": -1e17}, "object_auditor_stats_ZBF": [1]},
    {"object_auditor_scrub": {MARKUP: {"promised_days": MARKUP, "kept": 1}, "sda": 7}},
    {"sharding_stats": {"sharding": {"sharding_in_progress": {"all": [7, {"found": -4, "state": MARKUP}]}}}},
    {"sharding_stats": {"sharding": {"sharding_candidates": [1]}}, "sharding_last": -1e17},
    {"object_updater_stats": {"failures_oldest_timestamp_age": -1e17}, "object_updater_last": 1e17},
    {
        "layout_controller": {
            "last": 1e17,
            "said": MARKUP,
            "change": MARKUP,
            "away": [MARKUP],
            "rings": {MARKUP: {}},
        }
    },
    {"copy_progress": {MARKUP: {"began": 1e17, "now": -5, "devices": {MARKUP: {"done": -1}}}}},
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


def test_passes_of_daemons_have_their_ages(world, servers):
    now_s = time.time()
    servers.checks |= {
        "replication/object": {
            "object_replication_time": 2.0,
            "object_replication_last": now_s - 7 * 3600,
            "replication_stats": {"failure": 3},
        },
        "reconstruction/object": {
            "object_reconstruction_time": 1.0,
            "object_reconstruction_last": now_s - 300,
        },
        "copies/object": {
            "copy_progress": {
                "object": {
                    "began": now_s - 600,
                    "now": now_s,
                    "devices": {"sda": {"misplaced": 3, "done": 1}},
                }
            }
        },
        "async": {"async_pending": 7, "async_pending_last": now_s - 240},
        "quarantined": {"objects": 2},
        "updater/object": {
            "object_updater_sweep": 5,
            "object_updater_last": now_s - 180,
            "object_updater_stats": {
                "failures_account_container_count": 4,
                "failures_oldest_timestamp_age": 900,
            },
        },
        "updater/container": {"container_updater_sweep": 6},
        "expirer/object": {"object_expiration_pass": 8, "expired_last_pass": 11},
        "auditor/container": {
            "container_audits_passed": 30,
            "container_audits_failed": 1,
            "container_audits_since": now_s - 1000,
            "container_auditor_pass_completed": 400,
        },
        "auditor/object": {
            "object_auditor_stats_ALL": {"sda": {"passes": 5, "bytes_processed": 2e9}, "sdb": {"passes": 6}},
        },
        "scrub/object": {
            "object_auditor_scrub": {"sda": {"promised_days": 30, "expected_days": 41.5, "kept": False}}
        },
    }
    page = world.browser("a:op").get("/console/replication")
    assert '<span class="badge warning">7 h ago</span>' in page and "failures 3" in page
    assert "25 % done" in page and "containers with failures 4, oldest failure 15 min" in page
    assert "expired 11" in page and "passed 30, failures 1" in page and "10 min ago" in page
    assert "passed 11, failures 0, quarantined 0, read 2.0 GB" in page
    assert "41.5" in page and "disks are too slow" in page and "2 objects, 0 containers" in page


def test_containers_that_are_being_split_have_their_progress(world, servers):
    facts = {"account": "AUTH_t", "container": MARKUP, "object_count": 2_000_000}
    states = {"found": 1, "created": 1, "cleaved": 2, "active": 0, "state": "sharding", "error": "no quorum"}
    servers.own["10.0.0.2"] = {
        "sharding": {
            "sharding_time": 3,
            "sharding_last": time.time() - 120,
            "sharding_stats": {
                "attempted": 9,
                "failure": 1,
                "sharding": {
                    "sharding_in_progress": {"all": [{**facts, **states}]},
                    "sharding_candidates": {"found": 1, "top": [facts]},
                    "shrinking_candidates": {"found": 1, "top": [{**facts, "compactible_ranges": 3}]},
                },
            },
        }
    }
    page = world.browser("a:op").get("/console/sharding")
    assert "50 % done" in page and "no quorum" in page and "attempted 9, failures 1" in page
    assert page.count("<bdi>AUTH_t/&lt;script&gt;") == 3 and "<script>alert" not in page
    servers.own.clear()


def test_a_cluster_without_reports_has_pages(world):
    browser = world.browser("a:op")
    assert "No container is being split." in browser.get("/console/sharding")
    assert "No server reports a pass." in browser.get("/console/replication")


def answer_for_account(world, account, response):
    """Have requests for an account answered without asking the cluster, which counts after a while only."""
    allowed = world.filter.forward

    def forward(request):
        return response if request.raw_path == f"/v1/{account}" else allowed(request)

    world.filter._parts = replace(world.filter._parts, forward=forward)


def test_accounts_have_their_usage_also_as_csv(world):
    for number in range(3):
        world.op("CreateUser", user=f"tenant{number}:u", password="u-password")
    usage = {
        "x-account-container-count": "1",
        "x-account-object-count": "2",
        "x-account-bytes-used": "5000",
        "x-account-storage-policy-gold-object-count": "2",
        "x-account-storage-policy-gold-bytes-used": "5000",
    }
    answer_for_account(world, "AUTH_t", Response(204, usage))
    browser = world.browser("a:op")
    page = browser.get("/console/accounts")
    figures = "AUTH_t</bdi></td>\n" + "".join(f'<td class="number">{each}</td>' for each in (1, 2, "5.0 KB"))
    assert figures in page and "<bdi>gold</bdi>: 2 objects, 5.0 KB" in page and "AUTH_tenant2" in page
    page = browser.get("/console/accounts", prefix="tenant")
    assert "AUTH_tenant2" in page and "AUTH_t<" not in page
    browser.get("/console/accounts.csv")
    assert browser.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(browser.page)))
    assert [row["tenant"] for row in rows] == ["a", "t", "tenant0", "tenant1", "tenant2"]
    assert rows[1]["objects"] == "2" and rows[1]["gold bytes"] == "5000" and rows[2]["bytes"] == "0"


def test_accounts_come_in_pages(world, monkeypatch):
    monkeypatch.setattr(accounts, "PAGE", 1)
    browser = world.browser("a:op")
    page = browser.get("/console/accounts")
    assert "AUTH_a" in page and "AUTH_t" not in page
    page = browser.get(next(link for link in browser.links if "marker=" in link))
    assert "AUTH_t" in page and "marker=" not in page
    assert browser.get("/console/accounts.csv").count("AUTH_") == 2


def test_an_account_that_cannot_be_read_has_its_reason(world):
    answer_for_account(world, "AUTH_t", error_response(503))
    browser = world.browser("a:op")
    assert "The storage could not carry this out." in browser.get("/console/accounts")
    assert browser.status == 200
    assert "AUTH_t,,,,,,The storage" in browser.get("/console/accounts.csv")


def test_cells_are_no_formulas():
    assert accounts._csv_lines([["=1+1", "@x", 5, -5, "ok"]]) == b"'=1+1,'@x,5,-5,ok\r\n"


PAGES = [
    *("/console/health", "/console/devices", "/console/replication", "/console/sharding"),
    *("/console/rings?ring=object", "/console/accounts", "/console/audit"),
]


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_whatever_a_server_reports_is_inert(world, servers, nonsense):
    more = (*cluster.CHECKS, "deviceerrors/object", "compactor/object", "copies/object", "layoutcontroller")
    servers.own["10.0.0.1"] = dict.fromkeys((*servers.checks, *more), nonsense)
    browser = world.browser("a:op")
    for page in PAGES:
        text = browser.get(page)
        assert browser.status == 200, (page, text)
        assert not any(each in text for each in ("<script>alert", "\u202e", "\x00")), page


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
