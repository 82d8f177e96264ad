"""swift-health: which partitions are in danger follows from rings and what servers say."""

import pytest

from swift.operations.health.evaluate import (
    ClusterSnapshot,
    DeviceErrors,
    PackedSpaceReport,
    Severity,
    absence_test,
    count_ring_copies,
    evaluate,
    uses_mount_points,
)
from swift.operations.recon.client import Host
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from test.support.peer import make_rings

HOSTS = [Host(f"10.0.0.{number}", 6200) for number in range(1, 5)]
NOW_S = 1795228430.0


@pytest.fixture
def view(tmp_path):
    make_rings(tmp_path, [(host.ip, host.port, "sda") for host in HOSTS], names=("object",))
    return RingView(load_table(str(tmp_path / "object.ring.gz")))


def heard_of(silent=(), unmounted=()):
    said = {"replication_last": NOW_S - 60, "replication_time": 120}
    return ClusterSnapshot(
        unresponsive={"object": list(silent)},
        present={host: ["sda"] for host in HOSTS if host not in silent},
        unmounted={host: ["sda"] for host in unmounted},
        replication={("object", host): said for host in HOSTS if host not in silent},
    )


def health_of(view, snapshot, needed=1):
    is_away = absence_test(snapshot, "object", check_mounts=uses_mount_points(snapshot))
    state = count_ring_copies(view, "object", "object", is_away, needed=needed)
    devices = {f"{host.ip}/sda": is_away(host, "sda") for host in HOSTS}
    return evaluate([state], devices, snapshot, NOW_S)


def texts(health):
    return [problem.text for problem in health.problems]


def test_a_whole_cluster_is_well(view):
    health = health_of(view, heard_of())
    assert (health.level, health.problems, health.done_s) == (Severity.OK, [], None)
    assert health.rings[0].degraded == 0


def test_a_device_away_leaves_its_partitions_degraded_and_says_when_they_are_whole_again(view):
    health = health_of(view, heard_of(unmounted=HOSTS[:1]))
    (ring,) = health.rings
    assert health.level is Severity.WARNING
    assert (
        ring.missing_copies
        == ring.degraded
        == sum(HOSTS[0].ip == n.ip for p in range(16) for n in view.primaries(p))
    )
    assert texts(health) == [
        "1 device away: 10.0.0.1/sda",
        f"object: {ring.degraded} partitions lack {ring.degraded} copies",
    ]
    # The pass under way ends in a minute, the one after it two minutes later.
    assert health.done_s == NOW_S + 60 + 120


def test_a_pass_that_is_overdue_tells_no_time(view):
    """It takes longer than the last one: a forecast would say "2 seconds" again and again."""
    for seconds, last_s, is_known in ((2, 30, True), (2, 100, False), (120, 200, True), (120, 300, False)):
        snapshot = heard_of(unmounted=HOSTS[:1])
        for key in snapshot.replication:
            snapshot.replication[key] = {"replication_last": NOW_S - last_s, "replication_time": seconds}
        assert (health_of(view, snapshot).done_s is not None) == is_known, (seconds, last_s)


def test_the_last_copy_and_what_is_out_of_reach_are_dangers(view):
    health = health_of(view, heard_of(silent=HOSTS[:2]))
    (ring,) = health.rings
    assert health.level is Severity.CRITICAL
    assert ring.last_count > 0
    assert f"object: {ring.last_count} partitions are at one copy" in texts(health)
    assert all(
        sum(n.ip not in ("10.0.0.1", "10.0.0.2") for n in view.primaries(p)) == 1 for p in ring.at_last
    )
    health = health_of(view, heard_of(silent=HOSTS[:3]))
    assert health.rings[0].lost_count > 0
    assert any("too few copies within reach" in text for text in texts(health))


def test_an_erasure_coded_ring_is_at_its_last_when_just_its_data_fragments_are_left(view):
    health = health_of(view, heard_of(unmounted=HOSTS[:1]), needed=2)
    assert "partitions are at their last fragments" in texts(health)[0]
    assert health.level is Severity.CRITICAL


def test_a_full_device_that_three_servers_tell_of_is_one_device(view):
    snapshot = heard_of()
    for port, used in ((6200, 96), (6201, 95), (6202, 94)):
        entry = {"device": "sda", "mounted": True, "size": 100, "used": used}
        snapshot.usage[Host("10.0.0.2", port)] = [entry]
    assert texts(health_of(view, snapshot)) == ["1 device over 95 % full: 10.0.0.2/sda"]


def test_directories_that_are_no_mount_points_count_where_none_is(view):
    assert health_of(view, heard_of(unmounted=HOSTS)).level is Severity.OK


def test_devices_whose_volumes_are_mostly_dead_are_told(view):
    snapshot = heard_of()
    snapshot.packed[HOSTS[0]] = {
        "sda": PackedSpaceReport(40, 5 * 10**9, 35 * 10**9, 10**6),
        "sdb": PackedSpaceReport(40, 35 * 10**9, 5 * 10**9, 10**6),
        "sdc": PackedSpaceReport(1, 0, 10**9, 10**6),
    }
    health = health_of(view, snapshot)
    assert texts(health) == ["1 device whose volumes are mostly dead: 10.0.0.1/sda (35 GB)"]
    assert health.as_json()["packed_devices"][f"{HOSTS[0]}/sdb"]["dead"] == 5 * 10**9


def test_devices_with_lost_records_are_told(view):
    snapshot = heard_of()
    snapshot.packed[HOSTS[0]] = {
        "sda": PackedSpaceReport(40, 10**9, 0, 10**6, 4096),
        "sdb": PackedSpaceReport(40, 10**9, 0, 10**6),
    }
    assert texts(health_of(view, snapshot)) == ["1 device with lost records: 10.0.0.1/sda (4096 bytes)"]


def test_what_is_old_full_or_differs_is_told(view):
    snapshot = heard_of()
    snapshot.replication["object", HOSTS[0]] = {"replication_last": NOW_S - 86400}
    snapshot.usage[HOSTS[1]] = [
        {"device": "sda", "mounted": True, "size": 100, "used": 96},
        {"device": "sdb", "mounted": True, "size": 100, "used": 90},
        {"device": "sdc", "mounted": False, "size": "", "used": ""},
    ]
    snapshot.other_rings[HOSTS[2]] = ["object.ring.gz"]
    snapshot.clocks[HOSTS[3]] = -3600.0
    snapshot.drive_errors[HOSTS[3]] = 2
    snapshot.device_errors[HOSTS[3]] = {
        "sda": DeviceErrors(12, NOW_S - 60, "EIO"),
        "sdb": DeviceErrors(3, NOW_S - 2 * 86400, "EIO"),
    }
    health = health_of(view, snapshot)
    assert health.level is Severity.CRITICAL
    assert sorted(texts(health)) == [
        "1 device over 85 % full: 10.0.0.2/sdb",
        "1 device over 95 % full: 10.0.0.2/sda",
        "1 device with I/O errors in the last day: 10.0.0.4/sda (12, EIO, none for 1 minutes)",
        "clocks differ by more than 5 s on 10.0.0.4:6200",
        "no object replication completed within 6 hours on 10.0.0.1:6200",
        "rings differ on 10.0.0.3:6200",
        "the kernel saw drive errors on 10.0.0.4:6200 (2)",
    ]
    assert all(problem.remedy for problem in health.problems)
