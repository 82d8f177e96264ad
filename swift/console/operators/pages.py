"""Parts that all pages for operators share."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from swift.console.core.cluster import ClusterUnreadable
from swift.console.core.rendering import TIME_MAX_S
from swift.console.core.visit import Access, Route, Visit
from swift.http.response import Response
from swift.operations.health.reader import ClusterState
from swift.operations.health.snapshot import is_number

ShowState = Callable[[Visit, ClusterState], Response]


def state_route(path: str, show: ShowState) -> Route:
    """Return the route of a page that shows the state of the cluster, or why it cannot be read."""
    return Route("GET", path, partial(_show_state, show), Access.OPERATORS)


def _show_state(show: ShowState, visit: Visit) -> Response:
    try:
        return show(visit, visit.parts.cluster.state())
    except ClusterUnreadable as error:
        return visit.page("noclusterstate.html", 503, reason=str(error))


def number_of(value: object) -> float | None:
    """Return a figure of a node's report; None if it is none: nodes are not trusted."""
    return float(value) if is_number(value) else None


def age_of(value: object, now_s: float | None = None) -> float | None:
    """Return how many seconds ago a reported time was; None if it is no time."""
    seconds = number_of(value)
    if seconds is None or not 0 < seconds < TIME_MAX_S:
        return None
    return max(0.0, (time.time() if now_s is None else now_s) - seconds)


def text_of(value: object, characters_max: int = 256) -> str:
    """Return a reported text, cut; "" if it is none."""
    return value[:characters_max] if isinstance(value, str) else ""


def mapping_of(value: object) -> dict[str, object]:
    """Return a reported mapping; an empty one if it is none."""
    return value if isinstance(value, dict) else {}
