"""A simulated figure beside the published one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swift.plan.report import format_table


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """Our figure, the published range and the tolerance; None where nothing is published."""

    name: str
    ours: float
    low: float | None
    high: float | None
    unit: str
    tolerance: float

    @property
    def deviation(self) -> float:
        """Return the relative distance from the published range; 0 within it."""
        if self.low is None or self.high is None or self.low <= self.ours <= self.high:
            return 0.0
        end = self.low if self.ours < self.low else self.high
        return self.ours / end - 1

    @property
    def is_near(self) -> bool:
        """Return True if the deviation is within the tolerance."""
        return abs(self.deviation) <= self.tolerance

    @property
    def published(self) -> str:
        """Return the published figure, or a dash."""
        if self.low is None or self.high is None:
            return "-"
        ends = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{ends} {self.unit}"


def comparison_text(figures: Sequence[ComparedFigure]) -> str:
    """Return our figures beside the published ones, one line each."""
    rows = [["figure", "simulated", "published", "off by", "allowed"]]
    for figure in figures:
        known = figure.low is not None
        rows.append(
            [
                figure.name,
                f"{figure.ours:.3g} {figure.unit}",
                figure.published,
                f"{100 * figure.deviation:+.0f} %" if known else "-",
                (f"{100 * figure.tolerance:.0f} %" + ("" if figure.is_near else " MISSED")) if known else "-",
            ]
        )
    return format_table(rows)


def plot_comparison(figures: Sequence[ComparedFigure], title: str, path: str) -> None:
    """Plot our figures divided by the published ones, with the tolerance as a band. Raises OSError."""
    from matplotlib.figure import Figure as Canvas

    known = [each for each in figures if each.low is not None and each.high and each.tolerance]
    names = [f"{each.name}\n{each.ours:.3g} {each.unit}, published {each.published}" for each in known]
    places = range(len(known))
    canvas = Canvas(figsize=(9, 1.2 + 0.55 * len(known)), layout="constrained")
    axes = canvas.subplots()
    middles = [((each.low or 0) + (each.high or 0)) / 2 for each in known]
    for place, each, middle in zip(places, known, middles, strict=True):
        ends = sorted(((each.low or 0) / middle, (each.high or 0) / middle))
        low, high = ends[0] * (1 - each.tolerance), ends[1] * (1 + each.tolerance)
        axes.barh(place, high - low, left=low, height=0.7, color="#d0d8e8")
    ours = [each.ours / middle for each, middle in zip(known, middles, strict=True)]
    axes.plot(ours, list(places), "o", color="#b03030", label="simulated")
    axes.axvline(1, color="#405070", linewidth=1, label="published")
    axes.set_yticks(list(places), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("simulated by published; the band is what is allowed")
    axes.set_title(title)
    axes.legend(loc="lower right", fontsize=8)
    canvas.savefig(path)
