"""Two runs side by side: what differs, how sure that is, and by how much.

The seconds of a phase are drawn again, with replacement, a thousand times (a bootstrap), for each run by
itself; each time rates and percentiles of latency are computed anew. The middle 95 % of the relative change
are its confidence interval, and a difference is significant when that does not contain zero. Percentiles of a
draw come from the bins of the heat map, interpolated within a bin. The first figures shown are those of the
whole run. Seconds that depend on each other make intervals too narrow: run for longer, or run each twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swift.load.measure import BINS_AN_OCTAVE, OperationResult
from swift.load.savedruns import SavedPhase, SavedRun

Array = NDArray[np.float64]
RESAMPLES = 1000
#: Fewest whole seconds for a comparison.
SECONDS_MIN = 5
LOW, HIGH = 2.5, 97.5


@dataclass(frozen=True)
class Difference:
    """One figure of one operation in both runs."""

    phase: str
    operation: str
    figure: str
    a: float
    b: float
    #: The change from a to b as a part of a, and its 95 % confidence interval; None when it is not known.
    change: float | None
    low: float | None
    high: float | None

    @property
    def is_significant(self) -> bool | None:
        """True if the interval excludes that nothing has changed; None when there is none."""
        return None if self.low is None or self.high is None else self.low > 0 or self.high < 0

    @property
    def verdict(self) -> str:
        """In words."""
        if self.is_significant is None:
            return "too short to say"
        if not self.is_significant:
            return "no difference seen"
        better = (self.b > self.a) == self.figure.endswith("/s")
        return "better" if better else "worse"


def differences(a: SavedRun, b: SavedRun, seed: int = 1) -> list[Difference]:
    """Return all figures that both runs have, in the order of the first."""
    found = []
    others = {(phase.name, phase.kind): phase for phase in b.phases}
    for phase in a.phases:
        other = others.get((phase.name, phase.kind))
        if other is not None:
            for name in sorted(set(phase.result.operations) & set(other.result.operations)):
                found += _operation(phase, other, name, seed)
    return found


def _operation(a: SavedPhase, b: SavedPhase, name: str, seed: int) -> list[Difference]:
    results = (a.result.operations[name], b.result.operations[name])
    lengths = (a.result.seconds, b.result.seconds)
    samples = [_Sample(result, length) for result, length in zip(results, lengths, strict=True)]
    chance = np.random.default_rng(seed)
    drawn = [sample.draws(chance) for sample in samples]
    found = []
    for figure, whole in _figures().items():
        first, second = (whole(result, max(s, 1e-9)) for result, s in zip(results, lengths, strict=True))
        low = high = None
        if all(sample.is_enough for sample in samples):
            low, high = _interval(drawn[0][figure], drawn[1][figure])
        change = (second - first) / first if first else None
        found.append(Difference(a.name, name, figure, first, second, change, low, high))
    return found


def _figures() -> dict[str, Callable[[OperationResult, float], float]]:
    return {
        "ops/s": lambda result, seconds: result.count / seconds,
        "MB/s": lambda result, seconds: result.bytes / seconds / 1e6,
        "p50 ms": lambda result, _seconds: result.latency_ms(50),
        "p95 ms": lambda result, _seconds: result.latency_ms(95),
        "p99 ms": lambda result, _seconds: result.latency_ms(99),
    }


def _interval(a: Array, b: Array) -> tuple[float | None, float | None]:
    if not (a > 0).all():
        return None, None
    low, high = np.percentile((b - a) / a, (LOW, HIGH))
    return float(low), float(high)


class _Sample:
    """The seconds of one operation as arrays."""

    def __init__(self, result: OperationResult, length_s: float):
        # The last second is seldom a whole one.
        whole = range(int(length_s))
        seconds = [result.seconds.get(at) for at in whole]
        self.is_enough = len(seconds) >= SECONDS_MIN
        self._counts = np.array([0 if one is None else one.count for one in seconds], dtype=np.float64)
        self._bytes = np.array([0 if one is None else one.bytes for one in seconds], dtype=np.float64)
        bins = 1 + max((number for one in seconds if one for number in one.bins), default=0)
        self._bins = np.zeros((len(seconds), bins))
        for at, one in enumerate(seconds):
            if one is not None:
                for number, count in one.bins.items():
                    self._bins[at, number] = count

    def draws(self, chance: np.random.Generator) -> dict[str, Array]:
        """Return each figure of a thousand resamples of the seconds."""
        total = len(self._counts)
        if not total:
            return {figure: np.zeros(RESAMPLES) for figure in _figures()}
        weights = chance.multinomial(total, np.full(total, 1 / total), size=RESAMPLES).astype(np.float64)
        binned = weights @ self._bins
        return {
            "ops/s": weights @ self._counts / total,
            "MB/s": weights @ self._bytes / total / 1e6,
            **{f"p{percent} ms": percentiles(binned, percent) for percent in (50, 95, 99)},
        }


def percentiles(binned: Array, percent: float) -> Array:
    """Return a percentile of each row of counts by bin, milliseconds; 0 for a row without any."""
    sums = binned.cumsum(axis=1)
    wanted = sums[:, -1] * percent / 100
    at = (sums < wanted[:, None]).sum(axis=1).clip(max=binned.shape[1] - 1)
    rows = np.arange(len(binned))
    inside = binned[rows, at]
    before = sums[rows, at] - inside
    part = np.divide(wanted - before, inside, out=np.zeros(len(binned)), where=inside > 0)
    found: Array = np.exp2((at + part) / BINS_AN_OCTAVE) / 1000
    return np.where(sums[:, -1] > 0, found, 0.0)


def to_json(a: SavedRun, b: SavedRun, found: Sequence[Difference]) -> dict[str, object]:
    """Return the comparison, as JSON."""
    return {
        "a": a.workload,
        "b": b.workload,
        "confidence": (HIGH - LOW) / 100,
        "differences": [
            {
                "phase": one.phase,
                "operation": one.operation,
                "figure": one.figure,
                "a": one.a,
                "b": one.b,
                "change": one.change,
                "low": one.low,
                "high": one.high,
                "significant": one.is_significant,
                "verdict": one.verdict,
            }
            for one in found
        ],
    }


def change_text(value: float | None) -> str:
    """Return a relative change, for people."""
    return "-" if value is None or not math.isfinite(value) else f"{value:+.1%}"
