"""Which devices of a ring are this node's."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from swift.cluster.owndevices import OwnDevices
from swift.ring.device import Device

FIRST = Device(0, 1, 1, "10.9.0.1", 6200, "127.0.0.1", 6300, "sdb", 1.0, "")


def ring(*devices):
    return SimpleNamespace(devices=(None, *devices))


@pytest.fixture
def view():
    return ring(
        FIRST,
        replace(FIRST, id=1, device="sda"),
        replace(FIRST, id=2, device="sdc", replication_port=6301),
        replace(FIRST, id=3, device="sdd", replication_ip="10.9.0.2"),
    )


def test_address_and_port_of_replication_say_whose_a_device_is(view):
    own = OwnDevices("127.0.0.1", 6300)
    assert own.ids(view) == {0, 1}
    assert own.names(view) == ["sda", "sdb"]


def test_devices_of_a_name_are_found_among_the_own_ones_alone(view):
    own = OwnDevices("127.0.0.1", 0)
    assert own.ids_of(view, "sdc") == {2}
    assert own.ids_of(view, "sdd") == own.ids_of(view, "sdx") == set()


def test_port_0_stands_for_any(view):
    assert OwnDevices("127.0.0.1", 0).ids(view) == {0, 1, 2}


def test_another_ring_is_looked_at_again_and_the_same_one_is_not(view):
    own = OwnDevices("127.0.0.1", 6300)
    own.ids(view)
    own.ids(view)
    assert own.rings_seen == 1
    assert own.ids(ring(replace(FIRST, id=7))) == {7}
    assert own.rings_seen == 2
    own.forget()
    own.ids(ring())
    assert own.rings_seen == 3


def test_a_node_that_the_ring_does_not_know_has_no_devices(view):
    assert OwnDevices("127.0.0.1", 1).names(view) == []
