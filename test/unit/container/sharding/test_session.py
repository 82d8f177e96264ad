"""What a sharder does with one container in a visit; roots, other nodes and replication are stood for."""

from __future__ import annotations

import json

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.objecttable import merge_rows
from swift.container.rows import ObjectRow, tombstone
from swift.container.sharding.scan import in_state
from swift.container.sharding.session import ShardingSession
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.shardtable import ShardQuery
from swift.db.broker import Engine
from swift.db.connection import connect
from swift.db.files import DatabasePath
from swift.runtime.report import Counters
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.databases import make_container

#: Containers of 6 objects are split into shards of 3.
SIZES = {"shard_container_threshold": 6, "rows_per_shard": 3, "minimum_shard_size": 1, "shrink_threshold": 1}
NAMES = ["a", "b", "c", "d", "e", "f"]
EVERY = ShardQuery(include_deleted=True, include_own=True)


def at(seconds):
    return Timestamp(seconds).normal


def rows(*names):
    return [ObjectRow(name, Timestamp(6).internal, 3, "t/p", "e") for name in names]


def shard(number, lower="", upper="", state=State.ACTIVE, made=50, **more):
    return ShardRange(f".shards_a/c-{number}", at(made), lower, upper, state=state, **more)


class Roots:
    """Stands for roots and shards on other nodes; what it ``refuses`` too few of them hear."""

    def __init__(self):
        self.ranges = []
        self.refuses = set()
        self.told = []
        self.rows = []

    def _tell(self, what, *words):
        self.told.append((what, *words))
        return what not in self.refuses

    def auditing_ranges(self, root, own):
        return self.ranges

    def updating_ranges(self, root, first, last):
        return self.ranges

    def create_shard(self, made, root, policy_index):
        return self._tell("create", made.name)

    def tell_shard(self, to, ranges, root):
        return self._tell("shard", to.name, [item.state for item in ranges])

    def tell_replicas(self, name, ranges):
        return self._tell("replicas", len(ranges))

    def tell_root(self, root, ranges, teller):
        return self._tell("root", root, [(item.name, item.object_count, item.deleted) for item in ranges])

    def merge_rows(self, root, some, ranges, now):
        self._tell("rows", root, [(item.name, item.state) for item in ranges])
        self.rows += [row.name for row in some]
        return 0 if "rows" in self.refuses else 3


class Delivery:
    """Stands for replication; ``copies`` are how many nodes have a shard after it was brought home."""

    def __init__(self, root):
        self._root = root
        self._numbers = {}
        self.copies = 3
        self.brought = []

    def open_shard(self, item, device_path, root, policy_index, now):
        number = self._numbers.setdefault(item.name, len(self._numbers) + 1)
        account, _, container = item.name.partition("/")
        place = DatabasePath(str(self._root), "containers", "9", f"{number:032x}")
        broker = ContainerBroker(place, Engine(), account, container)
        if not broker.refresh():
            broker.create(Timestamp(item.timestamp), policy_index, created_at=now)
        return broker

    def deliver(self, place):
        self.brought.append(place.name_hash)
        return self.copies

    def names_in(self, item):
        broker = self.open_shard(item, "", "", 0, Timestamp(1))
        try:
            return broker.read(
                lambda c: [found[0] for found in c.execute("SELECT name FROM object ORDER BY name")]
            )
        finally:
            broker.close()


class Bench:
    def __init__(self, root, broker):
        (root / "others").mkdir()
        self.broker = broker
        self.roots, self.delivery = Roots(), Delivery(root / "others")
        self.counts = {}
        self.now = 1000

    def visit(self, *, is_leader=True, **options):
        """One more visit, a second later; what was counted in it."""
        self.now += 1
        self.broker.refresh()
        counters = Counters(Telemetry(silent_log()), "test")
        settings = ContainerSharderSettings(**{"auto_shard": True, **SIZES, **options})
        visit = ShardingSession(
            self.broker,
            settings,
            self.roots,
            self.delivery,
            counters,
            now=Timestamp(self.now),
            is_leader=is_leader,
            replica_count=3,
        )
        visit.run()
        self.last = visit
        counters.counts.pop("visited_attempted")
        return counters.counts

    def mark_unchanged(self):
        for _ in range(8):
            if not self.visit():
                return
        raise AssertionError("it does not come to rest")

    @property
    def own(self):
        name = self.broker.own_name
        return next((item for item in self.broker.shard_ranges(EVERY) if item.name == name), None)

    @property
    def shards(self):
        return self.broker.shard_ranges(ShardQuery())

    @property
    def names(self):
        return [
            found[0]
            for found in self.broker.read(lambda c: c.execute("SELECT name FROM object ORDER BY name"))
        ]


