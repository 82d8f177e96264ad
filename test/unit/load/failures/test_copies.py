"""What is missing is read off the devices: objects at primaries, archives of the right index, tombstones."""

import pytest

from swift.aio.make import make_cluster
from swift.aio.plan import new_plan
from swift.base.timestamp import Timestamp
from swift.cluster.rings import Rings
from swift.config.cluster import read_cluster_config
from swift.load.failures.copies import ReplicaCounter
from swift.policy.policy import Policies
from test.support.processes import free_ports, free_range

OLD, NEW = Timestamp("1500000000.00000"), Timestamp("1500000009.00000")
HASH = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    proxy, cache = free_ports(2)
    made = new_plan(
        tmp_path_factory.mktemp("copies") / "data",
        proxy_port=proxy,
        base_port=free_range(100),
        cache_port=cache,
        nodes=5,
        ec="2+1",
        part_power=4,
    )
    make_cluster(made)
    return made


@pytest.fixture
def copies(plan):
    for device in plan.device_paths():
        for folder in device.glob("objects*"):
            for file in sorted(folder.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
    return ReplicaCounter(plan)


def nodes_of(plan, index):
    policies = Policies.parse(read_cluster_config(str(plan.etc / "swift.conf")).sections)
    return Rings(str(plan.etc), policies).object(policies.get(index)).view()


def store(plan, index, device, name):
    folder = (
        plan.device_path(device) / ("objects" if not index else f"objects-{index}") / "7" / HASH[-3:] / HASH
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"x")


def lacking(copies):
    found = copies.missing_replicas(copies.versions())
    return found.copies, found.objects, found.known


def test_an_object_on_all_its_primaries_is_whole(plan, copies):
    for node in nodes_of(plan, 0).primaries(7):
        store(plan, 0, node.device, f"{OLD.internal}.data")
    assert lacking(copies) == (0, 0, 1)


def test_a_copy_on_a_handoff_does_not_stand_for_one_that_is_missing(plan, copies):
    view = nodes_of(plan, 0)
    first, second, _third = view.primaries(7)
    for node in (first, second, next(view.handoffs(7))):
        store(plan, 0, node.device, f"{OLD.internal}.data")
    assert lacking(copies) == (1, 1, 1)


def test_an_older_version_is_no_copy_and_a_newer_one_is(plan, copies):
    first, second, third = nodes_of(plan, 0).primaries(7)
    store(plan, 0, first.device, f"{NEW.internal}.data")
    for node in (second, third):
        store(plan, 0, node.device, f"{OLD.internal}.data")
    assert lacking(copies) == (2, 1, 1)
    assert copies.missing_replicas({(0, 7, HASH): OLD}).copies == 0


def test_a_tombstone_is_a_version(plan, copies):
    first, second, third = nodes_of(plan, 0).primaries(7)
    for node in (first, second):
        store(plan, 0, node.device, f"{NEW.internal}.ts")
    store(plan, 0, third.device, f"{OLD.internal}.data")
    assert lacking(copies) == (1, 1, 1)


def test_each_primary_must_have_the_archive_of_its_index(plan, copies):
    first, second, third = nodes_of(plan, 1).primaries(7)
    store(plan, 1, first.device, f"{OLD.internal}#0#d.data")
    store(plan, 1, second.device, f"{OLD.internal}#1#d.data")
    store(plan, 1, third.device, f"{OLD.internal}#1#d.data")
    assert lacking(copies) == (1, 1, 1)


def test_what_was_never_committed_is_no_version(plan, copies):
    first = nodes_of(plan, 1).primaries(7)[0]
    store(plan, 1, first.device, f"{OLD.internal}#0.data")
    assert lacking(copies) == (0, 0, 0)


def test_a_device_that_is_gone_has_nothing(plan, copies):
    first, second, third = nodes_of(plan, 0).primaries(7)
    for node in (first, second, third):
        store(plan, 0, node.device, f"{OLD.internal}.data")
    known = copies.versions()
    path = plan.device_path(third.device)
    path.rename(path.with_name("away"))
    try:
        assert copies.missing_replicas(known).copies == 1
    finally:
        path.with_name("away").rename(path)
