"""The hash cache follows its journal exactly (spec: object-disk.md §11)."""

from __future__ import annotations

import fcntl
import math
import os
import pickle
import time

import pytest

from swift.base.clock import ManualClock
from swift.platform.disk import Boot, Disk
from swift.policy.policy import ErasureCode, Policy
from swift.store.chooser import ReclaimRules
from swift.store.hashes import (
    FRESH_NS,
    SuffixHasher,
    consolidate,
    journal_idle_s,
    journal_token,
    mark_dirty,
    read_hashes,
    write_hashes,
)

NOW_S = 5_000_000_000.0
GOLD = Policy(0, "gold", is_default=True)
ARCHIVES = Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", 2, 1))


@pytest.fixture
def part(tmp_path):
    path = tmp_path / "objects" / "7"
    path.mkdir(parents=True)
    return path


def hasher(part, rules=None):
    return SuffixHasher(Disk(), ManualClock(NOW_S), str(part), GOLD, rules or ReclaimRules())


def add(part, name, suffix="abc", digits="0"):
    directory = part / suffix / (digits * 29 + suffix)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(b"")
    return directory


def dirty(part, *suffixes):
    mark_dirty(Disk(), str(part), suffixes, device_path=str(part.parent.parent))


def test_the_journal_is_a_line_per_change(part):
    dirty(part, "abc")
    dirty(part, "abc", "def")
    assert (part / "hashes.invalid").read_text() == "abc\nabc\ndef\n"


def test_marking_makes_a_missing_partition(tmp_path):
    mark_dirty(Disk(), f"{tmp_path}/objects/9", ["abc"], device_path=str(tmp_path))
    assert (tmp_path / "objects/9/hashes.invalid").read_text() == "abc\n"


def test_consolidating_folds_good_lines_and_empties_the_journal(part):
    write_hashes(Disk(), str(part), {"abc": "1", "def": "2"}, 5.0)
    (part / "hashes.invalid").write_bytes(b"def\nXYZ\n\xff\xff\n012\nab")
    hashes = consolidate(Disk(), str(part), 6.0)
    assert hashes == {"abc": "1", "def": None, "012": None, "valid": True, "updated": 6.0}
    assert read_hashes(Disk(), str(part)) == hashes
    assert (part / "hashes.invalid").read_bytes() == b""


@pytest.mark.parametrize(
    "content",
    [b"", b"junk", pickle.dumps(["list"], 2), pickle.dumps({"ABC": "1"}, 2), pickle.dumps({"abcd": "1"}, 2)],
)
def test_an_unreadable_cache_is_invalid(part, content):
    (part / "hashes.pkl").write_bytes(content)
    assert read_hashes(Disk(), str(part)) == {"valid": False}


def test_a_missing_cache_is_invalid_and_old_ones_are_completed(part):
    assert read_hashes(Disk(), str(part)) == {"valid": False}
    (part / "hashes.pkl").write_bytes(pickle.dumps({"abc": "1"}, 2))
    assert read_hashes(Kernel(Boot()), str(part)) == {"abc": "1", "valid": True, "updated": -1}


class Kernel(Disk):
    """A disk below another run of the kernel."""

    def __init__(self, boot):
        self._boot = boot

    def boot(self):
        return self._boot


def test_hashes_of_an_earlier_run_of_the_kernel_are_computed_once_more(part):
    """The journal of changes just before a power cut may be lost."""
    add(part, "5000000000.00000.data")
    before, after = Kernel(Boot("before", 1.0)), Kernel(Boot("after", 2.0))

    def get(disk):
        return SuffixHasher(disk, ManualClock(NOW_S), str(part), GOLD, ReclaimRules()).get()

    first = get(before)
    add(part, "5000000001.00000.data")
    assert get(before) == first
    second = get(after)
    assert second != first
    add(part, "5000000002.00000.data")
    assert get(after) == second


def test_folding_the_journal_does_not_make_an_earlier_run_s_hashes_believed(part):
    write_hashes(Kernel(Boot("before", 1.0)), str(part), {"abc": "1"}, 5.0)
    dirty(part, "def")
    after = Kernel(Boot("after", 2.0))
    assert consolidate(after, str(part), 6.0) == {"def": None, "valid": False, "updated": 6.0}
    assert read_hashes(after, str(part))["valid"] is False


