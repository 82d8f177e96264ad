"""Transitions between storage classes over the simulated cluster."""

import json
import time
from hashlib import md5

import pytest

from swift.base.entity import EntityPath
from swift.gateway.internal_client import UnexpectedResponse
from swift.http import fields
from swift.http.objectlock import COMPLIANCE, ObjectLock
from swift.s3.config.lifecyclerules import DAY_S, LifecycleRule, Transition
from test.support.s3_fixtures import BUCKET, SEGMENTS, LifecycleFixture

#: The code of three and two.
COLD = 1
HOME = EntityPath("a", "b+COLD+segments")
RULE = LifecycleRule("r", size_greater_than=0, transitions=(Transition("COLD", 1),))
OBJECT = BUCKET._replace(obj="o")
BODY = b"the bytes of an object"


@pytest.fixture
def bench(sim, tmp_path):
    made = LifecycleFixture(sim, tmp_path / "rig")
    made.client.create(HOME, {"x-storage-policy": "ec32"})
    return made


def read(bench, path=OBJECT, query=""):
    with bench.client.request("GET", path, query=query) as response:
        return dict(response.headers), response.read_body()


def rows(bench, path=BUCKET):
    return list(bench.client.listing(path))


def before(bench, method, path, act):
    """Run ``act`` right before the next matching request."""
    handle = bench.pipeline.handle

    def watched(request):
        if request.method == method and request.raw_path == path:
            bench.pipeline.handle = handle
            act()
        return handle(request)

    bench.pipeline.handle = watched


def test_a_transition_moves_the_bytes_and_changes_nothing_else(bench):
    bench.set_rules(RULE)
    bench.put(
        "o",
        BODY,
        **{"content-type": "text/x;q=1", "x-object-meta-k": "v", fields.TRANSIENT_S3_TAGGING: "t=1"},
        **{"cache-control": "none", fields.SYSMETA_S3_REDIRECT: "/there"},
    )
    was, _ = read(bench)
    assert bench.run_once() == {"buckets": 1, "objects.moved": 1}
    now, body = read(bench)
    assert body == BODY and now[fields.SYSMETA_S3_CLASS] == "COLD"
    assert now[fields.SYSMETA_S3_ETAG] == md5(BODY).hexdigest()
    kept = ("content-type", "x-object-meta-k", fields.TRANSIENT_S3_TAGGING, "cache-control", "last-modified")
    assert {name: now[name] for name in kept} == {name: was[name] for name in kept}
    assert now[fields.SYSMETA_S3_REDIRECT] == "/there"
    assert len(bench.sim.files(policy=COLD)) == 5
    [row] = rows(bench)
    assert f"; s3_etag={md5(BODY).hexdigest()}; s3_class=COLD" in row["hash"]
    assert row["bytes"] == len(BODY)
    bench.rig.clock.advance(DAY_S)
    assert not {"objects.moved", "errors"} & bench.run_once().keys(), "it is where it is to be"


def test_a_moved_part_keeps_its_checksum(bench):
    bench.set_rules(RULE)
    bench.put("o", BODY, **{fields.SYSMETA_S3_CHECKSUM: "CRC32 FULL_OBJECT AAAAAA=="})
    bench.run_once()
    [part] = bench.names(HOME)
    for path in (OBJECT, HOME._replace(obj=part)):
        assert bench.client.head(path)[fields.SYSMETA_S3_CHECKSUM] == "CRC32 FULL_OBJECT AAAAAA=="


def test_small_objects_stay_unless_the_rule_has_a_size_filter(bench):
    bench.set_rules(LifecycleRule("r", transitions=(Transition("COLD", 1),)))
    bench.put("o", BODY)
    assert bench.run_once() == {"buckets": 1}
    assert bench.names(HOME) == []


@pytest.mark.parametrize("tagged", [True, False])
def test_tags_are_evaluated_when_the_object_is_processed(bench, tagged):
    bench.set_rules(
        LifecycleRule("r", tags=(("k", "v"),), size_greater_than=0, transitions=(Transition("COLD", 1),))
    )
    bench.put("o", BODY, **({fields.TRANSIENT_S3_TAGGING: "k=v"} if tagged else {}))
    assert bench.run_once()["objects.moved" if tagged else "objects.kept"] == 1
    assert read(bench)[1] == BODY


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_concurrent_change_wins_over_the_transition(bench, method):
    bench.set_rules(RULE)
    bench.put("o", BODY)

    def change():
        assert bench.sim(method, "/a/b/o", body=b"new" if method == "PUT" else b"").status in (201, 204)

    before(bench, "PUT", "/v1/a/b/o", change)
    assert bench.run_once() == {"buckets": 1, "objects.changed": 1}
    assert bench.names(HOME) == []
    if method == "PUT":
        assert read(bench)[1] == b"new"
    else:
        assert bench.names() == []


