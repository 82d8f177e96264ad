"""Reports are plain facts: ring state, devices, dispersion by tier, partitions on devices."""

from __future__ import annotations

import re

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.report import (
    RingState,
    balance_of,
    device_facts,
    dispersion_report,
    partition_matches,
    required_overload,
    ring_state,
    summary,
)


@pytest.fixture
def crowded():
    """Three replicas in one zone of what are now three zones, as recorded from upstream."""
    builder = RingBuilder(4, 3, 1)
    for name in ("sd", "sd2", "sd3"):
        builder.add_device(region=1, zone=1, ip="10.0.0.1", port=6200, device=name, weight=5)
    builder.rebalance(seed=1)
    for zone in (2, 3):
        builder.add_device(region=1, zone=zone, ip=f"10.0.0.{zone}", port=6200, device="sd", weight=5)
    builder.measure_dispersion()
    return builder


def test_a_crowded_zone_is_the_worst_tier(crowded):
    report = dispersion_report(crowded)
    assert (round(report.dispersion, 6), report.balance) == (66.666667, 100.0)
    assert round(report.required_overload, 6) == 0.666667
    assert (report.worst.name, round(report.worst.over_percent, 2)) == ("r1z1", 66.67)
    assert [(tier.name, tier.parts, tier.most, tier.counts) for tier in report.tiers[:4]] == [
        ("r1", 48, 3, (0, 0, 0, 16)),
        ("r1z1", 48, 1, (0, 0, 0, 16)),
        ("r1z1-10.0.0.1", 48, 1, (0, 0, 0, 16)),
        ("r1z1-10.0.0.1/sd", 16, 1, (0, 16, 0, 0)),
    ]


def test_a_filter_looks_at_the_start_of_names(crowded):
    report = dispersion_report(crowded, r"r\d+z\d+-[^/]*/")
    assert report.worst is None
    assert len(report.tiers) == 3
    with pytest.raises(re.error):
        dispersion_report(crowded, "(")


def test_a_ring_file_is_compared_with_its_builder(make_builder, tmp_path):
    path = tmp_path / "x.ring.gz"
    builder = make_builder()
    builder.rebalance(seed=1)
    assert ring_state(builder, str(path)) == (RingState.MISSING, "")
    builder.write_ring(str(path))
    assert ring_state(builder, str(path)) == (RingState.CURRENT, "")
    builder.set_info(0, meta="new")
    assert ring_state(builder, str(path)) == (RingState.OBSOLETE, "")
    path.write_bytes(b"garbage")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert ring_state(builder, str(folder))[0] is RingState.UNREADABLE
    state, reason = ring_state(builder, str(path))
    assert state is RingState.INVALID
    assert "not a ring file" in reason


def test_a_summary_counts_and_sorts_devices(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    builder.remove_device(0)
    facts = summary(builder, "x.builder", "/nowhere/x.ring.gz")
    assert (facts["regions"], facts["zones"], facts["device_count"], facts["balance"]) == (1, 4, 8, 999.99)
    assert [dev["removing"] for dev in facts["devices"]] == [True] + [False] * 7
    assert facts["devices"][0]["partitions"] == 24


def test_a_device_under_its_share_has_a_negative_balance(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    builder.change_device(0, weight=200)
    assert balance_of(builder, builder.devs[0]) == pytest.approx(-43.75)
    assert device_facts(builder, builder.devs[0])["name"].startswith("d0r1z0-10.0.0.0:6200R")


def test_overload_is_not_required_when_nothing_has_weight(make_builder):
    assert required_overload(make_builder(weight=0)) == 0.0


def test_partitions_with_most_matches_come_first(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    matches = partition_matches(builder, {0, 2, 4})
    counts = [count for _, count in matches]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == 72
