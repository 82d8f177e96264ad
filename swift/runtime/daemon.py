"""The one loop of all daemons.

What is special about a daemon is its ``Duty``: into which shares its work can be cut (devices, mostly), and
a ``Pass`` for each share, which plans units of work and does one at a time. Everything else is the
``Runner``'s: once or forever, the interval and its jitter, green threads, worker processes (``supervise``),
the pace, what is counted and told, and the end at the next unit boundary. A unit that fails is counted and
logged; it never takes the others with it.

It refuses to know what any unit is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TextIO, TypeVar

from swift import green
from swift.base.clock import Clock, SystemClock
from swift.base.errors import SwiftError
from swift.runtime.report import Progress, PrometheusFile, Tally
from swift.runtime.stop import Stop
from swift.runtime.supervise import run_shares
from swift.runtime.throttle import Throttle
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry

#: A pause is up to this part of the interval shorter, so that the nodes of a cluster do not beat in time.
JITTER = 0.1
#: Between passes there is always some rest, also when a pass takes longer than the interval.
PAUSE_MIN_S = 0.1

U = TypeVar("U")


@dataclass(frozen=True)
class Rhythm:
    """When and how fast a daemon works."""

    #: Seconds from the start of a pass to the start of the next.
    interval_s: float
    #: Units begun per second and process; 0 means no limit.
    units_per_second: float = 0.0
    #: Units in work at the same time in one process.
    concurrency: int = 1
    #: Processes that work on different shares at the same time; with one, no process is forked.
    workers: int = 1
    #: Seconds between log lines about a long pass.
    report_interval_s: float = 300.0


@dataclass(frozen=True)
class Desk:
    """What a pass is handed for one share."""

    tally: Tally
    clock: Clock
    stop: Stop
    #: Monotonic seconds by which the next pass is due: what waits longer can wait for that.
    deadline_s: float


class Pass(Protocol[U]):
    """One go through a share of the work."""

    def plan(self) -> Iterator[U]:
        """The units, found one by one; it may wait with the desk's ``stop.wait``."""

    def do(self, unit: U) -> None:
        """Do one unit; called in a green thread of its own."""

    def facts(self) -> dict[str, Any]:
        """What is worth reporting after the last unit, as JSON has it."""


