"""A pass of the object auditor over a device (spec: replication.md §7).

There are two kinds of pass: one reads everything, the other looks at metadata and sizes only, which is quick
and finds what a crash left behind. Each goes through all partitions of all policies in turn and remembers on
the device how far it is (``AuditPosition``), as other auditors do (spec: object-disk.md §15). Bodies in
volumes are read in the order in which they lie there.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from swift.base.clock import Clock
from swift.base.misplaced import MOVES_IN_A_ROW_MAX
from swift.config.files import parser_of
from swift.obj.auditor.scrub import DAY_S, OBJECT_BYTES, Scrub
from swift.obj.auditor.settings import ObjectAuditorSettings, temporary_age_s
from swift.obj.auditor.watchers import DeleteRequest, Watchers, load_watchers
from swift.obj.stores import daemon_stores
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.platform.durable import replace_file
from swift.platform.regularfiles import read_regular
from swift.policy.policy import Policy
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import DaemonTask, PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.devicetask import DevicePassBase, DeviceTask
from swift.runtime.selection import Selection
from swift.store.api import LIVE, AuditReport, Location, SyncedVersion
from swift.store.calls import Effort
from swift.store.errors import Damaged, FilesChanged, MisplacedLeft
from swift.store.handle import StoreHandle
from swift.store.layout import objects_dir
from swift.store.packed.device import DIRECTORY as PACKED_DIRECTORY
from swift.store.registry import StoreRegistry
from swift.telemetry.metrics import GaugeMetric

_SCRUB_DAYS = GaugeMetric(
    "swift_auditor_scrub_days_expected", "Days that an audit of the device takes.", ("device",)
)
_SCRUB_KEPT = GaugeMetric(
    "swift_auditor_scrub_kept", "1 while that is within scrub_days, else 0.", ("device",)
)

#: The file is written at most so often, seconds.
SAVED_EVERY_S = 60.0


class AuditPosition:
    """The partitions of a policy that are still to do, those begun among them."""

    def __init__(self, disk: DiskHandle, objects_dir: str, kind: str, clock: Clock):
        self._disk = disk
        self._directory = objects_dir
        self.path = f"{objects_dir}/auditor_status_{kind}.json"
        self._clock = clock
        self._saved_s = -SAVED_EVERY_S

    def load(self) -> list[str] | None:
        """Return the devices that an earlier pass left to audit; None if the file is missing or
        unreadable.
        """
        try:
            names = json.loads(self._disk.call(read_regular, self.path))["partitions"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return names if known else None

    def save(self, left: list[str]) -> None:
        """Remember what is left, now and then, and always that nothing is. Raises OSError."""
        now_s = self._clock.monotonic()
        if left and now_s - self._saved_s < SAVED_EVERY_S:
            return
        self._disk.call(self._replace, json.dumps({"partitions": left}).encode(), now_s)

    def forget(self) -> None:
        """Forget the position after a complete pass. Raises OSError."""
        try:
            self._disk.unlink(self.path)
        except FileNotFoundError:
            return

    def _replace(self, disk: Disk, data: bytes, now_s: float) -> None:
        """Write the file, unless the policy has nothing on this device."""
        try:
            disk.stat(self._directory)
        except FileNotFoundError:
            return
        self._saved_s = now_s
        replace_file(disk, self.path, data)

    def __repr__(self) -> str:
        return f"<AuditPosition {self.path}>"


NAME = "object-auditor"
#: Larger than all bounds of the histogram.
_OVER = "OVER"


@dataclass(frozen=True)
class AuditMode:
    """A kind of pass."""

    #: In recon and in the files on the devices.
    name: str
    #: True if bodies are read.
    full: bool

    @property
    def task_name(self) -> str:
        """Name of the daemon's task."""
        return NAME if self.full else f"{NAME}-zbf"


ALL = AuditMode("ALL", True)
ZERO_BYTE = AuditMode("ZBF", False)


