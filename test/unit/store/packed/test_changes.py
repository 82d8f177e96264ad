"""swift/store/packed/changes.py: durable changes come into the index."""

from __future__ import annotations

import pytest

from swift.base.timestamp import Timestamp
from swift.store.packed import rows
from swift.store.packed.changes import Change, LiveBytes, Update, apply, gone
from swift.store.packed.entry import decode_entries
from swift.store.packed.record import Header, Kind, Position, Record, Reference
from swift.store.packed.rows import Spaces
from test.sim.packedworld import Machine, Process

HASH = bytes.fromhex("85dee760570f953becc718ec26cd501d")
NOW_NS = 5


class Bench:
    def __init__(self):
        machine = Machine(None)
        self.index = machine.open_index(Process(machine))
        self.spaces = Spaces()

    def apply(self, *changes, ends=None):
        with self.index.writing() as writing:
            return apply(writing, self.spaces, list(changes), ends or {}, NOW_NS)

    def entries(self, partition=8):
        key = self.spaces.find(self.index, 0, partition, HASH)
        return decode_entries(self.index.get(key) or b"") if key else []

    def live(self, volume=1):
        return rows.read_volume(self.index, volume).live_bytes

    def added(self, second, unit, kept=(), removed=(), partitions=(8,)):
        """A change that adds a record."""
        header = Header(Kind.DATA, 0, partitions[0], HASH, Timestamp(second))
        updates = [Update(each, list(kept), list(removed), adds=True) for each in partitions]
        change = Change(Record(header, b"", b"body"), updates, Position(1, unit))
        assert self.apply(change, ends={1: unit * 64 + change.record.total_bytes})
        return change.entry()


@pytest.fixture
def bench():
    return Bench()


def test_a_change_adds_an_entry_and_notes_end_and_live_bytes(bench):
    entry = bench.added(1, 1)
    assert bench.entries() == [entry]
    assert rows.read_volume(bench.index, 1) == (1 * 64 + 128, entry.read_bytes, False)
    assert rows.read_partition(bench.index, 0, 8).changed_ns == NOW_NS


def test_what_a_change_removes_is_no_longer_live(bench):
    first = bench.added(1, 1)
    second = bench.added(2, 5, removed=[first])
    assert bench.entries() == [second]
    assert bench.live() == second.read_bytes


def test_an_object_without_entries_leaves_no_row(bench):
    entry = bench.added(1, 1)
    header = Header(Kind.GONE, 0, 8, HASH, Timestamp(0))
    assert bench.apply(Change(gone(header, [entry.position]), [Update(8, [], [entry])]))
    assert bench.entries() == [] and bench.live() == 0
    assert bench.index.get(bench.spaces.find(bench.index, 0, 8, HASH)) is None


def test_a_change_of_two_partitions_is_seen_in_both(bench):
    entry = bench.added(1, 1, partitions=(8, 16))
    assert bench.entries(8) == bench.entries(16) == [entry]


def test_a_link_counts_the_record_once_more(bench):
    entry = bench.added(1, 1)
    header = Header(Kind.LINK, 0, 16, HASH, Timestamp(1), references=(Reference(16, entry.position),))
    bench.apply(Change(Record(header), [Update(16, [entry])]))
    assert bench.entries(16) == [entry]
    assert bench.live() == 2 * entry.read_bytes


def test_an_unwanted_record_closes_its_volume(bench):
    header = Header(Kind.DATA, 0, 8, HASH, Timestamp(1))
    record = gone(header, [Position(3, 9)], Kind.UNWANTED)
    assert bench.apply(Change(record, []))
    assert rows.read_volume(bench.index, 3) == (10 * 64, 0, True)
    assert rows.unwanted_units(bench.index, 3) == {9}


def test_an_unwanted_record_that_was_believed_is_removed_and_told(bench):
    entry = bench.added(1, 1)
    header = Header(Kind.DATA, 0, 8, HASH, Timestamp(1))
    assert not bench.apply(Change(gone(header, [entry.position], Kind.UNWANTED), []))
    assert bench.entries() == [] and bench.live() == 0


def test_an_unwanted_record_leaves_others_of_the_object_alone(bench):
    entry = bench.added(1, 1)
    header = Header(Kind.DATA, 0, 8, HASH, Timestamp(1))
    assert bench.apply(Change(gone(header, [Position(1, 50)], Kind.UNWANTED), []))
    assert bench.entries() == [entry]


def test_an_end_never_goes_back_and_a_volume_stays_closed(bench):
    with bench.index.writing() as writing:
        live_bytes = LiveBytes()
        live_bytes.close(1)
        live_bytes.write(writing, {1: 640})
        LiveBytes().write(writing, {1: 64})
    assert rows.read_volume(bench.index, 1) == (640, 0, True)


def test_live_bytes_are_never_below_zero(bench):
    entry = bench.added(1, 1)
    with bench.index.writing() as writing:
        live_bytes = LiveBytes()
        for _ in range(2):
            live_bytes.remove(entry)
        live_bytes.write(writing, {})
    assert bench.live() == 0


def test_gone_in_both_partitions_of_an_object(bench):
    header = Header(Kind.DATA, 0, 8, HASH, Timestamp(1), also_partition=16, fragment=2, durable=True)
    record = gone(header, [Position(1, 1)])
    assert [each.partition for each in record.header.references] == [8, 16]
    assert (record.header.kind, record.header.durable) == (Kind.GONE, False)
