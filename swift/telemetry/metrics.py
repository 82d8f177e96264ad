"""Numbers about a running process, shown as the Prometheus text format on every server.

A ``Registry`` belongs to one process; the sum over workers is the scraper's job (each worker's page
carries a ``pid`` label). Names are declared where they are used; a name has one help text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

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


class Registry:
    """All metrics of one process."""

    def __init__(self, constant_labels: Mapping[str, str] | None = None):
        #: Labels of every sample; a forked worker replaces them by its own.
        self.constant_labels: Mapping[str, str] = constant_labels or {}
        self._families: dict[str, tuple[str, str, dict[Labels, Counter | Gauge | Histogram]]] = {}

    def counter(self, name: str, help_text: str, **labels: str) -> Counter:
        """Return the counter of this name and labels, made at first use; keep it, the look-up is not free."""
        return self._metric(name, "counter", help_text, labels, Counter)

    def gauge(self, name: str, help_text: str, **labels: str) -> Gauge:
        """Return the gauge of this name and labels."""
        return self._metric(name, "gauge", help_text, labels, Gauge)

    def histogram(self, name: str, help_text: str, **labels: str) -> Histogram:
        """Return the histogram of this name and labels."""
        return self._metric(name, "histogram", help_text, labels, Histogram)

    def _metric(  # type: ignore[no-untyped-def]
        self, name: str, kind: str, help_text: str, labels: Mapping[str, str], make
    ):
        family = self._families.setdefault(name, (kind, help_text, {}))
        key = tuple(sorted(labels.items()))
        metric = family[2].get(key)
        if metric is None:
            metric = family[2][key] = make()
        return metric

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