def test_hashes_of_a_server_that_leaves_no_mark_are_believed_when_they_are_of_this_run(part):
    (part / "hashes.pkl").write_bytes(pickle.dumps({"abc": "1", "valid": True, "updated": 5.0}, 2))
    assert read_hashes(Kernel(Boot("this", 4.0)), str(part))["abc"] == "1"
    assert read_hashes(Kernel(Boot("this", 6.0)), str(part)) == {"valid": False}
    assert read_hashes(Kernel(Boot()), str(part))["abc"] == "1"


def test_an_invalid_cache_is_rebuilt_by_listing(part):
    add(part, "5000000000.00000.data")
    add(part, "5000000000.00000.data", suffix="def")
    (part / "tmp").mkdir()
    assert sorted(hasher(part).get()) == ["abc", "def"]


def test_only_dirty_suffixes_are_computed_again(part):
    add(part, "5000000000.00000.data")
    first = hasher(part).get()
    add(part, "5000000001.00000.data", digits="1")
    assert hasher(part).get() == first
    dirty(part, "abc")
    assert hasher(part).get() != first


def test_an_unlisted_suffix_is_found_by_listing_or_by_name(part):
    hasher(part).get()
    add(part, "5000000000.00000.data", suffix="def")
    assert hasher(part).get() == {}
    assert list(hasher(part).get(["def"])) == ["def"]
    add(part, "5000000000.00000.data", suffix="fed")
    assert sorted(hasher(part).get(list_suffixes=True)) == ["def", "fed"]


def test_nonsense_suffixes_are_not_asked_for(part):
    assert hasher(part).get(["../x", "ABC", "12345"]) == {}


def test_suffixes_that_are_gone_or_empty_disappear(part):
    directory = add(part, "5000000000.00000.data")
    assert list(hasher(part).get()) == ["abc"]
    (directory / "5000000000.00000.data").unlink()
    dirty(part, "abc")
    assert hasher(part).get() == {}
    assert not (part / "abc").exists()


def test_hashing_cleans_up_what_is_old(part):
    directory = add(part, "4000000000.00000.ts")
    add(part, "5000000000.00000.data", digits="1")
    assert list(hasher(part).get()) == ["abc"]
    assert not directory.exists()


def test_a_missing_partition_has_no_hashes(tmp_path):
    assert hasher(tmp_path / "none").get() == {}
    assert os.listdir(tmp_path) == []


def test_a_suffix_that_cannot_be_read_stays_dirty(part):
    class Unreadable(Disk):
        def listdir(self, path):
            if path.endswith("/abc"):
                raise OSError(5, "no")
            return os.listdir(path)

    add(part, "5000000000.00000.data")
    broken = SuffixHasher(Unreadable(), ManualClock(NOW_S), str(part), GOLD, ReclaimRules())
    assert broken.get() == {"abc": None}
    assert list(hasher(part).get().values()) != [None]


def test_a_change_while_hashing_starts_over(part):
    directory = add(part, "5000000000.00000.data")

    class Busy(Disk):
        interfered = False

        def listdir(self, path):
            names = os.listdir(path)
            if path.endswith("/abc") and not self.interfered:
                self.interfered = True
                (directory / "5000000009.00000.data").write_bytes(b"")
                dirty(part, "abc")
                consolidate(Disk(), str(part), 77.0)
            return names

    busy = Busy()
    result = SuffixHasher(busy, ManualClock(NOW_S), str(part), GOLD, ReclaimRules()).get()
    assert busy.interfered
    assert result == hasher(part).get(["abc"])


def test_a_hash_of_what_changed_while_it_was_computed_is_never_stored(part):
    """Another process has folded the change into the cache by the time that the stale hash is ready."""
    directory = add(part, "5000000000.00000.data")

    class Busy(Disk):
        interfered = False

        def listdir(self, path):
            names = os.listdir(path)
            if path == str(directory) and not self.interfered:
                self.interfered = True
                (directory / "5000000009.00000.meta").write_bytes(b"")
                dirty(part, "abc")
                consolidate(Disk(), str(part), 77.0)
            return names

    busy = Busy()
    stale = hasher(part).hash_suffix("abc")
    result = SuffixHasher(busy, ManualClock(NOW_S), str(part), GOLD, ReclaimRules()).get()
    assert busy.interfered
    assert result["abc"] not in (None, stale)
    assert read_hashes(Disk(), str(part))["abc"] == result["abc"] == hasher(part).get(["abc"])["abc"]


