"""Nothing is removed too early, and a tombstone only after what it deleted (spec: object-disk.md §7)."""

from __future__ import annotations

import os

from swift.platform.disk import Disk
from swift.platform.locks import lock_directory
from swift.policy.policy import ErasureCode
from swift.store.chooser import ReclaimRules, choose, clean_up, files_to_remove, remove_made

NOW_S = 2_000_000_000.0
RULES = ReclaimRules(reclaim_age_s=1000, commit_window_s=60)
EC = ErasureCode("liberasurecode_rs_vand", 4, 2)


def name_at(age_s, rest):
    return f"{NOW_S - age_s:016.5f}{rest}"


def removed(names, ec=None, mtime=0.0, rules=RULES):
    found = files_to_remove(choose(names, ec), rules, NOW_S, lambda _name: mtime)
    return [file.name for file in found]


def test_obsolete_files_go_at_once():
    assert removed([name_at(1, ".data"), name_at(2, ".data")]) == [name_at(2, ".data")]


def test_a_tombstone_goes_when_it_is_older_than_reclaim_age_and_not_before():
    assert removed([name_at(1000, ".ts")]) == []
    assert removed([name_at(1000.1, ".ts")]) == [name_at(1000.1, ".ts")]


def test_an_old_tombstone_goes_without_the_newer_meta_beside_it():
    names = [name_at(2000, ".ts"), name_at(500, ".meta")]
    assert removed(names) == [name_at(2000, ".ts")]


def test_uncommitted_archives_go_when_old_by_name_and_untouched_for_the_commit_window():
    names = [name_at(2000, "#1.data")]
    assert removed(names, EC) == names
    assert removed(names, EC, mtime=NOW_S - 30) == []
    assert removed(names, EC, mtime=NOW_S - 30, rules=ReclaimRules(1000, 0)) == names
    assert removed([name_at(500, "#1.data")], EC) == []


def test_a_file_whose_age_cannot_be_told_stays():
    def gone(_name):
        raise FileNotFoundError

    choice = choose([name_at(2000, "#1.data")], EC)
    assert files_to_remove(choice, RULES, NOW_S, gone) == []


def test_the_tombstone_is_removed_last_and_after_a_sync(tmp_path):
    class Watching(Disk):
        def __init__(self):
            self.log = []

        def fsync(self, fd):
            self.log.append("sync")

        def unlink(self, path, **more):
            self.log.append(os.path.basename(path)[16:])
            os.unlink(path, **more)

    names = [name_at(3000, ".data"), name_at(2000, ".ts")]
    directory = tmp_path / "dir"
    directory.mkdir()
    for name in names:
        (directory / name).write_bytes(b"")
    disk = Watching()
    assert clean_up(disk, str(directory), names, choose(names), RULES, NOW_S) == []
    assert disk.log == [".data", "sync", ".ts"]
    assert not directory.exists()


def test_files_that_somebody_else_removed_do_not_matter(tmp_path):
    names = [name_at(1, ".data"), name_at(2, ".data")]
    (tmp_path / names[0]).write_bytes(b"")
    assert clean_up(Disk(), str(tmp_path), names, choose(names), RULES, NOW_S) == [names[0]]


def test_made_directories_are_taken_back_while_they_are_empty(tmp_path):
    leaf = tmp_path / "part/abc/hash"
    leaf.mkdir(parents=True)
    part, suffix = str(tmp_path / "part"), str(tmp_path / "part/abc")
    remove_made(Disk(), str(leaf), [suffix, part, str(tmp_path)], keep=part)
    assert os.listdir(part) == []
    leaf.mkdir(parents=True)
    (leaf / "file").write_bytes(b"")
    remove_made(Disk(), str(leaf), [suffix, part], keep=part)
    assert leaf.exists()


def test_a_directory_that_somebody_holds_is_not_taken_back(tmp_path):
    """It is about to be filled."""
    part, suffix, leaf = (str(tmp_path / path) for path in ("7", "7/abc", "7/abc/leaf"))
    os.makedirs(leaf)
    holder = lock_directory(Disk(), leaf)
    remove_made(Disk(), leaf, [suffix, part, str(tmp_path)], keep=part)
    assert os.path.isdir(leaf)
    os.close(holder)
    remove_made(Disk(), leaf, [suffix, part, str(tmp_path)], keep=part)
    assert not os.path.exists(suffix)


def test_parents_that_were_there_before_stay_even_when_empty(tmp_path):
    part, suffix, leaf = (str(tmp_path / path) for path in ("7", "7/abc", "7/abc/leaf"))
    os.makedirs(leaf)
    remove_made(Disk(), leaf, [suffix], keep=part)
    assert os.listdir(part) == ["abc"]
    os.mkdir(leaf)
    remove_made(Disk(), leaf, [suffix, part], keep=part)
    assert os.listdir(part) == []
