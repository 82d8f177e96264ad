"""Results of operations: counts, bytes, errors by kind and latencies, in total and by second.

Latencies go into an HdrHistogram (three significant digits, a microsecond to an hour) and, for the heat map,
into bins of a quarter of an octave a second. Everything can be written as JSON and added up, because every
process measures for itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hdrh.histogram import HdrHistogram

LOWEST_US, HIGHEST_US, DIGITS = 1, 3_600_000_000, 3
BINS_AN_OCTAVE = 4
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


def latency_bin(latency_us: float) -> int:
    """Return the heat map's bin of a latency."""
    return int(math.log2(max(latency_us, 1.0)) * BINS_AN_OCTAVE)


def latency_bin_start_ms(number: int) -> float:
    """Return the latency at which a bin begins, milliseconds."""
    return float(2 ** (number / BINS_AN_OCTAVE)) / 1000


def new_histogram() -> HdrHistogram:
    """Return an empty histogram of latencies, microseconds."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


@dataclass
class Second:
    """One second of one operation."""

    count: int = 0
    bytes: int = 0
    failed: int = 0
    bins: Counter[int] = field(default_factory=Counter)

    def add(self, other: Second) -> None:
        """Count what another process did in the same second."""
        self.count += other.count
        self.bytes += other.bytes
        self.failed += other.failed
        self.bins.update(other.bins)

    def to_json(self) -> list[object]:
        """Return the JSON form, with bins as pairs."""
        return [self.count, self.bytes, self.failed, sorted(self.bins.items())]

    @classmethod
    def from_json(cls, found: Iterable[object]) -> Second:
        """Return the inverse."""
        count, size, failed, bins = found
        return cls(int(str(count)), int(str(size)), int(str(failed)), Counter(dict(bins)))  # type: ignore[call-overload]


class OperationResult:
    """One kind of operation in one phase."""

    def __init__(self) -> None:
        self.histogram = new_histogram()
        self.errors: Counter[str] = Counter()
        self.seconds: dict[int, Second] = {}

    def add(self, at_s: float, latency_s: float, size: int, error: str | None) -> None:
        """Count one operation that ended at ``at_s`` seconds after its phase began."""
        second = self.seconds.get(int(at_s))
        if second is None:
            second = self.seconds[int(at_s)] = Second()
        if error is not None:
            self.errors[error] += 1
            second.failed += 1
            return
        latency_us = latency_s * 1e6
        self.histogram.record_value(max(LOWEST_US, min(int(latency_us), HIGHEST_US)))
        second.count += 1
        second.bytes += size
        second.bins[latency_bin(latency_us)] += 1

    def merge(self, other: OperationResult) -> None:
        """Add what another process measured."""
        self.histogram.add(other.histogram)
        self.errors.update(other.errors)
        for at, second in other.seconds.items():
            self.seconds.setdefault(at, Second()).add(second)

    @property
    def count(self) -> int:
        """Operations that succeeded."""
        return sum(second.count for second in self.seconds.values())

    @property
    def bytes(self) -> int:
        """Bytes they moved."""
        return sum(second.bytes for second in self.seconds.values())

    @property
    def failed(self) -> int:
        """Operations that did not succeed."""
        return sum(self.errors.values())

    def latency_ms(self, percentile: float) -> float:
        """Return a percentile of the latencies, milliseconds; 0 without any."""
        return float(self.histogram.get_value_at_percentile(percentile)) / 1000 if self.count else 0.0

    @property
    def mean_ms(self) -> float:
        """The mean latency, milliseconds."""
        return float(self.histogram.get_mean_value()) / 1000 if self.count else 0.0

    def to_json(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "histogram": self.histogram.encode().decode("ascii"),
            "errors": dict(self.errors),
            "seconds": {str(at): second.to_json() for at, second in sorted(self.seconds.items())},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> OperationResult:
        """Return the inverse; raises KeyError, TypeError and ValueError."""
        made = cls()
        made.histogram = HdrHistogram.decode(str(found["histogram"]))
        errors, seconds = found["errors"], found["seconds"]
        if not isinstance(errors, dict) or not isinstance(seconds, dict):
            raise TypeError("results are tables")
        made.errors.update(errors)
        made.seconds = {int(at): Second.from_json(second) for at, second in seconds.items()}
        return made


class PhaseResult:
    """All operations of one phase, of one process or of all."""

    def __init__(self) -> None:
        self.operations: dict[str, OperationResult] = {}
        #: Duration of the phase.
        self.seconds = 0.0
        #: CPU seconds of the processes that made the load.
        self.load_cpu_s = 0.0
        #: Operations of an open loop that began later than intended, and the worst delay.
        self.late = 0
        self.latest_s = 0.0

    @property
    def count(self) -> int:
        """Operations that succeeded, of all kinds."""
        return sum(one.count for one in self.operations.values())

    def of(self, operation: str) -> OperationResult:
        """Return the result of an operation."""
        found = self.operations.get(operation)
        if found is None:
            found = self.operations[operation] = OperationResult()
        return found

    def merge(self, other: PhaseResult) -> None:
        """Add what another process measured in the same phase."""
        for name, result in other.operations.items():
            self.of(name).merge(result)
        self.seconds = max(self.seconds, other.seconds)
        self.load_cpu_s += other.load_cpu_s
        self.late += other.late
        self.latest_s = max(self.latest_s, other.latest_s)

    def to_json(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "seconds": self.seconds,
            "load_cpu_s": self.load_cpu_s,
            "late": self.late,
            "latest_s": self.latest_s,
            "operations": {name: result.to_json() for name, result in self.operations.items()},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> PhaseResult:
        """Return the inverse; raises KeyError, TypeError and ValueError."""
        made = cls()
        made.seconds = float(str(found["seconds"]))
        made.load_cpu_s = float(str(found["load_cpu_s"]))
        made.late = int(str(found["late"]))
        made.latest_s = float(str(found["latest_s"]))
        operations = found["operations"]
        if not isinstance(operations, dict):
            raise TypeError("operations are a table")
        made.operations = {name: OperationResult.from_json(one) for name, one in operations.items()}
        return made