def test_hashing_removes_files_only_while_it_holds_their_directory(part):
    directory = add(part, "4000000000.00000.ts")
    removed = []

    class Watching(Disk):
        def unlink(self, path):
            other = os.open(directory, os.O_RDONLY)
            try:
                with pytest.raises(BlockingIOError):
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(other)
            removed.append(path)
            os.unlink(path)

    SuffixHasher(Watching(), ManualClock(NOW_S), str(part), GOLD, ReclaimRules()).get()
    assert len(removed) == 1


def test_reading_and_folding_leave_no_descriptor_open(part):
    write_hashes(Disk(), str(part), {"abc": "1"}, 5.0)
    dirty(part, "def")
    before = len(os.listdir("/proc/self/fd"))
    read_hashes(Disk(), str(part))
    consolidate(Disk(), str(part), 6.0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_journal_tells_since_when_nothing_changed(tmp_path):
    disk, path = Disk(), str(tmp_path)
    assert journal_idle_s(disk, path, time.time_ns()) == math.inf
    journal = tmp_path / "hashes.invalid"
    journal.write_bytes(b"abc\n")
    written = journal.stat().st_mtime_ns
    assert journal_idle_s(disk, path, written + 2_500_000_000) == 2.5
    assert journal_idle_s(disk, path, written - 1) == math.inf, "the clock was set back"


def test_the_journal_s_mark_is_told_once_it_is_empty_and_not_fresh(tmp_path):
    disk, path = Disk(), str(tmp_path)
    journal = tmp_path / "hashes.invalid"
    assert journal_token(disk, path, time.time_ns()) == ""
    journal.write_bytes(b"")
    (tmp_path / "hashes.pkl").write_bytes(b"")
    fresh = journal.stat().st_mtime_ns
    assert journal_token(disk, path, fresh + 1000) == ""
    mark = journal_token(disk, path, fresh + FRESH_NS)
    assert mark
    assert journal_token(disk, path, fresh + 2 * FRESH_NS) == mark
    journal.write_bytes(b"abc\n")
    assert journal_token(disk, path, fresh + 9 * FRESH_NS) == ""
    journal.write_bytes(b"")
    os.utime(journal, ns=(fresh, fresh + 1))
    assert journal_token(disk, path, fresh + 9 * FRESH_NS) not in ("", mark)


def test_the_mark_changes_with_the_cache_of_hashes_and_with_the_names_in_the_partition(tmp_path):
    disk, path = Disk(), str(tmp_path)
    (tmp_path / "hashes.invalid").write_bytes(b"")
    (tmp_path / "abc").mkdir()
    marks = set()

    def stat():
        mark = journal_token(disk, path, time.time_ns() + 9 * FRESH_NS)
        marks.add(mark)
        return mark

    assert stat() == ""
    write_hashes(disk, path, {"abc": "1"}, 5.0)
    stat()
    os.utime(tmp_path, ns=(1, 1))
    stat()
    write_hashes(disk, path, {"abc": "2"}, 6.0)
    stat()
    assert len(marks) == 4
    (tmp_path / "hashes.pkl").unlink()
    assert stat() == ""


def test_a_listing_finds_suffixes_that_are_gone_as_well_as_new_ones(part):
    add(part, "5000000000.00000.data")
    hasher = SuffixHasher(Disk(), ManualClock(NOW_S), str(part), GOLD, ReclaimRules())
    first = hasher.get()
    write_hashes(Disk(), str(part), {**first, "fff": "1"}, NOW_S)
    assert hasher.get() == {**first, "fff": "1"}
    assert hasher.get(list_suffixes=True) == first


def test_a_lost_mark_of_a_durable_archive_changes_the_hashes_once_their_cache_is_removed(part):
    add(part, "5000000000.00000#0#d.data")
    hasher = SuffixHasher(Disk(), ManualClock(NOW_S), str(part), ARCHIVES, ReclaimRules())
    first = hasher.get()
    durable = next(part.rglob("*#d.data"))
    durable.rename(str(durable).replace("#d.data", ".data"))
    (part / "hashes.pkl").unlink()
    second = hasher.get()
    suffix = next(iter(first))
    assert None in first[suffix] and None not in second[suffix]
