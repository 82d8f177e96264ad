"""Moving damaged things out of the way."""

import os

import pytest

from swift.platform.disk import Disk
from swift.platform.quarantine import QuarantineNote, move_to_quarantine, read_note

NAME = "0" * 29 + "abc"


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "objects" / "7" / "abc" / NAME
    path.mkdir(parents=True)
    (path / "1.data").write_bytes(b"x")
    return path


def move(tmp_path, path, folder="objects", reason="rot"):
    return move_to_quarantine(Disk(), str(tmp_path), folder, str(path), reason=reason)


@pytest.mark.parametrize("folder", ["objects", "objects-2", "containers"])
def test_the_whole_directory_goes_where_operators_look(damaged, tmp_path, folder):
    path = move(tmp_path, damaged, folder)
    assert path == f"{tmp_path}/quarantined/{folder}/{NAME}"
    assert os.listdir(path) == ["1.data"] and not damaged.exists()


def test_a_second_one_of_the_same_name_replaces_nothing(damaged, tmp_path):
    first = move(tmp_path, damaged)
    damaged.mkdir()
    (damaged / "2.data").write_bytes(b"y")
    second = move(tmp_path, damaged)
    assert second.startswith(f"{first}-")
    assert (os.listdir(first), os.listdir(second)) == (["1.data"], ["2.data"])


def test_a_file_in_the_place_of_a_directory_goes_too(damaged, tmp_path):
    file = damaged.with_name("f" * 32)
    file.write_bytes(b"junk")
    assert os.path.isfile(move(tmp_path, file))


def test_what_is_gone_already_is_not_moved(damaged, tmp_path):
    assert move(tmp_path, damaged.with_name("1" * 32)) is None


def test_what_was_moved_says_why_and_from_where(damaged, tmp_path):
    note = read_note(Disk(), move(tmp_path, damaged, reason="MD5 differs"))
    assert (note.reason, note.origin) == ("MD5 differs", f"objects/7/abc/{NAME}")
    assert note.moved_s > 1e9


def test_a_note_that_cannot_be_kept_does_not_keep_damage_in_place(damaged, tmp_path):
    class NoAttributes(Disk):
        def setxattr(self, *_args):
            raise OSError(95, "no")

    path = move_to_quarantine(NoAttributes(), str(tmp_path), "objects", str(damaged), reason="rot")
    assert os.path.isdir(path)
    assert read_note(Disk(), path) == QuarantineNote()
