"""Bytes of other storage classes go when nothing leads to them, and never while anybody doubts it."""

import pytest

from swift.base.entity import EntityPath
from swift.http.response import error_response
from swift.middleware.s3api.lifecycle.leftovers import DAYS
from swift.middleware.s3api.lifecycle.rules import DAY_S, Rule, Transition
from test.support.lifecycles import BUCKET, SEGMENTS, Bench

HOME = EntityPath("a", "b+COLD+segments")
RULE = Rule("r", greater=0, transitions=(Transition("COLD", 1),))
BODY = b"the bytes of an object"


@pytest.fixture
def bench(sim, tmp_path):
    made = Bench(sim, tmp_path / "rig")
    made.client.create(HOME)
    return made


def read(bench, path):
    with bench.client.get(path) as response:
        return response.read_body()


def sweep(bench):
    """Passes of as many days as there may be between two looks."""
    found = {}
    for _ in range(DAYS):
        for name, count in bench.once().items():
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
    assert bench.once()["errors"] == 1
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
    bench.once()
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
    bench.once()
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
