"""Errors that come with every request while something is wrong: told at once, then now and then with a count.

A container server that is away, or whose device is full, fails thousands of updates for one reason. An
operator wants to read that reason once, and later that it has not gone away.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.clock import Clock
from swift.telemetry.log import Log

#: How long the repetitions of an error are only counted, seconds.
QUIET_S = 300.0
#: Different errors that are remembered; of more, those that were told first are forgotten.
ERRORS_MAX = 1000


@dataclass
class _Told:
    at_s: float
    unsaid: int = 0


class RepeatedErrors:
    """Logs each error once in ``quiet_s``; one process's memory. Repetitions are lines at DEBUG."""

    def __init__(self, log: Log, clock: Clock, quiet_s: float = QUIET_S):
        self._log = log
        self._clock = clock
        self._quiet_s = quiet_s
        #: By sentence, those told longest ago first.
        self._told: dict[str, _Told] = {}

    def error(self, message: str, *, txid: str | None = None) -> None:
        """Log a sentence that is the same for all errors of one reason, with how many were not told."""
        now = self._clock.monotonic()
        told = self._told.get(message)
        if told is not None and now - told.at_s < self._quiet_s:
            told.unsaid += 1
            self._log.debug(message, txid=txid)
            return
        self._told.pop(message, None)
        if len(self._told) >= ERRORS_MAX:
            del self._told[next(iter(self._told))]
        self._told[message] = _Told(now)
        if told is not None and told.unsaid:
            message = f"{message}; {told.unsaid} more in the last {now - told.at_s:.0f} s"
        self._log.error(message, txid=txid)
