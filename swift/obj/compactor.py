"""The object compactor: returns the dead space of devices of the packed engine.

A pass compacts the volumes of which enough is dead, the deadest first. In the others it makes holes of large
dead bodies. It also removes files of large bodies whose record was never written.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from swift.base.errors import LockTimeout, NoSpace
from swift.config.kinds import COUNT, SECONDS, number
from swift.config.schema import Settings, option
from swift.obj.settings import ObjectSettings
from swift.obj.stores import daemon_stores
from swift.policy.policy import Policy
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.devicetask import DevicePassBase, DeviceTask
from swift.runtime.selection import Selection
from swift.store.errors import Damaged
from swift.store.packed.space import SpaceHandle, SpaceUse, VolumeSpace
from swift.store.registry import StoreRegistry, is_packed
from swift.telemetry.metrics import GaugeMetric

_VOLUMES = GaugeMetric("swift_packed_volumes", "Volumes of a device.", ("device",))
_LIVE = GaugeMetric("swift_packed_live_bytes", "Bytes of live records in volumes, roughly.", ("device",))
_DEAD = GaugeMetric("swift_packed_dead_bytes", "Bytes in volumes that compaction would return.", ("device",))
_INDEX = GaugeMetric("swift_packed_index_bytes", "Size of the index of a device.", ("device",))
_LOST = GaugeMetric(
    "swift_packed_lost_bytes",
    "Bytes of volumes whose records could not be indexed: damaged or unreadable.",
    ("device",),
)

NAME = "object-compactor"
#: Holes are made in a volume when so much of it, per cent, could become holes since the last time.
PUNCH_PERCENT = 5.0
#: The newest volume is compacted when so much of it is dead, bytes: the next one takes a part of it at once.
NEWEST_DEAD_BYTES_MIN = 8 << 20


@dataclass(frozen=True)
class ObjectCompactorSettings(Settings):
    """Options of the object compactor."""

    interval: float = option(3600.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    compactor_workers: int = option(1, "Devices to process at the same time, each in a process.", kind=COUNT)
    bytes_per_second: float = option(
        20_000_000.0, "Bytes read and copied per second and process; 0: any.", kind=number(0)
    )
    dead_percent: float = option(
        50.0, "Volumes of which so much is dead are copied and removed, per cent.", kind=number(1, 100)
    )
    punch_holes: bool = option(True, "Make holes of dead bodies from 32 KiB on in the other volumes.")
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(
            self.interval,
            workers=self.compactor_workers,
            report_interval_s=self.report_interval,
            bytes_per_second=self.bytes_per_second,
        )


@dataclass(frozen=True)
class CompactVolume:
    """A volume that is copied and removed."""

    number: int


@dataclass(frozen=True)
class PunchVolume:
    """A volume in which holes are made."""

    volume: VolumeSpace


@dataclass(frozen=True)
class OrphanScan:
    """A partition whose files are compared with the index."""

    policy: Policy
    partition: str


Unit = CompactVolume | PunchVolume | OrphanScan


class ObjectCompactor(DeviceTask):
    """The task: every device is a share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        settings: ObjectCompactorSettings,
        stores: StoreRegistry,
        *,
        reclaim_age_s: float,
        rng: random.Random | None = None,
        selection: Selection | None = None,
    ):
        super().__init__(context, rng=rng, selection=selection)
        self.settings = settings
        self.stores = stores
        self.reclaim_age_s = reclaim_age_s
        #: Dead bytes of volumes when holes were made in them last.
        self.punched: dict[tuple[str, int], int] = {}

    @property
    def policies(self) -> list[Policy]:
        """The selected policies of the packed engine."""
        known = self.selection.filter_policies(tuple(self.context.policies))
        return [policy for policy in known if is_packed(policy)]

    def shares(self) -> list[str]:
        """Return the selected devices; none if no policy is packed."""
        return super().shares() if self.policies else []

    def begin(self, share: str, pass_context: PassContext) -> CompactorPass:
        """Return a pass over the device ``share``."""
        return CompactorPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        spaces = self._spaces(passed)
        metrics = self.context.telemetry.metrics
        for device, use in spaces.items():
            _VOLUMES.of(metrics, device=device).set(use.volumes)
            _LIVE.of(metrics, device=device).set(use.live_bytes)
            _DEAD.of(metrics, device=device).set(use.dead_bytes)
            _INDEX.of(metrics, device=device).set(use.index_bytes)
            _LOST.of(metrics, device=device).set(use.lost_bytes)
        counts = passed.counts(("compacted", "copied_bytes", "punched_bytes", "taken", "orphans", "errors"))
        return {
            "object_compactor_sweep": passed.seconds,
            "object_compactor_last": passed.ended_s,
            "object_compactor_stats": counts,
            "object_packed_devices": {device: use.as_facts() for device, use in spaces.items()},
        }

    def _spaces(self, passed: PassReport) -> dict[str, SpaceUse]:
        results = passed.results.items()
        return {device: SpaceUse(**found) for device, r in results if (found := r.facts.get("space"))}


