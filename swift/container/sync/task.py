"""A pass of container sync: copies new rows, verifies those that other nodes copied.

Spec: account-container.md §17. Each primary of a container copies its share of the new rows, up to sync point
1; before that it looks at all rows up to there again, from sync point 2 on, so that a row whose node was away
is copied by another one. A copy that fails is tried again in the next pass, whatever it fails of; the rows
after it are not held up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Unpack

from swift import green
from swift.base.entity import EntityPath
from swift.cluster.outbound import Outbound
from swift.cluster.owndevices import OwnDevices
from swift.cluster.syncrealms import Realms, SyncToError, validate_sync_to
from swift.compose import internal_client
from swift.config.common import ServerSettings
from swift.config.kinds import SECONDS, integer
from swift.config.schema import Settings, option
from swift.container import objecttable
from swift.container.broker import TABLE, ContainerBroker, ContainerFacts
from swift.container.rows import row_of_mapping
from swift.container.sync.copying import Copier
from swift.container.sync.remote import RemoteCluster, SyncTarget
from swift.container.syncstore import DIRECTORY, is_synced, keep_link
from swift.db.broker import Engine
from swift.db.unchanged import DueDatabase, UnchangedDatabases
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.devicetask import DatabasePassBase, DeviceTask, DeviceTaskParts
from swift.runtime.sharerun import log_failure


@dataclass(frozen=True)
class ContainerSyncSettings(Settings):
    """Options of container sync."""

    interval: float = option(300.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    container_time: float = option(60.0, "Seconds spent on a container in one pass.", kind=SECONDS)
    sync_proxy: tuple[str, ...] = option(
        (), "Proxies to the other clusters, one of which is taken: http://host:port."
    )
    conn_timeout: float = option(
        5.0, "Seconds to wait for each step of a request to another cluster.", kind=SECONDS
    )
    request_tries: int = option(3, "Number of times to try a request to this cluster.", kind=integer(1))
    sync_row_concurrency: int = option(8, "Objects of a container copied at the same time.", kind=integer(1))
    allowed_sync_hosts: tuple[str, ...] = option(
        (),
        "Hosts, or host:port, that X-Container-Sync-To URLs may name beside realms; mostly set in [DEFAULT]. "
        "Only host:port may be on this machine.",
    )
    internal_client_conf_path: str = option(
        "/etc/swift/internal-client.conf",
        "Configuration of the pipeline that reads objects; without the option and the file, a built-in one.",
    )

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, report_interval_s=self.report_interval)


NAME = "container-sync"
_BUILT_IN_CLIENT = str(Path(__file__).with_name("internal-client.conf"))
#: Counters, by their names in the recon file.
COUNTS = ("syncs", "puts", "deletes", "skips", "failures")
#: Seconds within which every container is looked at although nothing has happened to it.
RECHECK_S = 3600.0
#: A row as its database has it, and with its ROWID.
Item = Mapping[str, object]
NumberedItem = tuple[int, Item]
_VERSIONED = tuple(
    name.title() for name in (fields.SYSMETA_VERSIONS_ENABLED, fields.SYSMETA_VERSIONS_LOCATION)
)


class ContainerSync(DeviceTask):
    """The task: every device is a share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        container_ring: Ring,
        settings: ContainerSyncSettings,
        client: InternalClient,
        remote: RemoteCluster,
        realms: Realms,
        **parts: Unpack[DeviceTaskParts],
    ):
        super().__init__(context, **parts)
        self.ring = container_ring
        self.settings = settings
        self.client = client
        self.remote = remote
        self.realms = realms
        self.own = OwnDevices(context.ring_ip, context.ring_port)
        self._unchanged: dict[str, UnchangedDatabases] = {}

    def unchanged_databases(self, device: str) -> UnchangedDatabases:
        """Return the unchanged-database tracker of a device, at the start of a pass."""
        known = self._unchanged.setdefault(
            device, UnchangedDatabases(self.disk_at(device), RECHECK_S, busy_s=0.0)
        )
        self.own.ids(self.ring.view())
        known.begin(self.own.rings_seen)
        return known

    def begin(self, share: str, pass_context: PassContext) -> SyncPass:
        """Return a pass over the device ``share``."""
        return SyncPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        return {"container_sync_sweep": passed.seconds, "container_sync_stats": passed.counts(COUNTS)}


