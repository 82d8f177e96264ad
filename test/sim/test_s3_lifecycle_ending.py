"""Lifecycles carried out over the simulated cluster, through the pipeline that their daemon has."""

import csv
import gzip
import json
import time
from hashlib import md5
from types import SimpleNamespace

import pytest

from swift.base.entity import EntityPath
from swift.base.limits import Limits
from swift.compose import Cluster
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.mediatypes import TypeGuesser
from swift.http.objectlock import COMPLIANCE, ObjectLock
from swift.http.response import error_response
from swift.middleware.s3api.inventory.document import Inventory, stored_inventories
from swift.middleware.s3api.lifecycle.registry import HOME, place_of
from swift.middleware.s3api.lifecycle.rules import LifecycleRule
from swift.middleware.s3api.lifecycle.settings import LifecycleSettings
from swift.middleware.s3api.lifecycle.stored import stored_rules
from swift.middleware.s3api.lifecycle.task import Lifecycle
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.telemetry.log import silent_log
from test.support.daemons import Rig
from test.support.encrypted import Front

BUCKET = EntityPath("a", "b")
SEGMENTS = EntityPath("a", "b+segments")


class Bench:
    """A bucket, and passes of the daemon a hundred years later."""

    def __init__(self, sim, root, app=None):
        """``app`` is the end of the pipeline, the proxy by default."""
        root.mkdir()
        self.rig = Rig(root)
        self.sim = sim
        guesser = TypeGuesser("/none", ())
        config = SimpleNamespace(limits=Limits())
        keeper = VersionedWrites(
            Symlink(app or sim.app, SymlinkSettings()),
            VersionedWritesSettings(allow_object_versioning=True),
            (Cluster(config, sim.policies), guesser),
        )
        settings = SloSettings.parse({"rate_limit_segments_per_sec": "0"})
        self.pipeline = Slo(keeper, settings, sim.hasher, guesser, silent_log())
        self.asked = []
        self.client = InternalClient(self.forward, "test", tries=1, must_decrypt=True)
        self.task = self.daemon()

    def forward(self, request):
        self.asked.append((request.method, request.path_qs))
        request.env[fields.CACHE] = self.sim.cache
        return self.pipeline.handle(request)

    def daemon(self, **options):
        settings = LifecycleSettings(abort_grace=0.0, **options)
        return Lifecycle(settings, self.client, silent_log())

    def set_rules(self, *rules, versions=None):
        headers = stored_rules(rules)
        if versions is not None:
            headers["x-versions-enabled"] = versions
        self.client.create(BUCKET, headers)
        self.sim.cache.values.clear()
        self.client.create(HOME)
        self.client.put(place_of("a", "b"), b"")

    def put(self, name, body=b"x", **headers):
        answer = self.client.put(BUCKET._replace(obj=name), body, headers)
        return answer.get("x-object-version-id")

    def put_large(self, name, parts=("1", "2"), upload="up"):
        self.client.create(SEGMENTS)
        for part in parts:
            self.client.put(SEGMENTS._replace(obj=f"{name}/{upload}/{part}"), b"part")
        manifest = [{"path": f"/b+segments/{name}/{upload}/{part}"} for part in parts]
        headers = {fields.SYSMETA_S3_UPLOAD_ID: upload, fields.SYSMETA_S3_ETAG: "0" * 32 + "-2"}
        with self.client.ask(
            "PUT",
            BUCKET._replace(obj=name),
            headers,
            json.dumps(manifest).encode(),
            query="multipart-manifest=put",
        ) as response:
            return response.headers.get("x-object-version-id")

    def once(self, task=None):
        self.asked.clear()
        assert self.rig.runner(task or self.task, server_type="container").once()
        recon = json.loads((self.rig.root.parent / "recon" / "container.recon").read_text())
        return {name: n for name, n in recon["s3_lifecycle_stats"].items() if n}

    def names(self, path=BUCKET):
        return [row["name"] for row in self.client.listing(path)]

    def versions(self):
        with self.client.ask("GET", BUCKET, query="format=json&versions=true") as response:
            return [
                (row["name"], row["version_id"], "deleted" in row["content_type"])
                for row in json.loads(response.read_body())
            ]


@pytest.fixture
def bench(sim, tmp_path):
    return Bench(sim, tmp_path / "rig")


def inventory_of(bench, **options):
    """Take an inventory of the bucket; the manifest and the rows of its files."""
    bench.client.create(BUCKET, stored_inventories([Inventory("all", "stock", prefix="p", **options)]))
    bench.client.create(STOCK)
    bench.sim.cache.values.clear()
    bench.client.create(HOME)
    bench.client.put(place_of("a", "b"), b"")
    return bench.once(), lambda: manifest_of(bench)


