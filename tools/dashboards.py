"""Pictures of dashboards without Grafana: ``python -m tools.dashboards URL --output doc/howto/images``.

The panels of ``etc/grafana`` are drawn by matplotlib from the answers of a Prometheus.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[1]
#: Inches of a column and a row of Grafana's grid.
COLUMN, ROW = 0.5, 0.32
COLUMNS = 24
STEPS = 120
COLOURS = 48
#: Lines of a graph that have a place in its legend.
LEGEND_MAX = 8
_SUFFIXES = {"s": " s", "reqps": "/s", "ops": "/s", "d": " days"}

#: Legend, times and values of one series.
Line = tuple[str, list[float], list[float]]


def legend_of(template: str, labels: dict[str, str]) -> str:
    """Return the legend of a series, as Grafana makes it from ``{{label}}``."""
    if template == "__auto":
        return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()) if name != "__name__")
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), template)


def number_text(value: float, unit: str) -> str:
    """Return a number with its unit."""
    if math.isnan(value):
        return "-"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    return f"{value:.4g}{_SUFFIXES.get(unit, '')}"


def expression_of(text: str, window_s: int, instances: str = ".+") -> str:
    """Return an expression with Grafana's variables replaced."""
    return text.replace("$__rate_interval", f"{window_s}s").replace("$instance", instances)


def instances_of(url: str, content: dict[str, object]) -> str:
    """Return a pattern of the instances that the variable of a dashboard offers; raises OSError."""
    found = re.search(r"label_values\((\w+), instance\)", json.dumps(content))
    if found is None:
        return ".+"
    query = urllib.parse.urlencode({"match[]": found[1]})
    with urllib.request.urlopen(f"{url}/api/v1/label/instance/values?{query}") as answer:
        return "|".join(re.escape(name).replace("\\", "\\\\") for name in json.load(answer)["data"])


def lines_of(url: str, expression: str, legend: str, seconds: int) -> list[Line]:
    """Return the series of an expression over the last ``seconds``; raises OSError."""
    now = time.time()
    query = {
        "query": expression,
        "start": f"{now - seconds:.0f}",
        "end": f"{now:.0f}",
        "step": f"{max(1, seconds // STEPS)}",
    }
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{urllib.parse.urlencode(query)}") as answer:
        rows = json.load(answer)["data"]["result"]
    return [
        (
            legend_of(legend, row["metric"]),
            [float(at) - now for at, _value in row["values"]],
            [float(value) for _at, value in row["values"]],
        )
        for row in rows
    ]


def _draw(axes: Axes, panel: dict[str, object], unit: str, lines: list[Line]) -> None:
    axes.set_title(str(panel["title"]), fontsize=8, loc="left")
    if panel["type"] == "stat":
        value = lines[0][2][-1] if lines else math.nan
        axes.axis("off")
        axes.text(0.5, 0.4, number_text(value, unit), ha="center", va="center", fontsize=15)
        return
    for legend, times, values in lines:
        axes.plot([at / 60 for at in times], values, linewidth=1, label=legend)
    axes.tick_params(labelsize=6)
    axes.grid(visible=True, alpha=0.3)
    axes.yaxis.set_major_formatter(lambda value, _position: number_text(value, unit))
    if lines:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[:LEGEND_MAX], labels[:LEGEND_MAX], fontsize=5, loc="upper left", ncols=2)
    else:
        axes.text(0.5, 0.5, "no data", ha="center", va="center", transform=axes.transAxes, fontsize=8)


def picture(url: str, dashboard: Path, output: Path, seconds: int, window_s: int) -> Path:
    """Draw a dashboard into a file below ``output``; return its path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    content = json.loads(dashboard.read_text())
    instances = instances_of(url, content)
    places = [panel["gridPos"] for panel in content["panels"]]
    height = max(at["y"] + at["h"] for at in places) + 1
    figure = Figure(figsize=(COLUMNS * COLUMN, height * ROW))
    figure.suptitle(f"{content['title']} - last {seconds // 60} minutes", fontsize=10, x=0.02, ha="left")
    for panel, at in zip(content["panels"], places, strict=True):
        box = (
            (at["x"] + 1.1) / COLUMNS,
            1 - (at["y"] + at["h"] + 0.2) / height,
            (at["w"] - 1.5) / COLUMNS,
            (at["h"] - 2.0) / height,
        )
        lines = [
            line
            for each in panel["targets"]
            for line in lines_of(
                url, expression_of(each["expr"], window_s, instances), each["legendFormat"], seconds
            )
        ]
        _draw(figure.add_axes(box), panel, panel["fieldConfig"]["defaults"]["unit"], lines)
    path = output / f"{dashboard.stem}.png"
    output.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=80)
    # Few colours make small files.
    Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Draw all dashboards; return 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.dashboards", description="Draw the dashboards.")
    parser.add_argument("url", help="address of Prometheus, as http://127.0.0.1:9090")
    parser.add_argument("--output", type=Path, default=ROOT / "doc/howto/images", help="folder of the PNGs")
    parser.add_argument("--minutes", type=int, default=60, help="length of the graphs")
    parser.add_argument("--window", type=int, default=60, help="seconds of the window of rates")
    args = parser.parse_args(argv)
    for dashboard in sorted((ROOT / "etc/grafana").glob("*.json")):
        print(picture(args.url, dashboard, args.output, args.minutes * 60, args.window))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
