"""Numbers about a running process, shown as the Prometheus text format on every server.

A ``Registry`` belongs to one process; the sum over workers is the scraper's job (each worker's page
carries a ``pid`` label). A metric is declared once, as a constant of the module that counts it;
``doc/reference/metrics.md`` is made from the declarations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

#: Upper bounds of duration buckets, seconds.
DURATION_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Labels of buckets on the page, that of all longer durations last.
_BUCKET_LABELS = tuple(f'le="{bound:g}"' for bound in DURATION_BUCKETS_S) + ('le="+Inf"',)

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Add ``amount``."""
        self.value += amount


class Gauge:
    """A number that goes up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def set(self, value: float) -> None:
        """Take the value."""
        self.value = value

    def inc(self, amount: float = 1.0) -> None:
        """Add ``amount``, which may be negative."""
        self.value += amount


class Histogram:
    """Durations counted in buckets."""

    __slots__ = ("counts", "total", "sum")

    def __init__(self) -> None:
        self.counts = [0] * len(_BUCKET_LABELS)
        self.total = 0
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(DURATION_BUCKETS_S, seconds)] += 1
        self.total += 1
        self.sum += seconds


M = TypeVar("M", Counter, Gauge, Histogram)


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric: its name, its help text, and the names of its labels."""

    name: str
    about: str
    labels: tuple[str, ...] = ()
    #: The type of Prometheus.
    kind: ClassVar[str] = ""


class CounterMetric(Metric):
    """A metric that only grows."""

    kind = "counter"

    def of(self, registry: Registry, **labels: str) -> Counter:
        """Return the counter with these labels, made at first use; keep it, the look-up is not free."""
        return registry.child(self, labels, Counter)


class GaugeMetric(Metric):
    """A metric that goes up and down."""

    kind = "gauge"

    def of(self, registry: Registry, **labels: str) -> Gauge:
        """Return the gauge with these labels."""
        return registry.child(self, labels, Gauge)


class HistogramMetric(Metric):
    """A metric of durations in seconds."""

    kind = "histogram"

    def of(self, registry: Registry, **labels: str) -> Histogram:
        """Return the histogram with these labels."""
        return registry.child(self, labels, Histogram)


class Registry:
    """All metrics of one process."""

    def __init__(self, constant_labels: Mapping[str, str] | None = None):
        #: Labels of every sample; a forked worker replaces them by its own.
        self.constant_labels: Mapping[str, str] = constant_labels or {}
        self._families: dict[str, tuple[str, str, dict[Labels, Counter | Gauge | Histogram]]] = {}

    def child(self, metric: Metric, labels: Mapping[str, str], make: Callable[[], M]) -> M:
        """Return the sample of a metric with these labels; ValueError for labels that it does not declare."""
        if tuple(labels) != metric.labels and set(labels) != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {tuple(labels)}")
        children = self._families.setdefault(metric.name, (metric.kind, metric.about, {}))[2]
        key = tuple(sorted(labels.items()))
        child = children.get(key)
        if child is None:
            child = children[key] = make()
        return child  # type: ignore[return-value]

    def render(self, labels: Mapping[str, str] | None = None) -> str:
        """Return the Prometheus text exposition format, version 0.0.4.

        Every sample gets ``labels``; samples with other values of these labels are omitted.
        """
        lines = []
        added = labels or {}
        constant = (*self.constant_labels.items(), *added.items())
        for name, (kind, help_text, children) in sorted(self._families.items()):
            lines.append(f"# HELP {name} {help_text}")
            lines.append(f"# TYPE {name} {kind}")
            for key, metric in sorted(children.items()):
                if any(added.get(label, value) != value for label, value in key):
                    continue
                text = _labels(constant + tuple(pair for pair in key if pair[0] not in added))
                if isinstance(metric, Histogram):
                    lines += _histogram_lines(name, text, metric)
                else:
                    lines.append(f"{name}{_braces(text)} {_number(metric.value)}")
        return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """Return every digit: a rounded counter would seem to stand still once it is large."""
    return str(int(value)) if value == int(value) else repr(value)


def _histogram_lines(name: str, labels: str, metric: Histogram) -> list[str]:
    start = f"{name}_bucket{{{labels}," if labels else f"{name}_bucket{{"
    lines, running = [], 0
    for bucket, count in zip(_BUCKET_LABELS, metric.counts, strict=True):
        running += count
        lines.append(f"{start}{bucket}}} {running}")
    lines.append(f"{name}_sum{_braces(labels)} {metric.sum:.6f}")
    lines.append(f"{name}_count{_braces(labels)} {metric.total}")
    return lines


def _labels(labels: Labels) -> str:
    escaped = ((k, v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for k, v in labels)
    return ",".join(f'{k}="{v}"' for k, v in escaped)


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""