def manifest_of(bench):
    names = [name for name in bench.names(STOCK) if name.endswith("/manifest.json")]
    with bench.client.get(STOCK._replace(obj=names[-1])) as response:
        manifest = json.loads(response.read_body())
    rows = []
    for file in manifest["files"]:
        with bench.client.get(STOCK._replace(obj=file["key"])) as response:
            packed = response.read_body()
        assert md5(packed).hexdigest() == file["MD5checksum"] and len(packed) == file["size"]
        rows += csv.reader(gzip.decompress(packed).decode().splitlines())
    return manifest, rows


STOCK = EntityPath("a", "stock")
TAG = {fields.TRANSIENT_S3_TAGGING: "k=v"}


def test_objects_end_whose_name_size_and_tags_a_rule_is_about(bench):
    bench.set_rules(
        LifecycleRule("r", prefix="p/", greater=1, tags=(("k", "v"),), days=1),
        LifecycleRule("t", prefix="tmp/", date=86400),
    )
    for name, body, headers in (
        ("p/ended", b"xx", TAG),
        ("p/small", b"x", TAG),
        ("p/untagged", b"xx", {}),
        ("p/otherwise", b"xx", {fields.TRANSIENT_S3_TAGGING: "k=w"}),
        ("q/elsewhere", b"xx", TAG),
        ("tmp/a", b"", {}),
    ):
        bench.put(name, body, **headers)
    counts = bench.once()
    assert bench.names() == ["p/otherwise", "p/small", "p/untagged", "q/elsewhere"]
    assert counts == {"buckets": 1, "objects.ended": 2, "objects.kept": 2}


def test_nothing_ends_before_its_day(bench):
    bench.set_rules(LifecycleRule("r", days=40_000))
    bench.put("o")
    assert bench.once() == {"buckets": 1}
    assert bench.names() == ["o"]


def test_a_rule_that_is_off_ends_nothing(bench):
    bench.set_rules(LifecycleRule("r", is_enabled=False, days=1))
    bench.put("o")
    bench.once()
    assert bench.names() == ["o"]


def test_an_object_that_was_written_again_meanwhile_stays(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("o", b"old")
    handle = bench.pipeline.handle

    def written_between(request):
        if request.method == "DELETE" and request.raw_path == "/v1/a/b/o":
            assert bench.sim("PUT", "/a/b/o", body=b"new").status == 201
        return handle(request)

    bench.pipeline.handle = written_between
    assert bench.once() == {"buckets": 1, "objects.changed": 1}
    bench.pipeline.handle = handle
    assert bench.sim("GET", "/a/b/o").body == b"new"


def test_a_large_object_takes_its_parts_along(bench):
    bench.set_rules(LifecycleRule("r", prefix="big", days=1))
    bench.put_large("big")
    bench.put_large("stays")
    bench.once()
    assert bench.names() == ["stays"]
    assert bench.names(SEGMENTS) == ["stays/up/1", "stays/up/2"]


def test_where_versions_are_kept_a_current_one_only_gets_a_mark(bench):
    bench.set_rules(LifecycleRule("r", days=1), versions="true")
    version = bench.put_large("big")
    assert bench.once()["objects.ended"] == 1
    assert bench.names() == []
    assert [(name, is_marker) for name, _, is_marker in bench.versions()] == [("big", True), ("big", False)]
    assert bench.versions()[1][1] == version
    assert len(bench.names(SEGMENTS)) == 2


def test_an_object_from_before_versions_keeps_its_parts_as_a_version(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put_large("big")
    bench.set_rules(LifecycleRule("r", days=1), versions="true")
    bench.once()
    assert bench.names() == []
    assert len(bench.versions()) == 2
    assert len(bench.names(SEGMENTS)) == 2


def test_former_versions_end_with_their_parts_but_some_are_kept(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1, newer_versions=1), versions="true")
    bench.put_large("o", upload="first")
    kept = bench.put_large("o", upload="second")
    current = bench.put("o", b"3")
    other = bench.put("other")
    counts = bench.once()
    assert counts == {"buckets": 1, "versions.ended": 1}
    assert bench.versions() == [("o", current, False), ("o", kept, False), ("other", other, False)]
    assert bench.names(SEGMENTS) == ["o/second/1", "o/second/2"]


def test_a_locked_version_stays(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1), versions="true")
    lock = ObjectLock(COMPLIANCE, int(time.time()) + 3600)
    locked = bench.put("o", b"1", **{fields.TRANSIENT_S3_LOCK: str(lock)})
    current = bench.put("o", b"2")
    assert bench.once() == {"buckets": 1, "versions.locked": 1}
    assert {version for _, version, _ in bench.versions()} == {locked, current}


