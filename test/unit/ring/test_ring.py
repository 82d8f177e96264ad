"""A ring follows its file without asking the disk on every request."""

from __future__ import annotations

import gzip
import json
import os
import shutil

import pytest

from swift.base.clock import ManualClock
from swift.ring.errors import RingError
from swift.ring.ring import Ring
from test.support.disks import ODD, bounded, replace
from test.unit.ring.conftest import GOLDEN


@pytest.fixture
def ring_path(tmp_path, golden) -> str:
    path = tmp_path / "object.ring.gz"
    shutil.copyfile(golden / "e0-base.ring.gz", path)
    os.utime(path, (1, 1))
    return str(path)


def replace_with(path: str, source, mtime: int = 2) -> None:
    shutil.copyfile(source, path)
    os.utime(path, (mtime, mtime))


def test_making_a_ring_touches_nothing():
    assert "nowhere" in repr(Ring("/nowhere/object.ring.gz"))


def test_a_missing_ring_is_an_error_of_the_first_use():
    with pytest.raises(RingError, match="cannot be read .No such file"):
        Ring("/nowhere/object.ring.gz").load()


def test_a_changed_file_is_noticed_after_the_interval_and_not_before(ring_path, golden):
    clock = ManualClock()
    ring = Ring(ring_path, clock=clock).load()
    replace_with(ring_path, golden / "e2-increased.ring.gz")
    clock.advance(14)
    assert ring.view().part_power == 6
    clock.advance(1)
    assert ring.view().part_power == 7
    assert ring.view().next_part_power == 7


def test_while_partitions_are_being_split_a_change_is_noticed_at_once(ring_path, golden):
    clock = ManualClock()
    ring = Ring(ring_path, clock=clock).load()
    replace_with(ring_path, golden / "e1-prepared.ring.gz")
    assert ring.view().next_part_power is None
    clock.advance(15)
    assert (ring.view().part_power, ring.view().next_part_power) == (6, 7)
    replace_with(ring_path, golden / "e2-increased.ring.gz", mtime=3)
    assert ring.nodes(bytes.fromhex("a33b9e4aeee15dec700701c21fd19054"))[0] == 81
    replace_with(ring_path, golden / "e3-finished.ring.gz", mtime=4)
    assert ring.view().next_part_power is None
    replace_with(ring_path, golden / "e1-prepared.ring.gz", mtime=5)
    clock.advance(14)
    assert ring.view().next_part_power is None


def test_a_switched_link_to_a_file_of_the_same_age_is_noticed(tmp_path, golden):
    """A volume of Kubernetes replaces the link ``..data``, through which all its files are reached."""
    for version in ("e0-base", "e2-increased"):
        (tmp_path / version).mkdir()
        replace_with(str(tmp_path / version / "object.ring.gz"), golden / f"{version}.ring.gz", mtime=1)
    data = tmp_path / "..data"
    data.symlink_to("e0-base")
    (tmp_path / "object.ring.gz").symlink_to("..data/object.ring.gz")
    clock = ManualClock()
    ring = Ring(str(tmp_path / "object.ring.gz"), clock=clock).load()
    fresh = tmp_path / "..data_tmp"
    fresh.symlink_to("e2-increased")
    fresh.replace(data)
    clock.advance(15)
    assert ring.view().part_power == 7


def _damaged_files(golden):
    """Contents that are no ring, by kind of damage, from a ring that is one."""
    good = (golden / "e2-increased.ring.gz").read_bytes()
    raw = gzip.decompress(good)
    head_end = 10 + int.from_bytes(raw[6:10], "big")
    head = json.loads(raw[10:head_end])

    def ring(changes, rows=raw[head_end:]):
        text = json.dumps({**head, **changes}).encode()
        return gzip.compress(raw[:6] + len(text).to_bytes(4, "big") + text + rows)

    return {
        "empty": b"",
        "no gzip": b"half",
        "truncated": good[:-20],
        "bytes after the end": good + b"more",
        "a flipped bit": good[:-20] + bytes([good[-20] ^ 1]) + good[-19:],
        "no magic": gzip.compress(b"X" + raw[1:]),
        "bytes after the rows": gzip.compress(raw + b"\0\0"),
        "an unknown device": ring({}, rows=b"\x63\0" + raw[head_end + 2 :]),
        "no devices": ring({"devs": []}),
        "no replicas": ring({"replica_count": 0}, rows=b""),
    }


