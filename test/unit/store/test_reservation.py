"""The file of a promise: what stands in it, what damage does to it, and that nothing stays open."""

from __future__ import annotations

import errno

import pytest

from swift.base.clock import ManualClock
from swift.base.timestamp import ZERO, Timestamp
from swift.platform.disk import Disk
from swift.store.errors import AlreadyReserved
from swift.store.layout import ObjectPath
from swift.store.reservation import reserve
from swift.wire.reservation import FORGOTTEN_AFTER_S, LEASE_S
from test.contract.test_store import key_of

OLD, NEW = Timestamp(5), Timestamp(6)


class Counting(Disk):
    """Knows how many files are open; ``fails`` names the call that does."""

    def __init__(self):
        self.open_now = 0
        self.fails = ""

    def open(self, *how):
        fd = super().open(*how)
        self.open_now += 1
        return fd

    def close(self, fd):
        self.open_now -= 1
        super().close(fd)

    def pwrite(self, *how):
        if self.fails == "pwrite":
            raise OSError(errno.ENOSPC, "full")
        return super().pwrite(*how)

    def unlink(self, path):
        if self.fails == "unlink":
            raise OSError(errno.EIO, "rot")
        super().unlink(path)


class Bench:
    def __init__(self, root):
        (root / "sda").mkdir()
        self.disk = Counting()
        self.clock = ManualClock(1000.0)
        self.clock.advance(FORGOTTEN_AFTER_S)
        self.place = ObjectPath(key_of(), str(root / "sda"))
        self.folder = root / "sda/tmp"

    def reserve(self, writer=NEW):
        return reserve(self.disk, self.clock, self.place, writer)

    def refusal(self, writer=NEW):
        with pytest.raises(AlreadyReserved) as told:
            self.reserve(writer)
        return told.value.writer, told.value.is_over

    @property
    def file(self):
        (path,) = self.folder.iterdir()
        return path

    def leave(self, text):
        """What somebody who ended left behind."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"reserved-{self.place.key.hash}").write_bytes(text)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_the_file_says_until_when_the_object_is_kept_and_for_whom(bench):
    promise = bench.reserve()
    until, writer = bench.file.read_text().split(" ")
    assert float(until) == pytest.approx(bench.clock.monotonic() + FORGOTTEN_AFTER_S)
    assert writer == NEW.internal
    assert bench.file.stat().st_mode & 0o777 == 0o600
    assert "holds" in repr(promise)


@pytest.mark.parametrize("end", ["release", "complete", "abandon"])
def test_however_it_ends_nothing_stays_open_and_it_ends_once(bench, end):
    promise = bench.reserve()
    getattr(promise, end)()
    assert bench.disk.open_now == 0 and not promise.holds()
    other = bench.reserve(Timestamp(9))
    getattr(promise, end)()
    assert other.holds() and bench.disk.open_now == 1


def test_who_is_refused_leaves_nothing_open(bench):
    promise = bench.reserve()
    assert bench.refusal() == (NEW, False)
    assert bench.disk.open_now == 1 and promise.holds()


@pytest.mark.parametrize(
    "text",
    [b"", b"\xff\xfe", b"5", b"never 5.0", b"nan 0000000005.00000", b"5 x", b"5 " + b"9" * 500, b"\0" * 128],
)
def test_what_cannot_be_read_keeps_nobody_from_the_object(bench, text):
    bench.leave(text)
    assert bench.reserve().holds()


def test_a_promise_from_before_the_last_boot_is_none_but_its_writer_is_remembered(bench):
    """Its time lies further ahead than any promise of now."""
    bench.leave(f"{bench.clock.monotonic() + FORGOTTEN_AFTER_S + 1} {OLD.internal}".encode())
    assert bench.refusal(OLD) == (OLD, True)
    assert bench.reserve(NEW).holds()


@pytest.mark.parametrize(
    ("ahead_s", "is_kept"), [(0.5, True), (FORGOTTEN_AFTER_S, True), (0.0, False), (-5.0, False)]
)
def test_until_its_time_is_over_nobody_else_gets_the_object(bench, ahead_s, is_kept):
    bench.leave(f"{bench.clock.monotonic() + ahead_s} {OLD.internal}".encode())
    if is_kept:
        assert bench.refusal() == (OLD, False)
    else:
        assert bench.reserve().holds()
    assert bench.disk.open_now == (not is_kept)


def test_a_lease_is_over_before_anybody_else_may_rely_on_the_object(bench):
    promise = bench.reserve()
    bench.clock.advance(LEASE_S)
    assert not promise.holds() and LEASE_S < FORGOTTEN_AFTER_S
    assert bench.refusal(Timestamp(9)) == (NEW, False)


def test_a_promise_that_cannot_be_written_down_is_none(bench):
    bench.disk.fails = "pwrite"
    with pytest.raises(OSError, match="full"):
        bench.reserve()
    bench.disk.fails = ""
    assert bench.disk.open_now == 0
    assert bench.reserve().holds()


@pytest.mark.parametrize(("end", "call"), [("complete", "unlink"), ("abandon", "pwrite")])
def test_an_end_that_fails_is_one_all_the_same(bench, end, call):
    promise = bench.reserve()
    bench.disk.fails = call
    with pytest.raises(OSError):
        getattr(promise, end)()
    assert bench.disk.open_now == 0 and not promise.holds()


def test_soon_after_a_boot_nobody_knows_and_no_file_is_made(bench):
    bench.clock = ManualClock(FORGOTTEN_AFTER_S - 1)
    assert bench.refusal() == (ZERO, False)
    assert not bench.folder.exists()
