"""The history of disk usage is bounded, and the end of a zone follows from its growth."""

import json
from types import SimpleNamespace

import pytest

from swift.operations.health.evaluate import ClusterSnapshot, Severity, evaluate
from swift.operations.health.forecast import (
    DAY_S,
    KEPT_S,
    SAMPLE_S,
    CapacityForecast,
    UsageHistory,
    UsageSample,
    ZoneForecast,
    ZoneUsage,
    forecast,
    growth_per_day,
    zone_usage,
)
from swift.operations.health.screen import screen
from swift.operations.recon.client import Host

NOW_S = 1795228430.0
GOLD = ("object", "r1z1")


def samples(days, *, start=100.0, daily=10.0, size=1000.0, each_s=DAY_S / 4):
    """Samples of so many days that end now, with ``start`` bytes used at the first and steady growth."""
    count = round(days * DAY_S / each_s)
    first_s = NOW_S - count * each_s
    return [
        UsageSample(
            first_s + number * each_s, {GOLD: ZoneUsage(start + daily * number * each_s / DAY_S, size)}
        )
        for number in range(count + 1)
    ]


def test_a_zone_is_full_when_its_growth_has_taken_the_rest():
    (zone,) = forecast(samples(10), {"object": "gold"})
    assert (zone.policy, zone.zone, zone.used, zone.size) == ("gold", "r1z1", 200.0, 1000.0)
    assert zone.growth == pytest.approx(10.0)
    assert zone.days == pytest.approx(80.0)


def test_growth_is_the_slope_of_the_line_and_not_of_two_samples():
    noise = [5.0, -5.0, 0.0] * 14
    points = [(number * DAY_S / 2, 10.0 * number / 2 + noise[number]) for number in range(42)]
    assert growth_per_day(points) == pytest.approx(10.0, abs=0.2)


@pytest.mark.parametrize("days", [0, 1, 2.75])
def test_three_days_of_samples_are_needed(days):
    (zone,) = forecast(samples(days), {})
    assert (zone.growth, zone.days) == (None, None)
    assert forecast(samples(3), {})[0].growth == pytest.approx(10.0)


@pytest.mark.parametrize("daily", [0.0, -5.0, 1e-9])
def test_what_does_not_grow_is_never_full(daily):
    assert forecast(samples(10, daily=daily), {})[0].days is None


def test_a_full_zone_is_full_now():
    assert forecast(samples(10, start=950.0), {})[0].days == 0.0


def test_a_zone_whose_server_is_away_keeps_its_forecast_for_a_day():
    known = samples(10)
    assert len(forecast([*known, UsageSample(NOW_S + DAY_S / 2, {})], {})) == 1
    assert forecast([*known, UsageSample(NOW_S + 2 * DAY_S, {})], {}) == []
    assert forecast([], {}) == []


def device(number, zone=1, weight=1.0):
    return SimpleNamespace(ip=f"10.0.0.{number}", port=6200, device="sda", region=1, zone=zone, weight=weight)


def used(number, count):
    return {Host(f"10.0.0.{number}", 6200): [{"device": "sda", "mounted": True, "used": count, "size": 100}]}


def test_usage_is_the_sum_of_the_devices_of_a_zone():
    devices = [device(1), device(2), None, device(3, zone=2)]
    assert zone_usage(devices, {**used(1, 10), **used(2, 20), **used(3, 5)}) == {
        "r1z1": ZoneUsage(30.0, 200.0),
        "r1z2": ZoneUsage(5.0, 100.0),
    }


def test_a_zone_without_the_report_of_a_device_has_no_sample():
    assert zone_usage([device(1), device(2), device(3, zone=2)], {**used(1, 10), **used(3, 5)}) == {
        "r1z2": ZoneUsage(5.0, 100.0)
    }


def test_a_device_of_weight_0_has_no_room():
    found = zone_usage([device(1), device(2, weight=0.0)], {**used(1, 10), **used(2, 20)})
    assert found == {"r1z1": ZoneUsage(30.0, 100.0)}


