"""After a visit recon lists what is split or due for it, and warnings of holes come now and then."""

from __future__ import annotations

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.rows import ObjectRow
from swift.container.sharding import overview
from swift.container.sharding.observer import Observer
from swift.container.sharding.overview import Overview
from swift.container.sharding.settings import ContainerSharderSettings
from swift.runtime.report import Counters
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import LogLines

EPOCH = Timestamp(1000)


class Bench:
    def __init__(self, **options):
        self.overview = Overview()
        self.warnings = []
        self.counters = Counters(Telemetry(LogLines()), "container-sharder")
        settings = ContainerSharderSettings(**options)
        self.observer = Observer(self.overview, settings, self.counters, self.warnings.append)

    def look(self, broker, now_s=1010):
        self.observer.look(broker, 0, Timestamp(now_s), 0.5)

    def listed(self, name):
        return self.overview.of(name)


@pytest.fixture
def bench():
    return Bench(shard_container_threshold=3)


def rows(count):
    return [ObjectRow(f"o{number}", Timestamp(2).internal, 1, "t", "e") for number in range(count)]


def shard(number, lower, upper, state=State.ACTIVE):
    return ShardRange(f".shards_a/c-{number}", EPOCH.internal, lower, upper, 5, state=state)


def own(state, at=EPOCH):
    return ShardRange("a/c", EPOCH.internal, state=state, epoch=EPOCH.internal, state_timestamp=at.internal)


def sharded(broker, *shards, state=State.SHARDED):
    """Give the container shards and, as the sharder does, a file of its epoch alone."""
    broker.merge_shard_ranges([own(state), *shards])
    broker.merge_pending()
    with open(broker.place.file(), "rb") as whole, open(broker.place.file(EPOCH.internal), "wb") as new:
        new.write(whole.read())
    return broker


def test_a_large_container_is_a_candidate_and_a_small_one_is_not(bench, broker):
    broker.put_rows(rows(2))
    bench.look(broker)
    assert bench.listed(overview.SHARDING) == []
    broker.put_rows(rows(3))
    bench.look(broker)
    (found,) = bench.listed(overview.SHARDING)
    assert (found["account"], found["container"], found["object_count"]) == ("a", "c", 3)
    assert found["file_size"] > 0 and found["root"] == "a/c"


def test_one_that_is_being_split_is_shown_with_the_states_of_its_shards(bench, broker):
    sharded(broker, shard(1, "", "m", State.CLEAVED), shard(2, "m", "", State.FOUND), state=State.SHARDING)
    bench.look(broker)
    (found,) = bench.listed(overview.PROGRESS)
    assert (found["db_state"], found["cleaved"], found["found"], found["active"]) == ("sharding", 1, 1, 0)
    assert bench.listed(overview.SHARDING) == []


def test_missing_names_are_warned_of_once_within_the_interval(bench, broker):
    sharded(broker, shard(1, "", "d"), shard(2, "m", "t"), state=State.SHARDING)
    for now_s in (1010, 1020):
        bench.look(broker, now_s)
    assert len(bench.warnings) == 1 and "missing range(s): d-m" in bench.warnings[0]
    assert bench.counters.counts["audit_root_failure"] == 2
    bench.look(broker, 1010 + bench.observer.settings.periodic_warnings_interval)
    assert len(bench.warnings) == 2


def test_a_split_that_lasts_too_long_is_warned_of_with_its_counts(broker):
    bench = Bench(container_sharding_timeout=60)
    sharded(broker, shard(1, "", "", State.CREATED), state=State.SHARDING)
    bench.look(broker, 1059)
    assert bench.warnings == []
    bench.look(broker, 1061)
    assert len(bench.warnings) == 1
    assert "is being split for 61 s" in bench.warnings[0] and "1 created" in bench.warnings[0]


def test_a_container_that_is_well_again_is_no_longer_shown(bench, broker):
    broker.put_rows(rows(3))
    bench.look(broker)
    assert bench.overview.shown
    broker.put_rows([row._replace(deleted=1, created_at=Timestamp(9).internal) for row in rows(3)])
    bench.look(broker)
    assert bench.overview.shown == {}
