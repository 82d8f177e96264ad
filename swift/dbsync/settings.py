"""The options of ``[account-replicator]`` and ``[container-replicator]`` (spec: cli-and-config.md §3, §4)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, Kind, integer, number
from swift.config.schema import Settings, option
from swift.dbsync.rsync import check_module
from swift.runtime.daemon import Schedule


def _parse_delete(text: str) -> int:
    return 0 if text.strip().lower() == "auto" else int(COUNT.parse(text))


def _parse_module(text: str) -> str:
    check_module(text.strip())
    return text.strip()


_DELETE = Kind("auto or count", _parse_delete, lambda value: str(value) if value else "auto")
_MODULE = Kind("rsync module", _parse_module)


@dataclass(frozen=True)
class ReplicatorSettings(Settings):
    """Both daemons have the same."""

    interval: float = option(
        30.0, "Seconds from the start of a pass to the next.", kind=SECONDS, aliases=("run_pause",)
    )
    concurrency: int = option(8, "Databases in work at the same time.", kind=integer(1))
    databases_per_second: float = option(50.0, "Databases begun per second; 0: any.", kind=number(0))
    recheck_interval: float = option(
        3600.0,
        "Seconds within which every database is compared with its copies although nothing happened to it.",
        kind=SECONDS,
    )
    per_diff: int = option(1000, "Rows sent in one message.", kind=integer(1))
    max_diffs: int = option(
        100, "Messages of rows sent to a node for one database in one pass.", kind=integer(1)
    )
    node_timeout: float = option(10.0, "Seconds to wait for a node's response.", kind=SECONDS)
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    reclaim_age: float = option(
        604800.0,
        "Age in seconds at which deletions are forgotten, by when all nodes know them.",
        kind=SECONDS,
    )
    rsync_compress: bool = option(
        False, "Compress rsync transfers to other regions (nodes that take uploads need no rsync)."
    )
    handoffs_only: bool = option(
        False, "Only move databases off this node that belong elsewhere; for emergencies, not for long."
    )
    handoff_delete: int = option(
        "auto", "Copies that must have arrived before a database is removed here; auto: all.", kind=_DELETE
    )
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    rsync_module: str = option(
        "",
        "Rsync destination of databases on nodes that take no uploads, with keys of ring devices in "
        "braces. Empty: {replication_ip}::account or {replication_ip}::container.",
        kind=_MODULE,
    )

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(
            self.interval, self.databases_per_second, self.concurrency, report_interval_s=self.report_interval
        )
