"""Access lines: built only when wanted, written in batches off the request path.

A busy server writes thousands of lines a second; one system call for each would cost more than the
line. On a console the lines of a quarter second leave together; to syslog each is its own datagram, as
syslog wants (``telemetry.syslog``).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

from swift.base.clock import CachedSecondText
from swift.telemetry.console import line_time
from swift.telemetry.log import Log

#: A batch is written when it is this long or this old.
BATCH_BYTES = 32768
BATCH_S = 0.25

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class AccessLog:
    """Writes complete lines to ``log``, or in batches to the descriptor ``fd``.

    ``schedule(seconds, call)`` runs the flush later in the event loop. With ``now`` (Unix seconds) the lines
    in ``fd`` begin with their time.
    """

    def __init__(
        self,
        log: Log,
        *,
        fd: int | None = None,
        name: str = "",
        schedule: Callable[[float, Callable[[], None]], object] | None = None,
        now: Callable[[], float] | None = None,
    ):
        self._log = log
        self._fd = fd
        self._name = f"{name}: " if name else ""
        self._schedule = schedule
        self._now = now
        self._lines: list[str] = []
        self._size = 0
        #: True if lines are written; check it before building one.
        self.is_wanted = fd is not None or log.is_enabled(logging.INFO)

    def write(self, line: str) -> None:
        """Log one line (without line end)."""
        if self._fd is None:
            if self.is_wanted:
                self._log.raw(line)
            return
        line = self._name + line if self._now is None else f"{line_time(self._now())} {self._name}{line}"
        self._lines.append(line)
        self._size += len(line)
        if self._size >= BATCH_BYTES or self._schedule is None:
            self.flush()
        elif len(self._lines) == 1:
            self._schedule(BATCH_S, self.flush)

    def flush(self) -> None:
        """Write what is waiting."""
        if not self._lines or self._fd is None:
            return
        lines, self._lines, self._size = self._lines, [], 0
        text = "\n".join((*lines, ""))
        try:
            os.write(self._fd, text.encode("utf-8", "backslashreplace"))
        except OSError:
            # A full or closed log must not fail requests that are already answered.
            return


def _common_log_time(t: time.struct_time) -> str:
    return (
        f"{t.tm_mday:02d}/{MONTHS[t.tm_mon - 1]}/{t.tm_year}:"
        f"{t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d} +0000"
    )


#: ``21/Nov/2026:02:24:23 +0000`` of a moment in Unix seconds.
common_log_time = CachedSecondText(_common_log_time)
