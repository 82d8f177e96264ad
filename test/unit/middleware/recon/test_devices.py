"""Devices are reported as they are, and a sick one does not hide the others (account-container.md, recon)."""

import os
import threading

import pytest

from swift.middleware.recon.devices import (
    STALLED,
    DeviceThreads,
    count_quarantined,
    list_disk_usage,
    list_names,
    list_unmounted,
)


@pytest.fixture
def root(tmp_path):
    for name in ("sda", "sdb"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    return tmp_path


def test_files_are_no_devices(root):
    assert sorted(each["device"] for each in list_disk_usage(str(root), DeviceThreads())) == ["sda", "sdb"]
    assert sorted(list_names(str(root))) == ["file", "sda", "sdb"]
    assert list_names(str(root / "missing")) is None


def test_what_is_not_mounted_is_told(root):
    assert sorted(list_unmounted(str(root), DeviceThreads()), key=str) == [
        {"device": "sda", "mounted": False},
        {"device": "sdb", "mounted": False},
    ]


def test_a_device_that_cannot_be_looked_at_is_told_with_its_error(root, monkeypatch):
    lstat = os.lstat

    def sick(path, **more):
        if str(path).endswith("sda"):
            raise OSError(5, "Input/output error")
        return lstat(path, **more)

    monkeypatch.setattr(os, "lstat", sick)
    found = {device["device"]: device["mounted"] for device in list_unmounted(str(root), DeviceThreads())}
    assert found == {"sda": "[Errno 5] Input/output error", "sdb": False}
    assert {each["device"]: each["size"] for each in list_disk_usage(str(root), DeviceThreads())} == {
        "sda": "",
        "sdb": "",
    }


def test_sizes_of_a_mounted_device_are_those_of_its_filesystem():
    found = {each["device"]: each for each in list_disk_usage("/", DeviceThreads())}
    stat = os.statvfs("/proc")
    assert found["proc"]["mounted"] is True
    assert found["proc"]["size"] == stat.f_blocks * stat.f_bsize


def test_quarantined_things_are_counted_by_kind_and_policy(root):
    for path in (
        "sda/quarantined/objects/h1",
        "sda/quarantined/objects/h2",
        "sda/quarantined/objects-1/h3",
        "sda/quarantined/objects-x/h4",
        "sdb/quarantined/objects-1/h5",
        "sdb/quarantined/containers/h6",
        "sdb/quarantined/accounts/h7",
    ):
        (root / path).mkdir(parents=True)
    assert count_quarantined(str(root), DeviceThreads()) == {
        "accounts": 1,
        "containers": 1,
        "objects": 4,
        "policies": {"0": {"objects": 2}, "1": {"objects": 2}},
    }


def test_nothing_is_quarantined_on_new_devices(root):
    assert count_quarantined(str(root), DeviceThreads()) == {
        "accounts": 0,
        "containers": 0,
        "objects": 0,
        "policies": {},
    }


def test_a_device_that_stalls_delays_no_other_and_holds_one_thread(root, monkeypatch):
    lstat, goes_on, calls = os.lstat, threading.Event(), []

    def stalls(path, **more):
        if str(path).endswith("sda"):
            calls.append(path)
            goes_on.wait(60)
        return lstat(path, **more)

    monkeypatch.setattr(os, "lstat", stalls)
    threads = DeviceThreads(stall_s=0.01)
    try:
        for _ in range(3):
            assert {each["device"]: each["mounted"] for each in list_unmounted(str(root), threads)} == {
                "sda": STALLED,
                "sdb": False,
            }
        assert count_quarantined(str(root), threads)["objects"] == 0
        assert len(calls) == 1
    finally:
        goes_on.set()


def test_overlapping_requests_hold_two_threads_of_a_stalled_device_at_most():
    goes_on, calls = threading.Event(), []
    threads = DeviceThreads(stall_s=0.2)

    def stalls(name):
        calls.append(name)
        goes_on.wait(60)

    requests = [threading.Thread(target=threads.check, args=(["sda"], stalls)) for _ in range(6)]
    try:
        for request in requests:
            request.start()
        for request in requests:
            request.join()
        threads.check(["sda"], stalls)
        assert len(calls) == 2
    finally:
        goes_on.set()
