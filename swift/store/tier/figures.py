"""Counts of a process's tier by class and device: plain numbers that can be summed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

#: Counted events and their meaning.
NAMES = {
    "hits": "Reads that the SSD served",
    "misses": "Reads that the device served",
    "kept": "Entries that were written to the SSD",
    "rejected": "Entries that were read but not admitted",
    "unproven": "Entries that were compared with the device before use",
    "dropped": "Entries that were removed",
    "differences": "Entries that differed from the device",
}

#: Class, device and name → number.
Figures = Counter[tuple[str, str, str]]


def pack_report(figures: Figures, state: dict[str, object]) -> bytes:
    """Return the counts in the format of session reports."""
    rows = [[*key, value] for key, value in figures.items()]
    return json.dumps({**state, "figures": rows}).encode()


def merge_reports(reports: Iterable[bytes]) -> tuple[Figures, list[dict[str, object]]]:
    """Return the summed counts and the processes' states. Incomplete reports are skipped."""
    total: Figures = Counter()
    states = []
    for data in reports:
        try:
            report = json.loads(data)
            counted = {
                (of, device, name): int(value) for of, device, name, value in report.pop("figures", ())
            }
        except (ValueError, TypeError, AttributeError):
            continue
        total.update(counted)
        states.append(report)
    return total, states


def hit_rate(figures: Figures, of: str, device: str | None = None) -> float | None:
    """Return the hits per lookup of a class, 0–1; None without lookups."""
    hits = misses = 0
    for (each_class, each_device, name), value in figures.items():
        if each_class == of and device in (None, each_device):
            hits += value if name == "hits" else 0
            misses += value if name == "misses" else 0
    return hits / (hits + misses) if hits + misses else None