def test_tags_set_during_the_transition_are_kept(bench):
    bench.set_rules(RULE)
    bench.put("o", BODY, **{fields.TRANSIENT_S3_TAGGING: "t=old"})

    def post():
        headers = {fields.TRANSIENT_S3_TAGGING: "t=new"}
        assert bench.sim("POST", "/a/b/o", headers).status == 202

    before(bench, "PUT", "/v1/a/b/o", post)
    assert bench.run_once()["objects.moved"] == 1
    headers, body = read(bench)
    assert headers[fields.TRANSIENT_S3_TAGGING] == "t=new" and body == BODY


def test_an_object_with_changed_metadata_is_moved(bench):
    bench.set_rules(RULE)
    bench.put("o", BODY)
    assert bench.sim("POST", "/a/b/o", {"x-object-meta-k": "posted"}).status == 202
    assert bench.run_once()["objects.moved"] == 1
    headers, body = read(bench)
    assert headers["x-object-meta-k"] == "posted" and body == BODY


@pytest.mark.long
def test_a_multipart_object_moves_part_by_part_and_old_parts_expire(bench):
    bench.set_rules(RULE)
    bench.put_large("o", parts=("1", "2", "3"))
    old = bench.names(SEGMENTS)
    assert bench.run_once()["objects.moved"] == 1
    headers, body = read(bench)
    assert body == b"part" * 3 and headers[fields.SYSMETA_S3_ETAG] == "0" * 32 + "-2"
    assert [name.rpartition("/")[2] for name in bench.names(HOME)] == ["1", "2", "3"]
    for name in old:
        end = int(bench.client.head(SEGMENTS._replace(obj=name))["x-delete-at"])
        assert end == int(bench.rig.clock.time()) + DAY_S
    with bench.client.request("GET", OBJECT, query="part-number=2") as response:
        assert response.read_body() == b"part"


def test_large_objects_of_the_swift_api_are_not_moved(bench):
    bench.set_rules(RULE)
    bench.client.create(EntityPath("a", "other"))
    bench.client.put(EntityPath("a", "other", "s"), BODY)
    manifest = json.dumps([{"path": "/other/s"}]).encode()
    with bench.client.request("PUT", OBJECT, {}, manifest, query="multipart-manifest=put"):
        pass
    assert bench.run_once() == {"buckets": 1, "objects.kept": 1}
    assert read(bench)[1] == BODY and bench.names(HOME) == []


def test_an_object_with_too_long_a_name_is_not_moved(bench):
    bench.set_rules(RULE)
    long = "\u00fc" * 500
    bench.put(long, BODY)
    assert bench.run_once() == {"buckets": 1, "objects.kept": 1}
    assert read(bench, BUCKET._replace(obj=long))[1] == BODY and bench.names(HOME) == []


def test_symlinks_of_the_swift_api_are_not_moved(bench):
    bench.set_rules(RULE)
    bench.client.create(EntityPath("a", "other"))
    bench.client.put(EntityPath("a", "other", "target"), BODY)
    bench.client.put(
        OBJECT, b"", {"x-symlink-target": "other/target", "x-symlink-target-etag": md5(BODY).hexdigest()}
    )
    bench.run_once()
    assert read(bench, query="symlink=get")[1] == b"" and bench.names(HOME) == []


# --- versions -----------------------------------------------------------------------------------------


def test_a_current_version_is_readable_throughout_its_transition(bench):
    bench.set_rules(RULE, versions="true")
    version = bench.put("o", BODY, **{"x-delete-at": str(int(time.time()) + 90 * DAY_S)})
    handle, seen = bench.pipeline.handle, []

    def watched(request):
        response = handle(request)
        if request.method == "PUT":
            bench.pipeline.handle = handle
            seen.append(read(bench))
            bench.pipeline.handle = watched
        return response

    bench.pipeline.handle = watched
    assert bench.run_once() == {"buckets": 1, "objects.moved": 1}
    assert len(seen) == 4
    for headers, body in seen:
        assert body == BODY and headers["x-object-version-id"] == version
    bench.pipeline.handle = handle
    assert bench.versions() == [("o", version, False)]
    link = read(bench, query="symlink=get")[0]
    assert link["x-symlink-target-etag"] and "x-delete-at" in link
    [row] = rows(bench)
    assert "; s3_class=COLD" in row["hash"] and row["bytes"] == len(BODY)
    headers, body = read(bench, query=f"version-id={version}")
    assert body == BODY and headers[fields.SYSMETA_S3_CLASS] == "COLD"


