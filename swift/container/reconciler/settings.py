"""The options of ``[container-reconciler]`` (spec: cli-and-config.md §4)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, integer
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule


@dataclass(frozen=True)
class ContainerReconcilerSettings(Settings):
    """How often the queue is worked on, and which of it by this process."""

    interval: float = option(30.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    reclaim_age: int = option(
        604800, "Seconds after which an entry whose object nobody has is given up.", kind=COUNT
    )
    request_tries: int = option(3, "How often a request is tried.", kind=integer(1))
    concurrency: int = option(1, "Objects moved at the same time.", kind=integer(1))
    processes: int = option(0, "Reconcilers that share the queue; 0: each does all.", kind=COUNT)
    process: int = option(0, "Which of them this one is, from 0.", kind=COUNT)
    internal_client_conf_path: str = option(
        "", "The pipeline by which objects are moved; empty: the one of this file.", sample=""
    )
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to a container server.", kind=SECONDS)
    node_timeout: float = option(10.0, "Seconds to wait for its answer.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, 0.0, self.concurrency, report_interval_s=self.report_interval)
