"""The container auditor: container databases are read, their totals compared (account-container.md §15)."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from swift.config.kinds import SECONDS, number
from swift.config.schema import Settings, option
from swift.container.broker import ContainerBroker
from swift.container.schema import COUNTING
from swift.db.verify import differences
from swift.dbserver.auditor import AuditKind, DatabaseAuditor
from swift.runtime.daemon import Schedule
from swift.runtime.declaration import Daemon


@dataclass(frozen=True)
class ContainerAuditorSettings(Settings):
    """``[container-auditor]`` (spec: cli-and-config.md §4)."""

    interval: float = option(1800.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    containers_per_second: float = option(200.0, "Containers audited per second; 0: any.", kind=number(0))
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, self.containers_per_second, report_interval_s=self.report_interval)


def _names(broker: ContainerBroker) -> tuple[str, ...]:
    info = broker.info()
    return info.account, info.container


def totals(connection: sqlite3.Connection) -> list[str]:
    """Policy totals against rows; none where triggers of a newer release count in another way."""
    if not COUNTING.are_known(connection):
        return []
    counted = {
        row[0]: tuple(row[1:])
        for row in connection.execute(
            "SELECT storage_policy_index, SUM(deleted IS 0), "
            "SUM(CASE WHEN deleted > 1 THEN 0 ELSE size END) FROM object GROUP BY storage_policy_index"
        )
    }
    stored = {
        row[0]: tuple(row[1:])
        for row in connection.execute(
            "SELECT storage_policy_index, object_count, bytes_used FROM policy_stat"
        )
    }
    return differences("policy", stored, counted)


KIND = AuditKind("container", "containers", "object", ContainerBroker.open_found, _names, totals)


DAEMON = Daemon(
    "container-auditor",
    "container",
    "Read all container databases and move broken ones away.",
    ContainerAuditorSettings,
    lambda parts: DatabaseAuditor(parts.context, KIND, selection=parts.selection),
    small_cluster={"interval": 1800, "containers_per_second": 10},
)