def test_a_version_uploaded_during_a_transition_becomes_current(bench):
    bench.set_rules(RULE, versions="true")
    version = bench.put("o", BODY)
    newer = []
    before(bench, "PUT", "/v1/a/b/o", lambda: newer.append(bench.put("o", b"new")))
    bench.run_once()
    assert read(bench)[1] == b"new"
    assert read(bench, query=f"version-id={version}")[1] == BODY
    assert {name for _, name, _ in bench.versions()} == {version, *newer}


def test_a_deletion_during_a_transition_persists(bench):
    bench.set_rules(RULE, versions="true")
    version = bench.put("o", BODY)
    before(bench, "PUT", "/v1/a/b/o", lambda: bench.client.delete(OBJECT))
    bench.run_once()
    assert bench.client.head(OBJECT) is None
    assert read(bench, query=f"version-id={version}")[1] == BODY


def test_noncurrent_versions_move_except_the_retained_ones(bench):
    moves = (Transition("COLD", 1, newer_versions=1),)
    bench.set_rules(LifecycleRule("r", size_greater_than=0, noncurrent_transitions=moves), versions="true")
    ids = [bench.put("o", BODY + bytes([65 + n])) for n in range(4)]
    assert bench.run_once() == {"buckets": 1, "versions.moved": 2}
    found = [read(bench, query=f"version-id={version}") for version in ids]
    assert [body[-1:] for _, body in found] == [b"A", b"B", b"C", b"D"]
    assert [headers.get(fields.SYSMETA_S3_CLASS) for headers, _ in found] == ["COLD", "COLD", None, None]
    with bench.client.request("PUT", OBJECT, query=f"version-id={ids[0]}"):
        pass
    assert read(bench)[1] == BODY + b"A"
    current = next(row for row in rows(bench))
    assert (
        "; s3_class=COLD" in current["hash"]
        and f"; s3_etag={md5(BODY + b'A').hexdigest()}" in current["hash"]
    )


def test_a_version_restored_during_its_transition_is_readable(bench):
    bench.set_rules(
        LifecycleRule("r", size_greater_than=0, noncurrent_transitions=(Transition("COLD", 1),)),
        versions="true",
    )
    old, _ = bench.put("o", BODY), bench.put("o", b"new")

    def restore():
        with bench.client.request("PUT", OBJECT, query=f"version-id={old}"):
            pass

    handle = bench.pipeline.handle

    def watched(request):
        if request.method == "PUT" and "%00versions" in request.raw_path:
            bench.pipeline.handle = handle
            restore()
        return handle(request)

    bench.pipeline.handle = watched
    assert bench.run_once()["versions.moved"] == 1
    assert read(bench)[1] == BODY


def test_a_locked_version_is_not_moved(bench):
    bench.set_rules(RULE, versions="true")
    lock = ObjectLock(COMPLIANCE, int(bench.rig.clock.time()) + 3600)
    version = bench.put("o", BODY, **{fields.TRANSIENT_S3_LOCK: str(lock)})
    assert bench.run_once() == {"buckets": 1, "objects.locked": 1}
    assert bench.names(HOME) == [] and read(bench, query=f"version-id={version}")[1] == BODY


# --- what ends -----------------------------------------------------------------------------------------


def test_an_upload_of_another_class_is_aborted_with_its_parts(bench):
    bench.set_rules(LifecycleRule("r", abort_days=1))
    bench.client.create(SEGMENTS)
    bench.client.put(SEGMENTS._replace(obj="o/id"), b"", {fields.SYSMETA_S3_CLASS: "COLD"})
    bench.client.put(HOME._replace(obj="o/id/1"), b"part")
    bench.run_once()
    assert bench.names(SEGMENTS) == bench.names(HOME) == []


def test_objects_of_another_class_expire_with_their_bytes(bench):
    bench.set_rules(RULE)
    bench.put("o", BODY)
    bench.run_once()
    bench.set_rules(LifecycleRule("r", days=1))
    assert bench.run_once()["objects.ended"] == 1
    assert bench.names() == bench.names(HOME) == []


def test_without_the_container_of_the_class_nothing_moves(bench):
    bench.client.delete(HOME)
    bench.set_rules(RULE)
    bench.put("o", BODY)
    assert bench.run_once() == {"buckets": 1, "errors": 1}
    assert read(bench)[1] == BODY
    with pytest.raises(UnexpectedResponse), bench.client.get(HOME):
        pass
