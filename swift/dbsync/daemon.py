"""The database replicator: every database of this node is brought to all nodes that should have it.

Spec: account-container.md §13. One pass walks the devices of this node that are in the ring; what becomes of
each database is ``visit``'s. A database is visited because something has happened to it since all its copies
were found equal, because the ring changed, or because it is time to (``db.settled``).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from swift.base.errors import DeviceUnavailable
from swift.cluster.owndevices import OwnDevices
from swift.db import walk
from swift.db.settled import BUSY_S, Due, Settled
from swift.dbsync import handoffs
from swift.dbsync.courier import Means
from swift.dbsync.kind import Kind, Replication
from swift.dbsync.settings import ReplicatorSettings
from swift.dbsync.visit import Visits
from swift.platform.disk import Disk
from swift.ring.ring import Ring
from swift.ring.view import RingView
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Desk, Sweep

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


@dataclass(frozen=True)
class Selection:
    """What a run by hand is limited to; empty is everything."""

    devices: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.devices or self.partitions)


class DatabaseReplicator:
    """The duty: every device of this node is a share."""

    def __init__(
        self,
        context: BackendContext,
        ring: Ring,
        kind: Kind,
        settings: ReplicatorSettings,
        *,
        disk: Disk | None = None,
        rng: random.Random | None = None,
        selection: Selection | None = None,
    ):
        self.name = kind.daemon
        self.context = context
        self.ring = ring
        self.kind = kind
        self.settings = settings
        self.disk = disk or Disk()
        self.rng = rng or random.Random()
        self.selection = selection or Selection()
        means = Means(
            context.transport,
            settings,
            self.disk,
            settings.rsync_module or f"{{replication_ip}}::{kind.server_type}",
            f"{self.name} {os.getpid()}",
        )
        self.own = OwnDevices(context.ring_ip, context.ring_port)
        self.replication = Replication(context, ring, kind, settings, self.disk, means, self.own)
        self._settled: dict[str, Settled] = {}

    def shares(self) -> list[str]:
        """The devices of this node in the ring, in random order; raises RingError and OSError."""
        view = self.ring.view()
        names = self.own.names(view)
        if not names:
            self.context.telemetry.log.error("Can't find itself in the ring, not replicating")
        if self.selection.devices:
            names = [name for name in names if name in self.selection.devices]
        self.rng.shuffle(names)
        return names

    def settled(self, device: str, view: RingView) -> Settled:
        """What is known of a device's databases, at the beginning of another pass."""
        if device not in self._settled:
            self._settled[device] = Settled(self.disk, self.settings.recheck_interval, BUSY_S)
        self.own.ids(view)
        self._settled[device].begin(self.own.rings_seen)
        return self._settled[device]

    def begin(self, share: str, desk: Desk) -> DevicePass:
        """A pass over the device ``share``."""
        return DevicePass(self, share, desk)

    def report(self, sweep: Sweep) -> dict[str, Any]:
        """The recon facts of the pass; a limited run has none."""
        if self.selection:
            return {}
        stats: dict[str, Any] = dict.fromkeys(RECON_NAMES.values(), 0)
        stats.update({"ts_repl": 0, "empty": 0, "start": sweep.ended_s - sweep.seconds})
        failed: dict[str, dict[str, int]] = {}
        for result in sweep.results.values():
            for event, amount in result.counts.items():
                name = RECON_NAMES.get(event.partition(".")[0])
                if name is not None:
                    stats[name] += amount
            for ip, devices in result.facts.get("failure_nodes", {}).items():
                counts = failed.setdefault(ip, {})
                for device, amount in devices.items():
                    counts[device] = counts.get(device, 0) + amount
        if failed:
            stats["failure_nodes"] = failed
        return {
            "replication_stats": stats,
            "replication_time": sweep.seconds,
            "replication_last": sweep.ended_s,
        }


class DevicePass:
    """One pass over the databases of a device."""

    def __init__(self, duty: DatabaseReplicator, device: str, desk: Desk):
        context = duty.context
        self._duty = duty
        self._device = device
        self._desk = desk
        self._tally = desk.tally
        self._log = context.telemetry.log
        self._run = context.pools.run(device)
        self._visits = Visits(duty.replication, device, desk)
        self._settled = duty.settled(device, duty.ring.view())

    # --- planning ----------------------------------------------------------------------------------

    def plan(self) -> Iterator[Due]:
        """The databases that are due, partitions in random order."""
        duty = self._duty
        try:
            device_path = duty.context.devices.path(self._device)
        except DeviceUnavailable:
            self._tally.add("failures")
            self._log.warning(f"Skipping {self._device} as it is not mounted")
            return
        before_s = duty.context.clock.time() - duty.settings.reclaim_age
        self._run(handoffs.clean_temporary, duty.disk, f"{device_path}/tmp", before_s)
        if duty.settings.handoffs_only:
            self._log.warning("handoffs_only is on: what belongs here is not replicated; turn it off soon")
        view = duty.ring.view()
        kind = duty.kind.directory
        found = walk.partitions(duty.disk, self._run, device_path, kind, duty.rng)
        wanted = [partition for partition in found if self._is_wanted(view, partition)]
        for some in walk.portions(wanted):
            scan = self._run(self._settled.scan, device_path, kind, some, time.time_ns())
            for directory in scan.empty:
                self._run(handoffs.remove_empty, duty.disk, directory, self._desk.clock.time())
            yield from scan.due

    def _is_wanted(self, view: RingView, partition: str) -> bool:
        chosen = self._duty.selection.partitions
        if chosen and partition not in chosen:
            return False
        if not self._duty.settings.handoffs_only or int(partition) >= view.partition_count:
            return True
        ids = self._duty.own.ids(view)
        return not any(node.id in ids for node in view.primaries(int(partition)))

    # --- doing -------------------------------------------------------------------------------------

    def do(self, unit: Due) -> None:
        """Replicate one database."""
        if self._visits.visit(unit.place):
            self._run(self._settled.settle, unit, time.time_ns())

    def facts(self) -> dict[str, Any]:
        """The nodes that failed, by address and device."""
        self._settled.end()
        return {"failure_nodes": self._visits.failed}
