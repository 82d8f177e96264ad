"""swift-dispersion-report, in a process of its own: which copies are where they should be."""

import json

import pytest

from test.support.stub_servers import running

CONTAINERS = [f"dispersion_0_{number}" for number in range(4)]


def page(names):
    return [(200, json.dumps([{"name": name} for name in names]).encode()), (200, b"[]")]


@pytest.fixture
def bench(tmp_path):
    """Three copies of everything."""
    with running(tmp_path, "report", ("sda", "sdb", "sdc")) as made:
        yield made


def answers(containers=(), objects=()):
    pages = page([*containers, "photos", *(["dispersion_objects_0"] if objects else [])])
    return {"GET /v1/AUTH_a/dispersion_objects_0?": page(objects), "GET /v1/AUTH_a?": pages * 2}


def test_every_copy_is_looked_for_on_its_own_device(bench):
    done = bench.run("-j", answers=answers(CONTAINERS, ["dispersion_1", "odd/é \u2028"]))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["container"]["copies_found"], found["container"]["copies_expected"]) == (12, 12)
    assert (found["object"]["pct_found"], found["object"]["copies_expected"]) == (100.0, 6)
    assert len(set(bench.server.sought)) == 18
    assert not [path for path in bench.server.sought if "photos" in path]


def test_what_is_missing_is_told_with_how_much_is_left(bench):
    def has(path):
        number, device = path[-1], path[1:4]
        return {("0", "sda"): 404, ("1", "sda"): 404, ("1", "sdb"): 507}.get((number, device), 200)

    bench.server.has = has
    done = bench.run("--container-only", "--partitions", answers=answers(CONTAINERS))
    assert done.returncode == 0
    for line in (
        "There was 1 partition missing 1 copy.",
        "! There was 1 partition missing 2 copies.",
        "75.00% of container copies found (9 of 12)",
    ):
        assert line in done.stdout.splitlines()
    assert done.stderr.count("lacks /AUTH_a/dispersion_0_") == 3
    assert done.stderr.count("ERROR: ") == 1 and "/sdb: status 507" in done.stderr


def test_marks_are_about_the_copies_that_each_partition_has_where_some_have_one_more(tmp_path):
    names = [f"dispersion_0_{number}" for number in range(20)]
    with running(tmp_path, "report", ("sda", "sdb", "sdc"), replicas=2.5) as bench:
        bench.server.has = lambda _path: 404
        lines = bench.run("--container-only", answers=answers(names)).stdout.splitlines()
    missing = [line for line in lines if "missing" in line]
    assert len(missing) == 2 and all(line.startswith("!!! There ") for line in missing)


def test_a_node_that_fails_once_is_asked_again(bench):
    first = set()

    def has(path):
        is_new = path not in first
        first.add(path)
        return 503 if is_new and path.startswith("/sda") else 200

    bench.server.has = has
    done = bench.run("--container-only", "-j", retries=1, answers=answers(CONTAINERS[:1]))
    found = json.loads(done.stdout)["container"]
    assert (found["copies_found"], found["retries"], done.stderr) == (3, 1, "")


def test_where_nothing_was_made_there_is_nothing_to_look_for(bench):
    done = bench.run(answers=answers())
    assert done.returncode == 0
    assert done.stderr.count("Has swift-dispersion-populate been run?") == 2
    assert bench.server.sought == []
