"""The container updater: accounts hear how many objects and bytes their containers hold.

Container servers tell the account at once when a container is put or deleted; counts change too often for
that and are brought here, some time later (spec: account-container.md §14). What a majority of the
account's replicas took is remembered in the container's database. An account whose servers fail is left in
peace for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from swift.base.entity import EntityPath
from swift.cluster.direct import DirectClient, has_majority, have_status
from swift.cluster.transport import BackendResponse, TransportError
from swift.config.kinds import SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.container.broker import ContainerBroker, ContainerFacts
from swift.container.reported import ContainerReport, mark_reported, report_of
from swift.db.broker import Engine
from swift.db.files import quarantine
from swift.db.unchanged import REST_FRACTION, DueDatabase, UnchangedDatabases
from swift.http import fields
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon
from swift.runtime.devicetask import DatabasePassBase, DeviceTask, DeviceTaskParts
from swift.telemetry.repeatederrors import RepeatedErrorLog

NAME = "container-updater"
DIRECTORY = "containers"
#: Seconds within which every container is looked at although nothing has happened to it.
RECHECK_S = 6 * 3600.0


@dataclass(frozen=True)
class ContainerUpdaterSettings(Settings):
    """``[container-updater]`` (spec: cli-and-config.md §4)."""

    interval: float = option(300.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    concurrency: int = option(4, "Containers to examine at the same time.", kind=integer(1))
    containers_per_second: float = option(50.0, "Containers to examine per second; 0: any.", kind=number(0))
    slowdown: float = option(
        -1.0,
        "Deprecated: seconds to rest after each; caps the pace at 1 / (slowdown + 0.01) per second.",
        sample="",
    )
    account_suppression_time: float = option(
        60.0, "Seconds for which an account whose servers fail is left in peace.", kind=SECONDS
    )
    node_timeout: float = option(3.0, "Seconds to wait for an account server's response.", kind=SECONDS)
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        per_second = self.containers_per_second
        if self.slowdown >= 0:
            by_rest = 1 / (self.slowdown + 0.01)
            per_second = min(per_second, by_rest) if per_second else by_rest
        return Schedule(self.interval, per_second, self.concurrency, report_interval_s=self.report_interval)


class ContainerUpdater(DeviceTask):
    """The task: every device is a share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        account_ring: Ring,
        settings: ContainerUpdaterSettings,
        **parts: Unpack[DeviceTaskParts],
    ):
        super().__init__(context, **parts)
        self.settings = settings
        self.ring = account_ring
        #: Accounts whose servers failed, and until when they are left in peace (monotonic seconds).
        self.suppressed: dict[str, float] = {}
        #: A server that is away fails the updates of all its accounts.
        self.failures = RepeatedErrorLog(context.telemetry.log, context.clock)
        self._unchanged: dict[str, UnchangedDatabases] = {}

    def unchanged_databases(self, device: str) -> UnchangedDatabases:
        """Return the unchanged-database tracker of a device, at the start of a pass."""
        if device not in self._unchanged:
            interval_s = self.settings.interval
            self._unchanged[device] = UnchangedDatabases(
                self.disk_at(device), RECHECK_S, busy_s=interval_s, rest_s=REST_FRACTION * interval_s
            )
        self._unchanged[device].begin(0)
        return self._unchanged[device]

    def begin(self, share: str, pass_context: PassContext) -> ContainerUpdaterPass:
        """Return a pass over the device ``share``."""
        now = pass_context.clock.monotonic()
        self.suppressed = {account: until for account, until in self.suppressed.items() if until > now}
        return ContainerUpdaterPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        return {"container_updater_sweep": passed.seconds}


class ContainerUpdaterPass(DatabasePassBase):
    """One pass over the container databases of a device."""

    def __init__(self, task: ContainerUpdater, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        self._engine = Engine.at(self._disk, self._log.warning)
        self._direct = DirectClient(
            task.context.transport, NAME, task.settings, on_no_response=self._log_failure
        )
        self._unchanged = task.unchanged_databases(device)

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[DueDatabase]:
        """Yield the containers to which something has happened, partitions in random order."""
        device_path = self._device_path()
        if device_path is None:
            return
        # Without a ring nothing can be told; better one error now than one for each container.
        self._task.ring.view()
        for some in self._partition_batches(self._partitions(device_path, DIRECTORY)):
            yield from self._changed_databases(self._unchanged, device_path, DIRECTORY, some).due

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: DueDatabase) -> None:
        """Look at one container and tell its account when there is news."""
        started_s = self._pass_context.clock.monotonic()

        def work(broker: ContainerBroker) -> None:
            if not self._process(broker):
                self._unchanged.mark_unchanged(unit, self._task.disk.now_ns())

        open_broker = partial(ContainerBroker.open_found, unit.place, self._engine)
        self._process_database(
            unit.place, open_broker, work, failed="errors", doing="look at container database"
        )
        self._counters.timing("timing", self._pass_context.clock.monotonic() - started_s)

    def _process(self, broker: ContainerBroker) -> bool:
        """Tell the news; whether there were any."""
        if self._task.suppressed.get(broker.account, 0.0) > self._pass_context.clock.monotonic():
            return True
        info = broker.info()
        report = report_of(broker, info)
        if report is None:
            self._counters.add("no_changes")
            return False
        self._report(broker, info, report)
        return True

    def _report(self, broker: ContainerBroker, info: ContainerFacts, report: ContainerReport) -> None:
        answers = self._send_report(info, report)
        if has_majority(answers):
            mark_reported(broker, report)
            self._counters.add("successes")
            return
        self._counters.add("failures")
        if have_status(answers, 404):
            self._quarantine(broker)
            return
        until_s = self._pass_context.clock.monotonic() + self._task.settings.account_suppression_time
        self._task.suppressed[broker.account] = until_s
        self._log.debug(
            f"account update of {broker.own_name} failed; retrying after account_suppression_time"
        )

    def _quarantine(self, broker: ContainerBroker) -> None:
        """Quarantine a container without account: it can never be listed."""
        moved = broker.call(quarantine, broker.place, "no account replicas exist")
        self._counters.add("quarantines")
        self._log.error(f"{broker.own_name}: no account replicas exist; its database was moved to {moved}")

    def end(self) -> None:
        """End the pass: keep the unchanged containers for the next one."""
        self._unchanged.end()

    # --- telling --------------------------------------------------------------------------------------

    def _send_report(self, info: ContainerFacts, report: ContainerReport) -> list[BackendResponse | None]:
        """Send the report to every replica of the account; return their responses."""
        part, nodes = self._task.ring.nodes(self._task.context.hasher.digest(info.account))
        headers = {
            "x-put-timestamp": report.put_timestamp,
            "x-delete-timestamp": report.delete_timestamp,
            "x-object-count": str(report.object_count),
            "x-bytes-used": str(report.bytes_used),
            "x-account-override-deleted": "yes",
            fields.BACKEND_STORAGE_POLICY_INDEX: str(info.storage_policy_index),
        }
        return self._direct.request_all(nodes, part, "PUT", EntityPath(info.account, info.container), headers)

    def _log_failure(self, node: str, error: TransportError) -> None:
        self._task.failures.error(f"ERROR account update failed with {node} (will retry): {error}")


DAEMON = Daemon(
    NAME,
    "container",
    "Tell accounts how many objects and bytes their containers hold.",
    ContainerUpdaterSettings,
    lambda parts: ContainerUpdater(
        parts.context, parts.rings.account, parts.settings, selection=parts.selection
    ),
    small_cluster={"interval": 30, "containers_per_second": 50},
)