def test_pages_of_versions_do_not_matter(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1, newer_versions=2), versions="true")
    current = {}
    for name in ("a", "b", "c"):
        for _ in range(5):
            current[name] = bench.put(name)
    bench.once(bench.daemon(page_size=2))
    left = bench.versions()
    assert len(left) == 9
    assert {version for _, version, _ in left} >= set(current.values())


def test_a_version_that_became_the_object_again_stays(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1), versions="true")
    old, new = bench.put("o", b"1"), bench.put("o", b"2")
    with bench.client.ask("PUT", BUCKET._replace(obj="o"), query=f"version-id={old}"):
        pass
    bench.once()
    assert {version for _, version, _ in bench.versions()} == {old, new}


def test_a_delete_marker_ends_when_nothing_is_below_it(bench):
    bench.set_rules(LifecycleRule("r", ends_markers=True), versions="true")
    gone, kept = bench.put("gone"), bench.put("kept")
    for name in ("gone", "kept"):
        bench.client.delete(BUCKET._replace(obj=name))
    with bench.client.ask("DELETE", BUCKET._replace(obj="gone"), query=f"version-id={gone}"):
        pass
    assert bench.once() == {"buckets": 1, "versions.ended": 1}
    assert [(name, is_marker) for name, _, is_marker in bench.versions()] == [("kept", True), ("kept", False)]
    assert bench.versions()[1][1] == kept


def test_uploads_that_nobody_completes_are_aborted_with_their_parts(bench):
    bench.set_rules(LifecycleRule("r", prefix="p/", abort_days=1))
    bench.client.create(SEGMENTS)
    for name in ("p/a/id", "p/a/id/1", "p/a/id/2", "q/b/id", "q/b/id/1"):
        bench.client.put(SEGMENTS._replace(obj=name), b"")
    assert bench.once() == {"buckets": 1, "uploads.ended": 1}
    assert bench.names(SEGMENTS) == ["q/b/id", "q/b/id/1"]


@pytest.mark.parametrize("versions", ["false", "true"])
def test_the_parts_of_an_upload_that_was_just_completed_stay(bench, versions):
    bench.set_rules(LifecycleRule("r", abort_days=1), versions=versions)
    bench.put_large("o")
    bench.client.put(SEGMENTS._replace(obj="o/up"), b"")
    if versions == "true":
        bench.put("o", b"newer")
    bench.once()
    assert bench.names(SEGMENTS) == ["o/up/1", "o/up/2"]


def test_a_bucket_is_walked_over_once_a_day_and_when_its_rules_change(bench):
    bench.set_rules(LifecycleRule("r", prefix="p", days=1))
    bench.put("o")
    assert bench.once() == {"buckets": 1}
    assert bench.once() == {}
    assert len(bench.asked) == 2, "an idle pass is a listing"
    bench.set_rules(LifecycleRule("r", days=1))
    assert bench.once()["objects.ended"] == 1
    bench.rig.clock.advance(86400)
    assert bench.once() == {"buckets": 1}


