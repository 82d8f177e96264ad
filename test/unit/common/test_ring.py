"""Scripts that import ``swift.common.ring`` of OpenStack Swift edit the same builder files."""

import pickle

import pytest

from swift.common.ring import RingBuilder
from swift.ring import builder
from swift.ring.ring import Ring


def device(number, **more):
    return {
        "region": 1,
        "zone": number,
        "ip": f"127.0.0.{number}",
        "port": 6200,
        "device": "pv",
        "weight": 100,
        **more,
    }


@pytest.fixture
def path(tmp_path):
    made = RingBuilder(4, 3, 1)
    for number in (1, 2, 3):
        assert made.add_dev(device(number, meta=f"pod-{number}")) == number - 1
    moved, balance, removed = made.rebalance()
    assert (moved, removed) == (48, 0)
    assert balance == made.get_balance() == 0
    made.save(tmp_path / "object.builder")
    return str(tmp_path / "object.builder")


def test_addresses_are_swapped_with_what_is_in_meta_and_back(path):
    """swift-operator rebalances by the names of machines, and serves rings with the names of pods."""
    for expected in (("pod-1", "127.0.0.1"), ("127.0.0.1", "pod-1")):
        made = RingBuilder.load(path)
        for dev in made.devs:
            if dev.get("meta") and dev.get("device") == "pv":
                dev["meta"], dev["ip"] = dev["ip"], dev["meta"]
        made.save(path)
        first = builder.RingBuilder.load(path).devs[0]
        assert (first["ip"], first["meta"]) == expected


def test_a_ring_is_written_after_changes(path, tmp_path):
    made = RingBuilder.load(path)
    made.set_dev_weight(0, 50)
    made.add_dev(device(4))
    made.remove_dev(2)
    made.rebalance()
    made.get_ring().save(str(tmp_path / "object.ring.gz"))
    devices = Ring(str(tmp_path / "object.ring.gz")).view().devices
    assert [each.ip for each in devices if each is not None] == ["127.0.0.1", "127.0.0.2", "127.0.0.4"]
    assert devices[0].weight == 50


def test_the_fields_that_a_charm_pickles_are_a_builder_file(path, tmp_path):
    (tmp_path / "pickled").write_bytes(pickle.dumps(RingBuilder.load(path).to_dict(), protocol=2))
    assert builder.RingBuilder.load(str(tmp_path / "pickled")).version == RingBuilder.load(path).version