@pytest.fixture
def bench(tmp_path):
    """A root of six objects."""
    made = make_container(tmp_path)
    made.merge_rows(rows(*NAMES))
    yield Bench(tmp_path, made)
    made.close()


@pytest.fixture
def piece(tmp_path):
    """The shard of names from ``b`` to ``d``."""
    made = make_container(tmp_path, ".shards_a", "c-1")
    stamp = Timestamp(50).internal
    made.update_metadata({"X-Container-Sysmeta-Shard-Quoted-Root": ("a/c", stamp)})
    made.merge_shard_ranges([shard(1, "b", "d")])
    yield Bench(tmp_path, made)
    made.close()


# --- splitting a root


def test_a_small_container_and_one_that_is_not_the_leaders_are_left_as_they_are(bench):
    assert bench.visit(shard_container_threshold=7) == {}
    assert bench.last.is_at_rest
    assert bench.visit(is_leader=False) == bench.visit(auto_shard=False) == {}
    assert len(bench.broker.databases) == 1 and bench.own is None


def test_a_large_one_is_split_until_every_row_is_in_a_shard_and_the_old_file_is_gone(bench):
    bench.mark_unchanged()
    assert bench.own.state == State.SHARDED and len(bench.broker.databases) == 1
    assert bench.names == []
    assert [(item.lower, item.upper, item.state) for item in bench.shards] == [
        ("", "c", State.ACTIVE),
        ("c", "", State.ACTIVE),
    ]
    assert [bench.delivery.names_in(item) for item in bench.shards] == [NAMES[:3], NAMES[3:]]


def test_the_bytes_of_a_container_that_was_just_split_are_those_of_its_rows(bench):
    bench.mark_unchanged()
    assert [(item.object_count, item.bytes_used) for item in bench.shards] == [(3, 9), (3, 9)]
    info = bench.broker.info()
    assert (info.object_count, info.bytes_used) == (6, 18)


def test_a_replica_that_is_not_the_leader_creates_and_fills_the_shards_that_were_found(bench):
    """While the leader is away; an operator's tool has found them."""
    began = in_state(ShardRange("a/c", at(5), state=State.ACTIVE), State.SHARDING, Timestamp(900), epoch=True)
    bench.broker.merge_shard_ranges(
        [began, shard(1, "", "c", State.FOUND, 900), shard(2, "c", "", State.FOUND, 900)]
    )
    told = bench.visit(is_leader=False)
    assert (told["created_success"], told["cleaved_success"], told["completed"]) == (2, 2, 1)
    assert [bench.delivery.names_in(item) for item in bench.shards] == [NAMES[:3], NAMES[3:]]


def test_shards_are_filled_some_in_a_visit_and_the_next_goes_on(bench):
    told = bench.visit(cleave_batch_size=1)
    assert (told["created_success"], told["cleaved_success"]) == (2, 1)
    assert [item.state for item in bench.shards] == [State.CLEAVED, State.CREATED]
    assert bench.visit(cleave_batch_size=1)["completed"] == 1


def test_a_shard_that_too_few_nodes_have_is_filled_again(bench):
    bench.delivery.copies = 1
    told = bench.visit()
    assert told["cleaved_failure"] == 1 and "cleaved_success" not in told
    assert {item.state for item in bench.shards} == {State.CREATED}
    assert len(bench.broker.databases) == 2, "the old file stays"
    bench.delivery.copies = 2
    assert bench.visit()["cleaved_success"] == 2


