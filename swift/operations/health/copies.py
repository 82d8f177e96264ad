"""Reports of replicators about the copies of a ring, and conclusions from them; no I/O.

A device counts as in order when a pass by the present ring completed over it and left nothing misplaced,
missing or failed. A server that reports nothing, such as one of OpenStack Swift, leaves its devices unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from swift.base.documents import JsonObject
from swift.operations.recon.client import Host
from swift.ring.device import Device
from swift.ring.view import RingView

#: The counts of a device.
_COUNTS = ("partitions", "misplaced", "missing", "failed", "done")


@dataclass(frozen=True)
class DeviceCounts:
    """The counts of a pass over one device."""

    #: The digest of the ring file by which it went.
    ring: str
    partitions: int = 0
    misplaced: int = 0
    missing: int = 0
    failed: int = 0
    done: int = 0
    missing_on: Mapping[str, int] = field(default_factory=dict)
    handoffs_only: bool = False

    @property
    def left(self) -> int:
        """Copies that are to be moved or made."""
        return self.misplaced + self.missing


@dataclass(frozen=True)
class RingPass:
    """A pass of one server over its devices; times are Unix seconds."""

    began_s: float
    #: When it ended, or was snapshot of last while it is under way.
    ended_s: float
    devices: Mapping[str, DeviceCounts]


@dataclass(frozen=True)
class HostCopies:
    """The report of one server: ring name → its last completed pass, and the one under way."""

    completed: Mapping[str, RingPass]
    under_way: Mapping[str, RingPass]


@dataclass
class RingCopies:
    """The copies of a ring on all devices that are there."""

    name: str
    misplaced: int = 0
    missing: int = 0
    failed: int = 0
    #: Device (``ip/name``) → copies that it lacks.
    missing_on: Counter[str] = field(default_factory=Counter)
    #: Devices that were not checked since the ring changed.
    waiting: list[str] = field(default_factory=list)
    #: Servers that report nothing, and those whose replicators only look at handoffs.
    unknown: set[Host] = field(default_factory=set)
    partial: set[Host] = field(default_factory=set)
    failed_on: set[Host] = field(default_factory=set)
    #: Device of weight 0 → partitions that the ring assigns to it, or that it still has; None: unknown.
    draining: dict[str, int | None] = field(default_factory=dict)
    #: The Unix second at which the oldest of the last completed passes ended; 0: there is none.
    as_of_s: float = 0.0
    #: When the slowest server is done, by its rate; None if unknown.
    done_s: float | None = None
    #: True while the part power is being increased: no replicator compares copies meanwhile.
    is_splitting: bool = False
    #: True if a server has work left whose end cannot be estimated.
    is_open: bool = False

    @property
    def is_in_order(self) -> bool:
        """Return True if all copies are known to be where the ring has them."""
        left = self.misplaced or self.missing or self.failed
        return not (left or self.waiting or self.unknown or self.partial or self.is_splitting)


def ring_copies(
    view: RingView,
    name: str,
    reports: Mapping[Host, HostCopies],
    is_away: Callable[[Host, str], bool],
    now_s: float,
) -> RingCopies:
    """Return what servers report about a ring; devices that are away count elsewhere."""
    found = RingCopies(name, is_splitting=view.next_part_power is not None)
    if found.is_splitting:
        return found
    ended: list[float] = []
    ends: list[float] = []
    for device in view.devices:
        if device is None:
            continue
        host, label = Host(device.ip, device.port), f"{device.ip}/{device.device}"
        if is_away(host, device.device):
            if not device.weight:
                found.draining[label] = None
            continue
        report = reports.get(host)
        if report is None or not (name in report.completed or name in report.under_way):
            found.unknown.add(host)
            if not device.weight:
                found.draining[label] = None
            continue
        counts = _counts(found, view, report, device)
        last = report.completed.get(name)
        if last is not None:
            ended.append(last.ended_s)
        _add(found, view, device, host, counts)
        if counts is not None and counts.left:
            end_s = _estimate_end(report, name, device.device, counts, now_s)
            found.is_open = found.is_open or end_s is None
            ends += [] if end_s is None else [end_s]
    found.as_of_s = min(ended, default=0.0)
    found.done_s = max(ends, default=None)
    return found


def _counts(found: RingCopies, view: RingView, report: HostCopies, device: Device) -> DeviceCounts | None:
    """Return the newest counts of a device by the present ring; a device without a whole pass is noted."""
    last = report.completed.get(found.name)
    now = report.under_way.get(found.name)
    whole = last.devices.get(device.device) if last is not None else None
    part = now.devices.get(device.device) if now is not None else None
    if part is not None and part.ring != view.digest:
        part = None
    if whole is None or whole.ring != view.digest:
        found.waiting.append(f"{device.ip}/{device.device}")
        return part
    return part or whole


def _add(found: RingCopies, view: RingView, device: Device, host: Host, counts: DeviceCounts | None) -> None:
    label = f"{device.ip}/{device.device}"
    if not device.weight:
        assigned = len(view.parts_of(device.id))
        found.draining[label] = None if counts is None else max(assigned, counts.partitions)
    if counts is None:
        return
    found.misplaced += counts.misplaced
    found.missing += counts.missing
    found.failed += counts.failed
    found.missing_on.update(counts.missing_on)
    if counts.failed:
        found.failed_on.add(host)
    if counts.handoffs_only:
        found.partial.add(host)


def _estimate_end(
    report: HostCopies, ring: str, device: str, counts: DeviceCounts, now_s: float
) -> float | None:
    """Return when the work left on a device is done at the rate of its pass; None without a rate."""
    passes = [each for each in (report.under_way.get(ring), report.completed.get(ring)) if each is not None]
    for each in passes:
        done = each.devices[device].done if device in each.devices else 0
        if done:
            return now_s + counts.left * (each.ended_s - each.began_s) / done
    return None


def drained(rings: Sequence[RingCopies]) -> dict[str, int | None]:
    """Return the partitions left on each device of weight 0 (``ip/name``), in all rings; None: unknown."""
    left: dict[str, int | None] = {}
    for ring in rings:
        for device, partitions in ring.draining.items():
            have = left.get(device, 0)
            left[device] = None if have is None or partitions is None else have + partitions
    return left


def parse_host_copies(said: Mapping[str, object], state: str, progress: str) -> HostCopies:
    """Parse a recon page; drop values of other types."""
    return HostCopies(_passes(said.get(state), "ended"), _passes(said.get(progress), "now"))


def _passes(said: object, end: str) -> dict[str, RingPass]:
    found = {}
    for ring, facts in said.items() if isinstance(said, dict) else ():
        if not isinstance(facts, dict) or not isinstance(facts.get("devices"), dict):
            continue
        began_s, ended_s = usable_number(facts.get("began")), usable_number(facts.get(end))
        devices = {
            str(name): _device_counts(counts)
            for name, counts in facts["devices"].items()
            if isinstance(counts, dict)
        }
        found[str(ring)] = RingPass(began_s, ended_s, devices)
    return found


def _device_counts(counts: JsonObject) -> DeviceCounts:
    on = counts.get("missing_on")
    number = {name: int(usable_number(counts.get(name))) for name in _COUNTS}
    return DeviceCounts(
        str(counts.get("ring")),
        missing_on={str(name): int(usable_number(count)) for name, count in on.items()}
        if isinstance(on, dict)
        else {},
        handoffs_only=counts.get("handoffs_only") is True,
        **number,
    )


def usable_number(value: object) -> float:
    """Return a number as it can be reckoned with, 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
        return 0.0
    return float(value)
