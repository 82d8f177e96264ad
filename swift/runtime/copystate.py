"""Counts of the misplaced, missing and failed copies on each device, which replicators report.

A pass notes what is not as the ring says when it finds it, and strikes it out when it is done. What is left
at the end is the state of the device; in the midst of a pass it is the work ahead. Operators see from it when
a rebalance is over, a replaced disk is full again, and a drained device is empty (``swift-health``).
Format: ``doc/formats/recon-files.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from swift.base.documents import JsonObject
from swift.runtime.daemon import PassReport
from swift.telemetry.metrics import GaugeMetric
from swift.telemetry.telemetry import Telemetry

#: The keys of recon files: ring → the last completed pass, and the one under way.
STATE, PROGRESS = "copy_state", "copy_progress"
#: Under which a pass over a device hands its counts to the report of all devices.
FACTS_KEY = "copies"
#: Metric → what it counts.
_LABELS = ("ring", "device")
_GAUGES = {
    "misplaced": GaugeMetric(
        "swift_copies_misplaced", "Partitions (databases) on a device that belong elsewhere.", _LABELS
    ),
    "missing": GaugeMetric(
        "swift_copies_missing",
        "Copies that other devices lack (databases: that this one lacks), as far as it is known.",
        _LABELS,
    ),
    "failed": GaugeMetric(
        "swift_copies_failed", "Partitions (databases) that the pass could not repair.", _LABELS
    ),
}


class DeviceCopies:
    """One device and ring during a pass; a unit is a partition, of databases the directory of one."""

    def __init__(self, ring: str, *, is_partial: bool = False):
        """``ring`` is the digest of the ring file; a partial pass looks at handoffs only."""
        self._ring = ring
        self._is_partial = is_partial
        #: Partitions that the device has.
        self.partitions = 0
        self._misplaced: set[Hashable] = set()
        self._missing: dict[Hashable, Sequence[str]] = {}
        self._failed: set[Hashable] = set()
        self._done = 0

    def add_unit(self, unit: Hashable, *, is_misplaced: bool = False, lacking: Sequence[str] = ()) -> None:
        """Note a unit that belongs elsewhere, or of which ``lacking`` (``ip/name``) have nothing."""
        if is_misplaced:
            self._misplaced.add(unit)
        if lacking:
            self._missing[unit] = lacking

    def set_missing_count(self, unit: Hashable, device: str, count: int) -> None:
        """Note that ``device`` lacks so many copies, whichever they are; 0 strikes that out."""
        self._missing[unit] = (device,) * count

    def mark_done(self, unit: Hashable) -> None:
        """Strike out a unit that is in order now."""
        was_found = unit in self._misplaced or unit in self._missing
        self._done += was_found
        self._misplaced.discard(unit)
        self._missing.pop(unit, None)
        self._failed.discard(unit)

    def mark_failed(self, unit: Hashable) -> None:
        """Note a unit that could not be brought in order."""
        self._failed.add(unit)

    def as_json(self) -> dict[str, object]:
        """Return the counts so far."""
        lacking = Counter(device for devices in self._missing.values() for device in devices)
        return {
            "ring": self._ring,
            "partitions": self.partitions,
            "misplaced": len(self._misplaced),
            "missing": sum(lacking.values()),
            "missing_on": dict(lacking),
            "failed": len(self._failed),
            "done": self._done,
            **({"handoffs_only": True} if self._is_partial else {}),
        }

    def __repr__(self) -> str:
        return f"<DeviceCopies {self.as_json()}>"


def device_copies_facts(copies: Mapping[str, DeviceCopies]) -> dict[str, object]:
    """Return the facts of a pass over one device, by ring name."""
    return {FACTS_KEY: {ring: each.as_json() for ring, each in copies.items()}}


def _by_ring(passed: PassReport) -> dict[str, dict[str, JsonObject]]:
    """Return the counts by ring name and device."""
    found: dict[str, dict[str, JsonObject]] = {}
    for device, result in passed.results.items():
        for ring, counts in result.facts.get(FACTS_KEY, {}).items():
            found.setdefault(ring, {})[device] = counts
    return found


def completed_pass_facts(passed: PassReport, telemetry: Telemetry) -> dict[str, object]:
    """Return the recon facts of a completed pass, and publish its metrics."""
    began_s = passed.ended_s - passed.seconds
    states: dict[str, object] = {}
    for ring, devices in _by_ring(passed).items():
        _publish(telemetry, ring, devices)
        states[ring] = {"began": began_s, "ended": passed.ended_s, "devices": devices}
    # An empty value removes the figures of the running pass.
    return {STATE: states, PROGRESS: {ring: {} for ring in states}} if states else {}


def running_pass_facts(passed: PassReport, telemetry: Telemetry) -> dict[str, object]:
    """Return the recon facts in the midst of a pass, and publish its metrics."""
    began_s = passed.ended_s - passed.seconds
    states: dict[str, object] = {}
    for ring, devices in _by_ring(passed).items():
        _publish(telemetry, ring, devices)
        states[ring] = {"began": began_s, "now": passed.ended_s, "devices": devices}
    return {PROGRESS: states} if states else {}


def _publish(telemetry: Telemetry, ring: str, devices: Mapping[str, JsonObject]) -> None:
    for device, counts in devices.items():
        for name, gauge in _GAUGES.items():
            gauge.of(telemetry.metrics, ring=ring, device=device).set(counts[name])


def other_replicas_after(own: int, count: int) -> Iterator[int]:
    """Return the indexes of the other replicas of a partition, beginning with the one after ``own``."""
    return (index % count for index in range(own + 1, own + count))
