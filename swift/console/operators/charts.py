"""Coordinates of pictures; templates/charts.html draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swift.operations.health.forecast import DAY_S, UsageSample, ZoneForecast

_WIDTH, _HEIGHT = 320, 100
#: Days that a picture looks ahead at most.
_AHEAD_DAYS = 90.0
_POINTS_MAX = 200
_COLUMNS_MAX = 400


@dataclass(frozen=True)
class Curve:
    """The usage of a zone over time, and as it is expected."""

    past: str
    future: str
    #: Height at which the zone is full, and place of the present.
    limit: str
    now: str
    width: int = _WIDTH
    height: int = _HEIGHT


def usage_curve(zone: ZoneForecast, samples: Sequence[UsageSample]) -> Curve | None:
    """Return the curve of a zone; None while there are too few samples."""
    key = zone.ring, zone.zone
    found = [(sample.time_s, sample.usage[key].used) for sample in samples if key in sample.usage]
    if len(found) < 2 or found[-1][0] <= found[0][0]:
        return None
    points = [*found[:: -(-len(found) // _POINTS_MAX)], found[-1]]
    begin_s, now_s = found[0][0], found[-1][0]
    growth = zone.growth or 0.0
    ahead_s = min(_AHEAD_DAYS if zone.days is None else zone.days, _AHEAD_DAYS) * DAY_S if growth > 0 else 0.0
    span_s = now_s + ahead_s - begin_s
    highest = max(zone.size, *(used for _, used in points), 1.0) * 1.05

    def place(time_s: float, used: float) -> str:
        return f"{_WIDTH * (time_s - begin_s) / span_s:.1f},{_height_of(used, highest)}"

    end = zone.used + growth * ahead_s / DAY_S
    return Curve(
        " ".join(place(*point) for point in points),
        f"{place(now_s, zone.used)} {place(now_s + ahead_s, end)}" if ahead_s else "",
        _height_of(zone.size, highest),
        f"{_WIDTH * (now_s - begin_s) / span_s:.1f}",
    )


def _height_of(value: float, highest: float) -> str:
    return f"{_HEIGHT * (1 - max(0.0, value) / highest):.1f}"


@dataclass(frozen=True)
class Columns:
    """Columns above and below a middle line: (x, y, height) each."""

    bars: Sequence[tuple[float, float, float]]
    step: float
    middle: float = _HEIGHT / 2
    width: int = _WIDTH
    height: int = _HEIGHT


def deviation_columns(percents: Sequence[float]) -> Columns:
    """Return a column for each deviation, or for some of them in the same order."""
    shown = percents[:: -(-len(percents) // _COLUMNS_MAX) or 1]
    step = _WIDTH / max(1, len(shown))
    scale = _HEIGHT / 2 / max(1.0, *map(abs, shown)) if shown else 1.0
    middle = _HEIGHT / 2
    bars = [
        (round(place * step, 2), round(middle - max(0.0, each) * scale, 2), round(abs(each) * scale, 2))
        for place, each in enumerate(shown)
    ]
    return Columns(bars, round(step * 0.9, 2))
