"""swift/store/packed/volumes.py: creating, locking, appending and scanning."""

from __future__ import annotations

import errno
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift.base.errors import NoSpace
from swift.base.timestamp import Timestamp
from swift.platform.disk import Disk
from swift.store.errors import Damaged
from swift.store.packed.appender import AHEAD_BYTES, LONG_BYTES, Appender
from swift.store.packed.lost import LostRanges
from swift.store.packed.record import ALIGNMENT, HEADER_BYTES, BadRecord, Header, Kind, Position, Record
from swift.store.packed.volumes import HEADER_ATTRIBUTE, SCAN_BYTES, Volumes, write_at
from test.sim.packedworld import Machine, Process, broken, no_space
from test.sim.powercut import SimulatedDisk
from test.sim.test_powercut import TOP

DIRECTORY = f"{TOP}/packed"


def record(body=b"body", second=1):
    return Record(Header(Kind.DATA, 0, 7, bytes(16), Timestamp(second)), b"metadata", body)


class Bench:
    def __init__(self):
        self.machine = Machine(SimulatedDisk(TOP))
        self.process = Process(self.machine)
        self.volumes = self.open()

    def open(self):
        """The volumes as another process has them."""
        return Volumes(Process(self.machine), DIRECTORY, device_path=TOP)

    def filled(self, *bodies):
        """A volume with a record for each body."""
        volume = self.volumes.create()
        appender = Appender(self.process, volume, end=ALIGNMENT, volume_bytes=1 << 20)
        for second, body in enumerate(bodies, 1):
            appender.append(record(body, second).encode(volume.nonce, appender.end // ALIGNMENT))
        return volume, appender

    def identity_of_its_own(self):
        self.volumes.create()
        return self.volumes.identity()

    def scan(self, volume, start=0):
        return [(position.unit, header) for position, header in self.volumes.scan(volume, start)]

    def seconds(self, volume):
        return [int(header.timestamp.seconds) for _unit, header in self.scan(volume)]

    def overwrite(self, volume, offset, data):
        write_at(self.machine.disk, volume.fd, data, offset)


@pytest.fixture
def bench():
    return Bench()


# --- files of volumes ---------------------------------------------------------------------------------


def test_volumes_are_numbered_from_1_and_other_files_are_none(bench):
    held = [bench.volumes.create(), bench.volumes.create()]
    bench.machine.disk.open(f"{DIRECTORY}/00000009.volume.old", os.O_CREAT)
    assert [each.number for each in held] == bench.volumes.numbers() == [1, 2]


def test_a_file_with_a_greater_number_than_entries_can_have_is_no_volume(bench):
    first = bench.volumes.create()
    disk = bench.machine.disk
    for name in ("16777216.volume", "99999999.volume"):
        disk.close(disk.open(f"{DIRECTORY}/{name}", os.O_CREAT | os.O_RDWR, 0o600))
    assert bench.volumes.numbers() == [first.number]
    assert bench.volumes.create().number == first.number + 1
    disk.close(disk.open(bench.volumes.path(16777215), os.O_CREAT | os.O_RDWR, 0o600))
    with pytest.raises(NoSpace, match="no number is left"):
        bench.volumes.create()


def test_there_are_no_volumes_without_a_directory(bench):
    assert bench.volumes.numbers() == []


def test_a_new_volume_is_locked_until_it_is_let_go(bench):
    volume = bench.volumes.create()
    assert bench.open().lock(1) is None
    del volume
    assert bench.open().lock(1) is not None


def test_a_volume_that_could_not_be_created_leaves_no_file(bench):
    volumes = bench.open()
    volumes._disk.fault = lambda name: no_space() if name == "pwrite" else None
    for _ in range(3):
        with pytest.raises(NoSpace):
            volumes.create()
    assert bench.volumes.numbers() == []


def test_a_file_that_is_no_volume_is_damage_and_not_locked(bench):
    path = f"{DIRECTORY}/00000001.volume"
    bench.volumes.create()
    bench.machine.disk.unlink(path)
    bench.machine.disk.close(bench.machine.disk.open(path, os.O_RDWR | os.O_CREAT))
    with pytest.raises(Damaged):
        bench.open().open(1)
    assert bench.open().lock(1) is None
    assert bench.open().is_blank(1)


@pytest.mark.parametrize("fault", ["damaged", "unreadable"])
@pytest.mark.parametrize("copy", ["attribute", "first record"])
def test_records_are_read_although_the_header_of_the_volume_is_lost(bench, fault, copy):
    volume, _appender = bench.filled(b"one", b"two")
    path = bench.volumes.path(1)
    if copy == "first record":
        bench.machine.disk.setxattr(path, HEADER_ATTRIBUTE, b"x")
    if fault == "damaged":
        bench.overwrite(volume, 3, b"x")
    else:
        bench.machine.spoil(path, 0, ALIGNMENT)
    del volume, _appender
    notices = []
    found = Volumes(Process(bench.machine), DIRECTORY, device_path=TOP, notice=notices.append)
    assert bench.seconds(found.open(1)) == [1, 2]
    assert len(notices) == 1 and path in notices[0] and "compact" in notices[0]
    assert found.lock(1) is not None
    assert found.take(1) is None, "nothing more may be appended"


def test_a_header_that_cannot_be_read_proves_no_damage(bench):
    """Else readers would quarantine every object of the volume."""
    bench.filled(b"one")
    bench.machine.spoil(bench.volumes.path(1), 0, 4096)
    bench.machine.disk.setxattr(bench.volumes.path(1), HEADER_ATTRIBUTE, b"x")
    with pytest.raises(OSError, match="I/O|Input/output"):
        bench.open().open(1)


def test_a_client_cannot_make_up_the_nonce_of_a_volume(bench):
    """A body that looks like a record is never the first one."""
    fake = b"".join(record(b"secret").encode(b"x" * 8, 1))
    volume, _appender = bench.filled(bytes(64 * 3) + fake)
    bench.machine.disk.setxattr(bench.volumes.path(1), HEADER_ATTRIBUTE, b"x")
    bench.overwrite(volume, 3, b"x")
    bench.overwrite(volume, ALIGNMENT, b"x")
    with pytest.raises(Damaged):
        bench.open().open(1)


def test_a_scan_tells_what_it_could_not_read_and_goes_on(bench):
    volume, _appender = bench.filled(*[b"%d" % each * 3000 for each in range(1, 9)])
    units = [unit for unit, _header in bench.scan(volume)]
    sector = units[3] * ALIGNMENT // 4096 * 4096
    bench.machine.spoil(bench.volumes.path(1), sector, sector + 4096)
    volumes, lost = bench.open(), LostRanges()
    found = []
    for position, header in volumes.scan(volumes.open(1), 0, lost.add):
        lost.pass_record(position, header)
        found.append(position.unit)
    gone = [unit for unit in units if sector <= unit * ALIGNMENT < sector + 4096]
    assert gone and found == [unit for unit in units if unit not in gone]
    ((begin, end),) = lost.merged(1 << 62)
    assert begin <= gone[0] * ALIGNMENT and end > gone[-1] * ALIGNMENT
    assert lost.unreadable_bytes == 4096
    with pytest.raises(OSError):
        list(volumes.scan(volumes.open(1), 0))


def test_an_error_within_a_body_is_not_a_lost_record(bench):
    volume, _appender = bench.filled(b"a", bytes(20000), b"c")
    bench.machine.spoil(bench.volumes.path(1), 8192, 12288)
    volumes, lost, found = bench.open(), LostRanges(), []
    for position, header in volumes.scan(volumes.open(1), 0, lost.add):
        lost.pass_record(position, header)
        found.append(int(header.timestamp.seconds))
    assert found == [1, 2, 3] and lost.merged(1 << 62) == [] and lost.unreadable_bytes == 0
    assert volume.number == 1


def test_a_volume_that_took_the_name_of_another_is_damage(bench):
    volume = bench.volumes.create()
    bench.machine.disk.rename(f"{DIRECTORY}/00000001.volume", f"{DIRECTORY}/00000002.volume")
    with pytest.raises(Damaged, match="number 2"):
        bench.open().open(2)
    assert volume.number == 1


def test_a_removed_volume_is_closed_when_it_is_noticed(bench):
    bench.volumes.create()
    volumes = bench.open()
    fd = volumes.open(1).fd
    bench.machine.disk.unlink(f"{DIRECTORY}/00000001.volume")
    assert bench.open().lock(1) is None
    volumes.forget_removed()
    assert fd not in bench.machine.disk._open


def test_taking_a_volume_makes_its_name_durable(bench):
    """The process that created it may have been killed before it could."""
    bench.volumes.create()
    disk = bench.machine.disk
    disk._changes[-1].is_durable = False
    assert bench.open().take(1) is not None
    assert all(change.is_durable for change in disk._changes)


def test_an_identity_is_made_once_and_is_durable(bench):
    bench.volumes.create()
    identity = bench.open().identity()
    assert bench.open().identity() == identity
    assert Bench().identity_of_its_own() != identity
    for image in bench.machine.disk.crash_states(20, random.Random(1)):
        left = Volumes(SimulatedDisk(TOP, image), DIRECTORY, device_path=TOP)
        assert left.identity() == identity


# --- appending ----------------------------------------------------------------------------------------


def test_records_are_read_back_where_they_were_appended(bench):
    volume, appender = bench.filled(b"one", b"two" * 100)
    (first, _), (second, _) = bench.scan(volume)
    assert bench.open().read(Position(1, first), 0).body() == b"one"
    assert bench.open().read(Position(1, second), 4096).body() == b"two" * 100
    with pytest.raises(BadRecord):
        bench.open().read(Position(1, appender.end // ALIGNMENT), 64)
    with pytest.raises(FileNotFoundError):
        bench.open().read(Position(2, 1), 64)


def test_zeros_ahead_leave_the_size_alone(bench):
    volume, _appender = bench.filled(b"one")
    size = bench.machine.disk.fstat(volume.fd).st_size
    appender = Appender(bench.process, volume, end=1024, volume_bytes=1 << 20)
    appender.append(record().encode(volume.nonce, 16))
    assert bench.machine.disk.fstat(volume.fd).st_size == size


def test_records_fit_where_zeros_do_not(bench):
    volume = bench.volumes.create()
    appender = Appender(bench.process, volume, end=ALIGNMENT, volume_bytes=1 << 20)
    sizes = []

    class Nearly(Process):
        def pwrite(self, fd, data, offset):
            sizes.append(len(data))
            if len(data) > 4096:
                raise no_space()
            return super().pwrite(fd, data, offset)

    appender._disk = Nearly(bench.machine)
    appender.append(record().encode(volume.nonce, 1))
    assert max(sizes) > 4096
    assert bench.seconds(volume) == [1]


def test_long_batches_have_no_zeros_ahead(bench):
    volume = bench.volumes.create()
    appender = Appender(bench.process, volume, end=ALIGNMENT, volume_bytes=8 << 20)
    for second in (1, 2):
        appender.append(record(b"x" * LONG_BYTES, second).encode(volume.nonce, appender.end // ALIGNMENT))
        assert bench.machine.disk.fstat(volume.fd).st_size == appender.end
    appender.append(record(second=3).encode(volume.nonce, appender.end // ALIGNMENT))
    assert bench.machine.disk.fstat(volume.fd).st_size == AHEAD_BYTES
    assert bench.seconds(volume) == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error"), [("pwrite", no_space()), ("pwrite", broken()), ("fdatasync", broken())]
)
def test_nothing_is_appended_after_a_failure(bench, call, error):
    _volume, appender = bench.filled(b"one")
    end = appender.end
    bench.process.fault = lambda name: error if name == call else None
    with pytest.raises(NoSpace if error.errno == errno.ENOSPC else OSError):
        appender.append(record().encode(b"12345678", 1))
    bench.process.fault = lambda _name: None
    assert appender.has_failed and appender.end == end
    assert not appender.has_room(64)


def test_a_short_write_goes_on_where_it_ended(bench):
    bench.process.fault = lambda name: 100 if name == "pwrite" else None
    volume, _appender = bench.filled(b"x" * 1000)
    assert bench.open().read(Position(1, 1), 64).body() == b"x" * 1000
    assert volume.number == 1


def test_a_write_of_nothing_is_an_error():
    class Stuck(Disk):
        def pwrite(self, fd, data, offset):
            return 0

    with pytest.raises(OSError, match="nothing"):
        write_at(Stuck(), 1, b"x", 0)


# --- scanning -----------------------------------------------------------------------------------------


def test_a_scan_begins_where_it_is_told(bench):
    volume, _appender = bench.filled(b"one", b"two", b"three")
    units = [unit for unit, _header in bench.scan(volume)]
    assert [unit for unit, _header in bench.scan(volume, units[1])] == units[1:]


def test_a_header_that_is_damaged_costs_one_record(bench):
    volume, _appender = bench.filled(b"one", b"two", b"three")
    bench.overwrite(volume, bench.scan(volume)[1][0] * ALIGNMENT + 30, b"xxxx")
    assert bench.seconds(volume) == [1, 3]


def test_a_record_in_a_body_is_not_believed(bench):
    """A client that knew the format would still not know the nonce, nor be looked at within a record."""
    forged = record(b"forged", 9)
    volume, _appender = bench.filled(bytes(48) + b"".join(forged.encode(b"anothers", 1)) * 3, b"two")
    assert bench.seconds(volume) == [1, 2]
    # Not even when the record around it is damaged.
    bench.overwrite(volume, ALIGNMENT, b"xxxx")
    assert bench.seconds(volume) == [2]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=700), min_size=1, max_size=5), st.randoms(use_true_random=False)
)
def test_garbage_between_records_hides_none(garbage, chance):
    bench = Bench()
    volume = bench.volumes.create()
    at, wanted = ALIGNMENT, []
    for second, each in enumerate(garbage, 1):
        if chance.random() < 0.5:
            # The beginning of a record that is torn.
            each = b"".join(record(each).encode(volume.nonce, 1))[: chance.randrange(12, HEADER_BYTES)]
        bench.overwrite(volume, at, each)
        at += -(-len(each) // ALIGNMENT) * ALIGNMENT
        data = b"".join(record(each, second).encode(volume.nonce, at // ALIGNMENT))
        bench.overwrite(volume, at, data)
        wanted.append((at // ALIGNMENT, second))
        at += len(data)
    assert [(unit, int(header.timestamp.seconds)) for unit, header in bench.scan(volume)] == wanted


@pytest.mark.parametrize("lacking", range(0, 4 * ALIGNMENT, ALIGNMENT))
def test_records_at_the_end_of_what_is_read_at_once_are_found(bench, lacking):
    """A header, its references and garbage across the border of two reads."""
    length = SCAN_BYTES - lacking - record(b"").total_bytes
    volume, _appender = bench.filled(b"one", bytes(length), b"three", b"four")
    assert bench.seconds(volume) == [1, 2, 3, 4]
    bench.overwrite(volume, bench.scan(volume)[1][0] * ALIGNMENT, b"xxxx")
    assert bench.seconds(volume) == [1, 3, 4]


def test_an_empty_volume_has_no_records(bench):
    assert bench.scan(bench.volumes.create()) == []


def test_volumes_of_a_file_system_that_turned_read_only_are_read(bench):
    bench.filled(b"one")

    class ReadOnly(Process):
        def open(self, path, flags, mode=0o777):
            if flags & (os.O_RDWR | os.O_WRONLY):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
            return super().open(path, flags, mode)

    volumes = Volumes(ReadOnly(bench.machine), bench.volumes.directory, device_path=TOP)
    assert volumes.read(Position(1, 1), 64).body() == b"one"
