"""Errors that recur with every request: logged at once, then at intervals with a count.

A container server that is away, or whose device is full, fails thousands of updates for one reason. An
operator wants to read that reason once, and later that it has not gone away.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.clock import Clock
from swift.telemetry.log import Log

#: Seconds in which repetitions of an error are only counted.
REPEAT_INTERVAL_S = 300.0
#: Different errors that are remembered; beyond that the oldest are forgotten.
ERRORS_MAX = 1000


@dataclass
class _LoggedError:
    at_s: float
    suppressed_count: int = 0


class RepeatedErrorLog:
    """Logs each error once in ``quiet_s``; one process's memory. Repetitions are lines at DEBUG."""

    def __init__(self, log: Log, clock: Clock, quiet_s: float = REPEAT_INTERVAL_S):
        self._log = log
        self._clock = clock
        self._repeat_interval_s = quiet_s
        #: By message, the least recently logged first.
        self._logged: dict[str, _LoggedError] = {}

    def error(self, message: str, *, txid: str | None = None) -> None:
        """Log a message that is equal for all errors of one cause, with the number of suppressed ones."""
        now = self._clock.monotonic()
        told = self._logged.get(message)
        if told is not None and now - told.at_s < self._repeat_interval_s:
            told.suppressed_count += 1
            self._log.debug(message, txid=txid)
            return
        self._logged.pop(message, None)
        if len(self._logged) >= ERRORS_MAX:
            del self._logged[next(iter(self._logged))]
        self._logged[message] = _LoggedError(now)
        if told is not None and told.suppressed_count:
            message = f"{message}; {told.suppressed_count} more in the last {now - told.at_s:.0f} s"
        self._log.error(message, txid=txid)
