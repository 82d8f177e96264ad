"""Names of metrics and labels in PromQL expressions, and a check that they are declared.

This is no parser of PromQL: it finds names. ``promtool`` checks the grammar in tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tools.generate.metrics import Metric

#: Metric of Prometheus or the node exporter → its labels.
FOREIGN = {
    "up": ("job",),
    "node_filesystem_avail_bytes": ("device", "mountpoint"),
    "node_filesystem_size_bytes": ("device", "mountpoint"),
    "node_textfile_mtime_seconds": ("file",),
    "node_textfile_scrape_error": (),
}
#: Labels that samples get beside their own: by scraping, of workers, and of daemons' pages.
COMMON = ("instance", "job", "pid", "daemon")
_KEYWORDS = frozenset(
    ("and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset")
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_RANGE = re.compile(r"\[[^\]]*\]")
#: A name is possessive (``*+``): part of the name of a function is none of a metric.
_SELECTOR = re.compile(r"(?<![\w.:])([A-Za-z_:][\w:]*+)\s*(?:\{([^}]*)\})?(?!\s*[({])")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


class ExpressionError(ValueError):
    """An expression with a name that no metric has."""


def selectors_of(expression: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return each metric of an expression with the labels that its matchers name."""
    plain = _GROUPING.sub("", _RANGE.sub("", _STRING.sub('""', expression)))
    for name, matchers in _SELECTOR.findall(plain):
        if name not in _KEYWORDS:
            yield name, tuple(_MATCHER.findall(matchers))


def groupings_of(expression: str) -> set[str]:
    """Return the labels by which an expression groups."""
    lists = _GROUPING.findall(_STRING.sub('""', expression))
    return {label.strip() for each in lists for label in each.split(",") if label.strip()}


def series_of(metrics: Iterable[Metric]) -> dict[str, tuple[str, ...]]:
    """Return the names of the series of metrics with their labels."""
    found = dict(FOREIGN)
    for metric in metrics:
        if metric.kind == "histogram":
            found[f"{metric.name}_bucket"] = (*metric.labels, "le")
            found[f"{metric.name}_sum"] = found[f"{metric.name}_count"] = metric.labels
        else:
            found[metric.name] = metric.labels
    return found


def check_expression(
    expression: str,
    series: Mapping[str, tuple[str, ...]],
    recorded: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Raise ``ExpressionError`` for names of metrics or labels that are not declared.

    ``recorded`` has the names of recording rules with their labels.
    """
    known = {**series, **(recorded or {})}
    labels = set()
    for name, matched in selectors_of(expression):
        if name not in known:
            raise ExpressionError(f"no metric is called {name}: {expression}")
        allowed = {*known[name], *COMMON}
        if unknown := set(matched) - allowed:
            raise ExpressionError(f"{name} has no label {', '.join(sorted(unknown))}: {expression}")
        labels |= allowed
    if unknown := groupings_of(expression) - labels:
        raise ExpressionError(f"no metric has a label {', '.join(sorted(unknown))}: {expression}")
