"""Evaluates the state of a cluster: pure, from rings and the responses of servers.

A device is *away* when its server does not answer, or says that it is not mounted. From the rings follows
which partitions have how many copies left. Nothing is asked here and nothing printed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

from swift.base.documents import JsonObject
from swift.operations.health.copies import HostCopies, RingCopies, drained
from swift.operations.health.forecast import CapacityForecast
from swift.operations.health.identities import IdentityState
from swift.operations.health.layout import (
    ControllerReport,
    LayoutReport,
    controller_problems,
    layout_problems,
)
from swift.operations.health.serverauth import AuthReport, auth_problems
from swift.operations.recon.client import Host
from swift.operations.recon.report import age_text
from swift.ring.view import RingView

WARN_FULL_PERCENT = 85.0
CRITICAL_FULL_PERCENT = 95.0
#: A replicator that has completed nothing for so long is not at work.
STALE_S = 6 * 3600.0
CLOCK_S = 5.0
#: Volumes of a device are reported when so much of them is dead.
DEAD_PERCENT = 60.0
DEAD_BYTES = 10_000_000_000
#: An I/O error is reported for so long.
ERRORS_S = 86400.0
MINUTE_S = 60.0


class Severity(IntEnum):
    """Severity of a finding; the numbers are the exit codes of monitoring plugins."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


