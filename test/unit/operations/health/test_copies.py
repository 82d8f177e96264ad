"""What replicators report about copies, and the verdict on a rebalance, a new disk and a drained device."""

import json
from dataclasses import replace

import pytest

from swift.operations.health.copies import parse_host_copies, ring_copies
from swift.operations.health.evaluate import ClusterSnapshot, Severity, evaluate
from swift.operations.health.screen import screen
from swift.operations.recon.client import Host
from swift.ring.builder import RingBuilder
from swift.ring.partpower import prepare_increase
from swift.ring.ringfile import load_table
from swift.ring.view import RingView

HOSTS = [Host(f"10.0.0.{number}", 6200) for number in range(1, 5)]
NOW_S = 1795228430.0


def builder_of(weights=(1, 1, 1, 1)):
    builder = RingBuilder(4, 3, 0)
    for number, weight in enumerate(weights):
        host = HOSTS[number]
        builder.add_device(
            ip=host.ip, port=host.port, device="sda", weight=weight, region=1, zone=number + 1, meta=""
        )
    builder.rebalance(seed=1)
    return builder


@pytest.fixture
def view_of(tmp_path):
    def write(builder):
        builder.write_ring(f"{tmp_path}/object.ring.gz")
        return RingView(load_table(f"{tmp_path}/object.ring.gz"))

    return write


def said(ring, *, end="ended", seconds=100.0, **counts):
    """What a recon page says of one device."""
    zeros = {"partitions": 12, "misplaced": 0, "missing": 0, "missing_on": {}, "failed": 0, "done": 0}
    began_s = NOW_S - 60 - seconds
    return {
        "object": {
            "began": began_s,
            end: NOW_S - 60,
            "devices": {"sda": {**zeros, "ring": ring, **counts}},
        }
    }


def page(completed, under_way=None):
    return parse_host_copies({"state": completed, "progress": under_way}, "state", "progress")


class Cluster:
    """Four hosts that report what a test says."""

    def __init__(self, view):
        self.view = view
        self.reports = {host: page(said(view.digest)) for host in HOSTS}
        self.away = set()

    def copies(self):
        return ring_copies(self.view, "object", self.reports, lambda host, _device: host in self.away, NOW_S)

    def health(self, **snapshot):
        said = {"replication_last": NOW_S - 60, "replication_time": 120}
        replication = {("object", host): said for host in HOSTS}
        return evaluate(
            [], {}, ClusterSnapshot(replication=replication, **snapshot), NOW_S, copies=[self.copies()]
        )


@pytest.fixture
def cluster(view_of):
    return Cluster(view_of(builder_of()))


def texts(health):
    return [problem.text for problem in health.problems]


def test_all_is_well_when_a_pass_by_the_present_ring_left_nothing(cluster):
    health = cluster.health()
    assert (health.level, texts(health), health.done_s) == (Severity.OK, [], None)
    assert cluster.copies().is_in_order
    assert "ended 1 minutes ago" in "\n".join(screen(health, NOW_S))


def test_a_rebalance_is_over_when_all_devices_had_a_pass_by_its_ring_and_nothing_is_to_be_moved(cluster):
    cluster.reports = {host: page(said("former ring")) for host in HOSTS}
    health = cluster.health()
    assert health.level is Severity.WARNING
    assert texts(health)[0].startswith("object: 4 devices not checked since the ring changed: 10.0.0.1/sda,")
    # Another whole pass is awaited.
    assert health.done_s == NOW_S + 60 + 120
    digest = cluster.view.digest
    cluster.reports = {host: page(said(digest)) for host in HOSTS}
    cluster.reports[HOSTS[0]] = page(said("former ring"), said(digest, end="now", misplaced=224, done=56))
    health = cluster.health()
    assert "object: 224 partitions on devices where they do not belong" in texts(health)
    cluster.reports[HOSTS[0]] = page(said(digest, misplaced=224, done=56))
    health = cluster.health()
    assert texts(health) == ["object: 224 partitions on devices where they do not belong"]
    assert health.done_s == NOW_S + 4 * 100, "four times as many are left as were moved in 100 s"
    assert (health.as_json()["rings"], health.copies_of("object").misplaced) == ([], 224)


