"""Bytes of other storage classes go when nothing leads to them, and never while anybody doubts it."""

import json

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields
from swift.http.response import Response, error_response
from swift.s3.config.lifecyclerules import DAY_S, LifecycleRule, Transition
from swift.s3.daemons.orphans import INTERVAL_DAYS, OrphanCandidate, OrphanCleanup
from swift.s3.daemons.walk import RegisteredBucket
from test.support.filters import Listed, row
from test.support.s3_fixtures import BUCKET, SEGMENTS, LifecycleFixture

HOME = EntityPath("a", "b+COLD+segments")
RULE = LifecycleRule("r", size_greater_than=0, transitions=(Transition("COLD", 1),))
BODY = b"the bytes of an object"


@pytest.fixture
def bench(sim, tmp_path):
    made = LifecycleFixture(sim, tmp_path / "rig")
    made.client.create(HOME)
    return made


def read(bench, path):
    with bench.client.get(path) as response:
        return response.read_body()


def sweep(bench):
    """Passes of as many days as there may be between two looks."""
    found = {}
    for _ in range(INTERVAL_DAYS):
        for name, count in bench.run_once().items():
            found[name] = found.get(name, 0) + count
        bench.rig.clock.advance(DAY_S)
    return {name: count for name, count in found.items() if name.startswith("leftovers") or name == "errors"}


def test_a_move_that_breaks_off_leaves_the_object_and_its_bytes_are_found_later(bench):
    bench.set_rules(RULE)
    bench.put("o", BODY)
    handle = bench.pipeline.handle

    def failing(request):
        if request.method == "PUT" and request.raw_path == "/v1/a/b/o":
            return error_response(503)
        return handle(request)

    bench.pipeline.handle = failing
    assert bench.run_once()["errors"] == 1
    bench.pipeline.handle = handle
    assert read(bench, BUCKET._replace(obj="o")) == BODY and len(bench.names(HOME)) == 1
    bench.set_rules()
    assert sweep(bench) == {"leftovers.ended": 1}
    assert read(bench, BUCKET._replace(obj="o")) == BODY and bench.names(HOME) == []


@pytest.mark.parametrize("versions", [None, "true"])
def test_what_an_object_leaves_that_was_overwritten_goes_and_what_is_needed_stays(bench, versions):
    bench.set_rules(RULE, versions=versions)
    for name in ("gone", "needed"):
        bench.put(name, BODY)
    bench.run_once()
    bench.set_rules()
    bench.put("gone", b"new")
    assert len(bench.names(HOME)) == 2
    found = sweep(bench)
    if versions:
        assert found == {"leftovers.kept": 2} and len(bench.names(HOME)) == 2
    else:
        assert found == {"leftovers.ended": 1, "leftovers.kept": 1}
        assert [name.partition("/")[0] for name in bench.names(HOME)] == ["needed"]
    assert read(bench, BUCKET._replace(obj="needed")) == BODY


@pytest.mark.parametrize("missed", [("HEAD", "/v1/a/b/o"), ("GET", "/v1/a/b")], ids=["nodes", "listing"])
def test_nothing_goes_while_the_listing_and_the_nodes_do_not_agree(bench, missed):
    bench.set_rules(RULE)
    bench.put("o", BODY)
    bench.run_once()
    bench.set_rules()
    handle = bench.pipeline.handle

    def without(request):
        return error_response(404) if (request.method, request.raw_path) == missed else handle(request)

    bench.pipeline.handle = without
    assert sweep(bench) == {"leftovers.changed": 1}
    bench.pipeline.handle = handle
    assert read(bench, BUCKET._replace(obj="o")) == BODY


def test_the_parts_of_an_upload_that_is_going_on_stay(bench):
    bench.set_rules()
    bench.client.create(SEGMENTS)
    bench.client.put(SEGMENTS._replace(obj="o/id"), b"")
    bench.client.put(HOME._replace(obj="o/id/1"), b"part")
    assert sweep(bench) == {"leftovers.kept": 1}
    bench.client.delete(SEGMENTS._replace(obj="o/id"))
    assert sweep(bench) == {"leftovers.ended": 1}


# --- who is asked what ----------------------------------------------------------------------------------

ENTRY = RegisteredBucket("a", "b", Timestamp(0))
NOW_S = 20 * DAY_S
UNIT = OrphanCandidate(ENTRY, HOME, "o", "id")
PART = f"/v1{HOME.quoted}/o/id/1"


def leftovers(listed, size=2, now_s=NOW_S):
    return OrphanCleanup(listed.client, lambda: now_s, size, INTERVAL_DAYS * DAY_S)


def stamped(days, **headers):
    return {"x-timestamp": Timestamp(days * DAY_S).internal, **headers}


