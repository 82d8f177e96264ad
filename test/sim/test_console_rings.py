"""The console's pages of rings, and previews of changes."""

import re
import time

import pytest

from swift.console.operators import rings
from swift.ring.builder import RingBuilder
from test.support.console import ConsoleWorld
from test.support.recon import FakeServers, make_watch


@pytest.fixture
def servers():
    return FakeServers(time.time())


@pytest.fixture
def world(make_sim, tmp_path, servers):
    folder = tmp_path / "rings-here"
    folder.mkdir()
    return ConsoleWorld(make_sim(allow_account_management=True), make_watch(folder, servers))


@pytest.fixture
def builder(world):
    made = RingBuilder(4, 3, 1)
    for number in range(1, 5):
        fields = {
            "ip": f"10.0.0.{number}",
            "port": 6200,
            "device": "sda",
            "region": 1,
            "zone": number,
            "meta": "",
        }
        made.add_device(weight=100.0, **fields)
    made.rebalance(seed=1)
    folder = world.filter._parts.cluster.swift_dir
    made.save(f"{folder}/object.builder")
    made.write_ring(f"{folder}/object.ring.gz")
    return made


def test_rings_have_their_balance_and_settings(world, builder):
    page = world.browser("a:op").get("/console/rings")
    assert "All servers that respond run the ring files of this proxy." in page
    row = page[page.index("object</bdi>") :]
    assert re.findall(r'class="number">([^<]*)<', row)[:5] == ["4", "3", "4", "0.00 %", "1"]
    assert "changes pending" not in page and "Copies that move" not in page
    builder.remove_device(3)
    builder.save(f"{world.filter._parts.cluster.swift_dir}/object.builder")
    assert "changes pending" in world.browser("a:op").get("/console/rings")


def test_servers_with_another_ring_file_are_named(world, servers):
    servers.own["10.0.0.2"] = {"ringmd5": {"/etc/swift/object.ring.gz": "0", "/x/<b>.ring.gz": "1"}}
    page = world.browser("a:op").get("/console/rings")
    assert "10.0.0.2:6200: <bdi>object.ring.gz</bdi>" in page and "<b>" not in page


def test_the_change_of_the_layout_has_its_progress(world, builder, servers):
    servers.own["10.0.0.2"] = {
        "layoutcontroller": {
            "layout_controller": {
                "said": "ring object: 3 copies are still to arrive",
                "last": time.time(),
                "leads": True,
                "version": 9,
                "change": "drain <b>",
                "left_s": 7200.0,
                "paused": "",
                "away": ["10.0.0.3/sda"],
                "rings": {"object": {"all": 8, "arrived": 2, "moving": 3}},
            }
        }
    }
    page = world.browser("a:op").get("/console/rings")
    assert "Version 9" in page and "3 copies are still to arrive" in page and 'value="25.0"' in page
    assert "about 2 h left" in page and "10.0.0.3/sda" in page and "<b>" not in page


def test_a_ring_has_its_devices_and_a_picture(world, builder):
    page = world.browser("a:op").get("/console/rings", ring="object")
    assert '<svg class="columns"' in page and "10.0.0.4:6200/sda (100)" in page and "+0.00 %" in page
    assert "What would a change" not in world.browser("a:op").get("/console/rings", ring="<b>")


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({"action": "remove", "device": 3}, r"12 of 48 copies of partitions \(25.00 %\)"),
        ({"action": "weight", "device": 0, "weight": "0"}, r"12 of 48 copies of partitions \(25.00 %\)"),
        ({"action": "add", "value": "r1z5-10.0.0.5:6200/<b>", "weight": "100"}, r"\d+ of 48 copies"),
    ],
)
def test_a_preview_says_what_moves_and_changes_nothing(world, servers, builder, change, moved):
    folder = world.filter._parts.cluster.swift_dir
    with open(f"{folder}/object.builder", "rb") as file:
        before = file.read()
    counts = {"sda": {"ring": "x", "done": 60, "misplaced": 4}}
    servers.own["10.0.0.1"] = {
        "copies/object": {"copy_state": {"object": {"began": 1000, "ended": 1600, "devices": counts}}}
    }
    page = world.browser("a:op").get("/console/rings/preview", ring="object", **change)
    assert re.search(moved, page), page
    assert "Nothing was changed." in page and "<b>" not in page and "Made with the builder file" in page
    # 60 copies in 600 s.
    if change["action"] != "add":
        assert "about 2 min at the rate" in page
    with open(f"{folder}/object.builder", "rb") as file:
        assert file.read() == before


def test_without_a_builder_and_a_rate_the_preview_says_so(world):
    page = world.browser("a:op").get(
        "/console/rings/preview", ring="account", action="weight", device=0, weight=50
    )
    assert "no replicator reports a pass" in page and "as no builder file is in swift_dir" in page
    assert "<dt>Bytes</dt>" not in page


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"ring": "../object"}, 404),
        ({"action": "format"}, 400),
        ({"device": "77"}, 400),
        ({"device": "-1"}, 400),
        ({"weight": "nan"}, 400),
        ({"weight": "-1"}, 400),
        ({"weight": "1e400"}, 400),
        ({"action": "add", "value": "--help"}, 400),
        ({"action": "add", "value": "r1z1-10.0.0.1:6200/sdb x"}, 400),
        ({"action": "add", "value": "é"}, 400),
        ({"action": "add", "value": "nonsense"}, 409),
    ],
)
def test_a_wrong_change_is_refused(world, wrong, status):
    browser = world.browser("a:op")
    good = {"ring": "object", "action": "weight", "device": "0", "weight": "50"}
    page = browser.get("/console/rings/preview", **(good | wrong))
    assert browser.status == status and 'role="alert"' in page and "<b>" not in page


def test_a_worker_makes_one_preview_at_a_time_and_not_for_ever(world, monkeypatch):
    browser = world.browser("a:op")
    change = {"ring": "object", "action": "weight", "device": "0", "weight": "50"}
    monkeypatch.setattr(rings, "PREVIEW_S", 0.0)
    assert "it takes more than 0 s" in browser.get("/console/rings/preview", **change)
    watch = world.filter._parts.cluster
    assert not watch.is_previewing
    watch.is_previewing = True
    browser.get("/console/rings/preview", **change)
    assert browser.status == 503


def test_rates_of_passes_add_up(world, servers):
    devices = {"sda": {"done": 50}}
    for number, ended in ((1, 1100), (2, 1050), (3, 900)):
        state = {"object": {"began": 1000, "ended": ended, "devices": devices}}
        servers.own[f"10.0.0.{number}"] = {"copies/object": {"copy_state": state}}
    state = world.filter._parts.cluster.state()
    reports = list(state.snapshot.copies_of("object").values())
    assert rings.copies_per_second("object", reports) == 1.5
    assert rings.copies_per_second("object-1", reports) is None
    assert rings.stored_bytes(state.rings[2], state.snapshot) == 3 * 400_000_000
    assert rings.Balance(state.rings[0].devices[0], 5, 0.0).percent == 999.99
