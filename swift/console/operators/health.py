"""The page of health, as ``swift-health`` shows it: problems, and what heals each; kept fresh by events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from swift import green
from swift.base.documents import JsonObject
from swift.console.core.cluster import FRESH_S, ClusterUnreadable, ClusterWatch
from swift.console.core.session import SessionUnknown
from swift.console.core.visit import Access, Route, Visit
from swift.console.operators.charts import usage_curve
from swift.http.body import ResponseBody
from swift.http.response import TEXT, Response
from swift.operations.health.evaluate import CRITICAL_FULL_PERCENT, WARN_FULL_PERCENT
from swift.operations.health.reader import ClusterState

#: Streams of events that a worker serves.
STREAMS_MAX = 50
#: Seconds after which a browser asks for another stream: a worker that ends need not wait for long.
STREAM_S = 300.0
EVENT_STREAM = "text/event-stream"


def show_health(visit: Visit) -> Response:
    """Show the health."""
    return visit.page("health.html", **_values(visit))


def _values(visit: Visit) -> JsonObject:
    try:
        state = visit.parts.cluster.state()
    except ClusterUnreadable as error:
        return {"state": None, "reason": str(error)}
    return {"state": state, **_of_state(state)}


def _of_state(state: ClusterState) -> JsonObject:
    health = state.health
    native = health.facts["native_disk"]
    oldest_s = min((copies.as_of_s for copies in health.copies if copies.as_of_s), default=0.0)
    return {
        "health": health,
        "rings": [(ring, health.copies_of(ring.name)) for ring in health.rings],
        "left_s": None if health.done_s is None else max(0.0, health.done_s - state.taken_s),
        "oldest_s": max(0.0, state.taken_s - oldest_s) if oldest_s else None,
        "without_native": [host for host, is_native in native.items() if not is_native],
        "zones": [
            (zone, fullness(zone.used, zone.size), usage_curve(zone, health.capacity.samples))
            for zone in health.capacity.zones
        ],
    }


def fullness(used: float, size: float) -> tuple[float, str]:
    """Return the share of a size that is used, 0 to 1, and its level."""
    share = min(1.0, max(0.0, used / size)) if size > 0 else 0.0
    if 100 * share >= CRITICAL_FULL_PERCENT:
        return share, "critical"
    return share, "warning" if 100 * share >= WARN_FULL_PERCENT else "ok"


class EventStream(ResponseBody):
    """An event with a part of the page every few seconds, until the session ends; it holds a place."""

    def __init__(self, render: Callable[[], bytes], is_over: Callable[[], bool], watch: ClusterWatch):
        self.length = None
        self._render = render
        self._is_over = is_over
        self._watch = watch
        self._is_open = True
        watch.streams += 1

    def __iter__(self) -> Iterator[bytes]:
        end = time.monotonic() + STREAM_S
        while time.monotonic() < end and not self._is_over():
            lines = self._render().splitlines()
            yield b"".join(b"data: %s\n" % line for line in lines) + b"\n"
            green.sleep(FRESH_S)

    def close(self) -> None:
        """Give the place free, whether the stream was read or not."""
        if self._is_open:
            self._is_open = False
            self._watch.streams -= 1


def show_events(visit: Visit) -> Response:
    """Send the part of the page that changes every few seconds, as server-sent events."""
    watch = visit.parts.cluster
    if watch.streams >= STREAMS_MAX:
        return Response(503, visit.headers(content_type=TEXT), b"too many streams of events")

    def render() -> bytes:
        return visit.parts.renderer.render("health_part.html", _values(visit))

    headers = visit.headers(content_type=EVENT_STREAM, x_accel_buffering="no")
    return Response(200, headers, EventStream(render, lambda: _has_ended(visit), watch))


def _has_ended(visit: Visit) -> bool:
    """Return True if the session has ended, on whatever proxy, or its user is no operator any more."""
    try:
        session = visit.parts.sessions.of_token(visit.session.token, visit.request)
    except SessionUnknown:
        return True
    return session is None or not session.is_operator


ROUTES = (
    Route("GET", "/health", show_health, Access.OPERATORS),
    Route("GET", "/health/events", show_events, Access.OPERATORS),
)
