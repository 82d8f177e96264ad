"""The plots of a report, as SVG that stands in a page by itself."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Mapping
from html import escape

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from swift.load.measure import OperationResult, latency_bin_start_ms

INK, FAINT = "#1d2733", "#d7dde4"
COLOURS = ("#1f6fb2", "#d1602c", "#2f8f5b", "#8a4fa3", "#b3872a", "#3a9fa8", "#b23b57", "#5c6b7a")
#: Points of the percentile plot: each step is one nine more.
LEVELS = (0.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
Operations = Mapping[str, OperationResult]


def percentile_plot(operations: Operations) -> str:
    """Plot latency over percentile, per operation; each further nine has the same room on the axis."""

    def draw(axes: Axes) -> None:
        for name, result, line in _series(operations):
            if not result.count:
                continue
            levels = [level for level in LEVELS if 1 / (1 - level / 100) <= result.count]
            places = [_axis_position(level) for level in levels]
            latencies = [max(result.latency_ms(level), 1e-3) for level in levels]
            axes.plot(places, latencies, line, label=name, marker="o", markersize=3, color=_colour(name))
        axes.set_yscale("log")
        shown = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)
        axes.set_xticks([_axis_position(level) for level in shown], [f"{level:g} %" for level in shown])
        axes.set_xlim(-0.05, _axis_position(LEVELS[-1]) + 0.05)
        axes.set_ylabel("latency, ms")
        axes.legend(frameon=False)

    return _svg(draw, "Latency by percentile")


def throughput_plot(operations: Operations, seconds: float) -> str:
    """Plot operations a second over time, and failures as crosses."""

    def draw(axes: Axes) -> None:
        times = range(max(1, int(seconds)))
        for name, result, line in _series(operations):
            done = [result.seconds[at].count if at in result.seconds else 0 for at in times]
            axes.plot(times, done, line, color=_colour(name), label=name)
            failed = [(at, one.failed) for at, one in sorted(result.seconds.items()) if one.failed]
            if failed:
                axes.plot(
                    *zip(*failed, strict=True),
                    "x",
                    color=_colour(name),
                    label=f"{name} failed",
                    clip_on=False,
                )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("operations/s")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

    return _svg(draw, "Throughput over time")


def failure_plot(operations: Operations, seconds: float, lasted: tuple[float, float], title: str) -> str:
    """Plot throughput over time with the time of a failure shaded, and failed operations as a line."""

    def draw(axes: Axes) -> None:
        times = range(max(1, int(seconds)))
        done, failed = (
            [
                sum(getattr(one.seconds[at], what) for one in operations.values() if at in one.seconds)
                for at in times
            ]
            for what in ("count", "failed")
        )
        axes.axvspan(*lasted, color=FAINT, label="failure")
        axes.plot(times, done, color=COLOURS[0], label="done")
        axes.plot(times, failed, color=COLOURS[1], label="failed")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("operations/s")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

    return _svg(draw, title)


def heat_map(name: str, result: OperationResult, seconds: float) -> str:
    """Draw the number of operations by second and latency."""
    length = max([1, int(seconds), *(at + 1 for at in result.seconds)])
    numbers = [number for one in result.seconds.values() for number in one.bins] or [0]
    low, high = min(numbers), max(numbers) + 1

    def draw(axes: Axes) -> None:
        counts = np.zeros((high - low, length))
        for at, one in result.seconds.items():
            for number, count in one.bins.items():
                counts[number - low, at] += count
        edges = [latency_bin_start_ms(number) for number in range(low, high + 1)]
        shown = np.ma.masked_equal(counts, 0)
        mesh = axes.pcolormesh(
            np.arange(length + 1), edges, shown, norm=LogNorm(1, max(2.0, counts.max())), cmap="YlGnBu"
        )
        # A picture in place of thousands of rectangles.
        mesh.set_rasterized(True)
        axes.set_yscale("log")
        axes.set_xlabel("seconds")
        axes.set_ylabel("latency, ms")
        axes.figure.colorbar(mesh, ax=axes, label="operations")

    return _svg(draw, f"Latency of {name} over time")


def _series(operations: Operations) -> list[tuple[str, OperationResult, str]]:
    """Return the series to draw, in order; of two runs the second is dashed."""
    return [(name, one, "--" if name.startswith("B ") else "-") for name, one in sorted(operations.items())]


def _colour(name: str) -> str:
    """Return the same for an operation in each run and in each plot."""
    known = ("get", "put", "head", "delete", "list", "post", "multipart")
    operation = name.rpartition(" ")[2]
    return COLOURS[known.index(operation) if operation in known else -1]


def _axis_position(level: float) -> float:
    return float(-np.log10(1 - level / 100))


def _svg(draw: Callable[[Axes], None], title: str) -> str:
    style = {
        "svg.hashsalt": title,
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": INK,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": False,
    }
    with matplotlib.rc_context(style):  # type: ignore[arg-type]
        figure = Figure(figsize=(6.4, 3.4), layout="constrained", dpi=150)
        axes = figure.add_subplot()
        draw(axes)
        axes.grid(axis="y", color=FAINT, linewidth=0.6, zorder=0)
        axes.set_axisbelow(True)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _make_ids_unique(text.getvalue()[text.getvalue().index("<svg") :], title)


def _make_ids_unique(svg: str, title: str) -> str:
    """Return the SVG with ids that no other plot of the page has, and a size that follows the page."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1)
    label = f' role="img" aria-label="{escape(title)}"'
    svg = re.sub(r'(<svg [^>]*?) height="[^"]*"', lambda match: match[1] + label, svg, count=1)
    known = set(re.findall(r'\bid="([^"]+)"', svg))
    own = f"p{zlib.crc32(svg.encode()):08x}-"

    def renamed(match: re.Match[str]) -> str:
        return f"{match[1]}{own}{match[2]}{match[3]}" if match[2] in known else match[0]

    svg = re.sub(r'(\bid=")([^"]+)(")', renamed, svg)
    return re.sub(r'(href="#|url\(#)([^")]+)("|\))', renamed, svg)
