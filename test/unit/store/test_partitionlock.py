"""Who replicates a partition holds it, and one of the few places of its device."""

import fcntl
from contextlib import ExitStack, contextmanager

import pytest

from swift.base.errors import DeviceUnavailable, LockTimeout
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.partitionlock import DEVICE_LOCK_FILE, REPLICATION_LOCK_FILE, ReplicationLocks

GOLD, EC = Policy(0, "gold", is_default=True), Policy(1, "other")


@pytest.fixture
def make(tmp_path):
    (tmp_path / "sda").mkdir()
    devices = Devices(str(tmp_path), mount_check=False)
    return lambda per_device=1: ReplicationLocks(Disk(), devices, per_device=per_device)


def taken(locks, partition="7", policy=GOLD):
    try:
        with locks.hold("sda", partition, policy, 0):
            return False
    except LockTimeout:
        return True


def test_a_partition_is_held_by_one_at_a_time(make):
    locks = make(0)
    with locks.hold("sda", "7", GOLD, 0):
        assert taken(make(0))
        assert not taken(make(0), "8")
        assert not taken(make(0), policy=EC)
    assert not taken(make(0))


@pytest.mark.parametrize("places", [1, 2, 3])
def test_a_device_has_so_many_places(make, places):
    with ExitStack() as stack:
        for number in range(places):
            stack.enter_context(make(places).hold("sda", str(number), GOLD, 0))
        assert taken(make(places), "99")
    assert not taken(make(places), "99")


def test_a_place_is_given_back_when_the_work_fails(make):
    with pytest.raises(ZeroDivisionError), make().hold("sda", "7", GOLD, 0):
        raise ZeroDivisionError
    assert not taken(make())


def test_who_finds_no_place_lets_the_partition_go(make):
    with make().hold("sda", "1", GOLD, 0):
        assert taken(make(), "2")
        assert not taken(make(0), "2"), "nobody holds it without a place"


@contextmanager
def held_by_the_peer(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@pytest.mark.parametrize("name", [f"objects/7/{REPLICATION_LOCK_FILE}", DEVICE_LOCK_FILE])
def test_files_that_the_peers_daemons_lock_count(make, tmp_path, name):
    assert not taken(make())
    with held_by_the_peer(tmp_path / "sda" / name):
        assert taken(make())


def test_a_device_that_is_not_there_is_said_so(make, tmp_path):
    with pytest.raises(DeviceUnavailable), make().hold("sdb", "7", GOLD, 0):
        pass
    assert not (tmp_path / "sdb").exists()
