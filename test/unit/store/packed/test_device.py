"""swift/store/packed/device.py: batches, failures, and what processes of one device do to each other."""

from __future__ import annotations

import errno
import gc
import os

import pytest

from swift.base.errors import ConfigError, LockTimeout, NoSpace
from swift.base.timestamp import Timestamp
from swift.store.lmdbindex import IndexBusy, IndexFailed, IndexFull
from swift.store.packed import rows
from swift.store.packed.changes import Change, Update
from swift.store.packed.compaction import Compactor
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import META_SPACE
from swift.store.packed.record import ALIGNMENT, Header, Kind, Record, Reference
from swift.store.packed.writer import PackedRules
from test.sim.packedworld import Machine, NestedBatches, Process, broken, entries_in, no_space
from test.sim.powercut import SimulatedDisk
from test.sim.test_powercut import TOP

HASH = bytes.fromhex("85dee760570f953becc718ec26cd501d")
PARTITION = 8


class Bench:
    """Processes that use one device, by number."""

    def __init__(self, volume_bytes=4096):
        self.machine = Machine(SimulatedDisk(TOP))
        self.rules = PackedRules(volume_bytes=volume_bytes)
        self.devices = {}
        self.notices = []

    def process(self, number=0):
        device = self.devices.get(number)
        return self.open(number) if device is None else device

    def open(self, number=0, fault=lambda _name: None):
        process = Process(self.machine)
        process.fault = fault
        device = self.devices[number] = PackedDevice(
            process,
            TOP,
            open_index=lambda _path: self.machine.open_index(process),
            rules=self.rules,
            notice=self.notices.append,
        )
        device.process = process
        return device

    def fail(self, call, error, by=0):
        """Let a call of a process fail until it is mended."""
        self.process(by).process.fault = lambda name: error if name == call else None

    def fail_thoroughly(self, by=0):
        """From the next sync on a process can do nothing with the volumes, until it is mended."""
        failed = []

        def fault(name):
            if name == "fdatasync" or failed and not name.startswith("index.") and name != "commit":
                failed.append(name)
                return broken()
            return None

        self.process(by).process.fault = fault

    def mend(self, by=0):
        self.process(by).process.fault = lambda _name: None

    def kill(self, by=0):
        self.devices.pop(by).process.kill()

    def change(self, second, by=0, size=50, replaces=()):
        entries = self.entries(by)
        removed = [entry for entry in entries if entry.timestamp in {Timestamp(each) for each in replaces}]
        header = Header(
            Kind.DATA,
            0,
            PARTITION,
            HASH,
            Timestamp(second),
            references=tuple(Reference(PARTITION, entry.position) for entry in removed),
        )
        kept = [entry for entry in entries if entry not in removed]
        update = Update(PARTITION, kept, removed, adds=True)
        return Change(Record(header, b"metadata", bytes(size)), [update])

    def put(self, second, by=0, **how):
        device = self.process(by)
        with device.holding(1):
            change = self.change(second, by, **how)
            device.commit(change)
        return change.position

    def entries(self, by=0):
        return self.process(by).entries(0, PARTITION, HASH)

    def seconds(self, by=0):
        return sorted(int(entry.timestamp.seconds) for entry in self.entries(by))

    def made_again(self):
        """What another process finds that has to make the index."""
        lost, self.machine.file = self.machine.file, None
        machine = Machine(self.machine.disk.forked())
        other = Bench()
        other.machine = machine
        self.machine.file = lost
        return other.seconds()


@pytest.fixture
def bench():
    return Bench()


# --- batches ------------------------------------------------------------------------------------------


def test_a_change_is_durable_and_visible_to_all_when_it_returns(bench):
    bench.put(1)
    assert bench.seconds(by=1) == [1] == bench.made_again()
    assert not any(inode.is_dirty for inode in bench.machine.disk._inodes.values() if inode.writes)


def test_changes_of_one_moment_cost_one_sync(bench):
    device = bench.process()
    bench.put(1)
    calls = []
    device.process.fault = calls.append
    device.writer.threads = batches = NestedBatches(device.writer.process)
    batches.following = [lambda: device.commit(bench.change(3))]
    device.commit(bench.change(2))
    assert calls.count("fdatasync") == 1 and calls.count("index.writing") == 1


def test_a_full_volume_is_followed_by_a_new_one(bench):
    positions = [bench.put(second, size=1000) for second in range(1, 8)]
    assert [each.volume for each in positions] == [1, 1, 1, 2, 2, 2, 3]
    assert bench.made_again() == list(range(1, 8))


