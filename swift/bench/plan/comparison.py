"""A simulated figure beside the published one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swift.bench.plan.report import table


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A figure of ours, and the published range and the tolerance; None where nothing is published."""

    name: str
    ours: float
    low: float | None
    high: float | None
    unit: str
    tolerance: float

    @property
    def deviation(self) -> float:
        """How far outside the published range, as a share of its nearer end; 0 within it."""
        if self.low is None or self.high is None or self.low <= self.ours <= self.high:
            return 0.0
        end = self.low if self.ours < self.low else self.high
        return self.ours / end - 1

    @property
    def is_near(self) -> bool:
        """Whether it is within its tolerance."""
        return abs(self.deviation) <= self.tolerance

    @property
    def published(self) -> str:
        """The published figure, or a dash."""
        if self.low is None or self.high is None:
            return "-"
        ends = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{ends} {self.unit}"


def comparison_text(figures: Sequence[ComparedFigure]) -> str:
    """Ours beside theirs, one line each."""
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
    return table(rows)