@pytest.mark.parametrize("refused", ["replicas", "create"])
def test_shards_that_too_few_nodes_made_get_no_rows(bench, refused):
    bench.roots.refuses = {refused}
    told = bench.visit()
    assert told["created_failure"] == 1 and "cleaved_success" not in told
    assert {item.state for item in bench.shards} == {State.FOUND}
    bench.roots.refuses.clear()
    bench.mark_unchanged()
    assert bench.own.state == State.SHARDED


def test_rows_that_come_to_the_old_file_meanwhile_are_brought_along(bench):
    path = bench.broker.newest.path
    bench.visit(cleave_batch_size=1)
    # By a server that has not seen the second file.
    connection = connect(path)
    merge_rows(connection, rows("bb"))
    connection.commit()
    connection.close()
    bench.mark_unchanged()
    assert bench.delivery.names_in(bench.shards[0]) == ["a", "b", "bb", "c"]


def test_a_progress_that_is_nonsense_begins_the_filling_anew(bench):
    bench.visit(cleave_batch_size=1)
    (name,) = [key for key in bench.broker.info().metadata if "Shard-Context" in key]
    for number, text in enumerate(
        ("[" * 100_000, '{"cursor": 5, "cleave_to_row": "x"}', json.dumps({"cleaving_done": True}))
    ):
        bench.broker.update_metadata({name: (text, Timestamp(2000 + number).internal)})
        bench.now = 3000 + number
        bench.visit(cleave_batch_size=1)
    bench.mark_unchanged()
    assert [bench.delivery.names_in(item) for item in bench.shards] == [NAMES[:3], NAMES[3:]]


# --- a root that was split


def test_rows_that_reach_a_split_root_late_go_to_their_shards_and_deletions_as_well(bench):
    bench.mark_unchanged()
    bench.broker.merge_rows([*rows("aa", "z"), tombstone("b", Timestamp(900), 0)])
    assert bench.visit()["misplaced_success"] == 2
    assert bench.names == []
    assert bench.delivery.names_in(bench.shards[0]) == ["a", "aa", "b", "c"]


def test_rows_stay_until_enough_nodes_have_them(bench):
    bench.mark_unchanged()
    bench.broker.merge_rows(rows("aa"))
    bench.delivery.copies = 1
    assert bench.visit()["misplaced_failure"] == 1
    assert bench.names == ["aa"]
    assert bench.visit(existing_shard_replication_quorum=1)["misplaced_success"] == 1
    assert bench.names == []


def test_where_names_belong_to_no_shard_nothing_is_moved(bench):
    bench.mark_unchanged()
    first, second = bench.shards
    gap = ShardRange(first.name, at(5000), "", "b", state=State.ACTIVE)
    bench.broker.merge_shard_ranges([gap])
    bench.broker.merge_rows(rows("bb"))
    assert bench.visit() == {}
    assert bench.names == ["bb"]


def test_the_leader_has_a_large_shard_split_and_small_ones_merged(bench):
    bench.mark_unchanged()
    first, second = bench.shards
    large = ShardRange(**{**_facts(first), "object_count": 6, "meta_timestamp": at(5000)})
    bench.broker.merge_shard_ranges([large])
    bench.now = 6000
    assert not bench.visit(is_leader=False)
    bench.visit()
    assert bench.shards[0].state == State.SHARDING and bench.shards[0].epoch
    assert ("shard", first.name, [State.SHARDING]) in bench.roots.told


