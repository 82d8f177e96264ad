"""The page of devices: where each is, how full, in which state, and how a sick one is replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from swift.cluster.health import NodeHealth
from swift.console.core.cluster import Reports
from swift.console.core.visit import Visit
from swift.console.operators.health import fullness
from swift.console.operators.pages import mapping_of, number_of, state_route, text_of
from swift.http.response import Response
from swift.operations.health.evaluate import (
    ERRORS_S,
    ClusterSnapshot,
    DeviceErrors,
    PackedSpaceReport,
    absence_test,
    uses_mount_points,
)
from swift.operations.health.reader import ClusterState
from swift.operations.recon.client import Host
from swift.ring.device import Device

PAGE = 200
#: Classes of the cache tier that one server may add.
_CLASSES_MAX = 20
#: States from the worst, each with its level; texts and advice are in ``texts.toml``.
STATES: Mapping[str, str] = {
    "silent": "critical",
    "away": "critical",
    "failing": "critical",
    "full": "critical",
    "slow": "warning",
    "nearly_full": "warning",
    "lost_records": "warning",
    "draining": "unknown",
    "ok": "ok",
}


@dataclass
class DeviceRow:
    """A device: a directory of a host, in one ring or several."""

    ip: str
    name: str
    region: int
    zone: int
    #: Ring → weight.
    weights: dict[str, float] = field(default_factory=dict)
    hosts: set[Host] = field(default_factory=set)
    partitions: int = 0
    used: float | None = None
    size: float | None = None
    states: set[str] = field(default_factory=set)
    errors: DeviceErrors | None = None
    packed: PackedSpaceReport | None = None
    #: Copies that it lacks, in all rings.
    lacks: int = 0

    @property
    def label(self) -> str:
        """The name of the device in the cluster."""
        return f"{self.ip}/{self.name}"

    @property
    def state(self) -> str:
        """The worst of its states."""
        return next(state for state in STATES if state in self.states or state == "ok")

    @property
    def level(self) -> str:
        """The level of the state."""
        return STATES[self.state]

    @property
    def weight(self) -> float:
        """The sum of its weights."""
        return sum(self.weights.values())

    @property
    def fullness(self) -> tuple[float, str] | None:
        """The share that is used, and its level; None if no server reports it."""
        return None if self.used is None or self.size is None else fullness(self.used, self.size)


#: Column → key of the order.
ORDERS: Mapping[str, Callable[[DeviceRow], tuple[float | str, ...]]] = {
    "state": lambda row: (list(STATES).index(row.state),),
    "device": lambda row: (row.ip, row.name),
    "place": lambda row: (row.region, row.zone, row.ip, row.name),
    "weight": lambda row: (row.weight,),
    "full": lambda row: (row.fullness[0] if row.fullness else -1.0,),
    "errors": lambda row: (row.errors.count if row.errors else 0,),
}


def collect_devices(state: ClusterState, nodes: NodeHealth | None = None) -> list[DeviceRow]:
    """Return the devices of all rings, with what servers and this proxy know of them."""
    snapshot = state.snapshot
    check_mounts = uses_mount_points(snapshot)
    rows: dict[tuple[str, str], DeviceRow] = {}
    for ring in state.rings:
        is_away = absence_test(snapshot, ring.server_type, check_mounts=check_mounts)
        silent = set(snapshot.unresponsive.get(ring.server_type, ()))
        for device in ring.devices:
            host = Host(device.ip, device.port)
            key = device.ip, device.device
            row = rows.setdefault(key, DeviceRow(*key, device.region, device.zone))
            row.weights[ring.name] = device.weight
            row.hosts.add(host)
            row.partitions += ring.assigned[device.id]
            if host in silent:
                row.states.add("silent")
            elif is_away(host, device.device):
                row.states.add("away")
            if nodes is not None and _is_slow(nodes, device):
                row.states.add("slow")
            _add_usage(row, snapshot.usage.get(host, ()))
    for copies in state.health.copies:
        for label, count in copies.missing_on.items():
            ip, _, name = label.rpartition("/")
            if (ip, name) in rows:
                rows[ip, name].lacks += count
    for row in rows.values():
        _add_reports(row, snapshot, state.taken_s)
    return list(rows.values())


def _is_slow(nodes: NodeHealth, device: Device) -> bool:
    return nodes.is_avoided(device.key) or nodes.is_slow(device.key)


def _add_usage(row: DeviceRow, entries: Sequence[Mapping[str, object]]) -> None:
    for entry in entries:
        if entry.get("device") == row.name:
            row.used, row.size = number_of(entry.get("used")), number_of(entry.get("size"))


def _add_reports(row: DeviceRow, snapshot: ClusterSnapshot, now_s: float) -> None:
    for host in row.hosts:
        row.errors = snapshot.device_errors.get(host, {}).get(row.name, row.errors)
        row.packed = snapshot.packed.get(host, {}).get(row.name, row.packed)
    if row.errors is not None and now_s - row.errors.last_s < ERRORS_S:
        row.states.add("failing")
    if row.packed is not None and row.packed.lost:
        row.states.add("lost_records")
    if row.fullness is not None and row.fullness[1] != "ok":
        row.states.add("full" if row.fullness[1] == "critical" else "nearly_full")
    if not row.weight:
        row.states.add("draining")


def _tier_figures(reports: Reports) -> list[dict[str, object]]:
    """Return the figures of the cache tier by host and class."""
    found: list[dict[str, object]] = []
    for host, report in sorted(reports.items()):
        tier = mapping_of(report.get("cache_tier"))
        for name, figures in list(mapping_of(tier.get("classes")).items())[:_CLASSES_MAX]:
            counts = mapping_of(figures)
            failures = tier.get("failures")
            found.append(
                {
                    "host": str(host),
                    "name": text_of(name),
                    "hits": number_of(counts.get("hits")),
                    "misses": number_of(counts.get("misses")),
                    "hit_rate": number_of(counts.get("hit_rate")),
                    "failure": text_of(failures[0]) if isinstance(failures, list) and failures else "",
                }
            )
    return found


def show_devices(visit: Visit, state: ClusterState) -> Response:
    """Show a page of the devices, filtered and in order."""
    query = visit.query
    ring, wanted, text = query.text("ring"), query.text("state"), query.text("q").strip()
    order = query.text("order") if query.text("order") in ORDERS else "state"
    is_falling = query.text("falling") == "1"
    place = query.number("place", 0, 0, 10_000_000)
    every = visit.parts.cluster.threads.call(collect_devices, state, visit.parts.cluster.nodes)
    rows = [
        row
        for row in every
        if (not ring or ring in row.weights)
        and (not wanted or wanted in row.states or wanted == row.state)
        and text in f"{row.label} r{row.region}z{row.zone}"
    ]
    rows.sort(key=ORDERS["device"])
    rows.sort(key=ORDERS[order], reverse=is_falling)
    (tier,) = visit.parts.cluster.reports("cachetier")
    return visit.page(
        "devices.html",
        state=state,
        rows=rows[place : place + PAGE],
        count=len(rows),
        next_place=place + PAGE if place + PAGE < len(rows) else None,
        advice=[name for name in STATES if name != "ok" and any(name in row.states for row in every)],
        sick={name: [row.label for row in every if name in row.states] for name in STATES},
        asked={"ring": ring, "state": wanted, "q": text},
        order=order,
        is_falling=is_falling,
        orders=list(ORDERS),
        states=STATES,
        tier=_tier_figures(tier),
    )


ROUTES = (state_route("/devices", show_devices),)
