"""Plots: lines by name, and choices by cost and throughput with their Pareto front.

A module of its own because it imports matplotlib, which is optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from swift.plan.errors import PlanError

KINDS = (".svg", ".png")


def checked_path(path: str) -> str:
    """Return a path that a plot can be written to. Raises PlanError."""
    if Path(path).suffix not in KINDS:
        raise PlanError(f"--plot {path}: the name must end in .svg or .png")
    if not Path(path).absolute().parent.is_dir():
        raise PlanError(f"--plot {path}: there is no such directory")
    return path


def plot_lines(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    path: str,
    *,
    title: str,
    across: str,
    up: str,
    beside: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> None:
    """Plot points by name, joined; those of ``beside``, by the same names, dashed. Raises OSError."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(8, 5), layout="constrained")
    axes = canvas.subplots()
    for number, (name, points) in enumerate(lines.items()):
        colour = f"C{number}"
        axes.plot(*zip(*sorted(points), strict=True), "o-", color=colour, label=name, markersize=4)
        others = (beside or {}).get(name)
        if others:
            axes.plot(*zip(*sorted(others), strict=True), "--", color=colour, linewidth=1)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    canvas.savefig(path)


def plot_choices(
    points: Sequence[tuple[float, float]], front: Sequence[tuple[float, float, str]], title: str, path: str
) -> None:
    """Plot cost and throughput of all choices; join and name the undominated ones. Raises OSError."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9, 6), layout="constrained")
    axes = canvas.subplots()
    axes.scatter([cost for cost, _ in points], [rate for _, rate in points], s=12, color="#8090b0")
    axes.plot([cost for cost, _, _ in front], [rate for _, rate, _ in front], "o-", color="#b03030")
    for cost, rate, name in front:
        axes.annotate(name, (cost, rate), fontsize=7, xytext=(4, -8), textcoords="offset points")
    axes.set_xlabel("cost")
    axes.set_ylabel("requests/s")
    axes.set_title(title)
    canvas.savefig(path)
