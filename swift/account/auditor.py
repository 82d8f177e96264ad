"""The account auditor: account databases are read, and their totals compared (account-container.md §15)."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from swift.account.broker import AccountBroker
from swift.account.schema import COUNTING
from swift.config.kinds import SECONDS, number
from swift.config.schema import Settings, option
from swift.db.verify import differences
from swift.dbserver.auditor import AuditKind, DatabaseAuditor
from swift.runtime.daemon import Schedule
from swift.runtime.declaration import Daemon


@dataclass(frozen=True)
class AccountAuditorSettings(Settings):
    """``[account-auditor]`` (spec: cli-and-config.md §3)."""

    interval: float = option(1800.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    accounts_per_second: float = option(200.0, "Accounts audited per second; 0: any.", kind=number(0))
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, self.accounts_per_second, report_interval_s=self.report_interval)


def _names(broker: AccountBroker) -> tuple[str, ...]:
    return (broker.info().account,)


def totals(connection: sqlite3.Connection) -> list[str]:
    """Policy totals against rows, and the account's against the policies'.

    None where triggers of a newer release count in another way.
    """
    if not COUNTING.are_known(connection):
        return []
    counted = {
        row[0]: tuple(row[1:])
        for row in connection.execute(
            "SELECT storage_policy_index, SUM(deleted IS 0), SUM(object_count), SUM(bytes_used) "
            "FROM container GROUP BY storage_policy_index"
        )
    }
    stored = {
        row[0]: tuple(row[1:])
        for row in connection.execute(
            "SELECT storage_policy_index, container_count, object_count, bytes_used FROM policy_stat"
        )
    }
    total = connection.execute(
        "SELECT container_count, object_count, bytes_used FROM account_stat"
    ).fetchone()
    sums = tuple(sum(row[column] or 0 for row in stored.values()) for column in range(3))
    found = differences("policy", stored, counted)
    if tuple(value or 0 for value in total) != sums:
        found.append(f"the account counts {tuple(total)}, its policies {sums}")
    return found


KIND = AuditKind("account", "accounts", "container", AccountBroker.open_found, _names, totals)


DAEMON = Daemon(
    "account-auditor",
    "account",
    "Read all account databases and move broken ones away.",
    AccountAuditorSettings,
    lambda parts: DatabaseAuditor(parts.context, KIND, selection=parts.selection),
    small_cluster={"interval": 1800, "accounts_per_second": 10},
)
