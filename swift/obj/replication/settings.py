"""The options that object replicator and reconstructor have in common (spec: replication.md §2.4, §5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from swift.config.kinds import COUNT, SECONDS, integer
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule


@dataclass(frozen=True)
class SyncSettings(Settings):
    """Options that replicator and reconstructor share."""

    #: Options of the peer that a take-over may bring along, and why they change nothing here.
    without_effect: ClassVar[Mapping[str, str]] = {
        "daemonize": "a daemon stays in the foreground, where service managers want it",
        "ring_check_interval": "a changed ring is noticed within 15 seconds",
        "network_chunk_size": "bodies are sent in the pieces in which they are verified",
    }

    interval: float = option(
        30.0, "Seconds from the start of a pass to the next.", kind=SECONDS, aliases=("run_pause",)
    )
    concurrency: int = option(1, "Partitions in work at the same time in one process.", kind=integer(1))
    stats_interval: float = option(300.0, "Seconds between reports about a long pass.", kind=SECONDS)
    node_timeout: float = option(10.0, "Seconds to wait for progress of a node.", kind=SECONDS)
    http_timeout: float = option(
        60.0, "Seconds to wait for the response to an expensive request.", kind=SECONDS
    )
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    lockup_timeout: float = option(
        1800.0,
        "Seconds without progress after which a pass skips a device; 0: never.",
        kind=SECONDS,
    )
    recheck_interval: float = option(
        3600.0,
        "Seconds within which the directories of every partition are listed although nothing happened to it.",
        kind=SECONDS,
    )
    reclaim_age: float = option(
        604800.0,
        "Age in seconds at which tombstones are forgotten, by when all nodes know them.",
        kind=SECONDS,
    )

    def schedule_with(self, workers: int) -> Schedule:
        """For the runner; ``workers`` 0 is one process."""
        return Schedule(
            self.interval,
            concurrency=self.concurrency,
            workers=max(1, workers),
            report_interval_s=self.stats_interval,
            stall_s=self.lockup_timeout,
        )


#: Processes that work on devices beside each other; 0: none is forked.
WORKERS = COUNT
