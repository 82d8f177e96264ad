"""Rings follow the inventory: devices are added, changed, emptied, then removed."""

import pytest

from swift.base.clock import ManualClock
from swift.operations.deploy.rings import DeployRingError, RingSource, update_rings
from swift.ring.builder import RingBuilder
from test.support.deploy import INVENTORY, inventory_of

SDC = ', { device = "sdc", weight = 100 }'


class Builders:
    """Builders in files below a folder, and a clock."""

    def __init__(self, folder):
        self.folder = folder
        self.clock = ManualClock()
        self.saved = {}

    def update(self, text=INVENTORY, *, remove=False, go_on=True):
        source = RingSource(self._load, self.clock)
        rings = update_rings(inventory_of(self.folder, text), source, remove=remove, go_on=go_on)
        for ring in rings:
            ring.builder.save(str(self.folder / f"{ring.name}.builder"))
        return {ring.name: ring for ring in rings}

    def _load(self, name):
        path = self.folder / f"{name}.builder"
        return RingBuilder.load(str(path), clock=self.clock) if path.exists() else None


@pytest.fixture
def builders(tmp_path):
    return Builders(tmp_path)


def weights(ring):
    return {f"{dev['meta']}/{dev['device']}": dev["weight"] for dev in ring.builder.live_devs}


def test_new_rings_have_the_disks_of_all_hosts(builders):
    rings = builders.update()
    assert list(rings) == ["account", "container", "object"]
    assert weights(rings["object"]) == dict.fromkeys(("one/sdb", "one/sdc", "two/sdb", "three/sdb"), 100.0)
    assert {dev["port"] for dev in rings["account"].builder.live_devs} == {6202}
    assert rings["object"].changes[0] == "create with 2^4 partitions and 3 replicas"


def test_a_second_update_changes_nothing(builders):
    first = builders.update()
    second = builders.update()
    assert [ring.changes for ring in second.values()] == [()] * 3
    assert second["object"].content == first["object"].content


def test_a_disk_has_the_class_of_its_ring(builders):
    text = INVENTORY.replace('"sdc", weight = 100', '"sdc", weight = 100, class = "ssd"')
    text = text.replace(
        "[[host]]", '[[policy]]\nname = "fast"\nindex = 1\nreplicas = 1\nclass = "ssd"\n[[host]]', 1
    )
    rings = builders.update(text.replace("index = 0", "index = 0\ndefault = true"))
    assert weights(rings["object-1"]) == {"one/sdc": 100.0}
    assert "one/sdc" not in weights(rings["object"])


def test_a_disk_and_a_weight_are_added_and_changed(builders):
    builders.update(INVENTORY.replace(SDC, ""))
    ring = builders.update(INVENTORY.replace('"sdb", weight = 100', '"sdb", weight = 50', 1))["object"]
    assert ring.changes[:2] == (
        "change weight of one/sdb from 100 to 50",
        "add one/sdc with weight 100",
    )
    assert ring.changes[2].startswith("move ")
    assert any(dev["device"] == "sdc" and dev["parts"] for dev in ring.builder.live_devs)


def test_plan_and_apply_come_to_the_same_ring(builders, tmp_path):
    builders.update(INVENTORY.replace(SDC, ""))
    source = RingSource(builders._load, builders.clock)
    rings = [update_rings(inventory_of(tmp_path), source, remove=False, go_on=True) for _ in range(2)]
    assert [ring.content for ring in rings[0]] == [ring.content for ring in rings[1]]


def test_a_host_may_change_its_address_without_moving_data(builders):
    before = builders.update()["object"]
    text = INVENTORY.replace('address = "10.0.0.2"', 'address = "10.0.0.9"\nreplication_address = "10.1.0.9"')
    after = builders.update(text)["object"]
    assert after.changes == ("change two/sdb to ip 10.0.0.9, replication_ip 10.1.0.9",)
    assert after.builder.rows == before.builder.rows


def test_a_disk_that_left_is_emptied_and_removed_only_when_told(builders):
    builders.update()
    without = INVENTORY.replace(SDC, "")
    ring = builders.update(without, remove=True)["object"]
    assert ring.changes[0] == "change weight of one/sdc from 100 to 0: it left the inventory"
    assert weights(ring)["one/sdc"] == 0
    assert "one/sdc has weight 0 and is empty" in ring.notes
    assert builders.update(without)["object"].changes == ()
    removed = builders.update(without, remove=True)["object"]
    assert removed.changes[0] == "remove one/sdc"
    assert "one/sdc" not in weights(removed)


def test_a_disk_that_holds_partitions_is_not_removed(builders):
    text = INVENTORY.replace("min_part_hours = 0", "min_part_hours = 1")
    builders.update(text)
    without = text.replace(SDC, "")
    builders.update(without)
    ring = builders.update(without, remove=True)["object"]
    assert "one/sdc" in weights(ring)
    assert any("one/sdc has weight 0 and holds" in note for note in ring.notes)


def test_partitions_wait_for_min_part_hours_and_move_later(builders):
    text = INVENTORY.replace("min_part_hours = 0", "min_part_hours = 1")
    builders.update(text.replace(SDC, ""))
    waiting = builders.update(text)["object"]
    assert "move 0 partition replicas" in waiting.changes[-1]
    assert any("apply again in 60 minutes" in note for note in waiting.notes)
    assert builders.update(text)["object"].changes == ()
    builders.clock.advance(3600)
    assert builders.update(text, go_on=False)["object"].changes == ()
    moved = builders.update(text)["object"]
    assert moved.changes[0].startswith("move ") and not moved.changes[0].startswith("move 0 ")


def test_another_part_power_is_refused(builders):
    builders.update()
    with pytest.raises(DeployRingError, match=r"ring account: its part power is 4"):
        builders.update(INVENTORY.replace("part_power = 4", "part_power = 5"))


def test_replicas_and_overload_change_the_ring(builders):
    builders.update()
    text = INVENTORY.replace("replicas = 3", "replicas = 2").replace(
        "part_power = 4", "part_power = 4\noverload = 0.1"
    )
    ring = builders.update(text)["object"]
    assert ring.changes[:2] == ("change replicas from 3 to 2", "change overload from 0 to 0.1")
    assert len(ring.builder.rows) == 2
