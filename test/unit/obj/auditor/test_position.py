"""Where an audit of a device is."""

import json

import pytest

from swift.base.clock import ManualClock
from swift.obj.auditor.task import SAVED_EVERY_S, AuditPosition
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from test.support.disks import ODD, bounded, replace


@pytest.fixture
def position(tmp_path):
    clock = ManualClock(0.0)
    made = AuditPosition(DiskHandle(Disk()), str(tmp_path), "ALL", clock)
    made.clock = clock
    return made


def test_what_is_left_is_found_again_by_whoever_comes(position):
    position.save(["7", "12"])
    with open(position.path) as file:
        assert json.load(file) == {"partitions": ["7", "12"]}
    assert position.load() == ["7", "12"]
    position.forget()
    position.forget()
    assert position.load() is None


def test_it_is_written_now_and_then_and_at_the_end(position):
    position.save(["7", "12"])
    position.save(["12"])
    assert position.load() == ["7", "12"]
    position.clock.advance(SAVED_EVERY_S)
    position.save(["12"])
    assert position.load() == ["12"]
    position.save([])
    assert position.load() == []


@pytest.mark.parametrize(
    "text", ["", "junk", "[]", '{"partitions": 5}', '{"partitions": [5]}', "[" * 100_000, '{"other": []}']
)
def test_what_cannot_be_read_is_no_position(position, text):
    with open(position.path, "w") as file:
        file.write(text)
    assert position.load() is None


def test_nothing_is_made_where_there_is_nothing(tmp_path):
    AuditPosition(DiskHandle(Disk()), str(tmp_path / "objects-7"), "ALL", ManualClock()).save(["1"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_no_position_and_is_not_waited_for(position, kind):
    replace(position.path, kind)
    with bounded():
        assert position.load() is None
