"""What the object updater does in a pass over a device (spec: replication.md §6)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from swift.base.errors import DeviceUnavailable
from swift.base.pickles import PickleRefused
from swift.obj.updater.delivery import Deliverer
from swift.obj.updater.failures import OldestFailures
from swift.obj.updater.pacing import ContainerPacer
from swift.obj.updater.pendings import Found, Pending, PendingFiles
from swift.obj.updater.settings import ObjectUpdaterSettings
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Desk, ShareResult, Sweep
from swift.runtime.deviceduty import DeviceDuty, DeviceWork

NAME = "object-updater"


class ObjectUpdater(DeviceDuty):
    """The duty: every device is a share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        container_ring: Ring,
        settings: ObjectUpdaterSettings,
        *,
        disk: Disk | None = None,
        rng: random.Random | None = None,
    ):
        super().__init__(context, disk=disk, rng=rng)
        self.settings = settings
        self.ring = container_ring

    def begin(self, share: str, desk: Desk) -> DevicePass:
        """A pass over the device ``share``."""
        return DevicePass(self, share, desk)

    def report(self, sweep: Sweep) -> dict[str, Any]:
        """The recon facts of the pass, for all devices together and for each."""
        dump = self.settings.async_tracker_dump_count
        per_device = {}
        everything = OldestFailures(self.settings.async_tracker_max_entries)
        for device, result in sweep.results.items():
            own = self._failures(result)
            everything.add_entries(own.entries())
            per_device[device] = own.stats(sweep.ended_s, dump)
        return {
            "object_updater_sweep": sweep.seconds,
            "object_updater_last": sweep.ended_s,
            "object_updater_stats": everything.stats(sweep.ended_s, dump),
            "object_updater_per_device": per_device,
        }

    def _failures(self, result: ShareResult) -> OldestFailures:
        failures = OldestFailures(self.settings.async_tracker_max_entries)
        failures.add_entries(result.facts.get("failures", ()))
        return failures


class DevicePass(DeviceWork):
    """One pass over the pending updates of a device."""

    def __init__(self, duty: ObjectUpdater, device: str, desk: Desk):
        context, settings = duty.context, duty.settings
        super().__init__(context, device, desk)
        self._duty = duty
        self._failures = OldestFailures(settings.async_tracker_max_entries)
        self._deliverer = Deliverer(
            duty.ring,
            context.hasher,
            context.transport,
            context.clock,
            self._log,
            conn_timeout_s=settings.conn_timeout,
            node_timeout_s=settings.node_timeout,
        )
        self._files: PendingFiles | None = None

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[Pending]:
        """The newest update of every object."""
        try:
            path = self._duty.context.devices.path(self._device)
        except DeviceUnavailable:
            self._tally.add("errors")
            self._log.warning(f"skipping {self._device} as it is not mounted")
            return
        # Without a ring nothing can be delivered; better one error now than one for each update.
        self._duty.ring.view()
        files = self._files = PendingFiles(self._duty.disk, path, self._duty.context.policies)
        per_second = self._duty.settings.max_objects_per_container_per_second
        if not per_second:
            yield from self._pendings(files)
            return
        pacer: ContainerPacer[Pending] = ContainerPacer(
            self._desk,
            per_second=per_second,
            buckets=self._duty.settings.per_container_ratelimit_buckets,
            held_max=self._duty.settings.max_deferred_updates,
        )
        yield from pacer.pace(self._pendings(files), lambda pending: pending.container)

    def _pendings(self, files: PendingFiles) -> Iterator[Pending]:
        policies, unknown = self._run(files.policies)
        for name in unknown:
            self._log.warning(f"{self._device}/{name} belongs to no policy; it is left alone")
        for policy in policies:
            for suffix_path in self._run(files.suffixes, policy, self._duty.rng):
                yield from self._of_suffix(files, policy, suffix_path)

    def _of_suffix(self, files: PendingFiles, policy: Policy, suffix_path: str) -> Iterator[Pending]:
        found, bad = self._run(files.objects, policy, suffix_path)
        for name in bad:
            self._tally.add("errors")
            self._log.error(f"ERROR async pending file with unexpected name {suffix_path}/{name}")
        for one in found:
            if self._desk.stop.requested:
                return
            pending = self._newest(files, one)
            if pending is not None:
                yield pending

    def _newest(self, files: PendingFiles, found: Found) -> Pending | None:
        """The newest readable update of an object; damaged ones are quarantined, older ones removed."""
        pending = None
        for name in found.names:
            path = f"{found.directory}/{name}"
            try:
                if pending is None:
                    pending = self._run(files.load, path, found.policy)
                elif self._run(files.remove, path):
                    self._tally.add("outdated_unlinks")
            except PickleRefused as error:
                self._quarantine(files, path, found.policy, error)
            except OSError as error:
                self._tally.add("errors")
                self._log.error(f"ERROR cannot use async pending {path}: {error}")
                # An older one says nothing as long as the newest may become readable again.
                return pending
        return pending

    def _quarantine(self, files: PendingFiles, path: str, policy: Policy, error: PickleRefused) -> None:
        try:
            moved = self._run(files.quarantine, path, policy)
        except OSError as failed:
            self._tally.add("errors")
            self._log.error(f"ERROR cannot quarantine async pending {path} ({error}): {failed}")
            return
        self._tally.add("quarantines")
        self._log.error(f"ERROR damaged async pending {path} ({error}) was moved to {moved}")

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: Pending) -> None:
        """Deliver one update; remove it when everybody has it, else remember who has."""
        assert self._files is not None
        started_s = self._desk.clock.monotonic()
        delivery = self._deliverer.deliver(unit, self._tally)
        if delivery.is_complete:
            # Only now: a crash before this repeats the delivery, which changes nothing.
            self._run(self._files.remove, unit.path)
            self._tally.add("successes")
            self._tally.add("unlinks")
        else:
            self._tally.add("failures")
            path = unit.update.path
            self._failures.add(path.account, path.container or "", unit.timestamp)
            if delivery.is_changed:
                self._run(partial(self._files.rewrite, delivery.pending))
        self._tally.timing("timing", self._desk.clock.monotonic() - started_s)

    def facts(self) -> dict[str, Any]:
        """Which containers wait longest."""
        return {"failures": self._failures.entries()}
