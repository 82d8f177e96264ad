"""The lifecycle daemon finishes or removes interrupted uploads, and keeps parts of objects."""

from dataclasses import replace

import pytest

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.s3.config.lifecyclerules import LifecycleRule
from swift.s3.core.uploadstate import CompletionDecision, MarkerRecord, SwapOutcome, read_state, swap_record
from swift.s3.daemons.expiration import COMPLETION_GRACE_S, CompletionRecovery, UnfinishedUpload
from swift.s3.daemons.walk import DaemonObjectClient, RegisteredBucket
from test.support.s3_fixtures import BUCKET, SEGMENTS, LifecycleFixture, etag_of

ENTRY = RegisteredBucket("a", "b", Timestamp(0))
UNIT = UnfinishedUpload(ENTRY, "o", "id")


@pytest.fixture
def bench(sim, tmp_path):
    made = LifecycleFixture(sim, tmp_path / "rig")
    made.set_rules()
    made.client.create(SEGMENTS)
    return made


def decide(bench, **changes):
    """Start a completion of two parts that is interrupted after its decision; return its time."""
    for number in (1, 2):
        bench.client.put(SEGMENTS._replace(obj=f"o/id/{number}"), b"part")
    bench.client.put(SEGMENTS._replace(obj="o/id"), b"")
    now = Timestamp.now()
    headers = {fields.SYSMETA_S3_UPLOAD_ID: "id", fields.SYSMETA_S3_ETAG: "e-2"}
    parts = tuple((number, etag_of(b"part")) for number in (1, 2))
    decision = CompletionDecision("d", now.internal, "e-2", parts, headers, 1)
    objects = DaemonObjectClient(bench.client, "a")
    state = read_state(objects, "b", "o", "id")
    assert swap_record(objects, state, MarkerRecord(decision=replace(decision, **changes))) is SwapOutcome.WON
    return now


def finish(bench, now):
    finishing = CompletionRecovery(bench.client, lambda: now.seconds + COMPLETION_GRACE_S + 1, 1)
    assert list(finishing.find_unfinished(ENTRY)) == [UNIT]
    return finishing.finish_upload(UNIT)


def read(bench):
    return bench.sim("GET", "/a/b/o").status, bench.names(SEGMENTS)


def test_an_interrupted_completion_is_finished(bench):
    now = decide(bench)
    assert finish(bench, now) == "ended"
    with bench.client.get(BUCKET._replace(obj="o")) as response:
        assert response.read_body() == b"partpart"
        assert Timestamp(response.headers["x-timestamp"]) == now
    assert bench.names(SEGMENTS) == ["o/id/1", "o/id/2"]


def test_a_running_completion_is_left_alone(bench):
    now = decide(bench)
    assert CompletionRecovery(bench.client, lambda: now.seconds, 1).finish_upload(UNIT) == "kept"
    assert read(bench)[0] == 404


def test_a_deleted_object_is_not_restored(bench):
    now = decide(bench)
    bench.put("o", b"newer")
    bench.client.delete(BUCKET._replace(obj="o"))
    finish(bench, now)
    assert read(bench)[0] == 404


@pytest.mark.parametrize("changes", [{"size_min": 5}, {"size": 9}, {"parts": ((1, etag_of(b"other")),)}])
def test_a_completion_that_would_be_refused_is_not_stored(bench, changes):
    assert finish(bench, decide(bench, **changes)) == "ended"
    assert read(bench) == (404, ["o/id/1", "o/id/2"])


def test_a_completion_that_is_too_old_ends_without_an_object(bench):
    now = decide(bench)
    late = CompletionRecovery(bench.client, lambda: now.seconds + 6 * 86400, 1)
    assert late.finish_upload(UNIT) == "ended"
    assert read(bench) == (404, ["o/id/1", "o/id/2"])


def test_a_rule_does_not_abort_an_upload_during_its_completion(bench):
    decide(bench)

    bench.set_rules(LifecycleRule("r", abort_days=1))
    counts = bench.run_once(bench.daemon(orphan_age=1e12))
    assert counts["uploads.changed"] == 1
    assert bench.names(SEGMENTS) == ["o/id/1", "o/id/2"]


# --- a bucket that is gone ----------------------------------------------------------------------------


def test_leftovers_of_a_deleted_bucket_are_removed_with_its_container(bench):
    for name in ("o/id", "p/jd/1"):
        bench.client.put(SEGMENTS._replace(obj=name), b"")
    bench.client.delete(BUCKET)
    bench.sim.cache.values.clear()
    for _ in range(2):
        bench.run_once(bench.daemon(orphan_age=0.0))
    assert [row["name"] for row in bench.client.containers("a", prefix="b")] == []
