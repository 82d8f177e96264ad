"""swift-dispersion-populate, in a process of its own, against a cluster that answers whatever it likes."""

import json

import pytest

from test.support.stub_servers import running


@pytest.fixture
def bench(tmp_path):
    with running(tmp_path, "populate") as made:
        yield made


def test_half_of_sixteen_partitions_get_a_container_and_an_object_each(bench):
    done = bench.run()
    assert done.returncode == 0 and done.stderr == ""
    assert "Created 8 containers for dispersion reporting" in done.stdout
    assert "Created 8 objects for dispersion reporting" in done.stdout
    assert len(set(bench.put("/v1/AUTH_a/dispersion_0_"))) == 8
    assert len(set(bench.put("/v1/AUTH_a/dispersion_objects_0/dispersion_"))) == 8


def test_only_containers_of_the_policy_are_made_when_only_they_are_wanted(bench):
    assert bench.run("--container-only", "-P", "silver").returncode == 0
    assert len(bench.put()) == 8 == len(bench.put("/v1/AUTH_a/dispersion_1_"))


def test_no_overlap_leaves_the_partitions_alone_that_have_one(bench):
    bench.run("--container-only")
    names = [path.rpartition("/")[2] for path in bench.put()]
    page = json.dumps([{"name": name} for name in names]).encode()
    done = bench.run("--container-only", "--no-overlap", answers={"GET ": [(200, page)]})
    assert (
        done.returncode == 0
        and len(bench.put()) == 8
        and not set(names) & {path.rpartition("/")[2] for path in bench.put()}
    )
    markers = [path.partition("marker=")[2] for method, path, _ in bench.server.asked if method == "GET"]
    assert markers == ["", names[-1]]


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"\xff", b"{", b"7", b"[1]", b'[{"subdir": "a/"}]', b'[{"name": 7}]', b"[" * 100_000],
)
def test_a_listing_that_is_none_is_told_in_one_line(bench, body):
    done = bench.run("--container-only", "--no-overlap", answers={"GET ": [(200, body)]})
    assert done.returncode == 1 and bench.put() == []
    assert done.stderr.startswith("swift-dispersion-populate: GET ") and done.stderr.count("\n") == 1


def test_a_server_that_gives_the_same_page_again_and_again_is_not_asked_forever(bench):
    page = json.dumps([{"name": "x"}]).encode()
    done = bench.run("--container-only", "--no-overlap", answers={"GET ": [(200, page)] * 1000})
    assert done.returncode == 1 and "GET " in done.stderr and len(bench.server.asked) < 5


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_refusal_ends_it_with_the_request_that_was_refused(bench, status):
    done = bench.run("--container-only", concurrency=1, answers={"PUT ": [(status, b"no")] * 99})
    assert done.returncode == 1
    assert "swift-dispersion-populate: PUT /v1/AUTH_a/dispersion_0_" in done.stderr
    assert f"status {status}" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.long
def test_a_failure_that_passes_is_tried_again_and_counted(bench):
    done = bench.run("--container-only", retries=1, concurrency=1, answers={"PUT ": [(503, b"")]})
    assert done.returncode == 0 and "8 containers" in done.stdout and "1 retries" in done.stdout
