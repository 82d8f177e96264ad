"""Noticing that what is mounted has changed."""

import os
from pathlib import Path

import pytest

from swift.platform.mountwatch import MountWatch

MOUNTS = Path("/proc/self/mountinfo")


@pytest.fixture
def watch():
    made = MountWatch()
    yield made
    made.close()


def test_the_first_answer_is_yes_and_then_it_is_quiet(watch):
    assert watch.has_changed()
    before = MOUNTS.read_text()
    changed = watch.has_changed()
    # Others may mount something at any time.
    assert not changed or MOUNTS.read_text() != before


def test_a_folder_of_the_same_mount_has_its_number(watch, tmp_path):
    assert watch.mount_id(str(tmp_path)) == watch.mount_id(str(tmp_path)) != 0
    if os.path.ismount("/proc"):
        assert watch.mount_id("/proc") != watch.mount_id(str(tmp_path))


def test_what_is_not_there_has_none(watch, tmp_path):
    assert watch.mount_id(str(tmp_path / "none")) == 0


def test_closing_twice_does_no_harm(watch):
    watch.has_changed()
    watch.close()
    watch.close()
