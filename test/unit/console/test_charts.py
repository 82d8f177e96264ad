"""Pictures of the console have coordinates within their frames, whatever the figures are."""

import pytest

from swift.console.operators.charts import deviation_columns, usage_curve
from swift.operations.health.forecast import DAY_S, UsageSample, ZoneForecast, ZoneUsage


def samples(*used):
    return [
        UsageSample(day * DAY_S, {("object", "r1z1"): ZoneUsage(each, 100.0)})
        for day, each in enumerate(used)
    ]


def zone(used, growth, size=100.0):
    return ZoneForecast("object", "gold", "r1z1", used, size, growth)


def points(text):
    return [tuple(map(float, pair.split(","))) for pair in text.split()]


def test_a_growing_zone_reaches_its_size_when_it_is_full():
    curve = usage_curve(zone(50.0, 10.0), samples(20.0, 30.0, 40.0, 50.0))
    past, future = points(curve.past), points(curve.future)
    assert past[0][0] == 0.0 and past[-1] == future[0] and past[-1][0] == float(curve.now)
    assert future[-1] == (curve.width, float(curve.limit))
    # Three days are behind, and five are left.
    assert float(curve.now) == curve.width * 3 / 8


def test_a_zone_that_does_not_grow_has_no_future():
    curve = usage_curve(zone(50.0, -1.0), samples(52.0, 51.0, 50.0))
    assert curve.future == "" and float(curve.now) == curve.width


@pytest.mark.parametrize("used", [(), (5.0,)])
def test_too_few_samples_are_no_curve(used):
    assert usage_curve(zone(5.0, 1.0), samples(*used)) is None


def test_a_zone_beyond_its_size_stays_in_the_frame():
    curve = usage_curve(zone(900.0, 300.0), samples(300.0, 600.0, 900.0))
    for _x, y in points(curve.past):
        assert 0 <= y <= curve.height


def test_many_samples_become_few_points():
    curve = usage_curve(zone(5.0, 0.0), samples(*[5.0] * 1000))
    assert len(points(curve.past)) <= 201


def test_columns_stand_above_and_below_the_middle():
    columns = deviation_columns([10.0, 0.0, -20.0])
    (_, high, tall), (_, flat, none), (_, low, deep) = columns.bars
    assert (high + tall, none, flat) == (columns.middle, 0.0, columns.middle)
    assert (low, deep) == (columns.middle, columns.middle) and tall == deep / 2


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_any_number_of_devices_fits(count):
    columns = deviation_columns([1e12] * count)
    assert len(columns.bars) <= 400
    assert all(0 <= x <= columns.width and y >= 0 for x, y, _height in columns.bars)