def test_a_record_larger_than_a_volume_has_one_of_its_own(bench):
    bench.put(1)
    assert bench.put(2, size=10_000).volume == 2
    assert bench.made_again() == [1, 2]


def test_a_batch_that_does_not_fit_goes_on_in_a_new_volume(bench):
    device = bench.process()
    device.writer.threads = batches = NestedBatches(device.writer.process)
    changes = [bench.change(second, size=1500) for second in (1, 2, 3)]
    for change in changes:
        change.updates[0].kept = []
    batches.following = [lambda: device.commit(changes[1]), lambda: device.commit(changes[2])]
    device.commit(changes[0])
    assert [change.error for change in changes] == [None] * 3
    assert {change.position.volume for change in changes} == {1, 2}


# --- processes ----------------------------------------------------------------------------------------


def test_each_process_appends_to_a_volume_of_its_own(bench):
    assert {bench.put(second, by=second % 2).volume for second in range(1, 5)} == {1, 2}


def test_a_process_lets_go_of_its_volume_after_a_while_without_changes(bench):
    bench.put(1)
    device = bench.process()
    device.writer.let_go_of_idle_volume()
    assert device.volumes.lock(1) is None
    device.writer.let_go_of_idle_volume(idle_s=0.0)
    assert device.volumes.lock(1) is not None
    bench.put(2)
    assert device.volumes.numbers() == [1] and bench.seconds() == [1, 2] == bench.made_again()


def test_a_process_goes_on_with_a_volume_that_another_left(bench):
    bench.put(1)
    bench.kill()
    assert bench.put(2, by=1).volume == 1


def test_records_that_a_killed_process_had_not_indexed_are_not_written_over(bench):
    bench.process(1)
    bench.put(1)
    bench.process().process.fault = lambda name: bench.kill() if name == "index.writing" else None
    with pytest.raises(BaseException):  # noqa: B017 - it is killed
        bench.put(2)
    assert bench.seconds(by=1) == [1]
    assert bench.put(3, by=1).volume == 2
    bench.open(2)
    assert bench.seconds(by=2) == [1, 2, 3] == bench.made_again()


def test_an_index_is_left_with_what_killed_processes_wrote(bench):
    """It is believed after a boot, when a tail may be torn so that it looks like none."""
    bench.process(1)
    bench.put(1)
    bench.process().process.fault = lambda name: bench.kill() if name == "index.writing" else None
    with pytest.raises(BaseException):  # noqa: B017 - it is killed
        bench.put(2)
    bench.devices.pop(1).close()
    ((_key, entries),) = entries_in(bench.machine.file.kept).items()
    assert sorted(int(entry.timestamp.seconds) for entry in entries) == [1, 2]


def test_an_index_that_could_not_be_completed_is_not_left_as_a_whole_one(bench):
    bench.put(1)
    device = bench.process()
    closed = []
    device.index.close = lambda **how: closed.append(how)
    bench.fail("listdir", broken())
    device.close()
    assert closed == []


@pytest.mark.parametrize("new_name", ("00000009.volume.old", ""))
def test_nothing_is_written_to_a_volume_that_was_removed_or_renamed(bench, new_name):
    position, disk = bench.put(1), bench.machine.disk
    path = bench.process().volumes.path(position.volume)
    if new_name:
        disk.rename(path, f"{bench.process().directory}/{new_name}")
    else:
        disk.unlink(path)
    # Its number does not come again: references of others may point into it.
    assert bench.put(2).volume == position.volume + 1
    assert bench.made_again() == [2]
    assert any("was removed or replaced" in notice for notice in bench.notices)


def test_a_change_is_refused_when_the_device_was_replaced_a_moment_ago(bench):
    bench.put(1)
    bench.machine.disk.rename(f"{TOP}/packed", f"{TOP}/away")
    with pytest.raises(FileNotFoundError, match="the directory was replaced"):
        bench.put(2)


def test_a_volume_that_cannot_be_opened_does_not_stop_writing(bench):
    bench.put(1)
    bench.kill()
    device = bench.process(1)
    tried = []

    def fault(name):
        if name == "flock" and not tried:
            tried.append(name)
            return broken()
        return None

    device.process.fault = fault
    assert bench.put(2, by=1).volume == 2
    assert tried and any("cannot append" in notice for notice in bench.notices)


# --- failures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"), [("fdatasync", broken()), ("pwrite", broken()), ("pwrite", no_space())]
)
def test_what_could_not_be_written_is_refused_and_never_appears(bench, call, error):
    bench.put(1)
    bench.fail(call, error)
    with pytest.raises((OSError, NoSpace)):
        bench.put(2, replaces=[1])
    assert bench.seconds() == [1]
    bench.mend()
    bench.put(3)
    assert bench.seconds() == [1, 3] == bench.made_again()


