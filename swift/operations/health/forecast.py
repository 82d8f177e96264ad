"""Forecast of capacity: when each zone of a policy is full at the growth of the last weeks.

``swift-health`` keeps the disk usage that servers report in a history: a file of JSON lines, at most one line
an hour and of four weeks. Growth is the slope of a straight line through the samples (least squares).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from swift.operations.recon.client import Host
from swift.platform.disk import Disk
from swift.platform.locks import file_lock
from swift.platform.regularfiles import read_regular
from swift.ring.device import Device
from swift.telemetry.metrics import GaugeMetric, Registry
from swift.telemetry.recon import replace_text

_LABELS = ("policy", "zone")
_USED = GaugeMetric(
    "swift_capacity_used_bytes", "Bytes used on the devices of a policy in a zone (swift-health).", _LABELS
)
_SIZE = GaugeMetric(
    "swift_capacity_size_bytes", "Size of the devices of a policy in a zone (swift-health).", _LABELS
)
_GROWTH = GaugeMetric(
    "swift_capacity_growth_bytes_per_day",
    "Growth of a policy in a zone over the last weeks (swift-health).",
    _LABELS,
)
_DAYS = GaugeMetric(
    "swift_capacity_full_days",
    "Days until a policy's zone is full at that growth; absent if it does not grow (swift-health).",
    _LABELS,
)

DAY_S = 86400.0
#: No device has so many bytes, and no clock shows such a time.
_NUMBER_MAX = 1e18
#: Seconds between two samples, age of the oldest one, and the time that a forecast needs at least.
SAMPLE_S = 3600.0
KEPT_S = 28 * DAY_S
SPAN_MIN_S = 3 * DAY_S
SAMPLES_MIN = 3
#: Later than this is never, in days.
DAYS_MAX = 36525.0
WARNING_DAYS, CRITICAL_DAYS = 30.0, 7.0


class ZoneUsage(NamedTuple):
    """Bytes used and bytes of size of the devices in a zone."""

    used: float
    size: float


#: (ring, zone) → usage.
Usage = Mapping[tuple[str, str], ZoneUsage]


@dataclass(frozen=True)
class UsageSample:
    """The usage at a moment, Unix seconds."""

    time_s: float
    usage: Usage

    def as_line(self) -> str:
        """Return the line of the history."""
        zones: dict[str, dict[str, list[float]]] = {}
        for (ring, zone), usage in sorted(self.usage.items()):
            zones.setdefault(ring, {})[zone] = list(usage)
        return json.dumps({"time": round(self.time_s), "usage": zones}) + "\n"


@dataclass(frozen=True)
class ZoneForecast:
    """The usage of a policy's devices in one zone, its growth, and its end."""

    ring: str
    policy: str
    zone: str
    used: float
    size: float
    #: Bytes a day; None while the history is too short.
    growth: float | None

    @property
    def days(self) -> float | None:
        """Days until the zone is full; None if that is unknown or not to be expected."""
        if self.growth is None or self.growth <= 0:
            return None
        days = max(0.0, self.size - self.used) / self.growth
        return days if days <= DAYS_MAX else None

    def as_json(self) -> dict[str, object]:
        """Return the forecast for programs."""
        return {
            "ring": self.ring,
            "policy": self.policy,
            "zone": self.zone,
            "used": round(self.used),
            "size": round(self.size),
            "growth_per_day": None if self.growth is None else round(self.growth),
            "full_in_days": None if self.days is None else round(self.days, 1),
        }


@dataclass(frozen=True)
class CapacityForecast:
    """The forecasts of all zones, and the days below which they are problems."""

    zones: Sequence[ZoneForecast] = ()
    warning_days: float = WARNING_DAYS
    critical_days: float = CRITICAL_DAYS
    #: The reason why the history could not be kept.
    error: str = ""
    #: By time; the last one is the present.
    samples: Sequence[UsageSample] = ()

    def export(self, path: str) -> None:
        """Write the metrics file for the textfile collector of the node exporter; raises OSError."""
        metrics = Registry()
        for each in self.zones:
            labels = {"policy": each.policy, "zone": each.zone}
            _USED.of(metrics, **labels).set(each.used)
            _SIZE.of(metrics, **labels).set(each.size)
            if each.growth is not None:
                _GROWTH.of(metrics, **labels).set(each.growth)
            if each.days is not None:
                _DAYS.of(metrics, **labels).set(each.days)
        replace_text(path, metrics.render())


