"""One pass over one share: planned, paced, done unit by unit, watched from beside.

The work is done in green threads; a waiting caller receives its progress, and continues without it if
nothing has moved for ``stall_s``: neither a unit nor a byte nor a count. What hangs is told to stop, and what
it may yet do is part of no report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from swift import green
from swift.base.clock import Clock
from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.runtime.cursor import Cursor
from swift.runtime.report import Counters, Progress
from swift.runtime.stop import StopRequest
from swift.runtime.throttle import Throttle
from swift.telemetry.log import Log

#: Interval of progress checks while a caller waits for a share, seconds.
WATCH_S = 0.5
#: A unit that is in work when the daemon is told to stop has so long to end, seconds: servers that hang must
#: not keep the process, and what breaks off is safe. ``swift-init`` waits for three times as long.
STOP_GRACE_S = 5.0


@dataclass
class ShareResult:
    """Result of one share, final or so far."""

    facts: JsonObject = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    units: int = 0
    seconds: float = 0.0
    bytes: int = 0
    #: Unix time at which the pass over the share began, possibly in another process.
    begun_s: float = 0.0

    def as_json(self) -> dict[str, object]:
        """Return the result for the pipe to the parent; ``ShareResult(**value)`` reads it back."""
        return asdict(self)


class UnitsOfWork(Protocol):
    """Interface of the work that a share runs: a part of ``daemon.Pass``."""

    def plan(self) -> Any:
        """Return an iterator of units."""

    def do(self, unit: object) -> None:
        """Do one."""

    def facts(self) -> dict[str, object]:
        """Return the figures to report so far."""

    def end(self) -> None:
        """End the work after its last unit."""


class ShareRun:
    """A share in progress; ``watch`` does it."""

    def __init__(
        self,
        share: str,
        turn: UnitsOfWork,
        *,
        counters: Counters,
        progress: Progress,
        cursor: Cursor,
        stop: StopRequest,
        units: Throttle,
        concurrency: int,
        log: Log,
    ):
        self.share = share
        self._turn = turn
        self._counters = counters
        self._progress = progress
        self._cursor = cursor
        self._stop = stop
        self._units = units
        self._slots = max(1, concurrency)
        self._log = log
        self._ended = green.Event()
        self._crash: BaseException | None = None

    @property
    def has_ended(self) -> bool:
        """True if nothing of it runs any more."""
        return self._ended.is_set

    def watch(
        self,
        clock: Clock,
        stall_s: float,
        tell: Callable[[ShareResult], None],
        tell_every_s: float,
        *,
        grace_s: float = STOP_GRACE_S,
    ) -> ShareResult | None:
        """Do the share and wait for it; None when it was given up.

        That is when nothing moved for ``stall_s`` (0 waits for ever), or when its units did not end within
        ``grace_s`` after the request to stop. ``tell`` is called with what has come of it so far every
        ``tell_every_s`` seconds.
        """
        green.spawn_detached(self._work)
        moved = self._progress_marks()
        moved_s = told_s = clock.monotonic()
        stopped_s: float | None = None
        while not self._ended.wait(min(WATCH_S, grace_s)):
            now_s = clock.monotonic()
            if self._stop.requested:
                stopped_s = now_s if stopped_s is None else stopped_s
                if now_s - stopped_s >= grace_s:
                    self._log.info(
                        f"{self.share}: stopped in the middle of a unit that did not end within {grace_s:g}s"
                    )
                    self._save()
                    return None
            if self._progress_marks() != moved:
                moved, moved_s = self._progress_marks(), now_s
            elif stall_s and now_s - moved_s >= stall_s:
                self._stop.request()
                self._counters.add("stalls")
                self._log.error(
                    f"ERROR {self.share} has not moved for {stall_s:g}s; the pass continues without it"
                )
                return None
            if now_s - told_s >= tell_every_s:
                told_s = now_s
                tell(self.result())
        if self._crash is not None:
            raise self._crash
        return self.result()

    def _progress_marks(self) -> tuple[int, ...]:
        progress = self._progress
        return progress.units, progress.bytes, progress.planned, self._counters.activity

    def result(self) -> ShareResult:
        """Return the result so far."""
        progress = self._progress
        counts = dict(self._counters.counts)
        return ShareResult(
            self._turn.facts(),
            counts,
            progress.units,
            progress.elapsed_s,
            progress.bytes,
            self._cursor.begun_s,
        )

    def _work(self) -> None:
        try:
            self._do_all()
        except BaseException as error:
            # An error of the process, not of a unit: it ends the wait for the share.
            self._crash = error
        finally:
            self._ended.set()

    def _do_all(self) -> None:
        try:
            is_whole = self._do_units()
        except Exception as error:
            # A share that cannot go on ends here; the next pass begins it anew.
            is_whole = True
            self._log_failure(f"cannot go on with {self.share}", error)
        try:
            self._turn.end()
        except Exception as error:
            self._log_failure(f"cannot end {self.share}", error)
        if is_whole:
            self._cursor.clear()
        else:
            self._save()
        self._progress.end(self._counters)

    def _do_units(self) -> bool:
        """Do all units; return True if all were done."""
        free = green.Semaphore(self._slots)
        try:
            for unit in self._turn.plan():
                self._progress.planned += 1
                self._units.wait_for_turn()
                if self._is_over:
                    return False
                if self._slots == 1:
                    self._do(unit)
                    continue
                free.acquire()
                green.spawn_detached(self._do_and_release_slot, unit, free)
        finally:
            if self._slots > 1:
                for _ in range(self._slots):
                    free.acquire()
        return not self._is_over

    @property
    def _is_over(self) -> bool:
        return self._stop.requested or self._crash is not None

    def _do_and_release_slot(self, unit: object, free: green.Semaphore) -> None:
        try:
            self._do(unit)
        except BaseException as error:
            # As in ``_work``: no unit after it is begun.
            self._crash = error
        finally:
            free.release()

    def _do(self, unit: object) -> None:
        try:
            self._turn.do(unit)
        except Exception as error:
            self._log_failure(f"{unit} failed", error)
        self._progress.unit_done(self._counters)
        if self._cursor.save_if_due():
            self._save()

    def _save(self) -> None:
        resume_state, progress = self._cursor.resume_state, self._progress
        resume_state.units, resume_state.bytes, resume_state.seconds = (
            progress.units,
            progress.bytes,
            progress.elapsed_s,
        )
        resume_state.counts = dict(self._counters.counts)
        self._cursor.save()

    def _log_failure(self, text: str, error: Exception) -> None:
        self._counters.add("errors")
        log_failure(self._log, text, error)


def log_failure(log: Log, text: str, error: Exception) -> None:
    """Log a failure; only an unexpected one is logged with its traceback."""
    if isinstance(error, (SwiftError, OSError)):
        log.error(f"ERROR {text}: {error}")
    else:
        log.exception(f"ERROR {text}", error)
