"""The container sharder as a task: every device of this node is a share (account-container.md §19.3)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Unpack

from swift.base.timestamp import Timestamp
from swift.cluster.direct import DirectClient
from swift.compose import internal_client
from swift.container.broker import ContainerBroker
from swift.container.replicator import KIND
from swift.container.sharding.delivery import ShardDelivery
from swift.container.sharding.observer import Observer
from swift.container.sharding.overview import Overview, recon_lists
from swift.container.sharding.roots import Roots
from swift.container.sharding.session import ShardingSession
from swift.container.sharding.settings import ContainerSharderSettings
from swift.db.broker import Engine
from swift.db.unchanged import REST_FRACTION, DueDatabase, UnchangedDatabases
from swift.dbsync.daemon import DatabaseReplicator
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.devicetask import DatabasePassBase, DeviceTask, DeviceTaskParts

NAME = "container-sharder"
DIRECTORY = "containers"
#: Seconds within which every container is looked at although nothing has happened to it.
RECHECK_S = 3600.0
_STATS = (
    *("visited_attempted", "visited_failure", "sharding_begun", "scanned_found"),
    *("created_success", "created_failure", "cleaved_success", "cleaved_failure", "completed"),
    *("misplaced_attempted", "misplaced_success", "misplaced_failure"),
    *("shrinking_found", "reported", "report_failure"),
    *("audit_root_attempted", "audit_root_success", "audit_root_failure"),
    *("audit_root_has_overlap", "audit_root_num_overlap"),
)


class ContainerSharder(DeviceTask):
    """The task."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        container_ring: Ring,
        settings: ContainerSharderSettings,
        client: InternalClient,
        **parts: Unpack[DeviceTaskParts],
    ):
        super().__init__(context, **parts)
        settings.check()
        self.settings = settings
        self.ring = container_ring
        direct = DirectClient(context.transport, NAME, settings)
        self.roots = Roots(client, direct, container_ring, context.hasher)
        replicator = DatabaseReplicator(context, container_ring, KIND, settings.replication(), disk=self.disk)
        self.replication = replicator.replication
        self.own = replicator.own
        self._unchanged: dict[str, UnchangedDatabases] = {}
        #: Of each device.
        self.overviews: dict[str, Overview] = {}

    def unchanged_databases(self, device: str) -> UnchangedDatabases:
        """Return the unchanged-database tracker of a device, at the start of a pass."""
        if device not in self._unchanged:
            interval_s = self.settings.interval
            self._unchanged[device] = UnchangedDatabases(
                self.disk_at(device),
                RECHECK_S,
                busy_s=interval_s,
                rest_s=REST_FRACTION * interval_s,
                visits_new=True,
            )
        self.own.ids(self.ring.view())
        self._unchanged[device].begin(self.own.rings_seen)
        return self._unchanged[device]

    def begin(self, share: str, pass_context: PassContext) -> ShardingPass:
        """Return a pass over the device ``share``."""
        return ShardingPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        sharding: dict[str, dict[str, int]] = {}
        for name in _STATS:
            category, event = _category(name)
            counts = sharding.setdefault(category or "completed", {})
            counts[event] = passed.count(name)
        attempted, failure = sharding["visited"]["attempted"], sharding["visited"]["failure"]
        stats = {
            "attempted": attempted,
            "failure": failure,
            "success": attempted - failure,
            "sharding": {
                **sharding,
                **recon_lists(self.overviews.values(), self.settings.recon_candidates_limit),
            },
        }
        return {"sharding_stats": stats, "sharding_time": passed.seconds, "sharding_last": passed.ended_s}


def _category(name: str) -> tuple[str, str]:
    prefix = "audit_root_"
    if name.startswith(prefix):
        return prefix[:-1], name[len(prefix) :]
    category, _, event = name.rpartition("_")
    return category, event


class ShardingPass(DatabasePassBase):
    """One pass over the containers of a device."""

    def __init__(self, task: ContainerSharder, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        self._engine = Engine.at(self._disk, self._log.warning, wait_s=task.settings.broker_timeout)
        self._delivery = ShardDelivery(task.replication, device, pass_context, self._engine)
        self._unchanged = task.unchanged_databases(device)
        self._overview = task.overviews.setdefault(device, Overview())
        self._observer = Observer(self._overview, task.settings, self._counters, self._log.warning)

    def plan(self) -> Iterator[DueDatabase]:
        """Yield the containers to which something has happened, partitions in random order."""
        device_path = self._device_path()
        if device_path is None:
            return
        for some in self._partition_batches(self._partitions(device_path, DIRECTORY)):
            yield from self._changed_databases(self._unchanged, device_path, DIRECTORY, some).due

    def do(self, unit: DueDatabase) -> None:
        """Take one container some steps on."""

        def work(broker: ContainerBroker) -> None:
            visit = self._session_of(broker)
            is_candidate = visit.is_candidate
            # Writers do not keep a container from being split, nor its totals from its root.
            self._unchanged.prioritize(unit.place, is_urgent=is_candidate)
            if is_candidate:
                self._run_session(visit, broker)
            if visit.is_at_rest:
                self._unchanged.mark_unchanged(unit, self._task.disk.now_ns())

        open_broker = partial(ContainerBroker.open_found, unit.place, self._engine)
        self._process_database(
            unit.place,
            open_broker,
            work,
            failed="visited_failure",
            doing="shard",
            expected=(UnexpectedResponse,),
        )

    def _run_session(self, visit: ShardingSession, broker: ContainerBroker) -> None:
        clock = self._pass_context.clock
        started_s = clock.monotonic()
        visit.run()
        index, _count = self._index_of(broker)
        self._observer.look(broker, index, Timestamp(clock.time()), clock.monotonic() - started_s)

    def _index_of(self, broker: ContainerBroker) -> tuple[int | None, int]:
        """Return this device's replica index, None for a handoff, and the replica count."""
        view = self._task.ring.view()
        primaries = view.primaries(view.partition_of(bytes.fromhex(broker.place.name_hash)))
        ids = self._task.own.ids(view)
        at = (n for n, node in enumerate(primaries) if node.id in ids and node.device == self._device)
        return next(at, None), len(primaries)

    def _session_of(self, broker: ContainerBroker) -> ShardingSession:
        index, replica_count = self._index_of(broker)
        return ShardingSession(
            broker,
            self._task.settings,
            self._task.roots,
            self._delivery,
            self._counters,
            now=Timestamp(self._pass_context.clock.time()),
            is_leader=index == 0,
            replica_count=replica_count,
        )

    def end(self) -> None:
        """End the pass: keep the unchanged containers for the next one."""
        shown = list(self._overview.shown)
        self._overview.forget([path for path in shown if not self._disk.is_directory(path)])
        self._unchanged.end()


def _make(parts: DaemonParts) -> ContainerSharder:
    settings: ContainerSharderSettings = parts.settings
    if getattr(parts.args, "no_auto_shard", False):
        settings = replace(settings, auto_shard=False)
    client = internal_client(
        settings.internal_client_conf_path, NAME, tries=settings.request_tries, use_replication_network=True
    )
    return ContainerSharder(parts.context, parts.rings.container, settings, client, selection=parts.selection)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-auto-shard", action="store_true", help="split only containers that an operator enabled"
    )


DAEMON = Daemon(
    NAME,
    "container",
    "Split large containers into shards, put small shards together.",
    ContainerSharderSettings,
    _make,
    add_arguments=_add_arguments,
    small_cluster={"databases_per_second": 10},
)