def test_a_full_device_still_takes_what_fits_into_the_room_of_its_volume():
    bench = Bench(volume_bytes=1 << 20)

    def write(_fd, data, offset):
        if offset + len(data) > 2048:
            raise no_space()

    bench.process().process.before_write = write
    bench.put(1)
    with pytest.raises(NoSpace):
        bench.put(2, size=4000)
    assert bench.put(3).volume == 1
    assert bench.seconds() == [1, 3] == bench.made_again()


def test_a_full_device_is_read_although_a_killed_process_left_what_is_not_sound(bench):
    position, disk = [bench.put(second) for second in (1, 2)][1], bench.machine.disk
    fd = disk.open(bench.process().volumes.path(1), os.O_RDWR)
    disk.pwrite(fd, b"torn", position.unit * ALIGNMENT + 108 + len(b"metadata"))
    bench.kill()
    bench.machine.file = None
    bench.open(1, fault=lambda name: no_space() if name == "pwrite" else None)
    assert bench.seconds(by=1) == [1]
    bench.mend(by=1)
    bench.put(3, by=1)
    assert bench.seconds(by=1) == [1, 3] == bench.made_again()


def test_a_compaction_that_copies_nothing_needs_no_room(bench):
    bench.put(1)
    bench.fail_thoroughly()
    with pytest.raises(OSError):
        bench.put(2)
    bench.process().commit_all([])


def test_nothing_is_appended_to_a_volume_after_a_failure(bench):
    bench.put(1)
    bench.fail("fdatasync", broken())
    with pytest.raises(OSError):
        bench.put(2)
    bench.mend()
    assert {bench.put(3).volume, bench.put(4, by=1).volume}.isdisjoint({1})
    # Nor after the index was lost with what it knew.
    bench.machine.file = None
    for by in list(bench.devices):
        bench.kill(by)
    assert bench.put(5, by=3).volume != 1
    row = bench.process(3).read_index(lambda index, _spaces: rows.read_volume(index, 1))
    assert row.is_closed


def test_what_a_process_could_not_disown_is_disowned_when_it_is_killed(bench):
    bench.process(1)
    bench.put(1)
    bench.fail_thoroughly()
    with pytest.raises(OSError):
        bench.put(2, replaces=[1])
    bench.kill()
    assert bench.put(3, by=1).volume != 1
    assert bench.seconds(by=2) == [1, 3] == bench.made_again()


def test_a_process_does_not_believe_what_it_could_not_disown_when_it_makes_the_index(bench):
    bench.put(1)
    bench.fail_thoroughly()
    with pytest.raises(OSError):
        bench.put(2, replaces=[1])
    bench.mend()
    bench.machine.file = None
    assert bench.seconds() == [1]


def test_no_other_process_appends_behind_what_is_not_disowned_yet(bench):
    bench.put(1)
    bench.fail_thoroughly()
    with pytest.raises(OSError):
        bench.put(2)
    # The error refers to the volume.
    gc.collect()
    bench.machine.file = None
    assert bench.put(3, by=1).volume != 1
    bench.mend()
    bench.put(4)
    assert bench.seconds() == [1, 3, 4] == bench.made_again()


def test_what_an_index_made_in_between_believed_is_put_right(bench):
    """The refused record had made another one obsolete, which has to be there again."""
    bench.put(1)
    bench.fail_thoroughly()
    with pytest.raises(OSError):
        bench.put(2, replaces=[1])
    bench.machine.file = None
    assert bench.seconds(by=1) == [2]
    bench.mend()
    bench.put(4)
    assert bench.seconds(by=1) == [1, 4] == bench.seconds() == bench.made_again()


def test_what_is_durable_and_could_not_be_indexed_is_indexed_before_the_next_change(bench):
    bench.put(1)
    bench.fail("index.writing", IndexFailed("full"))
    with pytest.raises(OSError, match="index"):
        bench.put(2)
    assert bench.seconds() == [1]
    bench.mend()
    with bench.process().holding(5):
        assert bench.seconds() == [1, 2] == bench.made_again()


@pytest.mark.long
def test_a_device_whose_index_is_full_is_read_also_when_it_is_opened_and_changed_when_there_is_room(bench):
    def fault(name):
        return IndexFull("mdb_txn_commit: No space left") if name == "index.writing" else None

    bench.put(1)
    bench.process().process.fault = fault
    with pytest.raises(OSError, match="cannot be changed: mdb_txn_commit: No space left") as raised:
        bench.put(2)
    assert raised.value.errno == errno.ENOSPC and bench.seconds() == [1]
    bench.kill()
    bench.open(1, fault)
    assert bench.seconds(by=1) == [1]
    assert ["can be read and not changed" in notice for notice in bench.notices] == [True]
    # The simulated error is part of a cycle, which holds the volume.
    gc.collect()
    with pytest.raises(OSError, match="No space left"):
        bench.put(3, by=1)
    gc.collect()
    bench.mend(1)
    bench.put(3, by=1)
    assert bench.seconds(by=1) == [1, 2, 3] == bench.made_again()


