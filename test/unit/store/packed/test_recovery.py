"""swift/store/packed/recovery.py: the index is made again from the volumes."""

from __future__ import annotations

import os

import pytest

from swift.base.timestamp import Timestamp
from swift.store.packed import rows
from swift.store.packed.appender import Appender
from swift.store.packed.confirmation import begin, marked
from swift.store.packed.entry import decode_entries
from swift.store.packed.record import ALIGNMENT, Header, Kind, Position, Record, Reference
from swift.store.packed.recovery import Recovery, has_tail
from swift.store.packed.rows import Spaces
from swift.store.packed.volumes import HEADER_ATTRIBUTE, Volumes, write_at
from test.sim.packedworld import Machine, Process
from test.sim.powercut import SimulatedDisk
from test.sim.test_powercut import TOP

HASH = bytes.fromhex("85dee760570f953becc718ec26cd501d")
OTHER_HASH = bytes(range(16))
PARTITION = 8
DIRECTORY = f"{TOP}/packed"


def data(second, *references, **how):
    header = Header(Kind.DATA, 0, PARTITION, HASH, Timestamp(second), references=references, **how)
    return Record(header, b"metadata", b"body" * 20)


def says(kind, *references, second=0, **how):
    header = Header(kind, 0, PARTITION, HASH, Timestamp(second), references=references, **how)
    return Record(header)


def of(position, partition=PARTITION):
    return Reference(partition, position)