class ObjectAuditor(DeviceTask):
    """The task: every device is a share."""

    def __init__(
        self,
        context: BackendContext,
        kind: AuditMode,
        settings: ObjectAuditorSettings,
        stores: StoreRegistry,
        watchers: Watchers,
        temporary_age_s: float,
        *,
        disk: Disk | None = None,
        rng: random.Random | None = None,
        selection: Selection | None = None,
    ):
        super().__init__(context, disk=disk, rng=rng, selection=selection)
        self.name = kind.task_name
        self.kind = kind
        self.settings = settings
        self.stores = stores
        self.watchers = watchers
        self.temporary_age_s = temporary_age_s

    def target_s(self) -> float:
        """Seconds that a pass over one device may take; 0: as many as it does.

        Devices are read one after another, ``concurrency`` of them at the same time.
        """
        if not self.kind.full or self.selection:
            return 0.0
        devices = max(1, len(self.context.devices.names()))
        beside = min(devices, self.settings.concurrency)
        return self.settings.scrub_days * DAY_S * beside / devices

    def begin(self, share: str, pass_context: PassContext) -> AuditPass:
        """Return a pass over the device ``share``."""
        return AuditPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass; the histogram goes to the log."""
        sizes: dict[str, int] = {}
        for result in passed.results.values():
            for bound, count in result.facts.get("sizes", {}).items():
                sizes[bound] = sizes.get(bound, 0) + count
        if sizes:
            self.context.telemetry.log.info(f"Object audit stats: {json.dumps(sizes)}")
        return self.progress(passed)

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Return the same in the midst of a pass."""
        results = passed.results.values()
        counted = passed.counts(("errors", "quarantines"))
        units = sum(result.units for result in results)
        promises = {
            device: result.facts["scrub"]
            for device, result in passed.results.items()
            if result.facts.get("scrub")
        }
        return {
            **({"object_auditor_scrub": promises} if promises else {}),
            f"object_auditor_stats_{self.kind.name}": {
                "errors": counted["errors"],
                "passes": max(0, units - sum(counted.values())),
                "quarantined": counted["quarantines"],
                "bytes_processed": sum(result.bytes for result in results),
                "start_time": min((r.begun_s for r in results), default=passed.ended_s - passed.seconds),
                "audit_time": sum(result.seconds for result in results),
            },
        }


