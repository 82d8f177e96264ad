"""``etc/grafana/*.json``: dashboards from compact descriptions; each expression uses declared metrics only.

Grafana imports them as they are. ``$datasource`` is the Prometheus to ask, ``$instance`` the scraped address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.generate.expressions import check_expression, series_of
from tools.generate.metrics import all_metrics
from tools.generate.panels import DASHBOARDS, Dashboard, Panel

#: Of Grafana 9, which later ones upgrade.
SCHEMA_VERSION = 38
#: Columns of Grafana's grid, and the size of a number and of a graph in it.
COLUMNS = 24
STAT_WIDTH, STAT_HEIGHT, GRAPH_WIDTH, GRAPH_HEIGHT = 4, 4, 12, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass
class _Grid:
    """Places panels from left to right and from top to bottom."""

    x: int = 0
    y: int = 0
    row_height: int = 0

    def place(self, width: int, height: int) -> dict[str, int]:
        """Return the position of the next panel."""
        if self.x + width > COLUMNS or (self.row_height and height != self.row_height):
            self.x, self.y, self.row_height = 0, self.y + self.row_height, 0
        position = {"h": height, "w": width, "x": self.x, "y": self.y}
        self.x, self.row_height = self.x + width, height
        return position


def _panel(panel: Panel, number: int, grid: _Grid) -> dict[str, object]:
    size = (STAT_WIDTH, STAT_HEIGHT) if panel.kind == "stat" else (GRAPH_WIDTH, GRAPH_HEIGHT)
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _SOURCE,
            "expr": expression,
            "legendFormat": legend or "__auto",
            "range": panel.kind != "stat",
            "instant": panel.kind == "stat",
        }
        for index, (expression, legend) in enumerate(panel.targets)
    ]
    options: dict[str, object]
    if panel.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"}
    else:
        options = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": grid.place(*size),
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": options,
        "targets": targets,
    }


def _defaults(panel: Panel) -> dict[str, object]:
    """Return the unit, and the value from which a number is red."""
    defaults: dict[str, object] = {"unit": panel.unit}
    if panel.lowest is not None:
        defaults["min"] = panel.lowest
    if panel.kind == "stat" and panel.red_from is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.red_from}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    return defaults


def _variables(dashboard: Dashboard) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    ]
    if dashboard.instances_of:
        query = f"label_values({dashboard.instances_of}, instance)"
        found.append(
            {
                "name": "instance",
                "label": "Instance",
                "type": "query",
                "datasource": _SOURCE,
                "definition": query,
                "query": {"query": query, "refId": "instance"},
                "refresh": 2,
                "sort": 1,
                "multi": True,
                "includeAll": True,
                "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
            }
        )
    return found


def document(dashboard: Dashboard) -> dict[str, object]:
    """Return a dashboard in Grafana's format."""
    grid = _Grid()
    return {
        "title": dashboard.title,
        "description": dashboard.about,
        "uid": f"swift-{dashboard.name}",
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "tags": ["swift"],
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables(dashboard)},
        "links": [
            {
                "title": "Swift",
                "type": "dashboards",
                "tags": ["swift"],
                "asDropdown": True,
                "keepTime": True,
            }
        ],
        "panels": [_panel(panel, number, grid) for number, panel in enumerate(dashboard.panels, 1)],
    }


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Return every dashboard below ``root`` with its text; raises ``ExpressionError``."""
    series = series_of(all_metrics(root))
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            for expression, _legend in panel.targets:
                check_expression(expression, series)
        text = json.dumps(document(dashboard), indent=2)
        yield root / "etc" / "grafana" / f"{dashboard.name}.json", text + "\n"
