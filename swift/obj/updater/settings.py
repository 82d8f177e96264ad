"""The options of ``[object-updater]`` (spec: cli-and-config.md §5)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule


@dataclass(frozen=True)
class ObjectUpdaterSettings(Settings):
    """How often and how fast stored container updates are delivered."""

    interval: float = option(300.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    concurrency: int = option(8, "Updates delivered at the same time per process.", kind=integer(1))
    updater_workers: int = option(1, "Devices worked on at the same time, each in a process.", kind=COUNT)
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
    node_timeout: float = option(10.0, "Seconds to wait for a container server's answer.", kind=SECONDS)
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    async_tracker_max_entries: int = option(
        100, "Containers with failing updates that are remembered, those waiting longest.", kind=COUNT
    )
    async_tracker_dump_count: int = option(5, "How many of them the recon file names.", kind=COUNT)

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
    """The slower of a rate and the deprecated rest; 0 means no limit, a negative rest none."""
    if slowdown_s < 0:
        return per_second
    by_rest = 1 / (slowdown_s + 0.01)
    return min(per_second, by_rest) if per_second else by_rest