def test_what_of_a_collapse_was_not_begun_is_begun_again(bench):
    """Its shards were not all told, and those that were have gone into the root."""
    bench.mark_unchanged()
    first, *others = bench.shards
    bench.now = 6000
    own = ShardRange(**{**_facts(bench.own), "state": State.ACTIVE, "state_timestamp": at(5000)})
    gone = {"state": State.SHRUNK, "state_timestamp": at(5000), "timestamp": at(5000), "deleted": 1}
    bench.broker.merge_shard_ranges([own, ShardRange(**{**_facts(first), **gone})])
    bench.roots.refuses = {"shard"}
    bench.visit()
    assert {item.state for item in bench.shards} == {State.ACTIVE}
    bench.roots.refuses = set()
    assert bench.visit()["shrinking_found"] == 1
    assert [(item.name, item.state) for item in bench.shards] == [
        (item.name, State.SHRINKING) for item in others
    ]
    told = [words for words in bench.roots.told if words[0] == "shard"]
    assert ("shard", others[-1].name, [State.SHRINKING, State.ACTIVE]) in told
    assert "shrinking_found" not in bench.visit()


def _facts(item):
    facts = item.as_dict()
    facts.pop("last_modified")
    return {**facts, "state": item.state, "deleted": item.deleted, "reported": item.reported}


# --- a shard


def test_a_shard_tells_its_root_what_it_has_once(piece):
    piece.broker.merge_rows(rows("c", "d"))
    assert piece.visit() == {"reported": 1}
    assert piece.roots.told == [("root", "a/c", [(".shards_a/c-1", 2, False)])]
    assert piece.visit() == {}
    assert piece.last.is_at_rest
    piece.broker.merge_rows(rows("cc"))
    piece.roots.refuses = {"root"}
    assert piece.visit() == piece.visit() == {"report_failure": 1}


def test_rows_that_are_not_a_shards_go_to_those_whose_they_are(piece):
    piece.roots.ranges = [shard(2, "", "b"), shard(3, "d", "")]
    piece.broker.merge_rows(rows("a", "b", "c", "e"))
    told = piece.visit()
    assert told["misplaced_success"] == 2
    assert piece.names == ["c"]
    assert [piece.delivery.names_in(item) for item in piece.roots.ranges] == [["a", "b"], ["e"]]


def test_rows_that_are_nobodys_stay(piece):
    piece.broker.merge_rows(rows("a", "c"))
    piece.visit()
    assert piece.names == ["a", "c"]


def test_rows_that_are_the_roots_again_go_to_its_nodes_and_no_root_is_made_here(piece):
    """It may have been deleted meanwhile."""
    piece.roots.ranges = [ShardRange("a/c", at(60), state=State.ACTIVE)]
    piece.broker.merge_rows(rows("a"))
    piece.roots.refuses = {"rows"}
    assert piece.visit()["misplaced_failure"] == 1
    assert piece.names == ["a"]
    piece.roots.refuses = set()
    assert piece.visit()["misplaced_success"] == 1
    assert (piece.names, piece.roots.rows[-1]) == ([], "a")
    assert ("rows", "a/c", [(".shards_a/c-1", State.ACTIVE)]) in piece.roots.told


def test_a_shard_shrinks_into_the_one_that_its_root_names_and_ends(piece):
    piece.broker.merge_rows(rows("c", "d"))
    piece.roots.ranges = [
        shard(1, "b", "d", State.SHRINKING, state_timestamp=at(70), epoch=at(70)),
        shard(2, "b", "", made=70),
    ]
    piece.mark_unchanged()
    assert piece.delivery.names_in(shard(2)) == ["c", "d"]
    assert (piece.own.state, piece.own.deleted, len(piece.broker.databases)) == (State.SHRUNK, True, 1)
    ended = [words for words in piece.roots.told if words[0] == "root"][-1]
    assert (".shards_a/c-1", 0, True) in ended[2], "the root hears of the end"


def test_what_the_root_knew_earlier_changes_nothing(piece):
    piece.roots.ranges = [shard(1, "b", "d", State.SHRINKING, state_timestamp=at(40), epoch=at(40))]
    piece.visit()
    assert piece.own.state == State.ACTIVE


def test_a_shard_that_ended_long_ago_is_deleted_when_it_is_empty(piece):
    gone = shard(1, "b", "d", State.SHRUNK, made=60, deleted=True)
    piece.broker.merge_shard_ranges([gone])
    piece.visit(reclaim_age=1e6)
    assert not piece.broker.info().is_deleted
    piece.visit(reclaim_age=10)
    assert piece.broker.info().is_deleted