def test_a_bucket_in_which_something_failed_is_walked_over_again(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("o")
    handle = bench.pipeline.handle

    def failing(request):
        return error_response(503) if request.method == "DELETE" else handle(request)

    bench.pipeline.handle = failing
    assert bench.once()["errors"] == 1
    bench.pipeline.handle = handle
    assert bench.once()["objects.ended"] == 1


def test_a_bucket_without_rules_is_forgotten_unless_they_are_set_again(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.set_rules()
    assert bench.once() == {"forgotten": 1}
    assert bench.names(HOME) == []
    bench.set_rules(LifecycleRule("r", days=1))
    assert bench.names(HOME) == ["a/b"]


def test_buckets_are_shared_among_processes(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("o")
    counts = [bench.once(bench.daemon(processes=2, process=n)).get("objects.ended", 0) for n in (0, 1)]
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
    assert not bench.rig.runner(task, server_type="container").once()
    bench.pipeline.handle = ending
    assert bench.names() == ["o3", "o4", "o5"]
    bench.rig.stop = type(bench.rig.stop)(bench.rig.clock, bench.rig.clock.sleep)
    bench.asked.clear()
    bench.once(bench.daemon(page_size=2))
    assert bench.names() == []
    listings = [path for _, path in bench.asked if path.startswith("/v1/a/b?")]
    assert "marker=o1" in listings[0]


# --- inventories --------------------------------------------------------------------------------------


def test_an_inventory_lists_what_a_bucket_has(bench):
    bench.set_rules()
    bench.put('a b,"c"/ü', b"xx")
    bench.put("other", b"x")
    counts, read = inventory_of(bench, fields=("Size", "ETag", "IsMultipartUploaded"))
    assert counts == {"buckets": 1, "inventories.taken": 1}
    manifest, rows = read()
    assert manifest["fileSchema"] == "Bucket, Key, Size, ETag, IsMultipartUploaded"
    assert manifest["destinationBucket"] == "arn:aws:s3:::stock" and manifest["fileFormat"] == "CSV"
    assert rows == [
        ["b", "a%20b%2C%22c%22/%C3%BC", "2", md5(b"xx").hexdigest(), "false"],
        ["b", "other", "1", md5(b"x").hexdigest(), "false"],
    ]
    assert all(name.startswith("p/b/all/") for name in bench.names(STOCK))


def test_an_inventory_is_taken_once_a_day(bench):
    bench.set_rules()
    inventory_of(bench)
    assert len(bench.names(STOCK)) == 3
    assert bench.once(bench.daemon()) == {"buckets": 1, "inventories.there": 1}
    assert len(bench.names(STOCK)) == 3


def test_an_inventory_has_versions_and_delete_markers_when_they_are_wanted(bench):
    bench.set_rules(versions="true")
    first, second = bench.put("k", b"1"), bench.put("k", b"22")
    bench.client.delete(BUCKET._replace(obj="k"))
    bench.put("kept")
    _counts, read = inventory_of(bench, has_versions=True, fields=("Size",))
    _manifest, rows = read()
    assert [(row[1], row[3], row[4], row[5]) for row in rows] == [
        ("k", "true", "true", ""),
        ("k", "false", "false", "2"),
        ("k", "false", "false", "1"),
        ("kept", "true", "false", "1"),
    ]
    assert [row[2] for row in rows[1:3]] == [second, first]


def test_an_inventory_of_many_pages_is_whole(bench):
    bench.set_rules()
    names = [f"{n:02}" for n in range(7)]
    for name in names:
        bench.put(f"in/{name}")
    bench.put("out")
    bench.task = bench.daemon(page_size=2)
    _counts, read = inventory_of(bench, filter="in/")
    assert [row[1] for row in read()[1]] == [f"in/{name}" for name in names]


def test_an_inventory_of_nothing_says_so(bench):
    bench.set_rules()
    _counts, read = inventory_of(bench)
    manifest, rows = read()
    assert len(manifest["files"]) == 1 and rows == []


def test_an_inventory_without_a_place_to_go_is_told_of_and_hinders_no_other(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("ended")
    gone = Inventory("gone", "nowhere")
    bench.client.create(BUCKET, stored_inventories([gone, Inventory("off", "b", is_enabled=False)]))
    bench.sim.cache.values.clear()
    counts = bench.once()
    assert counts == {"buckets": 1, "objects.ended": 1, "inventories.refused": 1}
    assert bench.names() == []


@pytest.mark.parametrize("versions", [None, "true"])
def test_encrypted_objects_end_with_their_parts_where_the_pipeline_decrypts_them(sim, tmp_path, versions):
    bench = Bench(sim, tmp_path / "rig", Front(sim).filter)
    bench.set_rules(LifecycleRule("r", days=1, noncurrent_days=1), versions=versions)
    bench.put("o", b"needle", **TAG)
    bench.put_large("large")
    assert bench.names(SEGMENTS) == ["large/up/1", "large/up/2"]
    for _ in range(3):
        bench.once()
    assert bench.names() == []
    assert versions or bench.names(SEGMENTS) == []


def test_what_the_pipeline_cannot_decrypt_does_not_end(sim, tmp_path):
    front = Front(sim)
    writer = Bench(sim, tmp_path / "writer", front.filter)
    bench = Bench(sim, tmp_path / "rig")
    bench.set_rules(LifecycleRule("r", days=1))
    writer.put("o", b"needle")
    writer.put_large("large")
    assert bench.once()["errors"] == 2
    assert (bench.names(), bench.names(SEGMENTS)) == (["large", "o"], ["large/up/1", "large/up/2"])
    assert writer.once()["objects.ended"] == 2


def test_lifecycles_of_all_buckets_come_before_any_inventory(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("ended")
    first = EntityPath("a", "a-first")
    bench.client.create(first, stored_inventories([Inventory("all", "stock")]))
    bench.client.create(STOCK)
    bench.client.put(place_of("a", "a-first"), b"")
    assert bench.once() == {"buckets": 2, "objects.ended": 1, "inventories.taken": 1}
    asked = [(method, path) for method, path in bench.asked if method in ("DELETE", "PUT")]
    ended = next(n for n, (method, path) in enumerate(asked) if path.startswith("/v1/a/b/ended"))
    taken = next(n for n, (method, path) in enumerate(asked) if path.startswith("/v1/a/stock/"))
    assert ended < taken