def test_a_bucket_is_looked_at_on_one_day_of_a_week():
    for n in range(20):
        entry = RegisteredBucket("a", f"b{n}", Timestamp(0))
        days = [day for day in range(14) if leftovers(Listed(), now_s=day * DAY_S + 5).is_due_today(entry)]
        assert len(days) == 2 and days[1] - days[0] == INTERVAL_DAYS


@pytest.mark.parametrize("size", [1, 2, 100])
def test_each_upload_that_is_a_week_old_is_found_once(size):
    names = [
        ("a/b/id/1", 1),
        ("a/b/id/2", 1),
        ("new/id/1", 15),
        ("o/id/1", 12.5),
        ("o/jd/1", 13.5),
        ("odd", 1),
    ]
    listed = Listed(**{"b+COLD+segments": [row(name, days) for name, days in names]})
    found = [(unit.key, unit.upload_id) for unit in leftovers(listed, size).find_candidates(ENTRY, [HOME])]
    assert found == [("a/b", "id"), ("o", "id")]


MANIFEST = [{"name": f"/{HOME.container}/o/id/{number}"} for number in (1, 2)]


def needless(**heads):
    """Bytes to which nothing leads, as far as all say; ``heads`` are of the object."""
    listed = Listed(**{"b+COLD+segments": [row("o/id/1", 1), row("o/id/2", 1), row("o/idx/1", 1)], "b": []})
    listed.heads["/v1/a/b"] = {}
    listed.heads.update({f"/v1/a/b/{name}": head for name, head in heads.items()})
    return listed


def test_all_parts_of_one_upload_go_and_none_of_another():
    listed = needless()
    assert leftovers(listed).remove_orphan(UNIT) == "ended"
    assert listed.methods("DELETE") == [PART, f"/v1{HOME.quoted}/o/id/2"]


@pytest.mark.parametrize(("status", "outcome"), [(403, "locked"), (404, "ended"), (409, "ended")])
def test_a_part_that_does_not_go_says_why(status, outcome):
    listed = needless()
    listed.answers["DELETE", PART] = status
    assert leftovers(listed).remove_orphan(UNIT) == outcome


MARK = f"/v1{SEGMENTS.quoted}/o/id"


@pytest.mark.parametrize(
    ("method", "path"), [("HEAD", "/v1/a/b"), ("GET", "/v1/a/b"), ("HEAD", "/v1/a/b/o"), ("HEAD", MARK)]
)
def test_nothing_goes_while_somebody_does_not_answer(method, path):
    listed = needless()
    listed.answers[method, path] = 503
    with pytest.raises(UnexpectedResponse):
        leftovers(listed).remove_orphan(UNIT)
    assert listed.methods("DELETE") == []


@pytest.mark.parametrize(
    ("rows", "head"),
    [
        ([row("o", 1)], None),
        ([], stamped(1)),
        ([row("o", 2)], stamped(1)),
        ([row("o", 1)], {"x-timestamp": "junk"}),
    ],
    ids=["object is away", "row is late", "object is old", "no time"],
)
def test_nothing_goes_while_listing_and_object_differ(rows, head):
    listed = needless(**({"o": head} if head else {}))
    listed.rows["/v1/a/b"] = rows
    assert leftovers(listed).remove_orphan(UNIT) == "changed"
    assert listed.methods("DELETE") == []


@pytest.mark.parametrize(("upload_id", "outcome"), [("id", "kept"), ("other", "ended")])
def test_what_the_object_needs_stays(upload_id, outcome):
    listed = needless(o=stamped(1, **{fields.SYSMETA_S3_UPLOAD_ID: upload_id}))
    listed.rows["/v1/a/b"] = [row("o", 1), row("ox", 1)]
    listed.rows["/v1/a/b/o"] = MANIFEST
    assert leftovers(listed).remove_orphan(UNIT) == outcome


@pytest.mark.parametrize("size", [1, 2, 100])
def test_what_any_version_needs_stays(size):
    listed = needless(o=stamped(3))
    listed.heads["/v1/a/b"] = {"x-versions-enabled": "true"}
    listed.rows["/v1/a/b"] = [
        {**row("o", 3, version_id="3"), "is_latest": True},
        *({**row("o", n, version_id=str(n)), "is_latest": False} for n in (2, 1)),
        row("p", 1, version_id="9"),
    ]
    handle = listed.handle

    def needed_by_the_oldest(request):
        head = stamped(1, **{fields.SYSMETA_S3_UPLOAD_ID: "id"})
        is_oldest = request.params.get("version-id") == "1"
        return Response(200, head, json.dumps(MANIFEST).encode()) if is_oldest else handle(request)

    listed.client = InternalClient(needed_by_the_oldest, "test", tries=1)
    assert leftovers(listed, size).remove_orphan(UNIT) == "kept"
