"""The database replicator: every database of this node is brought to all nodes that should have it.

Spec: account-container.md §13. One pass walks the devices of this node that are in the ring; what becomes of
each database is decided in ``replicate``. A database is processed because it changed since all its copies
were found equal, because the ring changed, or because it is time to (``db.unchanged``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Unpack

from swift.base.documents import JsonObject
from swift.cluster.direct import DirectClient
from swift.cluster.health import NodeHealth
from swift.cluster.owndevices import OwnDevices
from swift.db.unchanged import BUSY_RECHECK_S, REST_FRACTION, DueDatabase, UnchangedDatabases
from swift.dbsync import handoffs
from swift.dbsync.device import DeviceReplication
from swift.dbsync.kind import Replication, ReplicatorKind
from swift.dbsync.missingdatabases import MissingDatabases
from swift.dbsync.remote import NodeAccess
from swift.dbsync.settings import ReplicatorSettings
from swift.ring.ring import Ring
from swift.ring.view import RingView
from swift.runtime.backendapp import BackendContext
from swift.runtime.copystate import (
    DeviceCopies,
    completed_pass_facts,
    device_copies_facts,
    running_pass_facts,
)
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.devicetask import DatabasePassBase, DeviceTask, DeviceTaskParts

#: Events as they are counted → as the recon file names them.
RECON_NAMES = {
    "attempts": "attempted",
    "successes": "success",
    "failures": "failure",
    "diffs": "diff",
    "diff_caps": "diff_capped",
    "no_changes": "no_change",
    "hashmatches": "hashmatch",
    "rsyncs": "rsync",
    "remote_merges": "remote_merge",
    "deferred": "deferred",
    "removes": "remove",
}


class DatabaseReplicator(DeviceTask):
    """The task: every device of this node is a share."""

    def __init__(
        self,
        context: BackendContext,
        ring: Ring,
        kind: ReplicatorKind,
        settings: ReplicatorSettings,
        **parts: Unpack[DeviceTaskParts],
    ):
        self.name = kind.daemon
        super().__init__(context, **parts)
        self.ring = ring
        self.kind = kind
        self.settings = settings
        self.direct = direct = DirectClient(context.transport, self.name, settings)
        module = settings.rsync_module or f"{{replication_ip}}::{kind.server_type}"
        access = NodeAccess(direct, settings, module, NodeHealth(context.clock))
        self.own = OwnDevices(context.ring_ip, context.ring_port)
        self.replication = Replication(context, ring, kind, settings, self.disk, access, self.own)
        self._unchanged: dict[str, UnchangedDatabases] = {}
        self._missing_databases: dict[str, MissingDatabases] = {}

    def shares(self) -> list[str]:
        """Return the devices of this node in the ring, in random order; raises RingError and OSError."""
        view = self.ring.view()
        names = self.own.names(view)
        if not names:
            self.context.telemetry.log.error(
                "Can't find itself in the ring, not replicating: no device has an address of this node"
            )
        names = self.selection.filter_devices(names)
        self.rng.shuffle(names)
        return names

    def unchanged_databases(self, device: str, view: RingView) -> UnchangedDatabases:
        """Return the unchanged-database tracker of a device, at the start of a pass."""
        if device not in self._unchanged:
            settings, disk = self.settings, self.disk_at(device)
            self._unchanged[device] = UnchangedDatabases(
                disk,
                settings.recheck_interval,
                busy_s=BUSY_RECHECK_S,
                rest_s=REST_FRACTION * settings.interval,
            )
        self.own.ids(view)
        self._unchanged[device].begin(self.own.rings_seen)
        return self._unchanged[device]

    def missing_databases(self, device: str) -> MissingDatabases:
        """Return the missing databases of a device."""
        return self._missing_databases.setdefault(device, MissingDatabases())

    def begin(self, share: str, pass_context: PassContext) -> ReplicationPass:
        """Return a pass over the device ``share``."""
        return ReplicationPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        stats: JsonObject = dict.fromkeys(RECON_NAMES.values(), 0)
        stats.update({"ts_repl": 0, "empty": 0, "start": passed.ended_s - passed.seconds})
        failed: dict[str, dict[str, int]] = {}
        for result in passed.results.values():
            for event, amount in result.counts.items():
                name = RECON_NAMES.get(event.partition(".")[0])
                if name is not None:
                    stats[name] += amount
            for ip, devices in result.facts.get("failure_nodes", {}).items():
                counts = failed.setdefault(ip, {})
                for device, amount in devices.items():
                    counts[device] = counts.get(device, 0) + amount
        # Empty, it removes those of the former pass from the recon file.
        stats["failure_nodes"] = failed
        return {
            "replication_stats": stats,
            "replication_time": passed.seconds,
            "replication_last": passed.ended_s,
            **completed_pass_facts(passed, self.context.telemetry),
        }

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Return the counts of misplaced databases in the midst of a pass."""
        return running_pass_facts(passed, self.context.telemetry)


