"""Shards on the device of a sharder: made once with what they must know, and counted where they arrived."""

from __future__ import annotations

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.cluster.transport import TransportError
from swift.container.replicator import KIND
from swift.container.rows import ObjectRow
from swift.container.sharding.delivery import ShardDelivery
from swift.db.broker import Engine
from swift.dbsync.daemon import DatabaseReplicator
from swift.dbsync.settings import ReplicatorSettings
from test.support.daemons import DaemonFixture, DeviceRing
from test.support.databases import Replicas

SHARD = ShardRange(".shards_a/c ö-1", Timestamp(50).normal, "b", "d", state=State.CREATED)
AWAY = TransportError("away")


class Bench:
    """Shards belong on the first three of five devices, of which this node has ``own``."""

    def __init__(self, root, own=0):
        self.rig = DaemonFixture(root)
        self.nodes = Replicas()
        ring = DeviceRing(own)
        context = ring.context(self.rig, transport=self.nodes)
        task = DatabaseReplicator(context, ring, KIND, ReplicatorSettings())
        self.delivery = ShardDelivery(task.replication, "sda", self.rig.pass_context(), Engine())

    def open(self, item=SHARD, policy_index=1, now=900):
        device = str(self.rig.root / "sda")
        return self.delivery.open_shard(item, device, "a/c ö", policy_index, Timestamp(now))


@pytest.fixture
def make(tmp_path):
    return lambda own=0: Bench(tmp_path, own)


def test_a_new_shard_knows_its_root_that_it_is_one_and_when_it_was_decided(make):
    bench = make()
    with_name = bench.open()
    info = with_name.info()
    assert (info.account, info.container, info.storage_policy_index) == (".shards_a", "c ö-1", 1)
    assert (info.put_timestamp, info.created_at) == (Timestamp(50).internal, Timestamp(900).internal)
    assert {name: value for name, (value, _time) in info.metadata.items()} == {
        "X-Container-Sysmeta-Shard-Quoted-Root": "a/c%20%C3%B6",
        "X-Container-Sysmeta-Sharding": "True",
    }
    assert not with_name.read(with_name.is_root)
    assert with_name.place.partition == "7"
    with_name.close()


def test_a_shard_that_is_there_is_taken_as_it_is(make):
    bench = make()
    first = bench.open()
    first.merge_rows([ObjectRow("c", Timestamp(6).internal, 3, "t/p", "e", 0, 1)])
    first.update_metadata({"X-Container-Sysmeta-Sharding": ("", Timestamp(60).internal)})
    before = first.info()
    first.close()
    second = bench.open(policy_index=0, now=901)
    assert second.info() == before
    second.close()


@pytest.mark.parametrize(
    ("own", "says", "copies"),
    [
        (0, {}, 3),
        (0, {1: AWAY}, 2),
        (0, {1: AWAY, 2: 500}, 1),
        (4, {}, 3),
        (4, {0: AWAY}, 2),
        (4, {0: AWAY, 1: AWAY, 2: AWAY}, 0),
    ],
)
def test_the_copy_here_counts_where_it_belongs_and_each_that_arrived(make, own, says, copies):
    bench = make(own)
    place = bench.open().place
    bench.nodes.says = says
    assert bench.delivery.deliver(place) == copies


def test_a_handoff_that_stands_in_counts_as_well(make):
    bench = make()
    bench.nodes.says = {1: 507}
    assert bench.delivery.deliver(bench.open().place) == 3


def test_what_is_not_there_has_no_copies_whatever_was_brought_before(make):
    bench = make()
    place = bench.open().place
    assert bench.delivery.deliver(place) == 3
    assert bench.delivery.deliver(place._replace(name_hash="f" * 32)) == 0
