"""Where devices are and whether they may be used."""

import time

import pytest

from swift.base.errors import DeviceUnavailable
from swift.platform.devices import Devices, is_mount


@pytest.fixture
def root(tmp_path):
    (tmp_path / "sda").mkdir()
    (tmp_path / "sdb").mkdir()
    (tmp_path / "sdb" / ".ismount").touch()
    (tmp_path / "file").touch()
    return tmp_path


def test_a_filesystem_of_its_own_is_a_mount():
    assert is_mount("/") and is_mount("/proc")


def test_a_folder_is_none_unless_it_says_so(root):
    assert not is_mount(str(root / "sda"))
    assert is_mount(str(root / "sdb"))
    assert not is_mount(str(root / "none"))


def test_a_device_that_is_not_mounted_must_not_be_used(root):
    devices = Devices(str(root))
    assert devices.path("sdb") == f"{root}/sdb"
    with pytest.raises(DeviceUnavailable):
        devices.path("sda")
    assert [devices.is_usable(name) for name in ("sda", "sdb")] == [False, True]


def test_without_the_check_any_folder_is_a_device(root):
    devices = Devices(str(root), mount_check=False)
    assert [devices.is_usable(name) for name in ("sda", "sdb", "file", "none")] == [True, True, False, False]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../sda", "sd a", "sd\0a", "%73da", "sd\u00e4"])
def test_a_name_is_never_another_path(root, name):
    with pytest.raises(DeviceUnavailable):
        Devices(str(root), mount_check=False).path(name)


def test_a_device_that_was_there_is_looked_at_again(root):
    devices = Devices(str(root))
    devices.path("sdb")
    (root / "sdb" / ".ismount").unlink()
    assert not devices.is_usable("sdb")


def test_names_are_the_folders(root):
    assert Devices(str(root)).names() == ["sda", "sdb"]
    assert Devices(str(root / "none")).names() == []


def test_a_device_that_was_missing_is_told_once_when_it_returned(root):
    returned = []
    devices = Devices(str(root), returned=lambda name, missing_s: returned.append((name, missing_s)))
    assert not devices.is_usable("sda") and devices.is_usable("sdb")
    (root / "sdb" / ".ismount").unlink()
    before = time.time()
    assert not devices.is_usable("sdb") and not devices.is_usable("none") and returned == []
    (root / "sdb" / ".ismount").touch()
    (root / "none").mkdir()
    (root / "none" / ".ismount").touch()
    for _ in range(2):
        assert devices.is_usable("sdb") and devices.is_usable("none")
    ((name, missing_s),) = returned
    assert name == "sdb" and before <= missing_s <= time.time()
