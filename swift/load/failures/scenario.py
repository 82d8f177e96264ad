"""One failure under load: before it, while it lasts, and after its repair, until the cluster is whole."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from swift.base.errors import SwiftError
from swift.load.failures.copies import MissingReplicas, ReplicaCounter
from swift.load.failures.site import FailureSite
from swift.load.failures.targets import Failure, Target
from swift.load.measure import OperationResult, PhaseResult, latency_bin_start_ms
from swift.load.runs import Watch
from swift.load.workerpool import Summaries
from swift.load.workload import Phase

#: Seconds between two looks at how whole the cluster is.
POLL_S = 3.0


@dataclass(frozen=True)
class PhaseDurations:
    """Seconds of load before, during and after a failure, and until when the cluster must be whole."""

    before: float
    during: float
    after: float
    whole_within: float

    @property
    def load(self) -> float:
        """Length of the load, seconds."""
        return self.before + self.during + self.after


@dataclass(frozen=True)
class Window:
    """Client statistics of one of the three windows."""

    name: str
    seconds: float
    per_second: float
    mb_per_second: float
    failed: int
    p50_ms: float
    p99_ms: float


@dataclass
class FaultResult:
    """Result of one failure."""

    failure: Failure
    targets: Sequence[Target]
    windows: list[Window] = field(default_factory=list)
    result: PhaseResult = field(default_factory=PhaseResult)
    #: When it began and when its repair began, seconds of the load.
    began_s: float = 0.0
    repaired_s: float = 0.0
    #: Seconds from then to the first look that found nothing missing; None when that did not come.
    whole_s: float | None = None
    #: Missing copies at the repair and at the last check.
    lacked: MissingReplicas | None = None
    lacks: MissingReplicas | None = None


class FaultScenario:
    """Carries a failure out beside the load; ``watch`` stands for a runner's."""

    def __init__(
        self,
        site: FailureSite,
        copies: ReplicaCounter,
        trial: FaultResult,
        times: PhaseDurations,
        watch: Watch,
    ):
        self._site = site
        self._copies = copies
        self._trial = trial
        self._times = times
        self._shown = watch
        self._began = threading.Event()
        self._is_over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def watch(self, phase: Phase, summaries: Summaries, seconds: float) -> None:
        """See ``Watch``: the failure's time counts from the beginning of the main phase."""
        if phase.kind == "main":
            self._began.set()
        self._shown(phase, summaries, seconds)

    def finish(self) -> None:
        """Wait until the cluster is whole, or its time is over; raises what went wrong."""
        if not self._began.is_set():
            self._is_over.set()
            self._began.set()
        self._thread.join()
        if self._error is not None:
            raise SwiftError(f"{self._trial.failure}: {self._error}")

    def _run(self) -> None:
        self._began.wait()
        started_s = time.monotonic()
        if self._is_over.wait(self._times.before):
            return
        trial = self._trial
        try:
            trial.began_s = time.monotonic() - started_s
            self._site.fail(trial.failure, trial.targets)
            self._is_over.wait(
                max(0.0, self._times.before + self._times.during + started_s - time.monotonic())
            )
            # Servers that start are a part of what clients see afterwards; the load does not wait for them.
            repair_s = time.monotonic()
            trial.repaired_s = repair_s - started_s
            self._site.repair()
        except (SwiftError, OSError) as error:
            self._error = error
            return
        self._await_whole(repair_s)

    def _await_whole(self, repaired_s: float) -> None:
        trial = self._trial
        # What there is now must come to where it belongs. To look at all of it takes its time, so not before.
        versions = self._copies.versions()
        trial.lacked = trial.lacks = self._copies.missing_replicas(versions)
        while trial.lacks.copies and time.monotonic() - repaired_s < self._times.whole_within:
            time.sleep(POLL_S)
            trial.lacks = self._copies.missing_replicas(versions)
        if not trial.lacks.copies:
            trial.whole_s = time.monotonic() - repaired_s


def measure_windows(trial: FaultResult, times: PhaseDurations) -> list[Window]:
    """Return the statistics before, during and after the failure, over all operations."""
    bounds = (0.0, trial.began_s, trial.repaired_s, times.load)
    names = ("before", "during", "after")
    return [
        _window(name, trial.result.operations.values(), begin, end)
        for name, begin, end in zip(names, bounds, bounds[1:], strict=False)
    ]


def _window(name: str, operations: Iterable[OperationResult], begin_s: float, end_s: float) -> Window:
    count = size = failed = 0
    bins: Counter[int] = Counter()
    for one in operations:
        for at, second in one.seconds.items():
            if begin_s <= at < end_s:
                count += second.count
                size += second.bytes
                failed += second.failed
                bins.update(second.bins)
    seconds = max(end_s - begin_s, 1e-9)
    p50, p99 = (_percentile(bins, share) for share in (0.5, 0.99))
    return Window(name, seconds, count / seconds, size / seconds / 1e6, failed, p50, p99)


def _percentile(bins: Counter[int], share: float) -> float:
    """Return the latency below which a share lies, to a quarter of an octave; milliseconds."""
    left = share * sum(bins.values())
    for number, count in sorted(bins.items()):
        left -= count
        if left <= 0:
            return latency_bin_start_ms(number + 1)
    return 0.0