class CompactorPass(DevicePassBase):
    """One pass over the volumes of a device."""

    def __init__(self, task: ObjectCompactor, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        self._use: SpaceUse | None = None

    @property
    def _space(self) -> SpaceHandle:
        return self._task.stores.space(self._device)

    def plan(self) -> Iterator[Unit]:
        """Yield the volumes to be compacted, those to be punched, and the partitions that have files."""
        if self._device_path() is None:
            return
        try:
            self._space.forget_volumes(self._device)
            volumes = self._space.volumes(self._device)
        except (OSError, LockTimeout) as error:
            self._failed("look at the volumes", error)
            return
        settings = self._task.settings
        deadest = sorted(volumes, key=lambda volume: volume.dead_percent, reverse=True)
        newest = max((volume.number for volume in volumes), default=0)
        for volume in deadest:
            is_worthwhile = volume.number < newest or volume.dead >= NEWEST_DEAD_BYTES_MIN
            if volume.dead_percent >= settings.dead_percent and is_worthwhile:
                yield CompactVolume(volume.number)
            elif settings.punch_holes and self._is_worth_punching(volume):
                yield PunchVolume(volume)
        for policy in self._task.policies:
            for partition in self._space.directories(self._device, policy):
                if self._pass_context.stop.requested:
                    return
                if self._task.selection.includes_partition(partition):
                    yield OrphanScan(policy, partition)

    def _is_worth_punching(self, volume: VolumeSpace) -> bool:
        """Return True if holes may return enough: small dead records never do, so growth counts."""
        least = volume.size * PUNCH_PERCENT / 100
        grown = volume.dead - self._task.punched.get((self._device, volume.number), 0)
        return volume.punchable >= least and grown >= least

    def do(self, unit: Unit) -> None:
        """Compact or punch one volume, or see to the orphans of one partition."""
        try:
            if isinstance(unit, CompactVolume):
                self._compact(unit.number)
            elif isinstance(unit, PunchVolume):
                self._punch(unit.volume)
            else:
                self._scan_orphans(unit)
        except (OSError, NoSpace, LockTimeout, Damaged) as error:
            self._failed(f"work on {unit}", error)

    def _scan_orphans(self, unit: OrphanScan) -> None:
        """Give young files without a record one: rsync may have brought them. Remove old ones."""
        before_s = self._pass_context.clock.time() - self._task.reclaim_age_s
        place = f"partition {unit.partition} of {self._device}, policy {unit.policy.name}"
        taken = self._space.take_arrivals(self._device, unit.partition, unit.policy, before_s)
        if taken:
            self._counters.add("taken", taken)
            self._log.warning(f"took {taken} files without a record into {place}")
        removed = self._space.remove_orphans(self._device, unit.partition, unit.policy, before_s)
        if removed:
            self._counters.add("orphans", removed)
            self._log.warning(f"removed {removed} files without a record from {place}")

    def _punch(self, volume: VolumeSpace) -> None:
        punched = self._space.punch(self._device, volume.number, self._pass_context.count_bytes_read)
        self._task.punched[self._device, volume.number] = volume.dead
        self._counters.add("punched_bytes", punched)

    def _compact(self, number: int) -> None:
        try:
            report = self._space.compact(self._device, number, self._pass_context.count_bytes_read)
        except NoSpace:
            # Holes need no room, and may make enough for the next pass.
            for volume in self._space.volumes(self._device) if self._task.settings.punch_holes else ():
                if volume.number == number and self._is_worth_punching(volume):
                    self._punch(volume)
            raise
        self._counters.add("copied", report.copied)
        self._counters.add("copied_bytes", report.copied_bytes)
        if report.is_removed:
            self._counters.add("compacted")
            self._log.info(
                f"compacted volume {number} of {self._device}: {report.copied_bytes} bytes were live"
            )
        else:
            self._counters.add("skipped")
            self._log.debug(f"volume {number} of {self._device} stays: {report.reason}")

    def _failed(self, what: str, error: Exception) -> None:
        self._counters.add("errors")
        self._count_device_error(error)
        self._log.error(f"ERROR cannot {what} of {self._device}: {error}")

    def facts(self) -> dict[str, object]:
        """Return the space of the device as of the end of the pass."""
        return {"space": self._use.as_facts()} if self._use else {}

    def end(self) -> None:
        """Look at the space that is used now."""
        try:
            self._use = self._space.use(self._device)
        except (OSError, LockTimeout) as error:
            self._failed("look at the space", error)


def _make(parts: DaemonParts) -> ObjectCompactor:
    reclaim_age_s = ObjectSettings.parse(parts.conf).reclaim_age
    return ObjectCompactor(
        parts.context,
        parts.settings,
        daemon_stores(parts),
        reclaim_age_s=reclaim_age_s,
        selection=parts.selection,
    )


DAEMON = Daemon(
    NAME,
    "object",
    "Return the dead space of devices of the packed engine.",
    ObjectCompactorSettings,
    _make,
)
