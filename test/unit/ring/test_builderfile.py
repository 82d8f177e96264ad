"""Builders of upstream open unchanged; anything else is refused without running it."""

from __future__ import annotations

import pickle
from array import array

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.builderfile import dumps, loads
from swift.ring.errors import BuilderFileError

NAMES = ["a", "b", "c", "d-ec6", "e2-increased", "f", "h1", "h2", "i"]


@pytest.mark.parametrize("name", NAMES)
def test_a_builder_of_upstream_is_saved_with_the_same_content(golden, tmp_path, name):
    original = pickle.loads((golden / f"{name}.builder").read_bytes(), encoding="utf-8")
    builder = RingBuilder.load(str(golden / f"{name}.builder"))
    builder.validate()
    builder.save(str(tmp_path / "copy.builder"))
    copy = pickle.loads((tmp_path / "copy.builder").read_bytes(), encoding="utf-8")
    for field in ("_last_part_moves",):
        assert list(copy.pop(field)) == list(original.pop(field))
    for content in (copy, original):
        for dev in content["devs"]:
            if dev:
                dev.setdefault("parts_wanted", 0)
    assert copy == original
    assert (tmp_path / "copy.builder").read_bytes()[:2] == b"\x80\x02"


# The other two were saved before their partitions were doubled, or after their weights changed.
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("e2-increased", "h1")])
def test_recalculated_dispersion_is_what_upstream_saved(golden, name):
    builder = RingBuilder.load(str(golden / f"{name}.builder"))
    before = builder.dispersion_graph, builder.dispersion
    builder.measure_dispersion()
    assert (builder.dispersion_graph, builder.dispersion) == before


def device(**changes):
    return {"id": 0, "zone": 1, "ip": "1.2.3.4", "port": 5, "device": "d", "weight": 1.0, **changes}


def minimal(**changes):
    fields = {
        "part_power": 1,
        "replicas": 1.0,
        "min_part_hours": 1,
        "parts": 2,
        "devs": [device()],
        "devs_changed": False,
        "version": 3,
        "_replica2part2dev": [array("H", [0, 0])],
        "_last_part_moves_epoch": None,
        "_last_part_moves": [0, 1],
        "_last_part_gather_start": 0,
        "_remove_devs": [],
    }
    return fields | changes


def test_what_old_files_lack_gets_its_default():
    fields = loads(dumps(minimal()), "x.builder")
    assert fields["overload"] == 0.0
    assert fields["next_part_power"] is fields["id"] is fields["dispersion"] is None
    assert fields["_dispersion_graph"] == {}
    assert fields["_last_part_moves_epoch"] == 0
    assert fields["_last_part_moves"] == array("B", [0, 1])
    assert fields["devs"][0]["replication_ip"] == "1.2.3.4"


def test_a_pickled_instance_of_old_is_read():
    # What `pickle.dumps(old_builder, 2)` looked like: class, empty tuple, NEWOBJ, then the attributes.
    state = pickle.dumps(minimal(), protocol=2)[2:-1]
    data = b"\x80\x02cswift.common.ring.builder\nRingBuilder\n)\x81" + state + b"b."
    assert loads(data, "x.builder")["version"] == 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"\x80\x02}q\x00.",
        pickle.dumps([1, 2]),
        pickle.dumps({1: 2}),
        b"cos\nsystem\n(S'touch hacked'\ntR.",
        b"\x80\x02cbuiltins\neval\nX\x04\x00\x00\x001+1.\x85R.",
        b"\x80\x02carray\narray\n(X\x01\x00\x00\x00HJ\xff\xff\xff\x7ftR.",
    ],
)
def test_a_file_that_is_no_builder_is_refused_in_one_line(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BuilderFileError) as caught:
        loads(data, "x.builder")
    assert str(caught.value).startswith("x.builder: ")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"part_power": 99}, "part_power is 99"),
        ({"part_power": "1"}, "part_power is '1', not a number"),
        ({"replicas": 0.5}, "replicas is 0.5"),
        ({"version": None}, "version is missing"),
        ({"devs": {}}, "device list is missing"),
        ({"devs": [{"id": 0}]}, "device 0 lacks zone"),
        ({"id": 5}, "id is not a text"),
        ({"_replica2part2dev": [[0, 0]]}, "not a list of arrays"),
        ({"_replica2part2dev": [array("H", [0] * 3)]}, "has 3 entries for 2 partitions"),
        ({"_replica2part2dev": [array("Q", [1 << 40] * 2)]}, "no device id"),
        ({"_last_part_moves": [1]}, "1 times of last moves for 2 partitions"),
        ({"_last_part_moves": ["x", 1]}, "not numbers of hours"),
        ({"_remove_devs": [{"id": 9}]}, "marked for removal does not exist"),
        ({"_remove_devs": 7}, "marked for removal are not a list"),
        ({"replicas": 10**400}, "replicas is no finite number"),
        ({"overload": float("nan")}, "overload is no finite number"),
        ({"_last_part_moves_epoch": float("inf")}, "_last_part_moves_epoch is no finite number"),
        ({"devs": [device(weight=10**400)]}, "device 0 has weight"),
        ({"devs": [device(parts="x")]}, "parts is 'x', not a number"),
    ],
)
def test_a_builder_that_does_not_add_up_is_refused(change, reason):
    with pytest.raises(BuilderFileError, match=reason):
        loads(dumps(minimal(**change)), "x.builder")


def nested():
    """Return a value of a few bytes of pickle whose text no memory holds."""
    value = []
    for _ in range(60):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value", [nested(), "x" * (1 << 20), 1 << (1 << 16)], ids=["nested", "text", "number"]
)
@pytest.mark.parametrize("field", ["part_power", "devs", "weight", "id"])
def test_the_error_about_a_wrong_value_is_short(field, value):
    change = {field: value} if field in ("part_power", "devs") else {"devs": [device(**{field: value})]}
    with pytest.raises(BuilderFileError) as caught:
        loads(dumps(minimal(**change)), "x.builder")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("length", range(0, 1500, 97))
def test_a_truncated_builder_is_refused(golden, length):
    with pytest.raises(BuilderFileError):
        loads((golden / "h1.builder").read_bytes()[: min(length, 1490)], "x.builder")
