"""The runner of all daemons.

A daemon's ``DaemonTask`` divides its work into shares (mostly devices) and makes a ``Pass`` for each, which
plans units of work and processes one at a time. The ``Runner`` provides the rest: once or forever, the
interval and its jitter, green threads, worker processes (``ShareWorkers``), the rate in units and bytes,
the position of an interrupted pass (``Cursor``), counters and reports, stalled shares, and the end at the
next unit boundary. A unit that fails is counted and logged; the others go on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TextIO, TypeVar

from swift import green
from swift.base.clock import Clock, SystemClock
from swift.green import pause
from swift.runtime.cursor import Cursor, cursor_path
from swift.runtime.report import Counters, Progress, PrometheusFile
from swift.runtime.sharerun import ShareResult, ShareRun, log_failure
from swift.runtime.shareworkers import ReportProgress, ShareWorkers
from swift.runtime.stop import StopRequest
from swift.runtime.throttle import Throttle
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry

#: A pause is up to this part of the interval shorter, so that the nodes of a cluster do not beat in time.
JITTER = 0.1
#: Between passes there is always some rest, also when a pass takes longer than the interval.
PAUSE_MIN_S = 0.1
#: Steps of a daemon that only watches its workers are so far apart at most.
POLL_S = 0.02

U = TypeVar("U")


@dataclass(frozen=True)
class Schedule:
    """When and how fast a daemon works."""

    #: Seconds from the start of a pass to the start of the next.
    interval_s: float
    #: Units begun per second and process; 0 means no limit.
    units_per_second: float = 0.0
    #: Units in work at the same time in one process.
    concurrency: int = 1
    #: Processes that work on different shares at the same time; with one, no process is forked.
    workers: int = 1
    #: Seconds between log lines about a long pass, and between its reports to recon.
    report_interval_s: float = 300.0
    #: Bytes counted by ``PassContext.count_bytes_read`` per second and process; 0 means no limit.
    bytes_per_second: float = 0.0
    #: Seconds without a unit, a byte or a count after which a pass continues without a share; 0: never.
    stall_s: float = 3600.0
    #: Runs for some devices or partitions only report to recon as well.
    reports_selections: bool = False


@dataclass(frozen=True)
class PassContext:
    """Context of a pass over one share."""

    counters: Counters
    clock: Clock
    stop: StopRequest
    #: Monotonic seconds by which the next pass is due: what waits longer can wait for that.
    deadline_s: float
    #: Position of the pass in this share, kept over restarts.
    cursor: Cursor
    progress: Progress
    bytes_throttle: Throttle

    def count_bytes_read(self, count: int) -> None:
        """Count bytes that were just read, and wait for the rate limit. Disk threads may call this."""
        self.progress.bytes += count
        self.bytes_throttle.wait_for_turn(count)


class Pass(Protocol[U]):
    """One go through a share of the work."""

    def plan(self) -> Iterator[U]:
        """Return the units, found one by one; it may wait with the context's ``stop.wait``."""

    def do(self, unit: U) -> None:
        """Do one unit; called in a green thread of its own."""

    def facts(self) -> dict[str, object]:
        """Return the JSON-able figures of the pass so far; called during the pass as well."""

    def end(self) -> None:
        """No further unit comes: all were done, or the work is to end."""


@dataclass(frozen=True)
class PassReport:
    """A pass over all shares: a completed one, or what is done so far of one."""

    results: Mapping[str, ShareResult]
    seconds: float
    #: Unix time of its end, or now.
    ended_s: float

    def count(self, event: str) -> int:
        """Return the number of times that an event was counted in all shares."""
        return sum(result.counts.get(event, 0) for result in self.results.values())

    def counts(self, events: Iterable[str]) -> dict[str, int]:
        """Return the same of several events, zeros included."""
        return {event: self.count(event) for event in events}


class DaemonTask(Protocol):
    """Interface of a daemon's work."""

    #: E.g. ``object-updater``; of several tasks of a process each has its own.
    name: str

    def shares(self) -> Sequence[str]:
        """Return the units that can be processed separately, e.g. device names, in processing order."""

    def begin(self, share: str, context: PassContext) -> Pass[Any]:
        """Return a fresh pass over one share."""

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the content of the recon file after a pass."""

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Return the content of the recon file during a long pass, without the progress itself."""


