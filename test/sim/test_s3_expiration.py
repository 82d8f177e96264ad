"""Lifecycle expiration over the simulated cluster, through the daemon's pipeline."""

import time

import pytest

from swift.http import fields
from swift.http.objectlock import COMPLIANCE, ObjectLock
from swift.s3.config.lifecyclerules import LifecycleRule
from test.support.s3_fixtures import BUCKET, SEGMENTS, LifecycleFixture


@pytest.fixture
def bench(sim, tmp_path):
    return LifecycleFixture(sim, tmp_path / "rig")


TAG = {fields.TRANSIENT_S3_TAGGING: "k=v"}


def test_objects_expire_whose_name_size_and_tags_match_a_rule(bench):
    bench.set_rules(
        LifecycleRule("r", prefix="p/", size_greater_than=1, tags=(("k", "v"),), days=1),
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
    counts = bench.run_once()
    assert bench.names() == ["p/otherwise", "p/small", "p/untagged", "q/elsewhere"]
    assert counts == {"buckets": 1, "objects.ended": 2, "objects.kept": 2}


def test_nothing_expires_before_its_date(bench):
    bench.set_rules(LifecycleRule("r", days=40_000))
    bench.put("o")
    assert bench.run_once() == {"buckets": 1}
    assert bench.names() == ["o"]


def test_a_disabled_rule_expires_nothing(bench):
    bench.set_rules(LifecycleRule("r", is_enabled=False, days=1))
    bench.put("o")
    bench.run_once()
    assert bench.names() == ["o"]


@pytest.mark.parametrize("body", [b"new", b"old"])
def test_an_object_overwritten_during_the_pass_is_kept(bench, body):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("o", b"old")
    handle = bench.pipeline.handle

    def written_between(request):
        if request.method == "DELETE" and request.raw_path == "/v1/a/b/o":
            assert bench.sim("PUT", "/a/b/o", body=body).status == 201
        return handle(request)

    bench.pipeline.handle = written_between
    assert bench.run_once() == {"buckets": 1, "objects.changed": 1}
    bench.pipeline.handle = handle
    assert bench.sim("GET", "/a/b/o").body == body


def test_a_large_object_expires_with_its_parts(bench):
    bench.set_rules(LifecycleRule("r", prefix="big", days=1))
    bench.put_large("big")
    bench.put_large("stays")
    bench.run_once()
    assert bench.names() == ["stays"]
    assert bench.names(SEGMENTS) == ["stays/up/1", "stays/up/2"]


def test_an_expired_current_version_gets_a_delete_marker(bench):
    bench.set_rules(LifecycleRule("r", days=1), versions="true")
    version = bench.put_large("big")
    assert bench.run_once()["objects.ended"] == 1
    assert bench.names() == []
    assert [(name, is_marker) for name, _, is_marker in bench.versions()] == [("big", True), ("big", False)]
    assert bench.versions()[1][1] == version
    assert len(bench.names(SEGMENTS)) == 2


def test_an_object_from_before_versions_keeps_its_parts_as_a_version(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put_large("big")
    bench.set_rules(LifecycleRule("r", days=1), versions="true")
    bench.run_once()
    assert bench.names() == []
    assert len(bench.versions()) == 2
    assert len(bench.names(SEGMENTS)) == 2


def test_noncurrent_versions_expire_with_their_parts_except_the_retained_ones(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1, newer_versions=1), versions="true")
    bench.put_large("o", upload="first")
    kept = bench.put_large("o", upload="second")
    current = bench.put("o", b"3")
    other = bench.put("other")
    counts = bench.run_once()
    assert counts == {"buckets": 1, "versions.ended": 1}
    assert bench.versions() == [("o", current, False), ("o", kept, False), ("other", other, False)]
    assert bench.names(SEGMENTS) == ["o/second/1", "o/second/2"]


def test_a_locked_version_is_kept(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1), versions="true")
    lock = ObjectLock(COMPLIANCE, int(time.time()) + 3600)
    locked = bench.put("o", b"1", **{fields.TRANSIENT_S3_LOCK: str(lock)})
    current = bench.put("o", b"2")
    assert bench.run_once() == {"buckets": 1, "versions.locked": 1}
    assert {version for _, version, _ in bench.versions()} == {locked, current}


def test_expiration_does_not_depend_on_pages_of_versions(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1, newer_versions=2), versions="true")
    current = {}
    for name in ("a", "b", "c"):
        for _ in range(5):
            current[name] = bench.put(name)
    bench.run_once(bench.daemon(page_size=2))
    left = bench.versions()
    assert len(left) == 9
    assert {version for _, version, _ in left} >= set(current.values())


def test_a_version_restored_during_the_pass_is_kept(bench):
    bench.set_rules(LifecycleRule("r", noncurrent_days=1), versions="true")
    old, new = bench.put("o", b"1"), bench.put("o", b"2")
    with bench.client.request("PUT", BUCKET._replace(obj="o"), query=f"version-id={old}"):
        pass
    bench.run_once()
    assert {version for _, version, _ in bench.versions()} == {old, new}


def test_a_delete_marker_without_versions_is_removed(bench):
    bench.set_rules(LifecycleRule("r", expires_delete_markers=True), versions="true")
    gone, kept = bench.put("gone"), bench.put("kept")
    for name in ("gone", "kept"):
        bench.client.delete(BUCKET._replace(obj=name))
    with bench.client.request("DELETE", BUCKET._replace(obj="gone"), query=f"version-id={gone}"):
        pass
    assert bench.run_once() == {"buckets": 1, "versions.ended": 1}
    assert [(name, is_marker) for name, _, is_marker in bench.versions()] == [("kept", True), ("kept", False)]
    assert bench.versions()[1][1] == kept


def test_incomplete_uploads_are_aborted_with_their_parts(bench):
    bench.set_rules(LifecycleRule("r", prefix="p/", abort_days=1))
    bench.client.create(SEGMENTS)
    for name in ("p/a/id", "p/a/id/1", "p/a/id/2", "q/b/id", "q/b/id/1"):
        bench.client.put(SEGMENTS._replace(obj=name), b"")
    assert bench.run_once() == {"buckets": 1, "uploads.ended": 1}
    assert bench.names(SEGMENTS) == ["q/b/id", "q/b/id/1"]


@pytest.mark.parametrize("versions", ["false", "true"])
def test_the_parts_of_a_just_completed_upload_are_kept(bench, versions):
    bench.set_rules(LifecycleRule("r", abort_days=1), versions=versions)
    bench.put_large("o")
    bench.client.put(SEGMENTS._replace(obj="o/up"), b"")
    if versions == "true":
        bench.put("o", b"newer")
    bench.run_once()
    assert bench.names(SEGMENTS) == ["o/up/1", "o/up/2"]
