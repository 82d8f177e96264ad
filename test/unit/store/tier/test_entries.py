"""An entry is kept only when nothing can have changed since the disk was read, whoever is killed when."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from swift.platform import sharedstate as shared
from swift.platform.sharedstate import SharedState
from swift.store.lmdbindex import IndexFailed, LmdbIndex
from swift.store.tier.entries import BUSY, ENTRY, Entries, device_of, partition_of
from swift.store.tier.entry import FileFacts, Snapshot, Stamp
from swift.store.tier.policy import WriteBudget
from test.support.tiers import tier_settings

PATH = b"sda/objects/7/abc/" + b"d" * 29 + b"abc"
OTHER = b"sda/objects/7/fff/" + b"e" * 29 + b"fff"


class Broken:
    """An index whose changes fail as long as ``fails``."""

    def __init__(self, index):
        self._index = index
        self.fails = False

    def __getattr__(self, name):
        return getattr(self._index, name)

    @contextmanager
    def writing(self):
        if self.fails:
            raise IndexFailed("no space")
        with self._index.writing() as txn:
            yield txn


class Node:
    """Processes of a node, which share the index and the memory."""

    def __init__(self, root):
        self.shared_state = SharedState(bytearray(shared.BYTES))
        self.shared_state.renew()
        self.index = Broken(LmdbIndex(str(root / "ssd"), "this boot", str(root / "memory")))
        self.shared_state.index = self.index.identity
        self.settings = tier_settings(root)
        self.dead = set()
        self.now_ns = 1_700_000_000_000_000_000

    def process(self, number):
        token = bytes([number]) * shared.TOKEN_BYTES
        made = Entries(
            self.index, self.shared_state, token, lambda of: of not in self.dead, now_ns=lambda: self.now_ns
        )
        made.rules = self.settings.rules()
        made.wear = WriteBudget(0)
        return made

    def kill(self, number):
        self.dead.add(bytes([number]) * shared.TOKEN_BYTES)

    def snapshot(self, path=PATH, made_ns=1):
        return Snapshot(
            self.shared_state.epoch(device_of(path)),
            made_ns,
            Stamp(5, 6),
            (FileFacts("1.00000.data", b"{}", 3, 9),),
        )


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def keep(entries, node, path=PATH, made_ns=1):
    return entries.keep(path, entries.start(path), node.snapshot(path, made_ns))


def test_paths_name_their_partition_and_device():
    assert (partition_of(PATH), device_of(PATH)) == (b"sda/objects/7", "sda")


def test_what_was_read_is_kept_and_found_by_all_processes(node):
    one, two = node.process(1), node.process(2)
    assert keep(one, node)
    assert two.find(PATH) == node.snapshot()
    assert two.find(OTHER) is None


def test_a_change_drops_what_was_known_and_of_its_directory_only(node):
    one, two = node.process(1), node.process(2)
    keep(one, node)
    keep(one, node, OTHER, 2)
    note = two.begin(PATH)
    assert note.was_known and one.find(PATH) is None and one.find(OTHER) is not None
    assert two.end(note)


def test_what_was_read_before_a_change_is_not_kept(node):
    one, two = node.process(1), node.process(2)
    start = one.start(PATH)
    two.end(two.begin(PATH))
    assert not one.keep(PATH, start, node.snapshot())


def test_nothing_is_kept_while_somebody_is_at_it(node):
    one, two = node.process(1), node.process(2)
    note = two.begin(PATH)
    assert not keep(one, node)
    assert keep(one, node, OTHER), "the rest of the partition is free"
    two.end(note)
    assert keep(one, node)


def test_the_note_of_a_process_that_was_killed_is_taken_away_by_who_finds_it(node):
    one, two = node.process(1), node.process(2)
    two.begin(PATH)
    node.kill(2)
    assert not keep(one, node), "not this time"
    assert node.index.get(BUSY + PATH) is None
    assert keep(one, node)


def test_of_two_writers_the_first_one_to_end_does_not_make_it_free(node):
    one, two, reader = node.process(1), node.process(2), node.process(3)
    first, second = one.begin(PATH), two.begin(PATH)
    one.end(first)
    assert not keep(reader, node)
    two.end(second)
    assert keep(reader, node)


def test_a_writer_leaves_what_it_read_afresh_unless_another_one_is_at_it(node):
    one, two = node.process(1), node.process(2)
    assert one.end(one.begin(PATH), node.snapshot)
    assert two.find(PATH) == node.snapshot()
    first, second = one.begin(PATH), two.begin(PATH)
    one.end(first, node.snapshot)
    assert two.find(PATH) is None
    two.end(second)


def test_a_change_of_a_suffix_drops_all_below_it(node):
    one = node.process(1)
    keep(one, node)
    keep(one, node, OTHER, 2)
    one.forget(b"sda/objects/7/abc")
    assert one.find(PATH) is None and one.find(OTHER) is not None
    one.forget(b"sda/objects/7")
    assert one.find(OTHER) is None


@pytest.mark.parametrize("when", ["begin", "end"])
def test_a_change_that_cannot_be_noted_makes_the_device_unproven_and_raises_nothing(node, when):
    one, two = node.process(1), node.process(2)
    keep(one, node)
    epoch = node.shared_state.epoch("sda")
    node.index.fails = when == "begin"
    note = two.begin(PATH)
    node.index.fails = True
    assert not two.end(note)
    node.index.fails = False
    assert node.shared_state.epoch("sda") != epoch and "no space" in two.error
    found = one.find(PATH)
    assert found is None or found.epoch != node.shared_state.epoch("sda")
    assert not keep(one, node), "for a while"


def test_a_process_with_another_index_than_the_others_keeps_nothing(node):
    one = node.process(1)
    node.shared_state.index = node.index.identity + 1
    assert not one.is_current and not keep(one, node)


def test_a_device_is_flushed_alone(node):
    one = node.process(1)
    keep(one, node)
    elsewhere = PATH.replace(b"sda", b"sdb")
    keep(one, node, elsewhere, 2)
    assert one.flush("sda") == 1
    assert one.find(PATH) is None and one.find(elsewhere) is not None
    assert list(one.paths()) == [elsewhere]


def test_no_more_is_written_in_a_day_than_is_allowed(node):
    one = node.process(1)
    one.wear = WriteBudget(1)
    assert not keep(one, node)
    one.wear = WriteBudget(1 << 30)
    assert keep(one, node)
    written = one.written_today()
    assert written > 0
    node.now_ns += 86_400 * 10**9
    assert one.written_today() == 0


def test_damage_in_the_index_is_nothing_known(node):
    one = node.process(1)
    with node.index.writing() as txn:
        txn.put(ENTRY + PATH, b"\xff" * 40)
        txn.put(b"t", b"\xff" * 44)
    assert one.find(PATH) is None
    assert one.totals().metadata < 1 << 62
