"""Passes of the lifecycle daemon: what is looked at when, shared, remembered and gone on with."""

import time

import pytest

from swift.base.entity import EntityPath
from swift.http import fields
from swift.http.response import error_response
from swift.s3.config.inventory import Inventory, encode_inventories
from swift.s3.config.lifecyclerules import LifecycleRule
from swift.s3.core.names import REGISTRY, registry_path
from test.support.filters import EncryptionFixture
from test.support.s3_fixtures import BUCKET, SEGMENTS, LifecycleFixture

STOCK = EntityPath("a", "stock")
TAG = {fields.TRANSIENT_S3_TAGGING: "k=v"}


def test_a_bucket_is_walked_over_once_a_day_and_when_its_rules_change(bench):
    bench.set_rules(LifecycleRule("r", prefix="p", days=1))
    bench.put("o")
    assert bench.run_once() == {"buckets": 1}
    assert bench.run_once() == {}
    assert len(bench.asked) == 2, "an idle pass is a listing"
    bench.set_rules(LifecycleRule("r", days=1))
    assert bench.run_once()["objects.ended"] == 1
    bench.rig.clock.advance(86400)
    assert bench.run_once() == {"buckets": 1}


def test_days_of_rules_can_be_short_for_tests_of_clients(bench):
    task = bench.daemon(lifecycle_debug_interval=10)
    assert task.settings.schedule.interval_s == 10
    later_s = bench.rig.clock.time() - time.time()
    bench.set_rules(LifecycleRule("r", days=int(later_s // 10) + 2))
    bench.put("o")
    assert bench.run_once(task) == {"buckets": 1}
    assert bench.run_once(task) == {}
    bench.rig.clock.advance(30)
    assert bench.run_once(task)["objects.ended"] == 1


def test_a_bucket_in_which_something_failed_is_walked_over_again(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("o")
    handle = bench.pipeline.handle

    def failing(request):
        return error_response(503) if request.method == "DELETE" else handle(request)

    bench.pipeline.handle = failing
    assert bench.run_once()["errors"] == 1
    bench.pipeline.handle = handle
    assert bench.run_once()["objects.ended"] == 1


def test_a_bucket_without_rules_is_forgotten_unless_they_are_set_again(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.set_rules()
    assert bench.run_once() == {"forgotten": 1}
    assert bench.names(REGISTRY) == []
    bench.set_rules(LifecycleRule("r", days=1))
    assert bench.names(REGISTRY) == ["a/b"]


def test_nothing_is_ended_in_a_bucket_whose_rules_are_damaged(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("o")
    damage = {"x-container-sysmeta-s3api-lifecycle-0": "AAAA"}
    with bench.client.request("POST", BUCKET, damage):
        pass
    bench.sim.cache.values.clear()
    assert bench.run_once() == {"errors": 1}
    assert bench.names() == ["o"]


def test_buckets_are_shared_among_processes(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("o")
    counts = [bench.run_once(bench.daemon(processes=2, process=n)).get("objects.ended", 0) for n in (0, 1)]
    assert sorted(counts) == [0, 1]


def test_a_pass_that_was_cut_short_goes_on_where_it_was(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    for n in range(6):
        bench.put(f"o{n}")
    task = bench.daemon(page_size=2, concurrency=1)
    ending = bench.pipeline.handle

    def stop_after_three(request):
        if request.method == "DELETE" and request.raw_path.endswith("/o2"):
            bench.rig.stop.request()
        return ending(request)

    bench.pipeline.handle = stop_after_three
    assert not bench.rig.runner(task, server_type="container").run_once()
    bench.pipeline.handle = ending
    assert bench.names() == ["o3", "o4", "o5"]
    bench.rig.stop = type(bench.rig.stop)(bench.rig.clock, bench.rig.clock.sleep)
    bench.asked.clear()
    bench.run_once(bench.daemon(page_size=2))
    assert bench.names() == []
    listings = [path for _, path in bench.asked if path.startswith("/v1/a/b?")]
    assert "marker=o1" in listings[0]


@pytest.mark.parametrize("versions", [None, "true"])
def test_encrypted_objects_end_with_their_parts_where_the_pipeline_decrypts_them(sim, tmp_path, versions):
    bench = LifecycleFixture(sim, tmp_path / "rig", EncryptionFixture(sim).filter)
    bench.set_rules(LifecycleRule("r", days=1, noncurrent_days=1), versions=versions)
    bench.put("o", b"needle", **TAG)
    bench.put_large("large")
    assert bench.names(SEGMENTS) == ["large/up/1", "large/up/2"]
    for _ in range(3):
        bench.run_once()
    assert bench.names() == []
    assert versions or bench.names(SEGMENTS) == []


def test_what_the_pipeline_cannot_decrypt_does_not_end(sim, tmp_path):
    front = EncryptionFixture(sim)
    writer = LifecycleFixture(sim, tmp_path / "writer", front.filter)
    bench = LifecycleFixture(sim, tmp_path / "rig")
    bench.set_rules(LifecycleRule("r", days=1))
    writer.put("o", b"needle")
    writer.put_large("large")
    assert bench.run_once()["errors"] == 2
    assert (bench.names(), bench.names(SEGMENTS)) == (["large", "o"], ["large/up/1", "large/up/2"])
    assert writer.run_once()["objects.ended"] == 2


def test_lifecycles_of_all_buckets_come_before_any_inventory(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("ended")
    first = EntityPath("a", "a-first")
    bench.client.create(first, encode_inventories([Inventory("all", "stock")]))
    bench.client.create(STOCK)
    bench.client.put(registry_path("a", "a-first"), b"")
    assert bench.run_once() == {"buckets": 2, "objects.ended": 1, "inventories.taken": 1}
    asked = [(method, path) for method, path in bench.asked if method in ("DELETE", "PUT")]
    ended = next(n for n, (method, path) in enumerate(asked) if path.startswith("/v1/a/b/ended"))
    taken = next(n for n, (method, path) in enumerate(asked) if path.startswith("/v1/a/stock/"))
    assert ended < taken
