"""What a sharder does in a pass over a device: which containers it visits, and what recon hears."""

from __future__ import annotations

import os

import pytest

from swift.base.errors import ConfigError
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.sharding.task import ContainerSharder
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.gateway.internal_client import InternalClient
from swift.http.response import Response
from test.support.daemons import DaemonFixture, DeviceRing, LogLines
from test.support.databases import Replicas

#: Containers of four objects are large; nothing else is small or large.
SIZES = {"shard_container_threshold": 4, "rows_per_shard": 2, "minimum_shard_size": 1, "shrink_threshold": 1}


class Bench:
    def __init__(self, root, own=0, **options):
        self.log = LogLines()
        self.rig = DaemonFixture(root, log=self.log)
        self.root_answer = Response(404)
        self.asked = []
        ring = DeviceRing(own)
        self.nodes = Replicas()
        context = ring.context(self.rig, transport=self.nodes)
        settings = ContainerSharderSettings(
            **{"auto_shard": True, "databases_per_second": 0.0, **SIZES, **options}
        )
        client = InternalClient(self._handle, "test", tries=1)
        self.task = ContainerSharder(context, ring, settings, client)

    def _handle(self, request):
        self.asked.append(request.raw_path)
        return self.root_answer

    def container(self, name, count=0, account="a", **metadata):
        """A container of some objects; its broker is closed."""
        place = DatabasePath(
            str(self.rig.root / "sda"), "containers", "7", self.rig.context.hasher.hexdigest(account, name)
        )
        broker = ContainerBroker(place, Engine(), account, name)
        broker.create(Timestamp(5), 0, created_at=Timestamp(5))
        stamp = Timestamp(6).internal
        if count:
            broker.merge_rows([ObjectRow(f"o{n}", stamp, 3, "t/p", "e") for n in range(count)])
        broker.update_metadata({key.replace("_", "-"): (value, stamp) for key, value in metadata.items()})
        broker.close()
        return place

    def run_once(self):
        assert self.rig.runner(self.task, server_type="container").run_once()
        return self.rig.recon("container").read()["sharding_stats"]


ASKED = {"X_Container_Sysmeta_Sharding": "True"}


@pytest.fixture
def make(tmp_path):
    return lambda *how, **options: Bench(tmp_path, *how, **options)


def test_only_containers_that_are_to_be_split_are_visited(make):
    bench = make()
    bench.container("large but nobody asked", 5)
    bench.container("small", 1, **ASKED)
    bench.container("off", 5, X_Container_Sysmeta_Sharding="")
    large = bench.container("large", 5, **ASKED)
    stats = bench.run_once()
    assert (stats["attempted"], stats["success"], stats["failure"]) == (2, 2, 0)
    assert stats["sharding"]["visited"] == {"attempted": 2, "failure": 0}
    assert stats["sharding"]["scanned"]["found"] == 1
    assert len([name for name in os.listdir(large.directory) if name.endswith(".db")]) == 2


def test_who_is_not_the_first_of_the_nodes_begins_no_split(make):
    bench = make(1)
    large = bench.container("large", 5, **ASKED)
    assert bench.run_once()["attempted"] == 1
    assert [name for name in os.listdir(large.directory) if name.endswith(".db")] == [f"{large.name_hash}.db"]


def test_recon_hears_of_every_kind_of_event_also_where_there_was_none(make):
    stats = make().run_once()
    assert stats["attempted"] == 0
    assert {"visited", "scanned", "created", "cleaved", "misplaced", "audit_root"} < stats["sharding"].keys()
    assert stats["sharding"]["created"] == {"success": 0, "failure": 0}
    assert stats["sharding"]["audit_root"]["has_overlap"] == 0


def test_large_containers_are_candidates_although_nobody_splits_them(make):
    bench = make(auto_shard=False)
    bench.container("large", 5, **ASKED)
    found = bench.run_once()["sharding"]["sharding_candidates"]
    assert found["found"] == 1 and found["top"][0]["container"] == "large"


def test_one_that_cannot_be_read_is_quarantined_and_the_others_are_visited(make):
    bench = make()
    bench.container("small", 1, **ASKED)
    broken = bench.container("broken", 1, **ASKED)
    with open(broken.file(), "wb") as file:
        file.write(b"\xff" * 8192)
    stats = bench.run_once()
    assert stats["failure"] == 1
    assert any("quarantined to" in line and broken.name_hash in line for line in bench.log.lines)
    assert os.listdir(f"{broken.device_path}/quarantined/containers") == [broken.name_hash]
    assert stats["sharding"]["visited"]["attempted"] == 1


def test_a_root_that_cannot_be_asked_is_a_failure_of_its_shard_alone(make):
    bench = make()
    root = {"X_Container_Sysmeta_Shard_Quoted_Root": "a/c", **ASKED}
    bench.container("c-1", 1, account=".shards_a", **root)
    bench.root_answer = Response(503)
    bench.run_once()
    assert bench.asked and all(path == "/v1/a/c" for path in bench.asked)
    assert not [line for line in bench.log.lines if "Traceback" in line]


def test_a_device_that_is_away_and_things_that_are_no_containers_end_nothing(make):
    bench = make()
    containers = bench.rig.root / "sda/containers/7/abc"
    for name in ("z" * 32, "short"):
        (containers / name).mkdir(parents=True)
    assert bench.run_once()["attempted"] == 0
    assert not [line for line in bench.log.lines if line.startswith("ERROR")]


def test_sizes_that_would_split_and_merge_for_ever_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="rows_per_shard must be below"):
        Bench(tmp_path, rows_per_shard=4)
