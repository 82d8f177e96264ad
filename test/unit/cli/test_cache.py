"""swift/cli/cache.py: the tier of a node, seen and changed by its operator."""

from __future__ import annotations

import json

import pytest

from swift.base.clock import SystemClock
from swift.base.hashing import PathHasher
from swift.cli.cache import main
from swift.platform.devices import Devices
from swift.store.registry import EngineParts, StoreRegistry
from swift.store.tier.conf import node_figures, publisher, settings_of, tier_factory
from swift.store.tier.tier import CacheTier, TierDependencies
from swift.telemetry.metrics import Registry
from test.contract.test_store import GOLD, NOW, key_of, put, ts

HASHER = PathHasher(b"p", b"s")


class Node:
    def __init__(self, root):
        self.root = root
        (root / "srv" / "sda").mkdir(parents=True)
        (root / "swift.conf").write_text(
            "[swift-hash]\nswift_hash_path_prefix = p\nswift_hash_path_suffix = s\n"
            "[storage-policy:0]\nname = gold\ndefault = yes\n"
        )
        self.conf = root / "object-server.conf"
        self.conf.write_text(
            f"[DEFAULT]\ndevices = {root}/srv\nmount_check = false\nswift_dir = {root}\n"
            f"[app:object-server]\nuse = egg:swift#object\n"
            f"[cache-tier]\nenabled = true\npath = {root}/ssd/cache\nstate_path = {root}/ssd/state\n"
            "size_mb = 64\n"
        )
        self.tier = CacheTier(settings_of(str(self.conf)), TierDependencies())
        self.stores = StoreRegistry(
            EngineParts(
                devices=Devices(str(root / "srv"), mount_check=False),
                hasher=HASHER,
                clock=SystemClock(),
                tier=tier_factory(self.tier),
            )
        )

    @property
    def store(self):
        return self.stores.engine(GOLD)

    def tick(self):
        self.tier._next_tick_s = 0.0
        self.tier.entries()


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    made.tier.close()


@pytest.fixture
def said(node, capsys):
    def say(*words, code=0):
        assert main(["--conf", str(node.conf), "--format", "json", *words]) == code
        told = capsys.readouterr()
        if code == 1:
            assert len(told.err.splitlines()) == 1
            return told.err
        return json.loads(told.out)

    return say


def test_stats_are_of_all_processes(node, said):
    put(node.store, key_of(), ts(10))
    node.store.stat(key_of(), NOW)
    node.tick()
    told = said("stats")
    assert told["classes"]["metadata"]["hits"] == 1
    assert told["classes"]["metadata"]["devices"]["sda"]["hit_rate"] == 1.0
    assert told["metadata_bytes"] > 0
    assert node_figures(node.tier.settings)["classes"]["metadata"]["hits"] == 1


def test_modes_sizes_and_classes_reach_the_running_processes(node, said):
    node.tick()
    said("mode", "metadata", "write-around")
    said("resize", "128")
    said("mode", "small-data", "off")
    node.tick()
    assert node.tier.settings.metadata_mode == "write-around"
    assert node.tier.settings.size_mb == 128
    assert node.tier.settings.classes == ("metadata", "hashes")
    said("mode", "small-data", "on")
    node.tick()
    assert "small-data" in node.tier.settings.classes
    assert "refused" in said("mode", "metadata", "write-back", code=1)


def test_a_device_is_flushed(node, said):
    put(node.store, key_of(), ts(10))
    assert said("flush", "sda")["dropped"] == 1
    assert said("dump", "AUTH_a/c/o") == {"entries": []}
    assert node.store.stat(key_of(), NOW).kind == "live"


def test_an_entry_is_shown_by_name_and_by_directory(node, said):
    put(node.store, key_of(), ts(10), **{"X-Object-Meta-A": "b"})
    (entry,) = said("dump", "AUTH_a/c/o")["entries"]
    assert entry["is_proven"]
    assert entry["files"][0]["metadata"]["X-Object-Meta-A"] == "b"
    assert said("dump", f"/srv/node/{entry['directory']}")["entries"] == [entry]
    assert "write ACCOUNT" in said("dump", "nonsense", code=1)


def test_differences_from_the_disk_are_found_and_told(node, said):
    put(node.store, key_of(), ts(10))
    put(node.store, key_of("b"), ts(10))
    assert said("verify") == {"same": 2, "unproven": 0, "busy": 0, "differences": []}
    (path,) = (node.root / "srv").rglob(f"{key_of().hash}/*.data")
    path.unlink()
    (found,) = said("verify", code=2)["differences"]
    assert found["directory"].endswith(key_of().hash)
    assert said("verify")["same"] == 1


def test_what_is_on_the_disk_is_known_after_warming(node, said):
    for name in "abc":
        put(node.store, key_of(name), ts(10))
    said("flush", "sda")
    assert said("warm")["objects"] == 3
    assert len(list(node.tier.entries().paths())) == 3
    assert said("warm", "--rate", "1000", "sda")["objects"] == 3


def test_what_happens_is_shown_interval_by_interval(node, said):
    assert said("live", "--count", "1", "--interval", "0")["metadata"]["hits"] == 0


def test_without_a_tier_there_is_nothing_to_say(node, said):
    node.conf.write_text(node.conf.read_text().replace("enabled = true", "enabled = false"))
    assert "no cache tier" in said("stats", code=1)


def test_prometheus_is_told_what_is_counted():
    metrics = Registry()
    tell = publisher(metrics)
    tell({("metadata", "sda", "hits"): 3}, "")
    tell({("metadata", "sda", "hits"): 5}, "gone")
    text = metrics.render()
    assert 'swift_cache_tier_hits_total{class="metadata",device="sda"} 5' in text
    assert "swift_cache_tier_up 0" in text