class Bench:
    """Volumes to which records are appended, and an index made of them."""

    def __init__(self):
        self.machine = Machine(SimulatedDisk(TOP))
        self.process = Process(self.machine)
        self.volumes = Volumes(self.process, DIRECTORY, device_path=TOP)
        self.appenders = {}
        self.index = self.machine.open_index(self.process)
        self.unwanted = []
        self.notices = []

    def append(self, *batch, volume=1):
        """Write records as one batch; return their positions."""
        appender = self.appenders.get(volume)
        if appender is None:
            made = self.volumes.create()
            assert made.number == volume
            appender = self.appenders[volume] = Appender(
                self.process, made, end=ALIGNMENT, volume_bytes=1 << 16
            )
        positions, pieces, end = [], [], appender.end
        for record in batch:
            positions.append(Position(volume, end // ALIGNMENT))
            pieces += record.encode(appender.volume.nonce, appender.end // ALIGNMENT)
            end += record.total_bytes
        appender.append(pieces)
        return positions if len(positions) > 1 else positions[0]

    def damage_body(self, position):
        fd = self.appenders[position.volume].volume.fd
        write_at(self.machine.disk, fd, b"x", position.unit * ALIGNMENT + 150)

    def tear(self, position, record):
        """Let the last sector of a record be what was there before it."""
        end = position.unit * ALIGNMENT + record.total_bytes
        begin = max(position.unit * ALIGNMENT + 150, (end - 1) // 512 * 512)
        write_at(self.machine.disk, self.appenders[position.volume].volume.fd, bytes(end - begin), begin)

    def leave(self):
        """All processes that append are killed."""
        self.appenders.clear()

    def recovery(self, never=()):
        volumes = Volumes(self.process, DIRECTORY, device_path=TOP)
        return Recovery(self.process, volumes, self.index, Spaces(), self.notices.append, never)

    def rebuild(self, never=()):
        recovery = self.recovery(never)
        recovery.rebuild(b"these")
        self.unwanted = [each.position for each in recovery.replay_tails()]
        return self

    def replay(self):
        self.unwanted = [each.position for each in self.recovery().replay_tails()]

    def entries(self, partition=PARTITION):
        key = Spaces().find(self.index, 0, partition, HASH)
        return decode_entries((key and self.index.get(key)) or b"")

    def positions(self, partition=PARTITION):
        return [entry.position for entry in self.entries(partition)]

    def row(self, volume=1):
        return rows.read_volume(self.index, volume)


@pytest.fixture
def bench():
    return Bench()


# --- what records say ---------------------------------------------------------------------------------


def test_a_record_is_found_with_its_end_and_its_size(bench):
    position = bench.append(data(1))
    bench.leave()
    bench.rebuild()
    (entry,) = bench.entries()
    assert entry.position == position
    assert bench.row() == (position.unit * ALIGNMENT + data(1).total_bytes, entry.read_bytes, False)
    assert rows.is_complete(bench.index) and rows.owner(bench.index) == b"these"


@pytest.mark.parametrize("first", [1, 2])
def test_what_a_record_references_is_dead_in_whichever_volume_it_is(bench, first):
    """Volumes are scanned by number, records by place: none of it is the order of writing."""
    bench.append(data(9), volume=1)
    bench.append(data(9), volume=2)
    old = bench.append(data(1), volume=first)
    new = bench.append(data(2, of(old)), volume=3 - first)
    bench.rebuild()
    assert old not in bench.positions() and new in bench.positions()


def test_a_record_that_is_gone_is_not_there(bench):
    position = bench.append(data(1))
    bench.append(says(Kind.GONE, of(position)))
    assert bench.rebuild().entries() == []
    assert bench.row().live_bytes == 0


def test_an_archive_is_durable_after_its_commit(bench):
    bench.append(data(1, fragment=2))
    bench.append(data(1, fragment=3))
    bench.append(says(Kind.COMMIT, second=1, fragment=2))
    durable = {entry.fragment: entry.durable for entry in bench.rebuild().entries()}
    assert durable == {2: True, 3: False}


def test_a_linked_record_is_in_both_partitions(bench):
    position = bench.append(data(1))
    link = Header(Kind.LINK, 0, 16, HASH, Timestamp(1), references=(of(position, 16),))
    bench.append(Record(link), volume=2)
    bench.append(says(Kind.GONE, of(position)), volume=2)
    bench.rebuild()
    assert (bench.positions(), bench.positions(16)) == ([], [position])


def test_a_record_of_two_partitions_is_in_both(bench):
    position = bench.append(data(1, also_partition=16))
    bench.rebuild()
    assert bench.positions() == bench.positions(16) == [position]


@pytest.mark.parametrize("kind", [Kind.DATA, Kind.GONE])
def test_an_unwanted_record_does_not_count_nor_what_it_says(bench, kind):
    old = bench.append(data(1))
    bad = bench.append(data(2, of(old)) if kind is Kind.DATA else says(kind, of(old)))
    bench.append(says(Kind.UNWANTED, of(bad)), volume=2)
    bench.leave()
    assert bench.rebuild().positions() == [old]
    assert bench.row(1).is_closed and not bench.row(2).is_closed
    assert rows.unwanted_units(bench.index, 1) == {bad.unit}


def test_what_a_volume_of_another_device_says_of_its_records_is_not_about_these(bench):
    position = bench.append(data(1))
    header = Header(Kind.UNWANTED, 0, PARTITION, OTHER_HASH, Timestamp(0), references=(of(position),))
    bench.append(Record(header), volume=2)
    bench.leave()
    assert bench.rebuild().positions() == [position]
    assert not rows.unwanted_units(bench.index, position.volume)


def test_a_volume_that_appears_below_known_ones_is_told_and_indexed(bench):
    bench.append(data(1))
    position = bench.append(data(2), volume=2)
    bench.append(data(3), volume=3)
    bench.leave()
    path = bench.volumes.path(2)
    bench.process.rename(path, f"{path}.away")
    bench.rebuild()
    bench.process.rename(f"{path}.away", path)
    bench.notices.clear()
    bench.replay()
    assert position in bench.positions()
    assert ["did not know" in notice for notice in bench.notices] == [True]


def test_an_unwanted_commit_makes_nothing_durable(bench):
    bench.append(data(1, fragment=2))
    bad = bench.append(says(Kind.COMMIT, second=1, fragment=2))
    bench.append(says(Kind.UNWANTED, of(bad)), volume=2)
    assert [entry.durable for entry in bench.rebuild().entries()] == [False]


def test_a_record_that_this_process_is_about_to_disown_does_not_count(bench):
    old = bench.append(data(1))
    bad = bench.append(data(2, of(old)))
    assert bench.rebuild(never=[bad]).positions() == [old]


# --- the last batch -----------------------------------------------------------------------------------


def test_a_torn_record_of_the_last_batch_is_unwanted_and_closes_the_volume(bench):
    old = bench.append(data(1))
    sound, torn = bench.append(data(2), data(3, of(old)))
    bench.tear(torn, data(3, of(old)))
    bench.leave()
    bench.rebuild()
    assert bench.positions() == [old, sound]
    assert bench.unwanted == [torn]
    assert bench.row().is_closed


def test_bodies_before_the_last_batch_are_not_read(bench):
    """Damage there is the auditor's."""
    first = bench.append(data(1))
    bench.append(data(2))
    bench.damage_body(first)
    bench.leave()
    assert first in bench.rebuild().positions()
    assert bench.unwanted == [] and not bench.row().is_closed


def test_a_batch_that_a_living_process_is_writing_is_taken_up_to_what_is_there(bench):
    old = bench.append(data(1))
    first, second, third = bench.append(data(2), data(3, of(old)), data(4))
    bench.damage_body(second)
    bench.rebuild()
    assert bench.positions() == [old, first]
    assert bench.row() == (second.unit * ALIGNMENT, bench.row().live_bytes, False)
    assert bench.unwanted == []
    assert third


def test_what_was_read_of_a_killed_process_is_durable_before_it_is_indexed(bench):
    bench.append(data(1))
    bench.leave()
    calls = []
    bench.process.fault = calls.append
    bench.rebuild()
    assert calls.index("fdatasync") < len(calls) - calls[::-1].index("commit")
    assert "fdatasync" in calls[: calls.index("commit", calls.index("pread"))]


# --- tails --------------------------------------------------------------------------------------------


def test_what_a_killed_process_had_not_indexed_is_taken_up(bench):
    old = bench.append(data(1))
    bench.rebuild()
    new = bench.append(data(2, of(old)))
    bench.leave()
    bench.replay()
    assert bench.positions() == [new]


def test_the_tail_of_a_living_process_is_left_to_it(bench):
    old = bench.append(data(1))
    bench.rebuild()
    bench.append(data(2, of(old)))
    bench.replay()
    assert bench.positions() == [old]


def test_what_was_indexed_before_is_not_taken_up_again(bench):
    """It may be obsolete by now, by a record in another volume."""
    old = bench.append(data(1))
    bench.rebuild()
    bench.append(says(Kind.GONE, of(old)), volume=2)
    appender = bench.appenders[1]
    bench.leave()
    bench.replay()
    appender.published = appender.end
    bench.recovery().replay_own(appender)
    assert bench.positions() == []


def test_a_process_takes_up_what_it_could_not_index(bench):
    old = bench.append(data(1))
    bench.rebuild()
    appender = bench.appenders[1]
    appender.published = appender.end
    new = bench.append(data(2, of(old)))
    bench.recovery().replay_own(appender)
    assert bench.positions() == [new]
    assert appender.published == appender.end


def test_the_tail_of_a_closed_volume_is_unwanted(bench):
    """Its writing failed, and the process was killed before it could say so."""
    bench.append(data(1))
    bench.rebuild()
    refused, _says = bench.append(data(2), says(Kind.UNWANTED, of(Position(7, 7))))
    with bench.index.writing() as writing:
        rows.write_volume(writing, 1, bench.row()._replace(is_closed=True))
    bench.leave()
    bench.replay()
    assert len(bench.positions()) == 1
    assert bench.unwanted == [refused]


def test_zeros_are_no_tail(bench):
    bench.append(data(1))
    volume = bench.appenders[1].volume
    assert has_tail(volume, 0)
    assert not has_tail(volume, bench.appenders[1].end)


# --- damage and sectors that cannot be read -----------------------------------------------------------


def test_records_count_although_the_header_of_their_volume_is_damaged(bench):
    position = bench.append(data(1))
    write_at(bench.machine.disk, bench.appenders[1].volume.fd, b"x", 0)
    bench.leave()
    assert bench.rebuild().positions() == [position]
    assert rows.lost_ranges(bench.index, 1) == [(0, ALIGNMENT)]
    assert any("the header of" in text for text in bench.notices)


def test_a_volume_whose_creation_was_cut_short_has_lost_nothing(bench):
    bench.append(data(1))
    bench.volumes.create()
    bench.machine.disk.truncate(bench.machine.disk.open(bench.volumes.path(2), os.O_RDWR), 0)
    bench.leave()
    bench.rebuild()
    assert rows.lost_bytes(bench.index) == {} and len(bench.positions()) == 1


def test_a_volume_of_which_nothing_is_left_is_told(bench):
    position = bench.append(data(1))
    bench.append(data(2), volume=2)
    write_at(bench.machine.disk, bench.appenders[2].volume.fd, bytes(8), 0)
    write_at(bench.machine.disk, bench.appenders[2].volume.fd, b"x", ALIGNMENT + 20)
    bench.machine.disk.setxattr(bench.volumes.path(2), HEADER_ATTRIBUTE, b"x")
    assert bench.rebuild().positions() == [position]
    assert rows.lost_bytes(bench.index)[2] >= ALIGNMENT
    assert bench.row(2).is_closed
    assert any(text.startswith("ERROR records of volume 2") for text in bench.notices)


@pytest.mark.parametrize("fault", ["damaged", "unreadable"])
def test_what_is_lost_of_a_volume_is_told_and_the_rest_counts(bench, fault):
    large = Record(data(2).header, b"metadata", bytes(9000))
    records = [bench.append(large) for _ in range(4)]
    lost = records[2]
    if fault == "damaged":
        fd = bench.appenders[1].volume.fd
        write_at(bench.machine.disk, fd, b"x", lost.unit * ALIGNMENT + 40)
    else:
        sector = lost.unit * ALIGNMENT // 4096 * 4096
        bench.machine.spoil(bench.volumes.path(1), sector, sector + 4096)
    bench.leave()
    bench.rebuild()
    assert bench.positions() == [each for each in records if each != lost]
    assert rows.is_complete(bench.index)
    ((begin, end),) = rows.lost_ranges(bench.index, 1)
    assert begin <= lost.unit * ALIGNMENT < end
    assert bench.row().is_closed, "what a scan cannot read must not be appended to"
    assert [text.startswith("ERROR records of volume 1") for text in bench.notices].count(True) == 1


def test_a_body_that_cannot_be_read_leaves_its_record_in_the_index(bench):
    """Readers get the error of the device; the object does not look deleted, also not in the last batch."""
    first = bench.append(Record(data(1).header, b"metadata", bytes(20000)))
    last = bench.append(Record(data(2).header, b"metadata", bytes(20000)))
    for position in (first, last):
        begin = position.unit * ALIGNMENT + 8192
        bench.machine.spoil(bench.volumes.path(1), begin // 4096 * 4096, begin // 4096 * 4096 + 4096)
    bench.leave()
    assert bench.rebuild().positions() == [first, last]
    assert rows.lost_bytes(bench.index) == {} and bench.unwanted == []


def test_a_gap_in_the_last_batch_is_torn_and_stays_the_last(bench):
    old = bench.append(data(1))
    torn, sound = bench.append(data(2), data(3))
    fd = bench.appenders[1].volume.fd
    write_at(bench.machine.disk, fd, bytes(64), torn.unit * ALIGNMENT)
    bench.leave()
    assert bench.rebuild().positions() == [old, sound]
    assert rows.lost_bytes(bench.index) == {} and bench.row().is_closed


def test_a_device_that_fails_as_a_whole_is_not_taken_for_an_empty_one(bench):
    bench.append(data(1))
    bench.machine.disk.setxattr(bench.volumes.path(1), HEADER_ATTRIBUTE, b"x")
    bench.machine.spoil(bench.volumes.path(1), 0, 1 << 30)
    bench.leave()
    with pytest.raises(OSError):
        bench.rebuild()
    assert not rows.is_complete(bench.index)


def test_a_device_with_very_much_that_cannot_be_read_is_failing(bench):
    bench.append(data(1))
    fd = bench.appenders[1].volume.fd
    bench.machine.disk.truncate(fd, 4 << 20)
    bench.machine.spoil(bench.volumes.path(1), 4096, 4 << 20)
    bench.leave()
    with pytest.raises(OSError, match="failing"):
        bench.rebuild()


def test_a_tail_that_cannot_be_read_does_not_keep_a_device_from_being_opened(bench):
    position = bench.append(Record(data(1).header, b"metadata", bytes(9000)))
    bench.rebuild()
    end = bench.row().end
    bench.machine.spoil(bench.volumes.path(1), end // 4096 * 4096, end // 4096 * 4096 + 4096)
    bench.leave()
    for _ in range(2):
        bench.replay()
    assert bench.positions() == [position]
    assert bench.row().is_closed and rows.lost_bytes(bench.index)[1] > 0


def test_making_it_again_twice_changes_nothing(bench):
    old = bench.append(data(1))
    bench.append(data(2, of(old)))
    bench.rebuild()
    before = bench.entries(), bench.row()
    bench.rebuild()
    assert (bench.entries(), bench.row()) == before


# --- damage of the last records ---------------------------------------------------------------------------


def damage_header(bench, position):
    write_at(bench.machine.disk, bench.appenders[position.volume].volume.fd, b"x", position.unit * 64 + 40)


@pytest.mark.parametrize("first", [1, 2])
def test_damage_in_several_batches_at_the_end_of_a_volume_is_a_loss(bench, first):
    """A power cut tears one batch only."""
    positions = [bench.append(data(second)) for second in range(1, 5)]
    for position in positions[first:]:
        damage_header(bench, position)
    bench.leave()
    bench.rebuild()
    assert bench.positions() == positions[:first]
    ((begin, end),) = rows.lost_ranges(bench.index, 1)
    assert begin == positions[first].unit * ALIGNMENT and end > positions[-1].unit * ALIGNMENT
    assert bench.row().is_closed and rows.unconfirmed(bench.index)
    assert [text.startswith("ERROR records of volume 1") for text in bench.notices].count(True) == 1


@pytest.mark.parametrize("damaged", [(1,), (1, 2), (2,)])
def test_headers_of_one_batch_may_be_torn(bench, damaged):
    bench.append(data(1))
    batch = bench.append(data(2), data(3), data(4))
    for number in damaged:
        damage_header(bench, batch[number])
    bench.leave()
    bench.rebuild()
    assert not rows.lost_bytes(bench.index) and not rows.unconfirmed(bench.index)
    assert bench.row().is_closed


@pytest.mark.parametrize("is_alive", (False, True))
def test_less_than_an_index_before_knew_is_a_loss(bench, is_alive):
    old, new = bench.append(data(1)), bench.append(data(2))
    known = {1: (bench.appenders[1].volume.nonce, bench.appenders[1].end)}
    damage_header(bench, new)
    if not is_alive:
        bench.leave()
    bench.recovery().rebuild(b"these", known=known)
    assert bench.positions() == [old] and rows.unconfirmed(bench.index)
    assert rows.lost_ranges(bench.index, 1) == [(new.unit * ALIGNMENT, known[1][1])]


def test_what_an_index_knew_of_another_volume_of_the_same_number_is_no_loss(bench):
    bench.append(data(1))
    bench.leave()
    bench.recovery().rebuild(b"these", known={1: (b"anothers", 1 << 20)})
    assert not rows.lost_bytes(bench.index)


def test_a_process_that_knows_of_more_than_is_there_has_lost_records(bench):
    bench.append(data(1))
    new = bench.append(data(2))
    damage_header(bench, new)
    appender = bench.appenders[1]
    appender.published = appender.end
    recovery = bench.recovery()
    recovery.rebuild(b"these")
    assert not recovery.replay_own(appender)
    assert rows.lost_ranges(bench.index, 1) == [(new.unit * ALIGNMENT, appender.end)]
    assert bench.row().is_closed and rows.unconfirmed(bench.index)


def test_a_record_of_the_last_batch_that_is_damaged_and_not_torn_counts(bench):
    """Its readers find the damage and ask other replicas; without it they would get what it replaced."""
    old = bench.append(data(1))
    new = bench.append(data(2, of(old)))
    bench.damage_body(new)
    bench.leave()
    bench.rebuild()
    assert bench.positions() == [new] and bench.unwanted == []


def test_a_record_that_an_index_before_had_is_not_torn(bench):
    old = bench.append(data(1))
    new = bench.append(data(2, of(old)))
    known = {1: (bench.appenders[1].volume.nonce, bench.appenders[1].end)}
    bench.tear(new, data(2, of(old)))
    bench.leave()
    bench.recovery().rebuild(b"these", known=known)
    assert bench.positions() == [new]


def test_the_mark_of_a_loss_outlives_an_index_and_the_loss(bench):
    bench.append(data(1))
    begin(bench.process, DIRECTORY)
    bench.leave()
    bench.rebuild()
    assert rows.unconfirmed(bench.index) == marked(bench.process, DIRECTORY) != b""


def test_what_an_index_has_behind_the_end_of_a_file_is_lost_once(bench):
    """The file was cut off, or a copy was put back: made again, the index would show what was replaced."""
    old = bench.append(data(1))
    new = bench.append(data(2, of(old)))
    end = bench.appenders[1].end
    bench.leave()
    bench.rebuild()
    fd = bench.machine.disk.open(bench.volumes.path(1), os.O_RDWR)
    bench.machine.disk.truncate(fd, new.unit * ALIGNMENT)
    for _ in range(2):
        bench.replay()
    assert rows.lost_ranges(bench.index, 1) == [(new.unit * ALIGNMENT, end)]
    assert bench.row().is_closed and rows.unconfirmed(bench.index)
    assert [text.startswith("ERROR records of volume 1") for text in bench.notices].count(True) == 1
