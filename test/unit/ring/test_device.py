"""Devices print themselves as operators write them, and bad records are refused with a sentence."""

from __future__ import annotations

import pytest

from swift.ring.device import Device, Node, describe, device_of, normalized
from swift.ring.errors import DeviceError

RECORD = {"id": 7, "region": 2, "zone": 3, "ip": "10.0.0.1", "port": 6200, "device": "sda", "weight": 1.5}


def test_a_device_knows_its_address_key():
    device = device_of(normalized(RECORD))
    assert device.key == "10.0.0.1:6200/sda"
    assert device.replication_key == "10.0.0.1:6200/sda"


def test_an_ipv6_address_is_bracketed_in_keys_and_names():
    record = normalized({**RECORD, "ip": "2001:db8::1", "replication_ip": "::2", "replication_port": 1})
    assert device_of(record).key == "[2001:db8::1]:6200/sda"
    assert describe(record) == 'd7r2z3-[2001:db8::1]:6200R[::2]:1/sda_""'


def test_missing_replication_address_region_and_meta_get_the_defaults_of_old_files():
    record = normalized({name: value for name, value in RECORD.items() if name != "region"})
    assert (record["region"], record["meta"]) == (1, "")
    assert (record["replication_ip"], record["replication_port"]) == ("10.0.0.1", 6200)


def test_extra_keys_are_kept():
    assert normalized({**RECORD, "parts": 5})["parts"] == 5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ip": None}, "device 7 lacks ip"),
        ({"weight": -1}, "device 7 has weight -1, not a number of at least 0"),
        ({"weight": float("nan")}, "device 7 has weight nan"),
        ({"weight": float("inf")}, "device 7 has weight inf"),
        ({"port": "6200"}, "device 7 has port '6200', not a whole number"),
        ({"zone": True}, "device 7 has zone True"),
        ({"device": 5}, "device 7 has device 5, not a text"),
    ],
)
def test_a_bad_record_is_refused_with_a_sentence(change, sentence):
    with pytest.raises(DeviceError, match=sentence):
        normalized({**RECORD, **change})


def test_a_device_must_stand_at_the_place_of_its_id():
    with pytest.raises(DeviceError, match="device 7 stands at place 3"):
        normalized(RECORD, position=3)


def test_what_is_no_record_is_refused():
    with pytest.raises(DeviceError, match="is a list"):
        normalized([])


def test_a_node_is_its_device_with_a_place():
    device = device_of(normalized(RECORD))
    node = Node.of(device, index=2)
    assert isinstance(node, Device)
    assert (node.key, node.index, node.handoff_index) == (device.key, 2, None)
    with pytest.raises(AttributeError):
        node.index = 3