def zone_usage(
    devices: Iterable[Device | None], reported: Mapping[Host, Sequence[Mapping[str, object]]]
) -> dict[str, ZoneUsage]:
    """Return the usage of each zone (``r1z2``) of a ring, from the disk usage that servers report.

    A zone is left out when one of its devices is not reported: its usage would seem to fall. A device of
    weight 0 has data to place, but no room.
    """
    found: dict[str, ZoneUsage] = {}
    incomplete = set()
    for device in devices:
        if device is None:
            continue
        zone = f"r{device.region}z{device.zone}"
        entry = _entry_of(reported.get(Host(device.ip, device.port), ()), device.device)
        if entry is None:
            if device.weight > 0:
                incomplete.add(zone)
            continue
        before = found.get(zone, ZoneUsage(0.0, 0.0))
        size = entry.size if device.weight > 0 else 0.0
        found[zone] = ZoneUsage(before.used + entry.used, before.size + size)
    return {zone: usage for zone, usage in found.items() if zone not in incomplete}


def _entry_of(entries: Sequence[Mapping[str, object]], name: str) -> ZoneUsage | None:
    for entry in entries:
        used, size = entry.get("used"), entry.get("size")
        if entry.get("device") == name and isinstance(used, int | float) and isinstance(size, int | float):
            return ZoneUsage(float(used), float(size))
    return None


class UsageHistory:
    """The history file; its lock file is ``PATH.lock``."""

    def __init__(self, path: str):
        self.path = path
        self._disk = Disk()

    def record(self, sample: UsageSample) -> list[UsageSample]:
        """Return the samples with the present one last, and keep it if the last one is an hour old.

        Raises OSError and ``LockTimeout``.
        """
        with file_lock(self._disk, f"{self.path}.lock"):
            kept = [each for each in self.read() if 0 <= sample.time_s - each.time_s <= KEPT_S]
            if not kept or sample.time_s - kept[-1].time_s >= SAMPLE_S:
                replace_text(self.path, "".join(each.as_line() for each in (*kept, sample)))
        return [*kept, sample]

    def read(self) -> list[UsageSample]:
        """Return the samples by time; lines that are none are left out. Raises OSError."""
        if not os.path.exists(self.path):
            return []
        text = read_regular(self._disk, self.path).decode("utf-8", "replace")
        return sorted(_samples_of(text.splitlines()), key=lambda sample: sample.time_s)


def _samples_of(lines: Iterable[str]) -> Iterator[UsageSample]:
    for line in lines:
        try:
            content = json.loads(line)
            usage = {
                (str(ring), str(zone)): ZoneUsage(_finite(used), _finite(size))
                for ring, zones in content["usage"].items()
                for zone, (used, size) in zones.items()
            }
            yield UsageSample(_finite(content["time"]), usage)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue


def _finite(value: float) -> float:
    """Return a number of the history; raises ValueError, TypeError and OverflowError."""
    number = float(value)
    if not 0 <= number < _NUMBER_MAX:
        raise ValueError(value)
    return number


def growth_per_day(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the least-squares line through (seconds, bytes), a day; None of too few points."""
    if len(points) < SAMPLES_MIN or points[-1][0] - points[0][0] < SPAN_MIN_S:
        return None
    mean_s = sum(time_s for time_s, _ in points) / len(points)
    mean = sum(used for _, used in points) / len(points)
    spread = sum((time_s - mean_s) ** 2 for time_s, _ in points)
    return DAY_S * sum((time_s - mean_s) * (used - mean) for time_s, used in points) / spread


def forecast(samples: Sequence[UsageSample], policies: Mapping[str, str]) -> list[ZoneForecast]:
    """Return the forecast of each zone; ``policies`` maps rings to names of policies.

    A zone that is not in the last sample, as a server is away, has the usage of up to a day before.
    """
    present: dict[tuple[str, str], ZoneUsage] = {}
    for sample in samples:
        if samples[-1].time_s - sample.time_s <= DAY_S:
            present.update(sample.usage)
    found = []
    for (ring, zone), now in sorted(present.items()):
        points = [
            (each.time_s, each.usage[ring, zone].used) for each in samples if (ring, zone) in each.usage
        ]
        growth = growth_per_day(points)
        found.append(ZoneForecast(ring, policies.get(ring, ring), zone, now.used, now.size, growth))
    return found