class SyncPass(DatabasePassBase):
    """One pass over the containers of a device that are to be copied."""

    def __init__(self, task: ContainerSync, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        self._engine = Engine.at(self._disk, self._log.warning)
        self._unchanged = task.unchanged_databases(device)

    def plan(self) -> Iterator[DueDatabase]:
        """Yield the containers to which there is a link, and to which something has happened."""
        device_path = self._device_path()
        if device_path is None:
            return
        self._task.ring.view()
        for partition in self._partitions(device_path, DIRECTORY):
            for place in self._database_paths(device_path, DIRECTORY, partition):
                now_ns = self._task.disk.now_ns()
                due = self._unchanged.due(place._replace(kind="containers"), now_ns)
                if due is not None:
                    yield due

    def do(self, unit: DueDatabase) -> None:
        """Copy what is new in one container."""

        def work(broker: ContainerBroker) -> None:
            if self._look(broker):
                self._unchanged.mark_unchanged(unit, self._task.disk.now_ns())

        open_broker = partial(ContainerBroker.open_found, unit.place, self._engine)
        self._process_database(
            unit.place, open_broker, work, failed="failures", doing="look at container database"
        )

    def end(self) -> None:
        """End the pass: keep the unchanged containers for the next one."""
        self._unchanged.end()

    def _look(self, broker: ContainerBroker) -> bool:
        """Copy what is to be copied; whether there was nothing to do, and nothing kept us from it."""
        info = broker.info()
        if not is_synced(info):
            keep_link(broker, info)
            self._counters.add("skips")
            return False
        index, count = self._own_place(broker)
        if index is None or any(info.metadata.get(name, ("", ""))[0] for name in _VERSIONED):
            self._counters.add("skips")
            return False
        try:
            target = self._target(info)
        except SyncToError as error:
            self._counters.add("failures")
            self._log.error(f"ERROR container sync of {broker.own_name} is misconfigured: {error}")
            return False
        if target is None:
            self._counters.add("skips")
            return False
        path = EntityPath(info.account, info.container)
        copier = Copier(
            self._task.client, self._task.remote, target, path, counters=self._counters, log=self._log
        )
        self._copy(broker, info, copier, index, count)
        self._counters.add("syncs")
        after = broker.info()
        points = after.x_container_sync_point1, after.x_container_sync_point2
        is_done = points[0] == points[1] and not self._rows(broker, points[0])
        return is_done and points == (info.x_container_sync_point1, info.x_container_sync_point2)

    def _own_place(self, broker: ContainerBroker) -> tuple[int | None, int]:
        """Return this device's index among the container's primaries, and their count."""
        view = self._task.ring.view()
        primaries = view.primaries(view.partition_of(bytes.fromhex(broker.place.name_hash)))
        ids = self._task.own.ids(view)
        own = (n for n, node in enumerate(primaries) if node.id in ids and node.device == self._device)
        return next(own, None), len(primaries)

    def _target(self, info: ContainerFacts) -> SyncTarget | None:
        task = self._task
        value = info.metadata["X-Container-Sync-To"][0]
        found = validate_sync_to(value, task.settings.allowed_sync_hosts, task.realms)
        return None if found is None else SyncTarget(found, info.metadata["X-Container-Sync-Key"][0])

    # --- one container --------------------------------------------------------------------------------

    def _copy(
        self, broker: ContainerBroker, info: ContainerFacts, copier: Copier, index: int, count: int
    ) -> None:
        clock = self._pass_context.clock
        until_s = clock.monotonic() + self._task.settings.container_time
        point1, point2 = info.x_container_sync_point1, info.x_container_sync_point2
        first_failed: int | None = None
        while point2 < point1 and clock.monotonic() < until_s and not self._pass_context.stop.requested:
            rows = [item for item in self._rows(broker, point2) if item[0] <= point1]
            failed = self._copy_rows(copier, rows)
            if failed is not None and first_failed is None:
                first_failed = failed - 1
            # The last rows up to there may have been replaced or forgotten since.
            point2 = rows[-1][0] if rows else point1
            self._remember(
                broker, "x_container_sync_point2", point2 if first_failed is None else first_failed
            )
        while clock.monotonic() < until_s and not self._pass_context.stop.requested:
            rows = self._rows(broker, point1)
            if not rows:
                break
            self._copy_rows(copier, [item for item in rows if self._turn_of(broker, item[1], count) == index])
            point1 = rows[-1][0]
            self._remember(broker, "x_container_sync_point1", point1)

    def _rows(self, broker: ContainerBroker, after: int) -> list[NumberedItem]:
        """Return the next rows, as many as are copied at the same time."""
        size = self._task.settings.sync_row_concurrency
        found = broker.read(lambda connection: objecttable.TABLE.items_since(connection, after, size))
        return [(int(str(item["ROWID"])), item) for item in found]

    def _copy_rows(self, copier: Copier, rows: Sequence[NumberedItem]) -> int | None:
        """Copy rows at the same time; the first that failed."""
        done = green.gather([partial(self._copy_row, copier, *each) for each in rows])
        return next((row_id for (row_id, _item), ok in zip(rows, done, strict=True) if not ok), None)

    def _copy_row(self, copier: Copier, row_id: int, item: Item) -> bool:
        """Copy one row; whether that succeeded. Nothing that is wrong with it ends the others' copying."""
        try:
            return copier.copy(row_of_mapping(item))
        except Exception as error:
            log_failure(self._log, f"cannot copy row {row_id} of {copier.container}", error)
            self._counters.add("failures")
            return False

    def _turn_of(self, broker: ContainerBroker, item: Item, count: int) -> int:
        """Whose turn a new row is."""
        name = str(item["name"])
        digest = self._task.context.hasher.digest(broker.account, broker.container, name)
        return int.from_bytes(digest[:4], "big") % count

    def _remember(self, broker: ContainerBroker, column: str, point: int) -> None:
        """Move a sync point."""
        broker.write(
            lambda connection: connection.execute(f"UPDATE {TABLE} SET {column} = ?", (point,)).rowcount
        )


def _client_conf(parts: DaemonParts) -> str:
    """Return the configuration of the pipeline: the operator's, or the built-in one if there is none.

    OpenStack Swift has a built-in pipeline too, for this daemon only; openstack-helm relies on it.
    """
    settings: ContainerSyncSettings = parts.settings
    path = settings.internal_client_conf_path
    if "internal_client_conf_path" in parts.conf or os.path.exists(path):
        return path
    parts.context.telemetry.log.warning(
        f"{parts.conf_path} [{NAME}]: internal_client_conf_path is not set and {path} does not exist; "
        f"using the built-in pipeline, without encryption"
    )
    return _BUILT_IN_CLIENT


def _make(parts: DaemonParts) -> ContainerSync:
    settings: ContainerSyncSettings = parts.settings
    swift_dir = ServerSettings.parse(parts.conf).swift_dir
    client_conf = _client_conf(parts)
    client = internal_client(
        client_conf,
        NAME,
        tries=settings.request_tries,
        use_replication_network=True,
        must_decrypt=True,
        swift_dir=swift_dir if client_conf == _BUILT_IN_CLIENT else "",
    )
    return ContainerSync(
        parts.context,
        parts.rings.container,
        settings,
        client,
        RemoteCluster(settings.conn_timeout, settings.sync_proxy, outbound=Outbound.of_rings(parts.rings)),
        Realms.of_file(f"{swift_dir}/container-sync-realms.conf"),
        selection=parts.selection,
    )


DAEMON = Daemon(NAME, "container", "Copy containers to other clusters.", ContainerSyncSettings, _make)