class AuditPass(DevicePassBase):
    """One pass over the objects of a device."""

    def __init__(self, task: ObjectAuditor, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        bounds = task.settings.object_size_stats
        self._bounds = bounds
        self._sizes = dict.fromkeys((*map(str, bounds), _OVER), 0) if bounds else {}
        #: Of the policies that were gone through to their end.
        self._complete: list[tuple[Policy, AuditPosition]] = []
        #: Of all policies that were begun.
        self._begun: list[tuple[Policy, AuditPosition]] = []
        self._policies = 0
        self._scrub: Scrub | None = None
        self._was_on_schedule = True
        #: Misplaced objects in a row that were left where they are.
        self._misplaced = 0

    def _store(self, policy: Policy) -> StoreHandle:
        return self._task.stores.at(policy, self._device).for_purpose(Effort.AUDIT)

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[Location]:
        """Yield the objects of all policies, a partition of each in turn."""
        device_path = self._device_path()
        if device_path is None:
            return
        policies = self._task.selection.filter_policies(tuple(self._task.context.policies))
        self._task.watchers.start(self._task.kind.name)
        self._scrub = self._scrub_pace(device_path)
        ordered = [policy for policy in policies if self._parts(policy)]
        walks = [self._partitions(device_path, policy) for policy in policies if policy not in ordered]
        if ordered:
            walks.append(self._in_order(device_path, ordered))
        self._policies = len(walks)
        while walks:
            for walk in list(walks):
                locations = next(walk, None)
                if locations is None:
                    walks.remove(walk)
                    continue
                for location in locations:
                    if self._pass_context.stop.requested or self._misplaced >= MOVES_IN_A_ROW_MAX:
                        return
                    yield location

    def _parts(self, policy: Policy) -> list[str]:
        """Return the parts of the device in which bodies of a policy are read best; empty: partitions."""
        if self._task.selection.partitions:
            return []
        try:
            return self._store(policy).maintenance.reading_order(self._device, policy)
        except OSError as error:
            self._counters.add("errors")
            self._count_device_error(error)
            self._log.error(f"ERROR cannot list volumes of {self._device}: {error}")
            return []

    def _in_order(self, device_path: str, policies: list[Policy]) -> Iterator[Iterator[Location]]:
        """Yield the objects of several policies, one part of the device after the other."""
        first = policies[0]
        directory = f"{device_path}/{PACKED_DIRECTORY}"
        position = AuditPosition(self._disk, directory, self._task.kind.name, self._pass_context.clock)
        self._begun.append((first, position))
        left = (None if self._task.selection else position.load()) or self._parts(first)
        for _ in range(2):
            limit = max(map(int, left), default=0)
            while left:
                self._remember(first, position, left)
                self._expect(first, len(left))
                yield self._of_part(left[0], policies)
                left.pop(0)
            # Objects may have moved to new parts meanwhile.
            left = [part for part in self._parts(first) if int(part) > limit]
        self._remember(first, position, [])
        self._expect(first, 0)
        self._complete.append((first, position))

    def _scrub_pace(self, device_path: str) -> Scrub | None:
        """Return the pace that keeps the promise, if there is one.

        It goes on where it was before a restart.
        """
        task, context = self._task, self._pass_context
        target_s = task.target_s()
        if not target_s:
            return None
        room = self._disk.statvfs(device_path)
        progress = context.progress
        noted = context.cursor.position
        return Scrub(
            target_s,
            begun_s=context.cursor.begun_s,
            used_bytes=(room.f_blocks - room.f_bfree) * room.f_frsize,
            work_done=progress.bytes + progress.units * OBJECT_BYTES,
            partitions=noted if isinstance(noted, int) else 0,
            clock=context.clock,
            wait=context.stop.wait,
            alive=self._live,
        )

    def _live(self) -> None:
        self._counters.activity += 1

    def _expect(self, policy: Policy, left: int) -> None:
        """Set the number of remaining partitions, and publish the forecast."""
        scrub = self._scrub
        if scrub is None:
            return
        scrub.expect(policy.index, left)
        self._pass_context.cursor.note(scrub.partitions)
        forecast = scrub.forecast()
        metrics, device = self._task.context.telemetry.metrics, self._device
        _SCRUB_DAYS.of(metrics, device=device).set(forecast.days_expected)
        _SCRUB_KEPT.of(metrics, device=device).set(forecast.is_on_schedule)
        if forecast.is_on_schedule != self._was_on_schedule:
            self._was_on_schedule = forecast.is_on_schedule
            log = self._log.info if forecast.is_on_schedule else self._log.warning
            log(f"{device} {forecast}")

    def _partitions(self, device_path: str, policy: Policy) -> Iterator[Iterator[Location]]:
        """Yield the objects of one partition after the other; what is left is remembered before each."""
        position = AuditPosition(
            self._disk, objects_dir(device_path, policy), self._task.kind.name, self._pass_context.clock
        )
        self._begun.append((policy, position))
        # A part of the work neither goes on where the whole was nor says where that is.
        left = None if self._task.selection else position.load()
        if left is None:
            left = self._store(policy).partitions(self._device, policy)
            self._task.rng.shuffle(left)
        while left:
            self._remember(policy, position, left)
            self._expect(policy, len(left))
            if self._task.selection.includes_partition(left[0]):
                yield self._of_partition(policy, left[0])
            left.pop(0)
        self._remember(policy, position, left)
        self._expect(policy, 0)
        self._complete.append((policy, position))

    def _remember(self, policy: Policy, position: AuditPosition, left: list[str]) -> None:
        if self._task.selection:
            # A part of the work says nothing about the whole.
            return
        try:
            position.save(list(left))
        except OSError as error:
            self._log.warning(f"cannot write {position.path}: {error.strerror}")

    def _of_partition(self, policy: Policy, partition: str) -> Iterator[Location]:
        try:
            for some in self._store(policy).inventory(partition, policy):
                for name in some:
                    yield Location(self._device, partition, policy, name)
        except OSError as error:
            self._counters.add("errors")
            self._count_device_error(error)
            self._log.error(f"ERROR cannot list partition {partition} of {self._device}: {error}")

    def _of_part(self, part: str, policies: list[Policy]) -> Iterator[Location]:
        try:
            for some in self._store(policies[0]).locations_in(part, policies):
                yield from some
        except (OSError, Damaged) as error:
            self._counters.add("errors")
            self._count_device_error(error)
            self._log.error(f"ERROR cannot read volume {part} of {self._device}: {error}")

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: Location) -> None:
        """Look at one object; count and log what is wrong."""
        if self._scrub is not None:
            self._scrub.pause_after(0, 1)
        started_s = self._pass_context.clock.monotonic()
        try:
            report = self._audit(unit)
        except FilesChanged:
            # Another process works on it; the next pass retries.
            return
        except MisplacedLeft as error:
            self._left_misplaced(unit, error)
            return
        except OSError as error:
            # It may be readable again: only what was read proves damage.
            self._counters.add("errors")
            self._count_device_error(error)
            self._log.error(f"ERROR cannot read object {unit.hash} of {self._device}: {error}")
            return
        self._misplaced = 0
        if report.quarantined is not None:
            self._note_quarantine(unit, report.quarantined)
        elif report.found.state.kind == LIVE:
            self._count_size(report.found.state.size)
            self._call_watchers(unit, report)
        self._counters.timing("timing", self._pass_context.clock.monotonic() - started_s)

    def _left_misplaced(self, unit: Location, error: MisplacedLeft) -> None:
        """Count an object that is not in its place; many in a row end the pass."""
        self._counters.add("errors")
        self._misplaced += 1
        if self._misplaced <= MOVES_IN_A_ROW_MAX:
            self._log.error(f"ERROR object {unit.hash} of {self._device} was not quarantined: {error}")
        if self._misplaced == MOVES_IN_A_ROW_MAX:
            self._log.error(
                f"ERROR {MOVES_IN_A_ROW_MAX} objects in a row on {self._device} are not where their names "
                "belong: the pass ends here; correct [swift-hash] in swift.conf or remove the device"
            )

    def _audit(self, unit: Location) -> AuditReport:
        return self._store(unit.policy).maintenance.audit(
            unit,
            full=self._task.kind.full,
            pace=self._pace,
            temporary_age_s=self._task.temporary_age_s,
        )

    def _pace(self, count: int) -> None:
        """Pause after reading ``count`` bytes; runs in a disk thread."""
        self._pass_context.count_bytes_read(count)
        if self._scrub is not None:
            self._scrub.pause_after(count)

    def _count_size(self, size: int) -> None:
        if self._bounds:
            self._sizes[next((str(bound) for bound in self._bounds if size <= bound), _OVER)] += 1

    def _call_watchers(self, unit: Location, report: AuditReport) -> None:
        """Let the watchers see a sound object, and do what one of them asks."""
        if not self._task.watchers:
            return
        state = report.found.state
        request = self._task.watchers.see(state.metadata, report.data_path)
        if request is None:
            return
        maintenance = self._store(unit.policy).maintenance
        if isinstance(request, DeleteRequest):
            index = state.fragments[0][1][0] if state.fragments else None
            synced = SyncedVersion(state.data_timestamp, index, state.durable, state.timestamp)
            maintenance.purge(unit, synced)
            self._counters.add("deletes")
            self._log.warning(
                f"object {unit.hash} of {self._device} was removed by an audit watcher: {request}"
            )
            return
        maintenance.quarantine(unit, str(request))
        self._note_quarantine(unit, str(request))

    def _note_quarantine(self, unit: Location, reason: str) -> None:
        self._counters.add("quarantines")
        self._log.error(f"ERROR object {unit.hash} of {self._device} was quarantined: {reason}")

    # --- telling --------------------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """Return the number of objects by size, and the promise's state."""
        facts: dict[str, object] = {"sizes": dict(self._sizes)}
        if self._scrub is not None:
            facts["scrub"] = self._scrub.forecast().as_facts()
        return facts

    def end(self) -> None:
        """Forget where the pass was, if it came to its end."""
        if self._policies:
            self._task.watchers.end()
        if self._task.selection or self._pass_context.stop.requested:
            return
        if self._misplaced >= MOVES_IN_A_ROW_MAX:
            # The next pass begins elsewhere: one bad partition must not keep it from all others.
            self._complete = self._begun
        elif len(self._complete) < self._policies:
            return
        for _policy, position in self._complete:
            position.forget()


