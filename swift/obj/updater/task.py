"""A pass of the object updater over a device (spec: replication.md §6).

``OldestFailures`` are the containers that have waited longest for an update, for the recon file.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from swift.base.timestamp import Timestamp
from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.obj.stores import daemon_stores
from swift.obj.updater.delivery import Deliverer, container_of
from swift.obj.updater.pacing import ContainerPacer
from swift.policy.policy import Policy
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport, Schedule, ShareResult
from swift.runtime.declaration import Daemon
from swift.runtime.devicetask import DevicePassBase, DeviceTask
from swift.runtime.selection import Selection
from swift.store.api import PendingUpdate, UpdateRef
from swift.store.errors import Damaged
from swift.store.handle import UpdatesHandle
from swift.store.registry import StoreRegistry


@dataclass(frozen=True)
class ObjectUpdaterSettings(Settings):
    """Options of the object updater."""

    interval: float = option(300.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    concurrency: int = option(8, "Updates delivered at the same time per process.", kind=integer(1))
    updater_workers: int = option(1, "Devices to process at the same time, each in a process.", kind=COUNT)
    objects_per_second: float = option(50.0, "Updates begun per second and process; 0: any.", kind=number(0))
    slowdown: float = option(
        -1.0,
        "Deprecated: seconds to rest after each update; caps the pace at 1 / (slowdown + 0.01) per second.",
        sample="",
    )
    max_objects_per_container_per_second: float = option(
        0.0, "Updates begun per second for one container and device; 0: any.", kind=number(0)
    )
    per_container_ratelimit_buckets: int = option(
        1000, "Containers share this many rate limits per device.", kind=integer(1)
    )
    max_deferred_updates: int = option(
        10000, "Updates held back by that limit in memory; further ones wait for the next pass.", kind=COUNT
    )
    node_timeout: float = option(10.0, "Seconds to wait for a container server's response.", kind=SECONDS)
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    async_tracker_max_entries: int = option(
        100, "Containers with failing updates that are remembered, those waiting longest.", kind=COUNT
    )
    async_tracker_dump_count: int = option(
        5, "Number of these containers that the recon file lists.", kind=COUNT
    )

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(
            self.interval,
            pace(self.objects_per_second, self.slowdown),
            self.concurrency,
            self.updater_workers,
            self.report_interval,
        )


def pace(per_second: float, slowdown_s: float) -> float:
    """Return the slower of a rate and the deprecated rest; 0 means no limit, a negative rest none."""
    if slowdown_s < 0:
        return per_second
    by_rest = 1 / (slowdown_s + 0.01)
    return min(per_second, by_rest) if per_second else by_rest


#: (timestamp, account, container) as JSON has it.
Entry = list[str]


class OldestFailures:
    """The oldest failed update of each container, for the ``entries_max`` containers that wait longest."""

    def __init__(self, entries_max: int):
        self._max = entries_max
        self._oldest: dict[tuple[str, str], Timestamp] = {}

    def add(self, account: str, container: str, timestamp: Timestamp) -> None:
        """Note a failed update of this time."""
        key = (account, container)
        have = self._oldest.get(key)
        if have is None or timestamp < have:
            self._oldest[key] = timestamp
        if len(self._oldest) > self._max:
            del self._oldest[max(self._oldest, key=self._oldest.__getitem__)]

    def add_entries(self, entries: Iterable[Entry]) -> None:
        """Take over what another share remembers."""
        for text, account, container in entries:
            self.add(account, container, Timestamp(text))

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        ordered = sorted(self._oldest.items(), key=lambda item: (item[1].raw, item[0]))
        return [[timestamp.normal, *key] for key, timestamp in ordered]

    def stats(self, now_s: float, dump_count: int) -> dict[str, object]:
        """``object_updater_stats`` of the recon file (spec: replication.md §6); times are Unix seconds."""
        entries = self.entries()
        oldest_s = float(entries[0][0]) if entries else None
        shown = [
            {"timestamp": float(text), "account": account, "container": container}
            for text, account, container in entries[:dump_count]
        ]
        return {
            "failures_oldest_timestamp": oldest_s,
            "failures_oldest_timestamp_age": None if oldest_s is None else now_s - oldest_s,
            "failures_account_container_count": len(entries),
            "failures_oldest_timestamp_account_containers": {
                "oldest_count": len(shown),
                "oldest_entries": shown,
            },
            "tracker_memory_usage": self.memory_bytes(),
        }

    def memory_bytes(self) -> int:
        """About what this remembers costs."""
        size = sys.getsizeof(self._oldest)
        for key, timestamp in self._oldest.items():
            size += sys.getsizeof(key) + sum(map(sys.getsizeof, key)) + sys.getsizeof(timestamp)
        return size

    def __len__(self) -> int:
        return len(self._oldest)


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
        """Return a pass over the device ``share``."""
        return UpdaterPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass, for all devices together and for each."""
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
        """Yield the newest update of every object."""
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
        for policy in self._task.selection.filter_policies(policies):
            kept = self._pending_of(policy)
            if policy is policies[0]:
                for name in kept.unknown_policies(self._device, policies):
                    self._log.warning(
                        f"skipped {self._device}/{name}: swift.conf has no policy with this index"
                    )
            groups = kept.groups(self._device, policy)
            # So that no object is always last.
            self._task.rng.shuffle(groups)
            for group in groups:
                yield from self._of_group(policy, group)

    def _pending_of(self, policy: Policy) -> UpdatesHandle:
        return self._task.stores.at(policy, self._device).updates

    def _of_group(self, policy: Policy, group: str) -> Iterator[PendingUpdate]:
        found, bad = self._pending_of(policy).objects(self._device, policy, group)
        for name in bad:
            self._counters.add("errors")
            self._log.error(f"ERROR async pending file with unexpected name {name}")
        for refs in found:
            if self._pass_context.stop.requested:
                return
            pending = self._newest(refs)
            if pending is not None:
                yield pending

    def _newest(self, refs: Sequence[UpdateRef]) -> PendingUpdate | None:
        """Return the newest readable update of an object.

        Damaged ones are quarantined, older ones removed.
        """
        pending = None
        for ref in refs:
            kept = self._pending_of(ref.policy)
            try:
                if pending is None:
                    pending = kept.load(ref)
                elif kept.remove(ref):
                    self._counters.add("outdated_unlinks")
            except Damaged as error:
                self._quarantine(ref, error)
            except OSError as error:
                self._counters.add("errors")
                self._count_device_error(error)
                self._log.error(f"ERROR cannot use async pending {ref}: {error}")
                # An older one says nothing as long as the newest may become readable again.
                return pending
        return pending

    def _quarantine(self, ref: UpdateRef, error: Damaged) -> None:
        try:
            moved = self._pending_of(ref.policy).quarantine(ref, str(error))
        except OSError as failed:
            self._counters.add("errors")
            self._log.error(f"ERROR cannot quarantine async pending {ref} ({error}): {failed}")
            return
        self._counters.add("quarantines")
        self._log.error(f"ERROR damaged async pending {ref} ({error}) was moved to {moved}")

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: PendingUpdate) -> None:
        """Deliver one update; remove it when all replicas have it, else save which do."""
        kept = self._pending_of(unit.ref.policy)
        started_s = self._pass_context.clock.monotonic()
        delivery = self._deliverer.deliver(unit, self._counters)
        if delivery.is_complete:
            # Only now: a crash before this repeats the delivery, which changes nothing.
            kept.remove(unit.ref)
            self._counters.add("successes")
            self._counters.add("unlinks")
        else:
            self._counters.add("failures")
            path = unit.update.path
            self._failures.add(path.account, path.container or "", unit.timestamp)
            if delivery.is_changed:
                kept.rewrite(delivery.pending)
        self._counters.timing("timing", self._pass_context.clock.monotonic() - started_s)

    def facts(self) -> dict[str, object]:
        """Return the containers with the oldest failures."""
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
        daemon_stores(parts),
        selection=parts.selection,
    ),
    small_cluster={"interval": 5},
)