class ReplicationPass(DatabasePassBase):
    """One pass over the databases of a device."""

    unavailable_event = "failures"

    def __init__(self, task: DatabaseReplicator, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        self._databases = DeviceReplication(task.replication, device, pass_context)
        self._unchanged = task.unchanged_databases(device, task.ring.view())
        #: The partitions on the device when all of them were looked at.
        self._present: list[str] | None = None
        self._copies: DeviceCopies | None = None
        self._own_ids: frozenset[int] = frozenset()

    # --- planning ----------------------------------------------------------------------------------

    def plan(self) -> Iterator[DueDatabase]:
        """Yield the databases that are due, partitions in random order."""
        task = self._task
        device_path = self._device_path()
        if device_path is None:
            return
        before_s = task.context.clock.time() - task.settings.reclaim_age
        self._disk.call(handoffs.clean_temporary, f"{device_path}/tmp", before_s)
        if task.settings.handoffs_only:
            self._log.warning("handoffs_only is on: only handoffs are replicated; turn it off soon")
        view = task.ring.view()
        kind = task.kind.directory
        self._own_ids = task.own.ids_of(view, self._device)
        found = self._partitions(device_path, kind)
        self._copies = copies = DeviceCopies(view.digest, is_partial=task.settings.handoffs_only)
        copies.partitions = len(found)
        for some in self._partition_batches(
            [partition for partition in found if self._is_wanted(view, partition)]
        ):
            scan = self._changed_databases(self._unchanged, device_path, kind, some)
            for directory in scan.empty:
                self._disk.call(handoffs.remove_empty, directory, self._pass_context.clock.time())
            for place in (*(due.place for due in scan.due), *scan.busy):
                if not self._is_own(view, place.partition):
                    copies.add_unit(place.directory, is_misplaced=True)
            yield from scan.due
        if not (self._pass_context.stop.requested or task.selection or task.settings.handoffs_only):
            self._present = found

    def _is_wanted(self, view: RingView, partition: str) -> bool:
        return not (self._task.settings.handoffs_only and self._is_own(view, partition))

    def _is_own(self, view: RingView, partition: str) -> bool:
        """Return True if this device is a primary of a partition."""
        if int(partition) >= view.partition_count:
            return False
        return not self._own_ids.isdisjoint(view.primary_ids(int(partition)))

    # --- doing -------------------------------------------------------------------------------------

    def do(self, unit: DueDatabase) -> None:
        """Replicate one database."""
        failures = self._counters.counts.get("failures", 0)
        if self._databases.replicate(unit.place):
            self._unchanged.mark_unchanged(unit, self._task.disk.now_ns())
        assert self._copies is not None, "units come from the plan"
        if self._counters.counts.get("failures", 0) != failures:
            self._copies.mark_failed(unit.place.directory)
            return
        is_own = self._is_own(self._task.ring.view(), unit.place.partition)
        if is_own or not self._disk.is_directory(unit.place.directory):
            self._copies.mark_done(unit.place.directory)

    def facts(self) -> dict[str, object]:
        """Return the failures by address and device, and the counts of misplaced and missing copies."""
        copies = {} if self._copies is None else {self._task.kind.server_type: self._copies}
        return {"failure_nodes": self._databases.failed, **device_copies_facts(copies)}

    def end(self) -> None:
        """End the pass: keep the unchanged databases and report missing ones to other nodes."""
        try:
            if self._present is not None:
                self._report_missing(self._present)
        finally:
            self._unchanged.end()

    def _report_missing(self, present: Sequence[str]) -> None:
        task, stop = self._task, self._pass_context.stop
        view, missing_databases = task.ring.view(), task.missing_databases(self._device)
        device_path = task.context.devices.path(self._device)
        gone = self._unchanged.missing_partitions(device_path, task.kind.directory, view.partition_of)
        own_ids = task.own.ids_of(view, self._device)
        missing_databases.note(
            view, own_ids, {int(name) for name in present}, gone | self._databases.quarantined
        )
        missing_databases.tell(view, task.direct, self._log, lambda: not stop.requested)
        if self._copies is not None:
            now_present = self._partitions(device_path, task.kind.directory)
            self._copies.partitions = len(now_present)
            own = next((f"{d.ip}/{d.device}" for d in view.devices if d is not None and d.id in own_ids), "")
            self._copies.set_missing_count(own, own, missing_databases.lacking(set(map(int, now_present))))
