"""Rings beside the peer: the same cluster for both, and a table that says what was not measured."""

import re
import sys

import pytest

from swift.ring.commands.select import parse_add_value
from tools.bench.ring import Shape, Side, table


@pytest.mark.parametrize("shape", [Shape(), Shape(devices=7, zones=2, per_server=3), Shape(devices=1)])
def test_every_device_is_one_that_a_builder_takes_and_no_two_are_the_same(shape):
    words = [*shape.add_values(), *shape.growth_values()]
    places = words[::2]
    assert len(places) == len(set(places)) == shape.devices + int(shape.devices * shape.growth)
    for place, weight in zip(places, words[1::2], strict=True):
        fields = parse_add_value(place)
        assert 1 <= fields["zone"] <= shape.zones and float(weight) > 0


def test_new_devices_are_on_servers_of_their_own():
    shape = Shape(devices=103)
    old, new = (
        {re.match(r".*:6200", word)[0] for word in words[::2]}
        for words in (shape.add_values(), shape.growth_values())
    )
    assert new and not old & new


def test_the_same_cluster_is_built_every_time():
    assert Shape().add_values() == Shape().add_values()


def side(seconds, ring_kib):
    facts = {"balance": 1.0, "dispersion": 0.0, "moved": 5}
    loading = {"load_s": 0.5, "lookup_us": 2.0} if ring_kib is None else {"load_s": 1.0, "ring_kib": ring_kib}
    return {"seconds": {"first": seconds, "grow": seconds}, "first": facts, "grow": facts, "loading": loading}


def test_ratios_stand_only_where_there_is_something_to_compare():
    lines = {
        line[:20].strip(): line[20:].split()
        for line in table({"sides": {"ours": side(1.0, 8), "peer": side(4.0, None)}}).splitlines()
    }
    assert lines["first: seconds"] == ["1.0000", "4.0000", "0.250"]
    assert lines["grow: dispersion"] == ["0.0000", "0.0000", "-"]
    assert lines["ring_kib"] == ["8.0000", "-", "-"]
    assert lines["lookup_us"] == ["-", "2.0000", "-"]


def side_of(code):
    return Side(
        "ours", [sys.executable, "-c", code], sys.executable, "def load(path): raise OSError('no ring')\n", {}
    )


def test_a_command_that_fails_ends_the_bench_with_what_it_said(tmp_path):
    assert side_of("print('fine')").run(tmp_path, "x") == "fine\n"
    with pytest.raises(SystemExit, match="ours: x y failed: .*nonsense"):
        side_of("import sys; print('nonsense'); sys.exit(2)").run(tmp_path, "x", "y", "z")


def test_a_ring_that_cannot_be_loaded_is_not_measured(tmp_path):
    made = side_of("")
    made.loader += "lookups = None\n"
    made.measure_loading(tmp_path / "none", 3)
    assert made.facts["loading"] == {"not measured": "OSError: no ring"}