def _task(parts: DaemonParts, kind: AuditMode) -> ObjectAuditor:
    parser = parser_of(parts.conf_path)

    def conf_of(watcher: str) -> Mapping[str, str]:
        section = f"{NAME}:watcher:{watcher}"
        own = dict(parser.items(section)) if parser.has_section(section) else {}
        return {**parts.conf, **own}

    rsync_timeout = parser.get("object-replicator", "rsync_timeout", fallback=None)
    return ObjectAuditor(
        parts.context,
        kind,
        parts.settings,
        daemon_stores(parts),
        load_watchers(parts.settings.watchers, conf_of, parts.context.telemetry.log),
        temporary_age_s(parts.settings, rsync_timeout),
        selection=parts.selection,
    )


def _only_zero_byte(parts: DaemonParts) -> float:
    """Return the pace that the command line gives to the quick pass, which is the only one then.

    0: it does not.
    """
    return float(getattr(parts.args, "zero_byte_fps", 0) or 0)


def _main_task(parts: DaemonParts) -> DaemonTask:
    return _task(parts, ZERO_BYTE if _only_zero_byte(parts) else ALL)


def _main_schedule(parts: DaemonParts) -> Schedule:
    settings: ObjectAuditorSettings = parts.settings
    quick = _only_zero_byte(parts)
    return settings.zero_byte_schedule(quick) if quick else settings.schedule


def _companions(parts: DaemonParts) -> Sequence[tuple[DaemonTask, Schedule]]:
    settings: ObjectAuditorSettings = parts.settings
    per_second = settings.zero_byte_files_per_second
    if not per_second or _only_zero_byte(parts):
        return ()
    return ((_task(parts, ZERO_BYTE), settings.zero_byte_schedule(per_second)),)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-z", "--zero_byte_fps", type=int, default=0, help="only look at metadata and sizes, so many a second"
    )


DAEMON = Daemon(
    NAME,
    "object",
    "Read every object again and again, and quarantine what is damaged.",
    ObjectAuditorSettings,
    _main_task,
    _main_schedule,
    _companions,
    _add_arguments,
    small_cluster={"interval": 1800, "files_per_second": 2, "zero_byte_files_per_second": 2},
)
