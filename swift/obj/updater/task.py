"""What the object updater does in a pass over a device (spec: replication.md §6)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from swift.obj.settings import ObjectSettings
from swift.obj.stores import make_stores
from swift.obj.updater.delivery import Deliverer
from swift.obj.updater.failures import OldestFailures
from swift.obj.updater.pacing import ContainerPacer
from swift.obj.updater.pendings import container_of
from swift.obj.updater.settings import ObjectUpdaterSettings
from swift.policy.policy import Policy
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport, ShareResult
from swift.runtime.declaration import Daemon
from swift.runtime.devicetask import DevicePassBase, DeviceTask
from swift.runtime.selection import Selection
from swift.store.api import PendingUpdate, UpdateRef
from swift.store.errors import Damaged
from swift.store.handle import UpdatesHandle
from swift.store.registry import StoreRegistry

NAME = "object-updater"


class ObjectUpdater(DeviceTask):
    """The task: every device is a share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        container_ring: Ring,
        settings: ObjectUpdaterSettings,
        stores: StoreRegistry,
        *,
        rng: random.Random | None = None,
        selection: Selection | None = None,
    ):
        super().__init__(context, rng=rng, selection=selection)
        self.stores = stores
        self.settings = settings
        self.ring = container_ring

    def begin(self, share: str, pass_context: PassContext) -> UpdaterPass:
        """A pass over the device ``share``."""
        return UpdaterPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """The recon facts of the pass, for all devices together and for each."""
        dump = self.settings.async_tracker_dump_count
        per_device = {}
        everything = OldestFailures(self.settings.async_tracker_max_entries)
        for device, result in passed.results.items():
            own = self._failures(result)
            everything.add_entries(own.entries())
            per_device[device] = own.stats(passed.ended_s, dump)
        return {
            "object_updater_sweep": passed.seconds,
            "object_updater_last": passed.ended_s,
            "object_updater_stats": everything.stats(passed.ended_s, dump),
            "object_updater_per_device": per_device,
        }

    def _failures(self, result: ShareResult) -> OldestFailures:
        failures = OldestFailures(self.settings.async_tracker_max_entries)
        failures.add_entries(result.facts.get("failures", ()))
        return failures


class UpdaterPass(DevicePassBase):
    """One pass over the pending updates of a device."""

    def __init__(self, task: ObjectUpdater, device: str, pass_context: PassContext):
        context, settings = task.context, task.settings
        super().__init__(task, device, pass_context)
        self._task = task
        self._failures = OldestFailures(settings.async_tracker_max_entries)
        self._deliverer = Deliverer(
            task.ring, context.hasher, context.transport, context.clock, self._log, settings
        )

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[PendingUpdate]:
        """The newest update of every object."""
        if self._device_path() is None:
            return
        # Without a ring nothing can be delivered; better one error now than one for each update.
        self._task.ring.view()
        per_second = self._task.settings.max_objects_per_container_per_second
        if not per_second:
            yield from self._pendings()
            return
        pacer: ContainerPacer[PendingUpdate] = ContainerPacer(
            self._pass_context,
            per_second=per_second,
            buckets=self._task.settings.per_container_ratelimit_buckets,
            held_max=self._task.settings.max_deferred_updates,
        )
        yield from pacer.pace(self._pendings(), container_of)

    def _pendings(self) -> Iterator[PendingUpdate]:
        policies = tuple(self._task.context.policies)
        for policy in self._task.selection.of_policies(policies):
            kept = self._kept(policy)
            if policy is policies[0]:
                for name in kept.strangers(self._device, policies):
                    self._log.warning(f"{self._device}/{name} belongs to no policy; it is left alone")
            groups = kept.groups(self._device, policy)
            # So that no object is always last.
            self._task.rng.shuffle(groups)
            for group in groups:
                yield from self._of_group(policy, group)

    def _kept(self, policy: Policy) -> UpdatesHandle:
        return self._task.stores.at(policy, self._device).updates

    def _of_group(self, policy: Policy, group: str) -> Iterator[PendingUpdate]:
        found, bad = self._kept(policy).objects(self._device, policy, group)
        for name in bad:
            self._tally.add("errors")
            self._log.error(f"ERROR async pending file with unexpected name {name}")
        for refs in found:
            if self._pass_context.stop.requested:
                return
            pending = self._newest(refs)
            if pending is not None:
                yield pending

    def _newest(self, refs: Sequence[UpdateRef]) -> PendingUpdate | None:
        """The newest readable update of an object; damaged ones are quarantined, older ones removed."""
        pending = None
        for ref in refs:
            kept = self._kept(ref.policy)
            try:
                if pending is None:
                    pending = kept.load(ref)
                elif kept.remove(ref):
                    self._tally.add("outdated_unlinks")
            except Damaged as error:
                self._quarantine(ref, error)
            except OSError as error:
                self._tally.add("errors")
                self._note(error)
                self._log.error(f"ERROR cannot use async pending {ref}: {error}")
                # An older one says nothing as long as the newest may become readable again.
                return pending
        return pending

    def _quarantine(self, ref: UpdateRef, error: Damaged) -> None:
        try:
            moved = self._kept(ref.policy).quarantine(ref, str(error))
        except OSError as failed:
            self._tally.add("errors")
            self._log.error(f"ERROR cannot quarantine async pending {ref} ({error}): {failed}")
            return
        self._tally.add("quarantines")
        self._log.error(f"ERROR damaged async pending {ref} ({error}) was moved to {moved}")

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: PendingUpdate) -> None:
        """Deliver one update; remove it when everybody has it, else remember who has."""
        kept = self._kept(unit.ref.policy)
        started_s = self._pass_context.clock.monotonic()
        delivery = self._deliverer.deliver(unit, self._tally)
        if delivery.is_complete:
            # Only now: a crash before this repeats the delivery, which changes nothing.
            kept.remove(unit.ref)
            self._tally.add("successes")
            self._tally.add("unlinks")
        else:
            self._tally.add("failures")
            path = unit.update.path
            self._failures.add(path.account, path.container or "", unit.timestamp)
            if delivery.is_changed:
                kept.rewrite(delivery.pending)
        self._tally.timing("timing", self._pass_context.clock.monotonic() - started_s)

    def facts(self) -> dict[str, object]:
        """Which containers wait longest."""
        return {"failures": self._failures.entries()}


DAEMON = Daemon(
    NAME,
    "object",
    "Deliver the container updates that object servers could not deliver at once.",
    ObjectUpdaterSettings,
    lambda parts: ObjectUpdater(
        parts.context,
        parts.rings.container,
        parts.settings,
        make_stores(parts.context, ObjectSettings.parse(parts.conf), parts.storage),
        selection=parts.selection,
    ),
    small_cluster={"interval": 5},
)