@pytest.mark.parametrize("damage", _damaged_files(GOLDEN))
def test_a_damaged_file_is_reported_once_and_the_ring_in_memory_stays(ring_path, golden, damage):
    clock, reports = ManualClock(), []
    ring = Ring(ring_path, clock=clock, report=reports.append).load()
    with open(ring_path, "wb") as file:
        file.write(_damaged_files(golden)[damage])
    for _ in range(2):
        clock.advance(20)
        assert (ring.view().part_power, ring.view().next_part_power) == (6, None)
    assert len(reports) == 1
    assert reports[0].startswith(f"{ring_path} cannot be used, the ring in memory stays in use: ")
    replace_with(ring_path, golden / "e3-finished.ring.gz", mtime=5)
    clock.advance(20)
    assert ring.view().part_power == 7


@pytest.mark.parametrize("obstacle", ["missing", *sorted(set(ODD) - {"link"})])
def test_an_unreadable_file_is_reported_and_the_ring_in_memory_stays(ring_path, golden, obstacle):
    clock, reports = ManualClock(), []
    ring = Ring(ring_path, clock=clock, report=reports.append).load()
    if obstacle == "missing":
        os.unlink(ring_path)
    else:
        replace(ring_path, obstacle)
    clock.advance(20)
    with bounded():
        assert ring.view().part_power == 6
    assert len(reports) == 1


def test_a_damaged_file_is_read_once_in_an_interval_while_partitions_are_split(ring_path, golden):
    clock, read = ManualClock(), []

    def refuse_finished(view):
        read.append(view.part_power)
        if view.part_power == 7:
            raise RingError("it is refused")

    replace_with(ring_path, golden / "e1-prepared.ring.gz")
    ring = Ring(ring_path, clock=clock, validate=refuse_finished).load()
    replace_with(ring_path, golden / "e3-finished.ring.gz", mtime=5)
    for _ in range(5):
        assert ring.view().part_power == 6
    assert read == [6, 7]
    clock.advance(15)
    assert ring.view().part_power == 6
    assert read == [6, 7, 7]


def test_a_file_that_is_being_replaced_is_not_reported_before_the_interval_is_over(ring_path, golden):
    clock, reports = ManualClock(), []
    replace_with(ring_path, golden / "e1-prepared.ring.gz")
    ring = Ring(ring_path, clock=clock, report=reports.append).load()
    with open(ring_path, "wb") as file:
        file.write(b"half")
    assert ring.view().part_power == 6
    os.unlink(ring_path)
    assert ring.view().part_power == 6
    assert reports == []
    clock.advance(15)
    assert ring.view().part_power == 6
    assert len(reports) == 1


def test_an_unchanged_file_is_not_read_again(ring_path):
    clock = ManualClock()
    ring = Ring(ring_path, clock=clock)
    view = ring.view()
    clock.advance(100)
    assert ring.view() is view


def test_a_refused_ring_is_fatal_at_first(ring_path):
    def refuse(view):
        raise RingError("wrong replica count")

    with pytest.raises(RingError, match="wrong replica count"):
        Ring(ring_path, validate=refuse).load()


def test_a_ring_refused_later_leaves_the_old_one_in_place(ring_path, golden):
    def only_power_6(view):
        if view.part_power != 6:
            raise RingError("wrong power")

    clock, reports = ManualClock(), []
    ring = Ring(ring_path, clock=clock, validate=only_power_6, report=reports.append).load()
    replace_with(ring_path, golden / "e2-increased.ring.gz")
    clock.advance(20)
    assert ring.view().part_power == 6
    assert "wrong power" in reports[0]
    replace_with(ring_path, golden / "e1-prepared.ring.gz", mtime=3)
    clock.advance(20)
    assert ring.view().next_part_power == 7


def test_a_view_in_use_survives_a_reload(ring_path, golden):
    clock = ManualClock()
    ring = Ring(ring_path, clock=clock).load()
    walk = ring.handoffs(40)
    first = next(walk)
    replace_with(ring_path, golden / "a-v1.ring.gz")
    clock.advance(20)
    assert ring.view().part_power == 8
    assert first.id == 3
    assert list(walk) == []


def test_the_properties_are_those_of_the_file(ring_path):
    ring = Ring(ring_path)
    assert (ring.view().partition_count, ring.view().part_shift, ring.view().replica_count) == (64, 26, 3.0)
    assert len(ring.view().devices) == 4
    assert ring.partition_of(bytes.fromhex("a33b9e4aeee15dec700701c21fd19054")) == 40