def test_an_index_that_another_process_holds_is_a_lock_that_is_not_free_and_no_failing_device(bench):
    bench.put(1)
    index = bench.process().index
    bench.fail("index.writing", IndexBusy(5.0))
    with pytest.raises(LockTimeout, match="the index of /srv/sda.* within 5 s"):
        bench.put(2)
    assert bench.seconds() == [1] and bench.process().index is index
    bench.process().close()
    bench.kill()
    bench.open(3, lambda name: IndexBusy(5.0) if name == "index.writing" else None)
    assert bench.seconds(by=3) == [1]
    gc.collect()
    assert bench.seconds(by=1) == [1, 2]
    bench.machine.file = None
    with pytest.raises(LockTimeout, match="index"):
        bench.open(2, lambda name: IndexBusy(5.0) if name == "index.writing" else None)


def test_an_index_that_holds_garbage_is_made_again(bench):
    bench.put(1)
    kept = bench.machine.file.kept
    (key,) = [key for key in kept if key.endswith(HASH)]
    kept[key] = b"garbage"
    assert bench.seconds() == [1]


def test_files_that_name_no_possible_policy_mean_nothing(bench):
    bench.put(1)
    directory, disk = bench.process().directory, bench.machine.disk
    for name in ("indexed-", "unindexed-99999999999999999999", "as-files-4294967296", "as-files-x"):
        disk.close(disk.open(f"{directory}/{name}", os.O_CREAT | os.O_RDWR, 0o600))
    assert bench.made_again() == [1]
    assert bench.seconds(by=1) == [1] and not bench.process(1).conversion.keeps_as_files(4294967296)


def test_an_index_of_other_volumes_is_made_again(bench):
    """The disk was exchanged, the index is on an SSD."""
    bench.put(1)
    kept = bench.machine.file.kept
    other = Bench()
    other.machine.open_index(Process(other.machine))
    other.machine.file.kept = dict(kept)
    assert other.seconds() == []
    other.put(2)
    assert other.seconds() == [2] == other.made_again()
    assert any("other volumes" in notice for notice in other.notices)


@pytest.mark.parametrize("is_first_use", (False, True))
def test_a_volume_of_another_device_in_place_of_one_is_noticed_and_none_of_its_records_used(
    bench, is_first_use
):
    bench.put(1)
    if is_first_use:
        # The index is of a release that did not note nonces; the device was opened once since.
        for key in [key for key in bench.machine.file.kept if key.startswith(META_SPACE + b"n")]:
            del bench.machine.file.kept[key]
        bench.kill()
        bench.open()
    bench.kill()
    other = Bench()
    for second in (2, 3, 4):
        other.put(second)
    path, disk, theirs = f"{TOP}/packed/00000001.volume", bench.machine.disk, other.machine.disk
    fd = theirs.open(path, os.O_RDONLY)
    content = theirs.pread(fd, 1 << 20, 0)
    disk.unlink(path)
    copy = disk.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    disk.pwrite(copy, content, 0)
    disk.close(copy)
    bench.open()
    assert ["is not the volume that was indexed" in notice for notice in bench.notices] == [True]
    assert bench.seconds() == [1]
    assert bench.put(5).volume == 2
    report = Compactor(disk, bench.process()).compact(1)
    assert "is not the volume that was indexed" in report.reason and disk.stat(path).st_size


@pytest.mark.parametrize("failure", (IndexFailed("no index"), ConfigError("another index")))
def test_opening_tells_failures_of_the_index_as_errors_of_the_device_and_leaves_nothing_open(bench, failure):
    machine = bench.machine
    bench.process(1)
    before = len(machine.disk._open)
    process = Process(machine)
    process.fault = lambda name: failure if name == "index.get" else None
    with pytest.raises(OSError, match="index") as raised:
        PackedDevice(
            process,
            TOP,
            open_index=lambda _path: machine.open_index(process),
            rules=PackedRules(),
            notice=lambda _text: None,
        )
    assert raised.value.errno == errno.EIO
    assert len(machine.disk._open) == before