class Runner:
    """Keeps one task; with ``forks`` every share is done in a process, also when there is one worker."""

    def __init__(
        self,
        task: DaemonTask,
        schedule: Schedule,
        *,
        telemetry: Telemetry,
        recon: ReconFile,
        stop: StopRequest | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        terminal: TextIO | None = None,
        forks: bool | None = None,
        is_limited: bool = False,
    ):
        """``is_limited`` runs do a part: they resume no pass, and do not report to recon by default."""
        self._task = task
        self._schedule = schedule
        self._telemetry = telemetry
        self._recon = recon
        self._clock = clock or SystemClock()
        self._stop = stop or StopRequest(self._clock)
        self._rng = rng or random.Random()
        self._terminal = terminal
        self._metrics_file = PrometheusFile(telemetry, recon.directory, task.name)
        self.forks = schedule.workers > 1 if forks is None else forks
        self._workers = ShareWorkers(telemetry.log)
        #: Shares that were given up and may yet move.
        self._lost: dict[str, ShareRun] = {}
        self._is_told = False
        self._is_limited = is_limited

    def run_once(self) -> bool:
        """Run one pass over everything; return True if it was completed."""
        _sleep_through_steps(self._run_pass())
        return not self._stop.requested

    def run_forever(self) -> None:
        """Run passes until ``stop`` is requested; the first starts at a random moment within the interval."""
        for rest_s in self.run_steps():
            if self._stop.wait(rest_s):
                if not self.has_workers:
                    return
                pause(POLL_S)

    @property
    def has_workers(self) -> bool:
        """True if workers are left that have to be waited for."""
        return self._workers.are_running

    def _run_pass(self) -> Iterator[float]:
        """Run one pass; yield the seconds until each of its next steps."""
        started_s = self._clock.monotonic()
        shares = list(self._task.shares())
        deadline_s = started_s + self._schedule.interval_s
        results: dict[str, ShareResult] = {}
        if self.forks:
            yield from self._run_shares_in_processes(shares, deadline_s, started_s, results)
        else:
            self._run_shares_in_turn(shares, deadline_s, started_s, results)
        if self._stop.requested:
            # Half a pass would be reported as a quick one.
            return
        passed = self._make_report(results, started_s)
        self._metrics_file.record_pass(passed.seconds, passed.ended_s, sum(r.units for r in results.values()))
        facts = self._task.report(passed)
        if self._is_told:
            self._is_told = False
            facts = {**facts, _PROGRESS: {self._task.name: {}}}
        if not self._is_limited or self._schedule.reports_selections:
            self._recon.dump(facts)
        self._metrics_file.write()

    def run_steps(self) -> Iterator[float]:
        """Run passes without end; yield the seconds until each next step."""
        interval_s = self._schedule.interval_s
        yield self._rng.uniform(0, interval_s)
        while True:
            started_s = self._clock.monotonic()
            try:
                yield from self._run_pass()
            except Exception as error:
                # A daemon outlives every failure of a pass; the next one may find things repaired.
                log_failure(self._telemetry.log, "a pass failed", error)
            interval_now_s = interval_s * self._rng.uniform(1 - JITTER, 1)
            elapsed_s = self._clock.monotonic() - started_s
            yield max(PAUSE_MIN_S, interval_now_s - elapsed_s)

    # --- reporting ------------------------------------------------------------------------------------

    def _make_report(self, results: Mapping[str, ShareResult], started_s: float) -> PassReport:
        return PassReport(dict(results), self._clock.monotonic() - started_s, self._clock.time())

    def _report_progress(
        self, done: Mapping[str, ShareResult], started_s: float, share: str, so_far: ShareResult
    ) -> None:
        """Tell recon how far a long pass is."""
        if self._is_limited:
            return
        passed = self._make_report({**done, share: so_far}, started_s)
        shares = {
            name: {"units": each.units, "bytes": each.bytes, "seconds": each.seconds, "begun": each.begun_s}
            for name, each in passed.results.items()
        }
        self._is_told = True
        self._recon.dump({**self._task.progress(passed), _PROGRESS: {self._task.name: shares}})
        self._metrics_file.write()

    # --- in this process ------------------------------------------------------------------------------

    def _run_shares_in_turn(
        self, shares: Sequence[str], deadline_s: float, started_s: float, results: dict[str, ShareResult]
    ) -> None:
        for share in shares:
            if self._stop.requested:
                return
            tell = partial(self._report_progress, results, started_s, share)
            result = self.run_share(share, deadline_s, self._stop, tell)
            if result is not None:
                results[share] = result

    def run_share(
        self, share: str, deadline_s: float, stop: StopRequest, tell: ReportProgress = lambda _so_far: None
    ) -> ShareResult | None:
        """Run one pass over one share in this process; return None if the share hangs."""
        log = self._telemetry.log
        lost = self._lost.get(share)
        if lost is not None and not lost.has_ended:
            log.error(f"ERROR {share} is skipped: its earlier pass still hangs")
            return None
        self._lost.pop(share, None)
        own_stop = stop.make_child()
        path = cursor_path(self._recon.directory, self._task.name, share)
        cursor = Cursor("" if self._is_limited else path, self._clock, log)
        resume_state, schedule = cursor.resume_state, self._schedule
        counters = Counters(self._telemetry, self._task.name, resume_state.counts)
        progress = Progress(
            self._telemetry,
            self._clock,
            title=share,
            interval_s=schedule.report_interval_s,
            terminal=self._terminal,
            units=resume_state.units,
            bytes_read=resume_state.bytes,
            seconds=resume_state.seconds,
        )
        pace = Throttle(schedule.bytes_per_second, self._clock, own_stop.wait)
        context = PassContext(counters, self._clock, own_stop, deadline_s, cursor, progress, pace)
        run = ShareRun(
            share,
            self._task.begin(share, context),
            counters=counters,
            progress=progress,
            cursor=cursor,
            stop=own_stop,
            units=Throttle(schedule.units_per_second, self._clock, own_stop.wait),
            concurrency=schedule.concurrency,
            log=log,
        )
        tell_every_s = schedule.report_interval_s
        if schedule.stall_s:
            # A parent without a report for longer treats the worker as hanging.
            tell_every_s = min(tell_every_s, schedule.stall_s / 2)
        result = run.watch(self._clock, schedule.stall_s, tell, tell_every_s)
        if result is None:
            self._lost[share] = run
        return result

    # --- many processes -------------------------------------------------------------------------------

    def _run_shares_in_processes(
        self, shares: Sequence[str], deadline_s: float, started_s: float, results: dict[str, ShareResult]
    ) -> Iterator[float]:
        def work(share: str, tell: ReportProgress) -> ShareResult | None:
            stop = StopRequest(self._clock)
            stop.on_signals()
            self._terminal = None
            return self.run_share(share, deadline_s, stop, tell)

        def tell(share: str, so_far: ShareResult) -> None:
            self._report_progress(results, started_s, share, so_far)

        schedule = self._schedule
        for _ in self._workers.run(
            shares, work, schedule.workers, self._stop, results, tell, schedule.stall_s
        ):
            yield POLL_S
        for result in results.values():
            self._metrics_file.add_counts(result.counts)

    def __repr__(self) -> str:
        return f"<Runner {self._task.name} {self._schedule}>"


