"""A simulated cluster does what its parts can do, and no more."""

from dataclasses import replace

import pytest

from swift.plan.catalogue import WORKLOADS, ClusterChoice, Machine, PlannedWorkload, read_catalogue
from swift.plan.cluster import (
    Prediction,
    SimulatedCluster,
    cores_used,
    memory_hits,
    predict,
    throughput_bound,
)
from swift.plan.durability import parse_policy
from swift.plan.errors import PlanError

DISK = next(machine.disk for machine in read_catalogue(None).storages if machine.disk is not None)
PROXY = Machine("plain", 4, 1.0, 125e6, 10.0)
STORAGE = Machine("node", 4, 1.0, 125e6, 12.0, 8 << 30, 4, DISK)
CHOICE = ClusterChoice(PROXY, 1, STORAGE, 3, 4, parse_policy("3"), "ssd", 46.0)
UPLOAD = PlannedWorkload("upload", 0.0, 1.0, 10_000, 10_000, clients=8)
READ = PlannedWorkload("read", 1.0, 0.0, 10_000, 10_000, clients=8)
OBJECTS = 1e6


def rate(choice=CHOICE, workload=UPLOAD, **more):
    return predict(choice, workload, OBJECTS, seconds=0.5, **more).rate


def test_the_busiest_part_is_the_bottleneck():
    assert Prediction(1, 1, 1, 1, {"disk": 0.2, "proxy cpu": 0.9, "database": 0.3}).bottleneck == "proxy cpu"


@pytest.mark.parametrize(("workers", "used"), [(1, 1), (4, 4), (16, 4)])
def test_workers_without_a_core_of_their_own_change_nothing(workers, used):
    assert cores_used(PROXY, workers) == used


def test_memory_answers_what_fits_and_never_more_than_all():
    assert memory_hits(CHOICE, 1.0) == 1.0
    many = memory_hits(CHOICE, 1e10)
    assert 0 < many < 0.01
    assert memory_hits(replace(CHOICE, nodes=6), 1e10) == pytest.approx(2 * many)
    assert memory_hits(replace(CHOICE, policy=parse_policy("4+2")), 1e10) == pytest.approx(many / 2)


@pytest.mark.parametrize("workload", [UPLOAD, READ])
def test_the_same_seed_predicts_the_same_and_a_bound_is_one(workload):
    first = rate(workload=workload, seed=3)
    assert first == rate(workload=workload, seed=3)
    assert 0 < first <= 1.1 * throughput_bound(CHOICE, workload, OBJECTS)


@pytest.mark.parametrize(
    "better", [{"proxies": 2}, {"nodes": 6}, {"databases": "ssd"}, {"storage": replace(STORAGE, speed=2.0)}]
)
def test_a_better_cluster_is_bound_no_lower(better):
    for workload in (UPLOAD, READ):
        assert throughput_bound(replace(CHOICE, **better), workload, OBJECTS) >= throughput_bound(
            CHOICE, workload, OBJECTS
        )


def test_what_is_busy_is_a_share_of_the_time_and_latencies_are_in_order():
    found = predict(CHOICE, UPLOAD, OBJECTS, seconds=0.5)
    assert {"proxy cpu", "storage cpu", "disk", "database"} <= found.busy.keys()
    assert all(0 <= share <= 1.0001 for share in found.busy.values())
    assert 0 < found.p50_s <= found.p99_s


@pytest.mark.parametrize(
    "choice", [replace(CHOICE, policy=parse_policy("16+4")), replace(CHOICE, storage=PROXY)]
)
def test_a_policy_without_drives_for_it_is_refused(choice):
    with pytest.raises(PlanError, match="too few drives"):
        SimulatedCluster(choice, UPLOAD, OBJECTS, "1")


def test_every_workload_has_a_bound():
    for workload in WORKLOADS.values():
        assert throughput_bound(CHOICE, workload, OBJECTS) > 0