@dataclass
class ShareResult:
    """What came of one share."""

    facts: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    units: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For the pipe between worker and parent; ``ShareResult(**value)`` reads it back."""
        return asdict(self)


@dataclass(frozen=True)
class Sweep:
    """A completed pass over all shares."""

    results: Mapping[str, ShareResult]
    seconds: float
    #: Unix time.
    ended_s: float


class Duty(Protocol):
    """What a daemon is for."""

    #: E.g. ``object-updater``.
    name: str

    def shares(self) -> Sequence[str]:
        """What can be worked on apart, e.g. device names, in the order to take them."""

    def begin(self, share: str, desk: Desk) -> Pass[Any]:
        """A fresh pass over one share."""

    def report(self, sweep: Sweep) -> dict[str, Any]:
        """What the recon file should say now."""


class Runner:
    """Keeps one duty."""

    def __init__(
        self,
        duty: Duty,
        rhythm: Rhythm,
        *,
        telemetry: Telemetry,
        recon: ReconFile,
        stop: Stop | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        terminal: TextIO | None = None,
    ):
        self._duty = duty
        self._rhythm = rhythm
        self._telemetry = telemetry
        self._recon = recon
        self._clock = clock or SystemClock()
        self._stop = stop or Stop(self._clock)
        self._rng = rng or random.Random()
        self._terminal = terminal
        self._page = PrometheusFile(telemetry, recon.directory, duty.name)

    def once(self) -> bool:
        """One pass over everything; whether it was not cut short."""
        started_s = self._clock.monotonic()
        shares = list(self._duty.shares())
        deadline_s = started_s + self._rhythm.interval_s
        if self._rhythm.workers > 1:
            results = self._in_processes(shares, deadline_s)
        else:
            results = {}
            for share in shares:
                if self._stop.requested:
                    break
                results[share] = self.run_share(share, deadline_s, self._stop)
        if self._stop.requested:
            # Half a pass would be reported as a quick one.
            return False
        sweep = Sweep(results, self._clock.monotonic() - started_s, self._clock.time())
        self._page.note_pass(sweep.seconds, sweep.ended_s, sum(r.units for r in results.values()))
        self._recon.dump(self._duty.report(sweep))
        self._page.write()
        return True

    def forever(self) -> None:
        """Pass after pass until told to stop; the first starts at a random moment within the interval."""
        interval_s = self._rhythm.interval_s
        if self._stop.wait(self._rng.uniform(0, interval_s)):
            return
        while True:
            started_s = self._clock.monotonic()
            try:
                self.once()
            except Exception as error:
                # A daemon outlives every failure of a pass; the next one may find things repaired.
                self._complain("a pass failed", error)
            interval_now_s = interval_s * self._rng.uniform(1 - JITTER, 1)
            elapsed_s = self._clock.monotonic() - started_s
            if self._stop.wait(max(PAUSE_MIN_S, interval_now_s - elapsed_s)):
                return

    # --- one share ------------------------------------------------------------------------------------

    def run_share(self, share: str, deadline_s: float, stop: Stop) -> ShareResult:
        """One pass over one share, in this process."""
        tally = Tally(self._telemetry, self._duty.name)
        progress = Progress(
            self._telemetry,
            self._clock,
            title=share,
            interval_s=self._rhythm.report_interval_s,
            terminal=self._terminal,
        )
        work = _Work(self._duty.begin(share, Desk(tally, self._clock, stop, deadline_s)), tally, progress)
        try:
            self._drive(work, stop)
        except Exception as error:
            tally.add("errors")
            self._complain(f"cannot go on with {share}", error)
        progress.end(tally)
        return ShareResult(work.turn.facts(), tally.counts, progress.units, progress.elapsed_s)

    def _drive(self, work: _Work, stop: Stop) -> None:
        throttle = Throttle(self._rhythm.units_per_second, self._clock, stop.wait)
        places = max(1, self._rhythm.concurrency)
        free = green.Semaphore(places)
        try:
            for unit in work.turn.plan():
                throttle.turn()
                if stop.requested:
                    return
                if places == 1:
                    self._do(work, unit)
                    continue
                free.acquire()
                green.spawn_detached(self._do_and_free, work, unit, free)
        finally:
            if places > 1:
                for _ in range(places):
                    free.acquire()

    def _do_and_free(self, work: _Work, unit: Any, free: green.Semaphore) -> None:
        try:
            self._do(work, unit)
        finally:
            free.release()

    def _do(self, work: _Work, unit: Any) -> None:
        try:
            work.turn.do(unit)
        except Exception as error:
            work.tally.add("errors")
            self._complain(f"{unit} failed", error)
        work.progress.unit_done(work.tally)

    def _complain(self, what: str, error: Exception) -> None:
        """Log a failure; only one that nobody foresaw is worth a traceback."""
        if isinstance(error, (SwiftError, OSError)):
            self._telemetry.log.error(f"ERROR {what}: {error}")
        else:
            self._telemetry.log.exception(f"ERROR {what}", error)

    # --- many processes -------------------------------------------------------------------------------

    def _in_processes(self, shares: Sequence[str], deadline_s: float) -> dict[str, ShareResult]:
        def work(share: str) -> dict[str, Any]:
            stop = Stop(self._clock)
            stop.on_signals()
            self._terminal = None
            return self.run_share(share, deadline_s, stop).as_json()

        found = run_shares(shares, work, self._rhythm.workers, self._stop, self._telemetry.log)
        results = {share: ShareResult(**value) for share, value in found.items()}
        for result in results.values():
            self._page.add_counts(result.counts)
        return results

    def __repr__(self) -> str:
        return f"<Runner {self._duty.name} {self._rhythm}>"


@dataclass(frozen=True)
class _Work:
    """A share in progress."""

    turn: Pass[Any]
    tally: Tally
    progress: Progress
