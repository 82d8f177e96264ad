"""Composite rings join disjoint rings and refuse components that changed behind one's back (§12)."""

from __future__ import annotations

import json
from array import array

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.composite import (
    Composition,
    compose,
    load_composition,
    save_composition,
)
from swift.ring.errors import BuilderFileError, CompositeError
from swift.ring.ring import Ring


def component(
    region: int, *, replicas: float = 1, part_power: int = 4, name: str | None = None
) -> RingBuilder:
    builder = RingBuilder(part_power, replicas, 1)
    for zone in range(3):
        builder.add_device(
            region=region, zone=zone, ip=f"10.{region}.{zone}.1", port=6200, device="sda", weight=100
        )
    builder.remove_device(1)
    builder.add_device(region=region, zone=9, ip=f"10.{region}.9.1", port=6200, device="sda", weight=100)
    builder.rebalance(seed=region)
    builder.id = name or f"{region:032x}"
    return builder


def test_rows_are_laid_side_by_side_with_shifted_ids():
    one, two = component(1, replicas=2), component(2)
    composition, table = compose(Composition(), [("one", one), ("two", two)])
    shift = len(one.devs)
    assert table.rows[:2] == tuple(one.rows)
    assert table.rows[2] == array("H", [dev_id + shift for dev_id in two.rows[0]])
    assert [record and record["id"] for record in table.records] == [0, None, 2, 3, 4, None, 6, 7]
    assert table.build_version is None
    assert table.records[0]["parts"] == one.devs[0]["parts"]
    assert composition.version == 1


def test_the_composite_of_upstream_is_reproduced(golden):
    one, two = (RingBuilder.load(str(golden / f"{name}.builder")) for name in ("h1", "h2"))
    # The first builder got another weight after composing; undo that.
    one.devs[0]["weight"] = 100.0
    one.devs_changed = False
    _, table = compose(Composition(), [("h1", one), ("h2", two)])
    assert table.rows == Ring(str(golden / "h-composite.ring.gz")).view().rows


def test_what_was_composed_is_remembered(tmp_path, golden):
    composition, _ = compose(Composition(), [("one", component(1)), ("two", component(2))])
    path = str(tmp_path / "c.composite")
    save_composition(composition, path)
    assert load_composition(path) == composition
    assert json.loads((tmp_path / "c.composite").read_text())["serialization_version"] == 1
    assert load_composition(str(golden / "h.composite")).version == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"serialization_version": 2}'])
def test_other_files_are_no_composite_files(tmp_path, text):
    (tmp_path / "c").write_text(text)
    with pytest.raises(BuilderFileError, match="does not contain valid composite ring data"):
        load_composition(str(tmp_path / "c"))


@pytest.mark.parametrize(
    ("builders", "sentence"),
    [
        (lambda: [component(1)], "Two or more component builders are required"),
        (lambda: [component(1), component(1, name="x")], "Same region found in different rings"),
        (lambda: [component(1, name="x"), component(2, name="x")], "Builder id 'x' used at indexes 0, 1"),
        (lambda: [component(1), component(2, part_power=5)], "same value for 'part_power'"),
        (lambda: [component(1), component(2, replicas=1.5)], "Non integer replica count 1.5"),
    ],
)
def test_components_that_do_not_fit_are_refused(builders, sentence):
    with pytest.raises(CompositeError, match=sentence):
        compose(Composition(), [(str(place), builder) for place, builder in enumerate(builders())])


def test_a_component_must_be_saved_rebalanced_and_alone_with_its_devices():
    unsaved, changed, same = component(2), component(2), component(2)
    unsaved.id = None
    changed.change_device(0, weight=3)
    same.devs[0]["ip"] = "10.1.0.1"
    for other, sentence in (
        (unsaved, "id is not set"),
        (changed, "needs rebalance"),
        (same, "Duplicate ip/port/device"),
    ):
        with pytest.raises(CompositeError, match=sentence):
            compose(Composition(), [("one", component(1)), ("two", other)])


def test_composing_again_wants_the_same_components_and_a_change():
    one, two, three = component(1), component(2), component(3)
    first, _ = compose(Composition(), [("one", one), ("two", two)])
    with pytest.raises(CompositeError, match="None of the component builders has been modified"):
        compose(first, [("one", one), ("two", two)])
    with pytest.raises(CompositeError, match="Attribute mismatch for id"):
        compose(first, [("one", one), ("three", three)])
    with pytest.raises(CompositeError, match="Missing or additional"):
        compose(first, [("one", one), ("two", two), ("three", three)])
    forced, _ = compose(first, [("one", one), ("three", three)], force=True)
    assert forced.version == 2
    two.version += 1
    assert compose(first, [("one", one), ("two", two)])[0].version == 2
    two.version -= 2
    with pytest.raises(CompositeError, match="Older builder version"):
        compose(first, [("one", one), ("two", two)])