def test_an_index_that_fails_while_it_is_used_is_an_error_of_the_device(bench):
    bench.put(1)
    bench.fail("index.writing", IndexFailed("No space left on the SSD"))
    with pytest.raises(OSError) as raised:
        bench.put(2)
    # Its code tells the proxy to use another device, its text is logged.
    assert raised.value.errno == errno.EIO and "No space left on the SSD" in raised.value.strerror
    assert len(bench.notices) == 1


def test_an_index_that_cannot_be_closed_is_told_and_does_not_keep_other_devices_from_closing(bench):
    bench.put(1)
    device = bench.process()

    def fail(*, is_last):
        raise IndexFailed("Read-only file system")

    device.index.close = fail
    device.close()
    assert ["will be made again: Read-only file system" in notice for notice in bench.notices] == [True]


def test_a_directory_that_was_replaced_is_noticed(bench):
    device = bench.process()
    device.look()
    assert not device.is_stale
    bench.machine.disk.rename(device.directory, f"{TOP}/old")
    device.look()
    assert device.is_stale


# --- an index of another time ---------------------------------------------------------------------------


def roll_back(bench, kept):
    bench.machine.file.kept = dict(kept)


def test_a_batch_is_told_as_done_only_if_its_index_ends_where_the_one_before_ended(bench):
    bench.put(1)
    kept = bench.machine.file.kept
    bench.put(2)
    roll_back(bench, kept)
    bench.put(3)
    assert bench.seconds() == [1, 2, 3] == bench.made_again()
    assert any("ends at" in notice for notice in bench.notices)


def test_an_index_that_ends_elsewhere_is_noticed_without_a_change(bench):
    bench.put(1)
    kept = bench.machine.file.kept
    bench.put(2)
    roll_back(bench, kept)
    bench.process().refresh()
    assert bench.seconds() == [1, 2]


def test_a_volume_of_another_nonce_in_an_index_discards_it(bench):
    bench.put(1)
    with bench.process().index.writing() as writing:
        rows.set_nonce(writing, 1, b"anothers")
    bench.put(2)
    assert bench.seconds() == [1, 2]
    assert rows.nonces(bench.process().index)[1] != b"anothers"


@pytest.mark.parametrize("is_alive", (False, True))
def test_an_index_that_lacks_more_than_a_killed_process_leaves_is_made_again(bench, is_alive):
    """Also if the records that it lacks would be taken up in an order that brings others back."""
    bench.put(1)
    kept = bench.machine.file.kept
    for second in (2, 3):
        bench.put(second, replaces=[second - 1])
    if not is_alive:
        bench.kill()
    roll_back(bench, kept)
    bench.open(1)
    assert bench.seconds(by=1) == [3] == bench.made_again()


def test_records_of_several_killed_processes_are_taken_up_together(bench):
    """What one says of a record of the other holds in whichever volumes they are."""
    bench.process(1)
    bench.put(1)
    bench.put(2, by=1)
    kept = bench.machine.file.kept
    bench.put(3, by=1)
    device = bench.process()
    (entry,) = [each for each in bench.entries() if each.timestamp == Timestamp(3)]
    header = Header(Kind.GONE, 0, PARTITION, HASH, Timestamp(0))
    header = header._replace(references=(Reference(PARTITION, entry.position),))
    left = [each for each in bench.entries() if each is not entry]
    device.commit(Change(Record(header), [Update(PARTITION, left, [entry])]))
    for by in (0, 1):
        bench.kill(by)
    roll_back(bench, kept)
    assert bench.seconds(by=2) == [1, 2] == bench.made_again()


def test_a_process_appends_no_more_to_a_volume_whose_records_are_not_all_there(bench):
    bench.put(1)
    last = bench.put(2)
    device = bench.process()
    fd = bench.machine.disk.open(device.volumes.path(1), os.O_RDWR)
    bench.machine.disk.pwrite(fd, bytes(64), last.unit * ALIGNMENT)
    bench.machine.file = None
    assert bench.put(3).volume == 2
    assert bench.seconds() == [1, 3] and rows.read_volume(device.index, 1).is_closed


def test_a_batch_that_cannot_be_found_again_has_failed(bench):
    bench.put(1)
    device, disk = bench.process(), bench.machine.disk

    def fault(name):
        if name == "index.writing":
            fd = disk.open(device.volumes.path(1), os.O_RDWR)
            disk.pwrite(fd, bytes(64), change.position.unit * ALIGNMENT)
            disk.close(fd)
            bench.machine.file = None
            bench.mend()

    change = bench.change(2)
    device.process.fault = fault
    with pytest.raises(OSError, match="are not there"):
        device.commit(change)
    bench.put(3)
    assert bench.seconds() == [1, 3]
