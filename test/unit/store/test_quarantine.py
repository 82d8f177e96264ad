"""Moving damaged objects out of the way."""

import os

import pytest

from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.quarantine import quarantine_object

NAME = "0" * 29 + "abc"


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "objects" / "7" / "abc" / NAME
    path.mkdir(parents=True)
    (path / "1.data").write_bytes(b"x")
    return path


def move(tmp_path, path, index=0):
    return quarantine_object(Disk(), str(tmp_path), Policy(index, "p"), str(path))


@pytest.mark.parametrize(("index", "folder"), [(0, "objects"), (2, "objects-2")])
def test_the_whole_directory_goes_where_operators_look(damaged, tmp_path, index, folder):
    path = move(tmp_path, damaged, index)
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
