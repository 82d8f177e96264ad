"""Edits of devices, and the rings that follow."""

import json

import pytest

from swift.layout.edits import EditError, LayoutEdit, Selector, apply_edits, settle
from swift.layout.plan import Usage, make_plan
from test.support.layouts import make_builder, placed

DEVICES = [(1, zone, f"10.0.0.{zone}", f"sd{letter}", 100.0) for zone in (1, 2, 3, 4) for letter in "bc"]


@pytest.fixture
def builders():
    return {"account": make_builder(DEVICES), "object": make_builder(DEVICES, part_power=6)}


def changed(builders, *edits):
    made = apply_edits(builders, edits)
    for builder in made.values():
        if builder.devs_changed or builder.rows is None:
            settle(builder)
    return made


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("z2", Selector(zone=2)),
        ("r1z2", Selector(1, 2)),
        ("10.0.0.7", Selector(ip="10.0.0.7")),
        ("10.0.0.7:6200/sdb", Selector(ip="10.0.0.7", port=6200, device="sdb")),
        ("r1z4-10.0.0.7/sdb", Selector(1, 4, "10.0.0.7", None, "sdb")),
        ("[fd00::7]:6200/sdb", Selector(ip="fd00::7", port=6200, device="sdb")),
    ],
)
def test_devices_are_named_by_place_and_address(text, selector):
    assert Selector.parse(text) == selector
    assert Selector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    "text",
    [
        *("", "sdb", "10.0.0.7/", "z2-", "r1z2-h/../x/y", "10.0.0.7:x/b", "10.0.0.777"),
        *("10.0.0.7:0/b", "10.0.0.7:65536/b", "10.0.0.7/..", "10.0.0.7/a\x1b[2Jb", "10.0.0.7/a\u202eb"),
    ],
)
def test_other_texts_name_nothing(text):
    with pytest.raises(EditError):
        Selector.parse(text)


def test_a_device_is_added_to_all_rings_with_their_ports(builders):
    for dev in builders["account"].live_devs:
        dev["port"] = 6202
    made = changed(builders, LayoutEdit("add", Selector.parse("r1z5-10.0.0.5/sdb"), weight=100.0))
    for name, port in (("account", 6202), ("object", 6200)):
        new = made[name].live_devs[-1]
        assert (new["ip"], new["port"], new["zone"]) == ("10.0.0.5", port, 5)
        assert new["parts"]
        assert len(builders[name].live_devs) == len(DEVICES)


def test_a_drained_device_stays_without_partitions_and_a_removed_one_goes(builders):
    made = changed(builders, LayoutEdit("drain", Selector.parse("10.0.0.1/sdb"), ("object",)))
    assert made["object"].devs[0]["parts"] == 0
    assert made["account"].devs[0]["parts"]
    made = changed(builders, LayoutEdit("remove", Selector.parse("10.0.0.1/sdb")))
    assert made["object"].devs[0] is None


def test_a_new_device_takes_exactly_the_place_of_an_old_one(builders):
    old, new = Selector.parse("10.0.0.1/sdb"), Selector.parse("10.0.0.1/sdf")
    made = changed(builders, LayoutEdit("replace", old, place=new))
    before, after = placed(builders["object"]), placed(made["object"])
    renamed = [{label.replace("10.0.0.1/sdb", "10.0.0.1/sdf") for label in labels} for labels in before]
    assert after == renamed


def test_overload_keeps_copies_apart_where_a_zone_is_larger():
    devices = [(1, zone, f"10.0.0.{zone}", "sdb", 100.0) for zone in (1, 2, 3)]
    rings = {"object": make_builder(devices, part_power=6)}
    larger = LayoutEdit("add", Selector.parse("r1z1-10.0.0.1/sdc"), weight=100.0)
    assert make_plan(rings, changed(rings, larger), Usage()).objections
    apart = changed(rings, larger, LayoutEdit("overload", Selector(), weight=1.0))
    assert not make_plan(rings, apart, Usage()).objections


def test_a_policy_gets_a_ring_with_the_devices_of_another(builders):
    edit = LayoutEdit("policy", Selector(), ("object-1",), replicas=2.0, model="object")
    made = changed(builders, edit)
    assert made["object-1"].replicas == 2
    assert len(made["object-1"].live_devs) == len(DEVICES)
    with pytest.raises(EditError, match="exists"):
        changed(made, edit)


@pytest.mark.parametrize(
    "edit",
    [
        LayoutEdit("drain", Selector(ip="10.9.9.9")),
        LayoutEdit("weight", Selector(ip="10.0.0.1"), ("object-7",), weight=1.0),
        LayoutEdit("add", Selector(ip="10.0.0.5"), weight=1.0),
        LayoutEdit("policy", Selector(), ("object-1",), model="object-9"),
        LayoutEdit("policy", Selector(), (), model="object"),
        LayoutEdit("policy", Selector(), ("object-x",), model="object"),
        LayoutEdit("policy", Selector(), ("../object",), model="object"),
        LayoutEdit("policy", Selector(), ("object-1", "object-2"), model="object"),
        LayoutEdit("overload", Selector(), weight=-0.1),
    ],
)
def test_edits_that_name_nothing_are_refused(builders, edit):
    with pytest.raises(EditError):
        apply_edits(builders, [edit])


def test_an_edit_is_kept_as_json():
    edit = LayoutEdit("zone", Selector(ip="10.0.0.1"), ("object",), place=Selector(1, 5))
    assert LayoutEdit.from_json(json.loads(json.dumps(edit.as_json()))) == edit
    assert str(edit) == "zone 10.0.0.1 to r1z5 in object"


def usage(used):
    """Return the space of all devices, of 1 TB each."""
    return Usage({f"10.0.0.{zone}/sd{letter}": (used, 1e12) for zone in "1234" for letter in "bc"})


# --- plans --------------------------------------------------------------------------------------------


def test_a_plan_counts_what_moves(builders):
    made = changed(builders, LayoutEdit("drain", Selector.parse("10.0.0.1/sdb"), ("object",)))
    plan = make_plan(builders, made, usage(240e9))
    (ring,) = plan.rings
    held = builders["object"].devs[0]["parts"]
    assert (ring.name, ring.losses["10.0.0.1/sdb"]) == ("object", held)
    # To disperse the others, a few more may move.
    assert held <= ring.moves <= held + 3
    assert ring.bytes == pytest.approx(ring.moves / held * 240e9, rel=0.1)
    assert plan.duration_s > 0 and not plan.objections and not plan.is_measured
    measured = make_plan(builders, made, usage(240e9), rate=1e6)
    assert measured.duration_s == pytest.approx(ring.bytes / 1e6) and measured.is_measured


def test_a_plan_says_what_speaks_against_it(builders):
    zones = [LayoutEdit("drain", Selector(zone=zone), ("object",)) for zone in (3, 4)]
    plan = make_plan(builders, changed(builders, *zones), Usage())
    texts = "\n".join(plan.objections)
    assert "two copies in one zone" in texts and "zone 4 of region 1 would have no copy left" in texts


def test_a_plan_does_not_fill_devices(builders):
    full = usage(850e9)
    made = changed(builders, LayoutEdit("drain", Selector.parse("10.0.0.1/sdb"), ("object",)))
    objections = make_plan(builders, made, full).objections
    assert objections and all("GB of 1,000.0 GB" in text for text in objections)
    assert not make_plan(builders, builders, full).rings