def test_a_new_disk_is_full_when_no_other_device_reports_that_it_lacks_copies(cluster):
    digest = cluster.view.digest
    lacking = {"10.0.0.4/sda": 7}
    cluster.reports[HOSTS[1]] = page(said(digest), said(digest, end="now", missing=7, missing_on=lacking))
    health = cluster.health()
    assert health.level is Severity.WARNING
    assert texts(health) == ["object: 7 copies missing on 10.0.0.4/sda (7)"]
    shown = "\n".join(screen(health, NOW_S))
    assert "copies are as the rings say in about" in shown


def test_failures_of_passes_are_told_with_their_servers(cluster):
    cluster.reports[HOSTS[2]] = page(said(cluster.view.digest, failed=520))
    health = cluster.health()
    assert (health.level, texts(health)) == (
        Severity.WARNING,
        ["object: the last pass failed for 520 partitions on 10.0.0.3:6200"],
    )


@pytest.mark.parametrize("report", [None, page(None), page(7, []), page({"container": {"devices": {}}})])
def test_a_server_that_reports_nothing_leaves_unknown_what_would_be_well(cluster, report):
    cluster.reports[HOSTS[3]] = report
    if report is None:
        del cluster.reports[HOSTS[3]]
    health = cluster.health()
    assert health.level is Severity.UNKNOWN
    assert texts(health) == ["object: no counts of misplaced and missing copies from 10.0.0.4:6200"]
    # What is known to be bad outweighs it.
    cluster.reports[HOSTS[2]] = page(said(cluster.view.digest, misplaced=1))
    assert cluster.health().level is Severity.WARNING


def test_failures_that_openstack_swift_reports_are_told(cluster):
    del cluster.reports[HOSTS[3]]
    health = cluster.health(failures={("object", HOSTS[3]): 1553})
    assert health.level is Severity.WARNING
    assert "1553 failures in the last replication passes: 10.0.0.4:6200 (1553)" in texts(health)


def test_a_device_that_is_away_is_told_elsewhere(cluster):
    cluster.away = {HOSTS[0]}
    del cluster.reports[HOSTS[0]]
    assert cluster.copies().is_in_order


def test_handoffs_only_leaves_missing_copies_unknown(cluster):
    cluster.reports[HOSTS[0]] = page(said(cluster.view.digest, handoffs_only=True))
    health = cluster.health()
    assert health.level is Severity.UNKNOWN and "handoffs_only is on at 10.0.0.1:6200" in texts(health)[0]


def test_a_device_of_weight_0_may_be_removed_when_it_is_empty(view_of):
    builder = builder_of()
    builder.change_device(3, weight=0)
    cluster = Cluster(view_of(builder))
    health = cluster.health()
    assert health.drained == {"10.0.0.4/sda": 12}
    assert "10.0.0.4/sda has weight 0: 12 partitions are left on it" in list(screen(health, NOW_S))
    builder.rebalance(seed=1)
    cluster = Cluster(view_of(builder))
    assert cluster.health().drained == {"10.0.0.4/sda": 12}, "they are there still, though assigned elsewhere"
    cluster.reports[HOSTS[3]] = page(said(cluster.view.digest, partitions=0))
    line = "10.0.0.4/sda has weight 0 and is empty: remove it from the rings"
    assert line in list(screen(cluster.health(), NOW_S))
    cluster.away = {HOSTS[3]}
    line = "10.0.0.4/sda has weight 0: what is left on it is unknown"
    assert line in list(screen(cluster.health(), NOW_S))


def test_a_ring_whose_part_power_is_being_increased_is_not_in_order(view_of):
    builder = builder_of()
    prepare_increase(builder)
    health = Cluster(view_of(builder)).health()
    assert texts(health) == ["object: the part power is being increased; copies are not compared meanwhile"]


def test_the_time_left_is_unknown_without_a_rate(cluster):
    cluster.reports[HOSTS[0]] = page(said(cluster.view.digest, misplaced=5))
    health = cluster.health()
    assert health.done_s == NOW_S + 60 + 120, "then another pass is the guess"
    health = replace(health, done_s=None)
    assert "the time that is left is unknown until the replicators complete another pass" in list(
        screen(health, NOW_S)
    )


@pytest.mark.parametrize("devices", [None, 7, {"sda": 7}, {"sda": {"misplaced": "x", "missing": 1e300}}])
def test_nonsense_counts_as_nothing_known_to_be_wrong_and_is_json(cluster, devices):
    cluster.reports[HOSTS[0]] = page({"object": {"began": "x", "ended": [], "devices": devices}})
    health = cluster.health()
    assert health.level in (Severity.UNKNOWN, Severity.WARNING)
    json.dumps(health.as_json(), allow_nan=False)
