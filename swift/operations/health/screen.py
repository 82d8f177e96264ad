"""The screen of ``swift-health``."""

from __future__ import annotations

import time
from collections.abc import Iterator

from swift.operations.health.copies import RingCopies
from swift.operations.health.evaluate import Health
from swift.operations.health.forecast import ZoneForecast
from swift.operations.recon.report import age_text, size_text

#: The columns of the table; "?" stands for what no replicator reports.
_HEADS = (*("partitions", "degraded", "away", "at last copy", "out of reach", "to move", "to copy"), "failed")


def screen(health: Health, now_s: float) -> Iterator[str]:
    """Yield the screen."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now_s))
    yield f"{health.level.name:<9} {stamp} UTC   {health.devices} devices, {len(health.away)} away"
    yield ""
    yield f"{'ring':<14}" + "".join(f"{head:>{len(head) + 2}}" for head in _HEADS)
    for ring in health.rings:
        away = (ring.partitions, ring.degraded, ring.missing_copies, ring.last_count, ring.lost_count)
        cells = zip(_HEADS, (*away, *_copies_cells(health.copies_of(ring.name))), strict=True)
        yield f"{ring.name:<14}" + "".join(f"{cell:>{len(head) + 2}}" for head, cell in cells)
    yield ""
    quarantined = health.facts["quarantined"]
    yield (
        f"waiting updates {health.facts['async_pending']} ({_updates_age(health, now_s)}), "
        f"quarantined: {quarantined['objects']} objects, {quarantined['containers']} containers, "
        f"{quarantined['accounts']} accounts"
    )
    yield from _native_lines(health)
    for problem in health.problems:
        yield ""
        yield f"{problem.level.name}: {problem.text}"
        yield f"  to heal it: {problem.remedy}"
    yield from _draining_lines(health)
    yield from _layout_lines(health)
    yield from _capacity_lines(health)
    yield from _forecast_lines(health, now_s)


def _native_lines(health: Health) -> Iterator[str]:
    """Yield a line about native disk calls, if a server says whether it makes them."""
    native = health.facts["native_disk"]
    without = [host for host, is_native in native.items() if not is_native]
    if native:
        names = f"; without: {', '.join(without)}" if without else ""
        yield f"native disk calls: {len(native) - len(without)} of {len(native)} object servers{names}"


def _copies_cells(copies: RingCopies | None) -> tuple[str, str, str]:
    if copies is None:
        return "?", "?", "?"
    mark = "?" if copies.unknown or copies.waiting or copies.is_splitting else ""
    return f"{copies.misplaced}{mark}", f"{copies.missing}{mark}", f"{copies.failed}{mark}"


def _draining_lines(health: Health) -> Iterator[str]:
    """Yield a line for each device of weight 0."""
    for device, left in sorted(health.drained.items()):
        yield ""
        if left is None:
            yield f"{device} has weight 0: what is left on it is unknown"
        elif left:
            yield f"{device} has weight 0: {left} partitions are left on it"
        else:
            yield f"{device} has weight 0 and is empty: remove it from the rings"


def _layout_lines(health: Health) -> Iterator[str]:
    """Yield the change of the layout that is under way."""
    controller = health.controller
    if controller is None or not controller.change:
        return
    left = f", about {age_text(controller.left_s).removesuffix(' ago')} left" if controller.left_s else ""
    yield ""
    yield f"layout: {controller.change}: {controller.percent:.0f} % has arrived{left}"
    yield f"        {controller.text}"


def _capacity_lines(health: Health) -> Iterator[str]:
    """Yield a line for each policy and zone, if a history is kept."""
    if not health.capacity.zones:
        return
    yield ""
    yield f"{'capacity':<14}  zone       used      size  growth"
    for each in health.capacity.zones:
        used = f"{100.0 * each.used / each.size:.1f} %" if each.size else "?"
        yield f"{each.policy:<14}  {each.zone:<6} {used:>8} {size_text(each.size):>9}  {_growth_text(each)}"


def _growth_text(each: ZoneForecast) -> str:
    if each.growth is None:
        return "unknown: needs samples of 3 days"
    if each.growth <= 0:
        return "does not grow"
    text = f"{size_text(each.growth)} a day"
    return text if each.days is None else f"{text}, full in {int(each.days)} days"


def _forecast_lines(health: Health, now_s: float) -> Iterator[str]:
    """Yield the time when all copies will be in place, and the age of the data."""
    oldest_s = min((copies.as_of_s for copies in health.copies if copies.as_of_s), default=0.0)
    is_degraded = any(ring.degraded for ring in health.rings)
    if health.done_s is not None:
        span = age_text(max(0.0, health.done_s - now_s)).removesuffix(" ago")
        yield ""
        if is_degraded:
            yield f"copies on handoffs are complete in about {span}, if passes take as long as before"
        else:
            yield f"copies are as the rings say in about {span}, if replicators go on as fast"
    elif is_degraded or any(copies.misplaced or copies.missing or copies.waiting for copies in health.copies):
        yield ""
        yield "the time that is left is unknown until the replicators complete another pass"
    if oldest_s:
        yield ""
        yield f"the oldest of the replication passes behind this ended {age_text(max(0.0, now_s - oldest_s))}"


def _updates_age(health: Health, now_s: float) -> str:
    """Return the age of the oldest count of waiting updates."""
    last_s = health.facts["async_pending_last"]
    if not last_s:
        return "not counted everywhere: run swift-recon-cron"
    return f"counted {max(0.0, now_s - last_s):.0f} s ago"
