"""A node is asked what it has, its better knowledge is learned, and it gets what it lacks."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from swift.account.replication import replica_of
from swift.account.rows import ContainerRow
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse
from swift.container.replication import ContainerReplica
from swift.container.rows import ObjectRow
from swift.db.syncpoints import get_sync, set_sync
from swift.dbsync.remote import NodeFailed
from swift.dbsync.session import RemoteUnmounted, ReplicationSession
from swift.dbsync.settings import ReplicatorSettings
from swift.runtime.report import Counters
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import make_node
from test.support.databases import make_account, make_container


def at(seconds):
    return Timestamp(seconds).internal


class There:
    """Stands for the node: what it is told, and what it answers."""

    def __init__(self, answer):
        self.node = make_node(1)
        #: To ``sync``; a dictionary is a database, a number a status, a list one for each question.
        self.answer = answer
        #: To messages about a whole database.
        self.whole_status = 204
        self.ranges = []
        self.refuses = set()
        self.said, self.times = [], {}
        self.brought = None

    def say(self, operation, *arguments, more_time_s=0.0):
        self.said.append((operation, *arguments))
        self.times[operation] = more_time_s
        if operation != "sync":
            if operation in self.refuses:
                raise NodeFailed("no")
            return BackendResponse(self.whole_status)
        answer = self.answer
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, int):
            return BackendResponse(answer)
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return BackendResponse(200, body=body)

    def tell(self, operation, *arguments, more_time_s=0.0):
        self.said.append((operation, *arguments))
        self.times[operation] = more_time_s
        if operation in self.refuses:
            raise NodeFailed("no")
        ranges = self.ranges if isinstance(self.ranges, bytes) else json.dumps(self.ranges).encode()
        return BackendResponse(200, body=ranges)

    def send_items(self, items, own_id):
        self.said.append(("merge_items", [row["name"] for row in json.loads(items)], own_id))
        if "merge_items" in self.refuses:
            raise NodeFailed("no")

    def bring(self, path, remote_name):
        self.brought = (path, os.path.getsize(path), remote_name)
        if "bring" in self.refuses:
            raise NodeFailed("no")
        return 100.0

    @property
    def words(self):
        return [operation for operation, *_ in self.said]


class Bench:
    def __init__(self, replica):
        self.replica = replica
        self.info = replica.broker.read(replica.info)
        self.counters = Counters(Telemetry(silent_log()), "test")
        self.there = There({**self.info, "id": "theirs", "hash": "other", "point": -1, "max_row": -1})

    def run(self, **settings):
        chosen = replace(ReplicatorSettings(), **settings)
        ReplicationSession(self.replica, self.there, chosen, self.counters, now=Timestamp(900)).run()

    @property
    def point(self):
        return self.replica.broker.read(lambda c: get_sync(c, "theirs", incoming=False))

    @property
    def left_behind(self):
        folder = f"{self.replica.broker.place.device_path}/tmp"
        return os.listdir(folder) if os.path.isdir(folder) else []


@pytest.fixture
def bench(tmp_path):
    """A database of five rows, beside a node that has none of them."""
    broker = make_account(tmp_path)
    broker.put_rows([ContainerRow(f"c{number}", at(200), "0", 1, 1) for number in range(5)])
    yield Bench(replica_of(broker))
    broker.close()


@pytest.fixture
def split(tmp_path):
    """A container, beside a node that has it without rows and shard ranges."""
    broker = make_container(tmp_path)
    bench = Bench(ContainerReplica(broker))
    bench.there.answer |= {"shard_max_row": -1, "point": bench.info["max_row"]}
    yield bench
    broker.close()


# --- what it has


def test_a_node_that_has_everything_is_told_nothing_more(bench):
    bench.there.answer["point"] = 5
    bench.run()
    assert bench.there.words == ["sync"]
    assert bench.counters.counts == {"no_changes": 1}


def test_what_we_know_that_a_node_has_counts_although_it_forgot(bench):
    bench.replica.broker.write(lambda c: set_sync(c, "theirs", 3, incoming=False))
    bench.run()
    assert bench.there.said[1] == ("merge_items", ["c3", "c4"], bench.info["id"])


def test_equal_rows_of_another_history_are_remembered_and_not_sent(bench):
    bench.there.answer |= {"hash": bench.info["hash"], "point": 4}
    bench.run()
    assert bench.there.words == ["sync"]
    assert (bench.counters.counts, bench.point) == ({"hashmatches": 1}, 4)


@pytest.mark.parametrize("status", [400, 409, 500, 503])
def test_a_refusal_is_a_failure(bench, status):
    bench.there.answer = status
    with pytest.raises(NodeFailed, match=str(status)):
        bench.run()
    assert bench.there.brought is None


def test_an_unmounted_device_is_told_apart(bench):
    bench.there.answer = 507
    with pytest.raises(RemoteUnmounted, match="127.0.0.1:6201/d1"):
        bench.run()


@pytest.mark.parametrize(
    "answer",
    [b"", b"\xff", b"[" * 100_000, b"[]", b"5", b"{}", b'{"max_row": 1}', {"id": "a/b"}, {"id": "\ud800"}]
    + [{"max_row": "many"}, {"point": 1 << 63}, {"put_timestamp": "never"}, {"created_at": None}],
)
def test_an_answer_that_makes_no_sense_is_a_failure_and_nothing_is_learned_from_it(bench, answer):
    before = bench.info
    bench.there.answer = {**bench.there.answer, **answer} if isinstance(answer, dict) else answer
    with pytest.raises(NodeFailed):
        bench.run()
    assert bench.there.words == ["sync"]
    assert bench.replica.broker.read(bench.replica.info) == before


def test_metadata_that_nobody_can_read_is_none_and_rows_go_on(bench):
    bench.there.answer["metadata"] = "[" * 100_000
    bench.run()
    assert bench.there.words == ["sync", "merge_items", "merge_syncs"]


def test_what_a_node_knows_better_is_learned_before_rows_are_sent(bench):
    theirs = {"put_timestamp": at(300), "metadata": json.dumps({"X-Account-Meta-A": ["b", at(300)]})}
    bench.there.answer |= theirs
    bench.there.refuses = {"merge_items"}
    with pytest.raises(NodeFailed):
        bench.run()
    info = bench.replica.broker.info()
    assert info.put_timestamp == at(300)
    assert info.metadata["X-Account-Meta-A"] == ("b", at(300))


# --- rows


def test_rows_go_in_batches_then_how_far_others_came_and_only_then_the_point_moves(bench):
    bench.replica.broker.write(lambda c: set_sync(c, "third", 7, incoming=True))
    bench.there.answer["max_row"] = 4
    bench.run(per_diff=2)
    assert [what for what in bench.there.said if what[0] == "merge_items"] == [
        ("merge_items", names, bench.info["id"]) for names in (["c0", "c1"], ["c2", "c3"], ["c4"])
    ]
    assert bench.there.said[-1] == ("merge_syncs", [{"remote_id": "third", "sync_point": 7}])
    assert (bench.counters.counts, bench.point) == ({"diffs": 1}, 5)


@pytest.mark.parametrize("refused", ["merge_items", "merge_syncs"])
def test_a_node_that_did_not_take_rows_gets_them_again(bench, refused):
    bench.there.refuses = {refused}
    with pytest.raises(NodeFailed):
        bench.run()
    assert bench.point == -1


def test_only_so_many_messages_go_in_a_pass_and_it_counts_as_a_failure(bench):
    bench.there.answer["max_row"] = 4
    with pytest.raises(NodeFailed, match="2 messages of rows were sent"):
        bench.run(per_diff=1, max_diffs=2)
    assert bench.there.words == ["sync", "merge_items", "merge_items"]
    assert bench.counters.counts == {"diffs": 1, "diff_caps": 1}


# --- whole databases


def test_a_node_without_the_database_gets_it_whole_and_no_copy_is_left_here(bench):
    bench.there.answer = 404
    bench.run()
    path, size, name = bench.there.brought
    assert path.startswith(f"{bench.replica.broker.place.device_path}/tmp/") and size > 4096
    assert name == bench.info["id"]
    file_name = os.path.basename(bench.replica.broker.newest.path)
    assert bench.there.said[1:] == [("complete_rsync", bench.info["id"], file_name)]
    assert bench.there.times["complete_rsync"] == 100.0
    assert bench.left_behind == []


@pytest.mark.parametrize("refused", ["bring", "complete_rsync"])
def test_a_database_that_did_not_arrive_is_a_failure_and_leaves_no_copy(bench, refused):
    bench.there.answer = 404
    bench.there.refuses = {refused}
    with pytest.raises(NodeFailed):
        bench.run()
    assert bench.left_behind == []


def test_a_node_that_gets_the_database_meanwhile_gets_the_rows(bench):
    bench.there.answer = [404, bench.there.answer]
    bench.there.whole_status = 404
    bench.run()
    assert bench.there.words == ["sync", "complete_rsync", "sync", "merge_items", "merge_syncs"]
    assert (bench.point, bench.left_behind) == (5, [])


@pytest.mark.parametrize("status", [404, 500, 507])
def test_a_node_that_never_takes_the_database_is_a_failure(bench, status):
    bench.there.answer = [404, 404]
    bench.there.whole_status = status
    with pytest.raises(NodeFailed):
        bench.run()


def test_a_node_that_is_much_behind_merges_the_whole_and_has_time_for_it(bench):
    bench.run(per_diff=1)
    assert bench.there.words == ["sync", "rsync_then_merge"]
    assert bench.there.times["rsync_then_merge"] == 100.0 + 5 / 2000
    assert bench.counters.counts == {"remote_merges": 1}
    assert bench.point == -1, "what it has then is asked for in the next pass"


def test_where_that_does_not_succeed_rows_do(bench):
    bench.there.refuses = {"rsync_then_merge"}
    bench.run(per_diff=1)
    assert bench.there.words.count("merge_items") == 5
    assert bench.counters.counts == {"remote_merges": 1, "diffs": 1}
    assert (bench.point, bench.left_behind) == (5, [])


# --- shard ranges


RANGE = ShardRange(".shards_a/c-1", at(50), "", "m", state=State.ACTIVE)


def test_ranges_are_exchanged_although_all_rows_are_there(split):
    split.replica.broker.merge_shard_ranges([RANGE])
    split.there.answer["shard_max_row"] = 4
    split.there.ranges = [replace(RANGE, name=".shards_a/c-2", lower="m", upper="").as_dict()]
    split.run()
    assert split.there.words == ["sync", "get_shard_ranges", "merge_shard_ranges"]
    assert [item["name"] for item in split.there.said[2][1]] == [".shards_a/c-1", ".shards_a/c-2"]


def test_a_node_without_ranges_is_not_asked_for_them_and_one_without_shards_not_told(split):
    split.run()
    assert split.there.words == ["sync"]
    del split.there.answer["shard_max_row"]
    split.replica.broker.merge_shard_ranges([RANGE])
    split.run()
    assert split.there.words == ["sync", "sync"]


@pytest.mark.parametrize(
    "ranges", [b"", b"{}", b"[5]", b'[{"name": "x"}]', b"[" * 100_000, b'[{"name":"a/\\ud800"}]']
)
def test_ranges_that_make_no_sense_are_a_failure_and_change_nothing(split, ranges):
    split.there.answer["shard_max_row"] = 4
    split.there.ranges = ranges
    with pytest.raises(NodeFailed):
        split.run()
    assert split.replica.broker.read(split.replica.ranges) == []


def test_while_a_container_is_being_split_its_rows_stay_here(split):
    """They are on their way into shards, which brings them to all replicas."""
    broker = split.replica.broker
    broker.put_rows([ObjectRow("o", at(60), 1, "t/p", "e")])
    own = ShardRange("a/c", at(50), state=State.SHARDING, epoch=at(50))
    broker.merge_shard_ranges([own, RANGE])
    split.run()
    assert split.there.words == ["sync", "merge_shard_ranges"]
    assert split.counters.counts == {"deferred": 1}