#: The order of severity: a known fault outweighs an unknown state, which outweighs a good one.
_SEVERITY_RANK = (Severity.OK, Severity.UNKNOWN, Severity.WARNING, Severity.CRITICAL)


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it should be, and what heals it."""

    level: Severity
    text: str
    remedy: str


@dataclass(frozen=True)
class RingHealth:
    """A ring: its partitions by the number of copies that are away."""

    name: str
    noun: str
    replicas: float
    partitions: int
    #: Copies that suffice to read: 1, or the data fragments.
    needed: int
    #: Copies away → partitions.
    away: Mapping[int, int]
    #: Partitions that have just what is needed, up to a maximum.
    at_last: Sequence[int]
    lost: Sequence[int]
    last_count: int = 0
    lost_count: int = 0

    @property
    def degraded(self) -> int:
        """Partitions of which any copy is away."""
        return sum(count for copies, count in self.away.items() if copies)

    @property
    def missing_copies(self) -> int:
        """Copies away in all."""
        return sum(copies * count for copies, count in self.away.items())


@dataclass(frozen=True)
class DeviceErrors:
    """I/O errors that servers and daemons met on a device; ``last_s`` is Unix time."""

    count: int
    last_s: float
    error: str


@dataclass(frozen=True)
class PackedSpaceReport:
    """Space of a device of the packed engine, bytes."""

    volumes: int
    live: int
    dead: int
    index: int
    #: Of volumes: what was there could not be indexed.
    lost: int = 0

    @property
    def is_mostly_dead(self) -> bool:
        """Return True if the compactor does not keep up."""
        return self.dead > DEAD_BYTES and self.dead > (self.dead + self.live) * DEAD_PERCENT / 100


@dataclass
class ClusterSnapshot:
    """Responses of the servers, by type and host; a server in no mapping did not respond."""

    #: Type → hosts that did not answer.
    unresponsive: dict[str, list[Host]] = field(default_factory=dict)
    #: Host → names of devices that are there, and those that are no mount points.
    present: dict[Host, Collection[str]] = field(default_factory=dict)
    unmounted: dict[Host, Collection[str]] = field(default_factory=dict)
    usage: dict[Host, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    #: (type, host) → the content of ``/recon/replication``.
    replication: dict[tuple[str, Host], Mapping[str, object]] = field(default_factory=dict)
    #: (type, host) → failures of the last pass, which OpenStack Swift reports too.
    failures: dict[tuple[str, Host], int] = field(default_factory=dict)
    #: (type, host) → what its replicators report about copies.
    copies: dict[tuple[str, Host], HostCopies] = field(default_factory=dict)
    reconstruction: dict[Host, Mapping[str, object]] = field(default_factory=dict)
    async_pending: dict[Host, int] = field(default_factory=dict)
    #: Host → when ``swift-recon-cron`` counted them, Unix seconds; 0: never.
    async_counted: dict[Host, int] = field(default_factory=dict)
    quarantined: dict[Host, JsonObject] = field(default_factory=dict)
    drive_errors: dict[Host, int] = field(default_factory=dict)
    #: Host → device → its entry in ``/recon/deviceerrors``.
    device_errors: dict[Host, dict[str, DeviceErrors]] = field(default_factory=dict)
    #: Host → device of the packed engine → its space.
    packed: dict[Host, dict[str, PackedSpaceReport]] = field(default_factory=dict)
    #: Host → whether its object server takes several steps on a disk in one native call.
    native_disk: dict[Host, bool] = field(default_factory=dict)
    #: Host → names of ring files that differ from those here.
    other_rings: dict[Host, Sequence[str]] = field(default_factory=dict)
    #: Host → the page of its layout agent; None without one. Hosts of OpenStack Swift are left out.
    layouts: dict[Host, LayoutReport | None] = field(default_factory=dict)
    #: The page of the controller that carries out the layout; None without one.
    controller: ControllerReport | None = None
    #: Host → seconds by which its clock differs.
    clocks: dict[Host, float] = field(default_factory=dict)
    #: Host → its authentication of servers; OpenStack Swift has none.
    server_auth: dict[Host, AuthReport] = field(default_factory=dict)
    #: The records of ``swiftauth``; None without it.
    identities: IdentityState | None = None

    def copies_of(self, server_type: str) -> dict[Host, HostCopies]:
        """Return the reports of the replicators of one type of server."""
        return {host: said for (kind, host), said in self.copies.items() if kind == server_type}


@dataclass(frozen=True)
class Health:
    """The verdict."""

    problems: Sequence[Problem]
    rings: Sequence[RingHealth]
    devices: int
    away: Sequence[str]
    #: Unix seconds at which the replicators should have made up for it; None when nothing is to be healed or
    #: it is unknown.
    done_s: float | None
    facts: JsonObject
    copies: Sequence[RingCopies] = ()
    capacity: CapacityForecast = CapacityForecast()
    #: The page of the controller that carries out the layout; None without one.
    controller: ControllerReport | None = None

    @property
    def level(self) -> Severity:
        """The worst of all."""
        return max(
            (problem.level for problem in self.problems), key=_SEVERITY_RANK.index, default=Severity.OK
        )

    @property
    def drained(self) -> dict[str, int | None]:
        """Devices of weight 0 and the partitions left on them; None: unknown."""
        return drained(self.copies)

    def copies_of(self, ring: str) -> RingCopies | None:
        """Return the reports of replicators about a ring; None without any."""
        return next((each for each in self.copies if each.name == ring), None)

    def as_json(self) -> dict[str, object]:
        """Return all of it for programs."""
        return {
            "status": self.level.name,
            "problems": [{"level": p.level.name, "text": p.text, "remedy": p.remedy} for p in self.problems],
            "devices": self.devices,
            "devices_away": list(self.away),
            "healed_at": self.done_s,
            "rings": [
                {
                    "ring": ring.name,
                    "replicas": ring.replicas,
                    "partitions": ring.partitions,
                    "degraded": ring.degraded,
                    "missing_copies": ring.missing_copies,
                    "at_last_copy": ring.last_count,
                    "at_last_copy_partitions": list(ring.at_last),
                    "without_enough_copies": ring.lost_count,
                    "without_enough_copies_partitions": list(ring.lost),
                    **_copies_json(self.copies_of(ring.name)),
                }
                for ring in self.rings
            ],
            "draining": self.drained,
            "capacity": [each.as_json() for each in self.capacity.zones],
            **self.facts,
        }


def _copies_json(copies: RingCopies | None) -> dict[str, object]:
    if copies is None:
        return {}
    return {
        "to_move": copies.misplaced,
        "to_copy": copies.missing,
        "to_copy_by_device": dict(copies.missing_on),
        "failed": copies.failed,
        "waiting_devices": copies.waiting,
        "unknown_servers": sorted(map(str, copies.unknown)),
        "as_of": copies.as_of_s,
        "in_order": copies.is_in_order,
    }


#: Says of a host and a device whether it is away.
IsAway = Callable[[Host, str], bool]


def absence_test(snapshot: ClusterSnapshot, server_type: str, *, check_mounts: bool) -> IsAway:
    """Return the test for an absent device of one type of server."""
    silent = set(snapshot.unresponsive.get(server_type, ()))

    def is_away(host: Host, device: str) -> bool:
        if host in silent:
            return True
        if device not in snapshot.present.get(host, (device,)):
            return True
        return check_mounts and device in snapshot.unmounted.get(host, ())

    return is_away


def uses_mount_points(snapshot: ClusterSnapshot) -> bool:
    """Return True if devices are mount points in this cluster: where none is, they are plain directories."""
    return any(
        device not in snapshot.unmounted.get(host, ())
        for host, devices in snapshot.present.items()
        for device in devices
    )


def count_ring_copies(
    view: RingView, name: str, noun: str, is_away: IsAway, *, needed: int = 1, shown_max: int = 10
) -> RingHealth:
    """Count the copies of all partitions."""
    gone = [
        device is not None and is_away(Host(device.ip, device.port), device.device) for device in view.devices
    ]
    away: Counter[int] = Counter()
    at_last: list[int] = []
    lost: list[int] = []
    for part in range(view.partition_count):
        ids = view.primary_ids(part)
        missing = sum(gone[dev_id] for dev_id in ids)
        away[missing] += 1
        left = len(ids) - missing
        if missing and left == needed:
            at_last.append(part)
        elif left < needed:
            lost.append(part)
    return RingHealth(
        name,
        noun,
        view.replica_count,
        view.partition_count,
        needed,
        dict(away),
        at_last[:shown_max],
        lost[:shown_max],
        len(at_last),
        len(lost),
    )


def evaluate(
    rings: Sequence[RingHealth],
    devices: Mapping[str, bool],
    snapshot: ClusterSnapshot,
    now_s: float | None = None,
    *,
    copies: Sequence[RingCopies] = (),
    capacity: CapacityForecast | None = None,
) -> Health:
    """Return the verdict; ``devices`` maps every device (``host/name``) to True if it is away."""
    now_s = time.time() if now_s is None else now_s
    capacity = capacity or CapacityForecast()
    away = sorted(name for name, gone in devices.items() if gone)
    problems = [
        *_unresponsive_problems(snapshot),
        *_device_problems(
            away,
            "away",
            "mount or replace them, or remove them from the rings (swift-ring-builder remove, rebalance)",
        ),
        *_missing_copy_problems(rings),
        *_placement_problems(copies, {ring.name: ring.needed for ring in rings}),
        *_peer_failures(snapshot),
        *_stale_problems(snapshot, now_s),
        *_full_device_problems(snapshot),
        *_capacity_problems(capacity),
        *_device_problems(
            _failing_devices(snapshot, now_s),
            "with I/O errors in the last day",
            "read the kernel's log about them; unmount a device to repair it, or replace it: this ends the "
            "warning",
        ),
        *_packed_problems(snapshot),
        *(_warning(*each) for each in layout_problems(snapshot.layouts, now_s)),
        *(_warning(*each) for each in controller_problems(snapshot.controller, now_s)),
        *_identity_problems(snapshot.identities),
        *(_warning(*each) for each in auth_problems(snapshot.server_auth, now_s)),
        *_other_problems(snapshot),
    ]
    problems.sort(key=lambda problem: -_SEVERITY_RANK.index(problem.level))
    facts = {
        "async_pending": sum(snapshot.async_pending.values()),
        "async_pending_last": min(snapshot.async_counted.values(), default=0),
        "damaged_identities": list(snapshot.identities.check.damaged) if snapshot.identities else [],
        "device_errors": {
            f"{host}/{device}": errors.count
            for host, found in snapshot.device_errors.items()
            for device, errors in found.items()
        },
        "layout": None if snapshot.controller is None else asdict(snapshot.controller),
        "layout_versions": {
            str(host): report.version if report else None for host, report in sorted(snapshot.layouts.items())
        },
        "native_disk": {str(host): native for host, native in sorted(snapshot.native_disk.items())},
        "packed_devices": {
            f"{host}/{device}": asdict(space)
            for host, found in snapshot.packed.items()
            for device, space in found.items()
        },
        "server_auth": {str(host): asdict(report) for host, report in sorted(snapshot.server_auth.items())},
        "quarantined": {
            kind: sum(int(each.get(kind) or 0) for each in snapshot.quarantined.values())
            for kind in ("objects", "containers", "accounts")
        },
    }
    done_s = _healed_at(rings, copies, snapshot, now_s)
    controller = snapshot.controller
    return Health(problems, rings, len(devices), away, done_s, facts, copies, capacity, controller)


def _warning(text: str, remedy: str) -> Problem:
    return Problem(Severity.WARNING, text, remedy)


def _critical(text: str, remedy: str) -> Problem:
    return Problem(Severity.CRITICAL, text, remedy)


def _unresponsive_problems(snapshot: ClusterSnapshot) -> Iterator[Problem]:
    for kind, hosts in snapshot.unresponsive.items():
        if hosts:
            yield _critical(
                f"{_count_text(len(hosts), f'{kind} server')} silent: {_list_some(hosts)}",
                f"start them (swift-init {kind}-server start) or bring their hosts back",
            )


def _device_problems(names: Sequence[str], what: str, remedy: str) -> Iterator[Problem]:
    """Yield a warning about some devices, if there are any."""
    if names:
        yield _warning(f"{_count_text(len(names), 'device')} {what}: {_list_some(names)}", remedy)


def _missing_copy_problems(rings: Sequence[RingHealth]) -> Iterator[Problem]:
    for ring in rings:
        copies = "fragments" if ring.needed > 1 else "copies"
        if ring.lost_count:
            yield _critical(
                f"{ring.name}: {ring.lost_count} partitions have too few {copies} within reach",
                "bring a device of each back: nothing else can make these readable",
            )
        if ring.last_count:
            left = "one copy" if ring.needed == 1 else f"their last {copies}"
            yield _critical(
                f"{ring.name}: {ring.last_count} partitions are at {left}",
                "bring devices back first; replicators copy to handoffs meanwhile",
            )
        elif ring.degraded and not ring.lost_count:
            yield _warning(
                f"{ring.name}: {ring.degraded} partitions lack {ring.missing_copies} {copies}",
                "replicators and reconstructors make them anew on handoffs and give them back later",
            )


def _placement_problems(copies: Sequence[RingCopies], needed: Mapping[str, int]) -> Iterator[Problem]:
    """Yield the differences from the rings that replicators report."""
    for ring in copies:
        daemon = "reconstructor" if needed.get(ring.name, 1) > 1 else "replicator"
        what = "partitions" if ring.name.startswith("object") else "databases"
        if ring.misplaced:
            yield _warning(
                f"{ring.name}: {ring.misplaced} {what} on devices where they do not belong",
                f"the {daemon}s move them; a rebalance is over when none is left",
            )
        if ring.missing:
            names = [f"{device} ({count})" for device, count in ring.missing_on.most_common()]
            yield _warning(
                f"{ring.name}: {ring.missing} copies missing on {_list_some(names)}",
                f"the {daemon}s of other devices make them; a replaced disk is full when none is missing",
            )
        if ring.failed:
            yield _warning(
                f"{ring.name}: the last pass failed for {ring.failed} {what} "
                f"on {_list_some(sorted(map(str, ring.failed_on)))}",
                f"the log of the {daemon}s there says why",
            )
        yield from _unknown_problems(ring, daemon)


def _unknown_problems(ring: RingCopies, daemon: str) -> Iterator[Problem]:
    """Yield what is unknown about a ring."""
    if ring.is_splitting:
        yield _warning(
            f"{ring.name}: the part power is being increased; copies are not compared meanwhile",
            "go on to its end, finish_increase_partition_power (doc/howto/part-power.md)",
        )
    if ring.waiting:
        count = _count_text(len(ring.waiting), "device")
        yield _warning(
            f"{ring.name}: {count} not checked since the ring changed: {_list_some(ring.waiting)}",
            f"wait for the {daemon}s: the rebalance is not over before",
        )
    if ring.unknown:
        yield Problem(
            Severity.UNKNOWN,
            f"{ring.name}: no counts of misplaced and missing copies from "
            f"{_list_some(sorted(map(str, ring.unknown)))}",
            f"start the {daemon}s there, or wait for their first pass; for nodes of OpenStack Swift, "
            "which do not count, use swift-dispersion-report",
        )
    if ring.partial:
        yield Problem(
            Severity.UNKNOWN,
            f"{ring.name}: missing copies are unknown, handoffs_only is on at "
            f"{_list_some(sorted(map(str, ring.partial)))}",
            f"turn it off and restart the {daemon}s when the rebalance is over",
        )


def _peer_failures(snapshot: ClusterSnapshot) -> Iterator[Problem]:
    """Yield failures of servers that report nothing else about copies."""
    nothing = HostCopies({}, {})
    failed = {
        host: count
        for (kind, host), count in snapshot.failures.items()
        if count and not snapshot.copies.get((kind, host), nothing).completed
    }
    if failed:
        names = [f"{host} ({count})" for host, count in sorted(failed.items())]
        yield _warning(
            f"{sum(failed.values())} failures in the last replication passes: {_list_some(names)}",
            "the logs of the replicators there say why",
        )


def _healed_at(
    rings: Sequence[RingHealth], copies: Sequence[RingCopies], snapshot: ClusterSnapshot, now_s: float
) -> float | None:
    """Return when all copies will be in place, at the rate of the passes; None: nothing to do, or unknown."""
    if any(ring.degraded for ring in rings):
        # Handoffs keep what belongs on devices that are away: when they have it follows from whole passes.
        return _passes_done_at(snapshot, now_s)
    left = [ring for ring in copies if ring.misplaced or ring.missing or ring.waiting]
    ends = [ring.done_s for ring in left if ring.done_s is not None]
    if any(ring.waiting or ring.is_open for ring in left):
        # Without a rate another whole pass is the best guess.
        next_s = _passes_done_at(snapshot, now_s)
        ends += [] if next_s is None else [next_s]
    return max(ends, default=None)


def _stale_problems(snapshot: ClusterSnapshot, now_s: float) -> Iterator[Problem]:
    stale: dict[str, list[Host]] = {}
    for (kind, host), said in snapshot.replication.items():
        last = said.get("replication_last") or said.get("object_replication_last")
        if kind == "object" and last is None:
            last = snapshot.reconstruction.get(host, {}).get("object_reconstruction_last")
        if not isinstance(last, (int, float)) or now_s - last > STALE_S:
            stale.setdefault(kind, []).append(host)
    for kind, hosts in stale.items():
        yield _warning(
            f"no {kind} replication completed within {STALE_S / 3600:g} hours on {_list_some(hosts)}",
            f"start it (swift-init {kind}-replicator start), or wait for its first pass; its log says what "
            "holds it up",
        )


def _full_device_problems(snapshot: ClusterSnapshot) -> Iterator[Problem]:
    fullness = _fullness(snapshot)
    for problem, limit, upper in (
        (_critical, CRITICAL_FULL_PERCENT, 101.0),
        (_warning, WARN_FULL_PERCENT, CRITICAL_FULL_PERCENT),
    ):
        names = [name for name, percent in fullness.items() if limit <= percent < upper]
        if names:
            yield problem(
                f"{_count_text(len(names), 'device')} over {limit:g} % full: {_list_some(names)}",
                "add devices and rebalance; delete what may go",
            )


def _capacity_problems(capacity: CapacityForecast) -> Iterator[Problem]:
    for each in capacity.zones:
        if each.days is None or each.days >= max(capacity.warning_days, capacity.critical_days):
            continue
        problem = _critical if each.days < capacity.critical_days else _warning
        days = _count_text(int(each.days), "day")
        yield problem(
            f"policy {each.policy}: zone {each.zone} is full in {days} at the growth of the last weeks",
            "add devices to this zone and rebalance (doc/howto/add-disk.md); delete what may go",
        )
    if capacity.error:
        yield Problem(
            Severity.UNKNOWN,
            f"the growth is unknown: the capacity history cannot be kept: {capacity.error}",
            "name a file with --history in a directory that the user of swift-health may write to",
        )


def _failing_devices(snapshot: ClusterSnapshot, now_s: float) -> list[str]:
    return [
        f"{host.ip}/{device} ({errors.count}, {errors.error}, none for {_quiet_text(now_s - errors.last_s)})"
        for host, found in snapshot.device_errors.items()
        for device, errors in found.items()
        if now_s - errors.last_s < ERRORS_S
    ]


def _quiet_text(seconds: float) -> str:
    return age_text(max(0.0, seconds)).removesuffix(" ago")


def _packed_problems(snapshot: ClusterSnapshot) -> Iterator[Problem]:
    spaces = [
        (f"{host.ip}/{device}", space)
        for host, found in snapshot.packed.items()
        for device, space in found.items()
    ]
    yield from _device_problems(
        [f"{name} ({space.dead / 1e9:.0f} GB)" for name, space in spaces if space.is_mostly_dead],
        "whose volumes are mostly dead",
        "see that swift-object-compactor runs there, and raise its bytes_per_second",
    )
    yield from _device_problems(
        [f"{name} ({space.lost} bytes)" for name, space in spaces if space.lost],
        "with lost records",
        "let replication restore the objects, or replace the device; swift-object-volumes verify tells "
        "where, and compact --accept-loss removes the volume",
    )


def _fullness(snapshot: ClusterSnapshot) -> dict[str, float]:
    """Return the fill level of mounted devices (``address/name``) in percent: the maximum over their
    servers.
    """
    percents: dict[str, float] = {}
    for host, entries in snapshot.usage.items():
        for entry in entries:
            if entry.get("mounted") is True:
                name = f"{host.ip}/{entry['device']}"
                percents[name] = max(_percent(entry), percents.get(name, 0.0))
    return percents


def _percent(entry: Mapping[str, Any]) -> float:
    size = entry.get("size") or 0
    return 100.0 * entry["used"] / size if size else 0.0


def _identity_problems(state: IdentityState | None) -> Iterator[Problem]:
    if state is None:
        return
    if state.error:
        text = f"the records of users and keys cannot be read: {state.error}"
        yield Problem(Severity.UNKNOWN, text, "bring back the servers of the account .swiftauth")
    damaged = state.check.damaged
    if damaged:
        partly = f" of {state.check.read} that were read" if state.check.read < state.check.total else ""
        yield _warning(
            f"{_count_text(len(damaged), 'record')} of users and keys damaged{partly}: {_list_some(damaged)}",
            "make them anew, or remove them (swift-user check lists all)",
        )


def _other_problems(snapshot: ClusterSnapshot) -> Iterator[Problem]:
    if snapshot.other_rings:
        yield _warning(
            f"rings differ on {_list_some(list(snapshot.other_rings))}",
            "copy the ring files of this machine there, or take theirs; swift-recon --md5 says which",
        )
    wrong = [host for host, seconds in snapshot.clocks.items() if abs(seconds) > CLOCK_S]
    if wrong:
        yield _critical(
            f"clocks differ by more than {CLOCK_S:g} s on {_list_some(wrong)}",
            "set them right (NTP): the newest write wins by its time",
        )
    bad = [f"{host} ({count})" for host, count in snapshot.drive_errors.items() if count]
    if bad:
        yield _warning(f"the kernel saw drive errors on {_list_some(bad)}", "look at these drives")


#: Replicators pause between passes, mostly for 30 seconds.
_PASS_PAUSE_MAX_S = 60.0


def _passes_done_at(snapshot: ClusterSnapshot, now_s: float) -> float | None:
    """Return when every replicator will have completed another pass, if each takes as long as its last.

    None if that is unknown, also when a pass is overdue: it takes longer than the last one.
    """
    ends = []
    for said in snapshot.replication.values():
        minutes, last = said.get("object_replication_time"), said.get("object_replication_last")
        if not isinstance(minutes, (int, float)):
            seconds, last = said.get("replication_time"), said.get("replication_last")
        else:
            seconds = minutes * MINUTE_S
        if isinstance(seconds, (int, float)) and isinstance(last, (int, float)):
            if now_s > last + seconds + max(seconds, _PASS_PAUSE_MAX_S):
                return None
            # What is under way may have passed the partition already: the one after it counts.
            ends.append(max(now_s, last + seconds) + seconds)
    return max(ends, default=None)


def _count_text(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _list_some(names: Sequence[object], shown_max: int = 4) -> str:
    """Return a few of them."""
    rest = len(names) - shown_max
    return ", ".join(map(str, names[:shown_max])) + (f" and {rest} more" if rest > 0 else "")
