"""The options of ``[s3-lifecycle]``."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule


@dataclass(frozen=True)
class LifecycleSettings(Settings):
    """How often and how fast lifecycles are carried out, and which of them by this process."""

    interval: float = option(3600.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    request_tries: int = option(3, "How often a request is tried.", kind=integer(1))
    concurrency: int = option(4, "Objects ended at the same time.", kind=integer(1))
    objects_per_second: float = option(50.0, "Objects begun per second; 0: any.", kind=number(0))
    page_size: int = option(1000, "Rows of one page of a listing.", kind=integer(1))
    abort_grace: float = option(
        10.0, "Seconds between the end of an upload and the removal of its parts.", kind=SECONDS
    )
    orphan_age: float = option(
        604800.0, "Age of parts that are removed when no upload and no object has them.", kind=SECONDS
    )
    processes: int = option(0, "Daemons that share the buckets; 0: each does all.", kind=COUNT)
    process: int = option(0, "Which of them this one is, from 0.", kind=COUNT)
    internal_client_conf_path: str = option(
        "", "The pipeline by which objects are ended; empty: the one of this file.", sample=""
    )

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(
            self.interval, self.objects_per_second, self.concurrency, report_interval_s=self.report_interval
        )