#: The key of the recon file under which long passes report their progress, by daemon and share.
_PROGRESS = "daemon_progress"


def _sleep_through_steps(steps: Iterator[float]) -> None:
    for rest_s in steps:
        pause(rest_s)


def run_all_once(runners: Sequence[Runner]) -> bool:
    """Run one pass of each, one after another; return True if all were completed."""
    completed = [runner.run_once() for runner in runners]
    return all(completed)


def run_all_forever(runners: Sequence[Runner], stop: StopRequest, clock: Clock | None = None) -> None:
    """Run several tasks of one process, each at its own interval, until ``stop`` is requested.

    They all fork or none does: a process that forks has no event loop, so it steps through all of them.
    """
    if not any(runner.forks for runner in runners):
        green.gather([runner.run_forever for runner in runners])
        return
    clock = clock or SystemClock()
    steps = [runner.run_steps() for runner in runners]
    due = [clock.monotonic() + next(step) for step in steps]
    while not stop.requested or any(runner.has_workers for runner in runners):
        rest_s = max(0.0, min(due) - clock.monotonic())
        if stop.wait(rest_s):
            pause(POLL_S)
        for number, step in enumerate(steps):
            if clock.monotonic() >= due[number] and (not stop.requested or runners[number].has_workers):
                due[number] = clock.monotonic() + next(step)
