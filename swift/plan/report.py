"""Figures as tables for people and as JSON for programs, and lines of progress."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from swift.plan.assumptions import Assumptions, assumption_doc
from swift.plan.capacity import Figure
from swift.plan.durability import DurabilityCheck

_BYTES = ("B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB")
_REPORT_EVERY_S = 2.0
Say = Callable[[str], None]


def format_amount(value: float, unit: str) -> str:
    """Return a number in the unit that reads best."""
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    if unit == "B":
        step = min(len(_BYTES) - 1, max(0, int(math.log10(max(value * 1.0005, 1)) / 3)))
        return f"{value / 1000**step:.3g} {_BYTES[step]}"
    if unit == "s":
        for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
            if value >= 2 * size:
                return f"{value / size:.3g} {name}"
        return f"{value:.3g} s"
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit == "probability":
        return f"{value:.1e}"
    text = f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return columns as wide as they must be; the first row is the head."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def capacity_text(
    plans: Mapping[str, Mapping[int, Sequence[Figure]]],
    checks: Mapping[str, DurabilityCheck],
    given: Assumptions,
) -> str:
    """Return all policies, one column for each number of objects, with reasons and assumptions below."""
    blocks = []
    reasons: dict[str, str] = {}
    for policy, sizes in plans.items():
        names = [figure.name for figure in next(iter(sizes.values()))]
        rows = [[policy, *(f"{objects:.0e}".replace("e+", "e") for objects in sizes)]]
        for place, name in enumerate(names):
            rows.append([name, *(format_amount(f[place].value, f[place].unit) for f in sizes.values())])
        blocks.append(format_table(rows))
        reasons |= {
            f"{figure.name} ({policy})" if figure.name in reasons else figure.name: figure.because
            for figure in [f for figures in sizes.values() for f in figures]
            if figure.because not in reasons.values()
        }
    blocks.append("why\n" + "\n".join(f"  {name}: {why}" for name, why in reasons.items()))
    for policy, check in checks.items():
        blocks.append(
            f"the chain of {policy} checked by {check.losses:,} simulated losses at "
            f"{check.failures_a_repair:.2g} failures of a drive in a repair: loss after "
            f"{check.simulated:.3g} repair times, chain {check.markov:.3g}, ratio {check.ratio:.2f}"
        )
    assumed = [f"  {name} = {value:g}: {assumption_doc(name)}" for name, value in asdict(given).items()]
    blocks.append("assumed (--set NAME=NUMBER or a file changes it)\n" + "\n".join(assumed))
    return "\n\n".join(blocks)


def capacity_json(
    plans: Mapping[str, Mapping[int, Sequence[Figure]]],
    checks: Mapping[str, DurabilityCheck],
    given: Assumptions,
) -> str:
    """Return the same for programs."""
    content = {
        "assumptions": {
            name: {"value": value, "doc": assumption_doc(name)} for name, value in asdict(given).items()
        },
        "plans": {
            policy: {
                str(objects): [asdict(figure) for figure in figures] for objects, figures in sizes.items()
            }
            for policy, sizes in plans.items()
        },
        "checks": {policy: {**asdict(check), "ratio": check.ratio} for policy, check in checks.items()},
    }
    return json.dumps(content, indent=1)


class PlanProgress:
    """Says on stderr how far a piece of work is, now and then; nothing when it is soon over."""

    def __init__(self, say: Say | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._say: Say = say or (lambda line: print(line, file=sys.stderr, flush=True))
        self._clock = clock
        self._began = self._last = clock()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Report that ``done`` of ``total`` are done."""
        now = self._clock()
        if now - self._last < _REPORT_EVERY_S or not done:
            return
        self._last = now
        left = (now - self._began) * (total - done) / done
        self._say(f"{what}: {done} of {total}, about {format_amount(left, 's')} left")
