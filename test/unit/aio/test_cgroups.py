"""Devices are named as the kernel names them, and what cannot be limited is told before anything runs."""

import os

import pytest

from swift.aio import cgroups
from swift.base.errors import ConfigError


def test_a_file_is_on_the_device_of_its_folder(tmp_path):
    number = os.stat(tmp_path).st_dev
    (tmp_path / "f").touch()
    assert (
        cgroups.file_device_number(tmp_path / "f")
        == cgroups.file_device_number(tmp_path)
        == f"{os.major(number)}:{os.minor(number)}"
    )


def test_a_node_stands_for_a_device():
    assert cgroups.node_device_number("/dev/null") == "1:3"


@pytest.mark.parametrize("device", ["", "999:999", "1", "x:y"])
def test_a_device_that_the_kernel_does_not_count_is_told(device):
    for count in (cgroups.read_count, cgroups.write_count):
        with pytest.raises(ConfigError, match=f"has no device {device}$"):
            count(device)


def test_what_cannot_be_written_is_told_with_value_and_place(tmp_path):
    with pytest.raises(
        ConfigError, match=r"cannot write '128' to /sys/dev/block/999:999/bdi/read_ahead_kb: No such"
    ):
        cgroups.limit_read_ahead("999:999")


def test_counters_are_those_of_reads_and_writes():
    with open("/proc/diskstats") as file:
        rows = [line.split() for line in file]
    for words in rows[:3]:
        device = f"{words[0]}:{words[1]}"
        assert cgroups.read_count(device) >= int(words[3])
        assert cgroups.write_count(device) >= int(words[7])
