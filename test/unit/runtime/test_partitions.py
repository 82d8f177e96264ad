"""A partition is a number of the ring, written as rings write it; anything else is 400."""

from __future__ import annotations

import os

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.partpower import increase, prepare_increase
from swift.runtime.backendapp import RingPartitions, UnexpectedPath

ODD = ["", "x", "01", "00", "-1", "+1", "1.0", " 1", "1_0", "²", "٣", "9" * 400, str(1 << 32)]


def write_ring(folder, builder, when_s):
    path = str(folder / "object-1.ring.gz")
    builder.write_ring(path)
    os.utime(path, (when_s, when_s))


@pytest.fixture
def builder():
    made = RingBuilder(4, 1, 0)
    made.add_device(region=1, zone=1, ip="10.0.0.1", port=6200, device="sda", weight=1.0)
    made.rebalance(seed=1)
    return made


def refuses(partitions, text, ring="object-1"):
    try:
        partitions.check(text, ring)
    except UnexpectedPath as error:
        assert len(str(error)) < 100
        return True
    return False


@pytest.mark.parametrize("text", ODD)
def test_what_rings_never_write_is_refused_with_and_without_a_ring(tmp_path, builder, text):
    write_ring(tmp_path, builder, 1000)
    assert refuses(RingPartitions(str(tmp_path)), text)
    assert refuses(RingPartitions(), text)


def test_without_a_ring_any_number_of_the_largest_one_is_taken(tmp_path):
    for partitions in (RingPartitions(), RingPartitions(str(tmp_path))):
        for text in ("0", "7", str((1 << 32) - 1)):
            assert not refuses(partitions, text)


def test_partitions_beyond_the_ring_are_refused_until_it_has_grown(tmp_path, builder):
    write_ring(tmp_path, builder, 1000)
    partitions = RingPartitions(str(tmp_path))
    assert not refuses(partitions, "0")
    assert not refuses(partitions, "15")
    assert refuses(partitions, "16")
    prepare_increase(builder)
    write_ring(tmp_path, builder, 2000)
    assert not refuses(partitions, "16")
    assert not refuses(partitions, "31")
    assert refuses(partitions, "32")


def test_a_ring_that_is_damaged_or_gone_leaves_the_partitions_as_they_were(tmp_path, builder):
    write_ring(tmp_path, builder, 1000)
    partitions = RingPartitions(str(tmp_path))
    assert not refuses(partitions, "15")
    (tmp_path / "object-1.ring.gz").write_bytes(b"nonsense")
    assert refuses(partitions, "16")
    (tmp_path / "object-1.ring.gz").unlink()
    assert refuses(partitions, "16")
    assert not refuses(partitions, "15")


#: A path's hash that begins with 0101 1100.
HASH = "5c" + "0" * 30


def takes(partitions, text):
    try:
        partitions.check_hash(text, "object-1", HASH)
    except UnexpectedPath:
        return False
    return True


def test_a_path_has_one_partition(tmp_path, builder):
    write_ring(tmp_path, builder, 1000)
    partitions = RingPartitions(str(tmp_path))
    assert [number for number in range(16) if takes(partitions, str(number))] == [0b0101]


def test_a_path_has_those_of_both_powers_while_partitions_are_split(tmp_path, builder):
    write_ring(tmp_path, builder, 1000)
    partitions = RingPartitions(str(tmp_path))
    assert not takes(partitions, str(0b01011))
    prepare_increase(builder)
    write_ring(tmp_path, builder, 2000)
    # The newer ring is read because of the partition that does not fit.
    assert [number for number in range(32) if takes(partitions, str(number))] == [0b0101, 0b01011]
    increase(builder)
    write_ring(tmp_path, builder, 3000)
    assert takes(partitions, str(0b0101)) and takes(partitions, str(0b01011))
    assert not takes(partitions, "12")


def test_without_a_ring_a_path_may_be_anywhere(tmp_path):
    for partitions in (RingPartitions(), RingPartitions(str(tmp_path))):
        assert takes(partitions, "9")