def test_the_history_keeps_a_sample_an_hour_for_four_weeks(tmp_path):
    history = UsageHistory(str(tmp_path / "capacity.jsonl"))
    step_s = SAMPLE_S / 2
    for number in range(5):
        sample = UsageSample(NOW_S + number * step_s, {GOLD: ZoneUsage(number, 10.0)})
        assert history.record(sample)[-1] == sample
    assert [each.usage[GOLD].used for each in history.read()] == [0.0, 2.0, 4.0]
    history.record(UsageSample(NOW_S + KEPT_S + step_s, {GOLD: ZoneUsage(9.0, 10.0)}))
    assert [each.usage[GOLD].used for each in history.read()] == [2.0, 4.0, 9.0]
    assert len((tmp_path / "capacity.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "line",
    [
        *("", "x", "7", "[]", "{}", '{"time": 1}', '{"time": "x", "usage": {}}', '{"time": 1, "usage": 7}'),
        *('{"time": 1, "usage": {"object": {"r1z1": [1]}}}', '{"time": NaN, "usage": {}}'),
        '{"time": 1, "usage": {"object": {"r1z1": [1, 1e999]}}}',
    ],
)
def test_lines_that_are_no_samples_are_left_out(tmp_path, line):
    path = tmp_path / "capacity.jsonl"
    good = UsageSample(NOW_S, {GOLD: ZoneUsage(1.0, 2.0)}).as_line()
    path.write_text(f"{line}\n{good}")
    assert len(UsageHistory(str(path)).read()) == 1


def health_of(zones, **limits):
    capacity = CapacityForecast(zones, **limits)
    return evaluate([], {}, ClusterSnapshot(), NOW_S, capacity=capacity)


def zone_full_in(days):
    return ZoneForecast("object", "gold", "r1z1", 0.0, days * 10.0, 10.0)


@pytest.mark.parametrize(
    ("days", "level"),
    [(6, Severity.CRITICAL), (7, Severity.WARNING), (29, Severity.WARNING), (30, Severity.OK)],
)
def test_a_zone_that_is_full_soon_is_a_problem(days, level):
    health = health_of([zone_full_in(days)])
    assert health.level is level
    if health.problems:
        assert f"policy gold: zone r1z1 is full in {days} days" in health.problems[0].text


def test_the_days_of_problems_are_options():
    zones = [zone_full_in(29)]
    assert health_of(zones, warning_days=0, critical_days=0).level is Severity.OK
    assert health_of(zones, critical_days=30).level is Severity.CRITICAL


def test_a_history_that_cannot_be_kept_is_reported():
    health = health_of([], error="no room")
    assert health.level is Severity.UNKNOWN and "no room" in health.problems[0].text


def test_screen_and_json_show_the_forecast():
    zones = [
        ZoneForecast("object", "gold", "r1z1", 4e11, 1e12, 1e10),
        ZoneForecast("object-1", "silver", "r1z2", 5e11, 1e12, None),
        ZoneForecast("object-1", "silver", "r1z3", 5e11, 1e12, -1.0),
    ]
    health = health_of(zones)
    shown = [line.split() for line in screen(health, NOW_S)]
    assert [
        "gold",
        "r1z1",
        "40.0",
        "%",
        "1",
        "TB",
        "10",
        "GB",
        "a",
        "day,",
        "full",
        "in",
        "60",
        "days",
    ] in shown
    assert ["silver", "r1z3", "50.0", "%", "1", "TB", "does", "not", "grow"] in shown
    assert any(line[:2] == ["silver", "r1z2"] and "unknown:" in line for line in shown)
    found = json.loads(json.dumps(health.as_json(), allow_nan=False))["capacity"]
    assert found[0] == {
        "ring": "object",
        "policy": "gold",
        "zone": "r1z1",
        "used": 400000000000,
        "size": 1000000000000,
        "growth_per_day": 10000000000,
        "full_in_days": 60.0,
    }
    assert found[1]["full_in_days"] is None and found[1]["growth_per_day"] is None


def test_the_forecast_is_written_for_prometheus(tmp_path):
    path = tmp_path / "health.prom"
    growing, unknown = zone_full_in(20), ZoneForecast("object-1", "silver", "r1z1", 5.0, 10.0, None)
    CapacityForecast([growing, unknown]).export(str(path))
    text = path.read_text()
    assert 'swift_capacity_full_days{policy="gold",zone="r1z1"} 20\n' in text
    assert 'swift_capacity_used_bytes{policy="silver",zone="r1z1"} 5\n' in text
    assert text.count("swift_capacity_full_days{") == 1
