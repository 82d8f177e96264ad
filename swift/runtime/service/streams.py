"""Standard streams of servers and daemons: they leave those of the process that started them.

A supervisor such as OpenStack Swift's ``swift-init``, or a shell's ``$(swift-object-server CONF &)``, waits
until all copies of its pipe are closed. So a process detaches before it forks workers and serves: it keeps
standard error only where the console is its log (``-v``), and never keeps standard output. Text that is
printed all the same, by a filter of another project for example, becomes lines of the log.
spec: cli-and-config.md §8
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from types import TracebackType

from swift.telemetry.console import STDERR
from swift.telemetry.log import Log


class LogStream(io.TextIOBase):
    """A text stream whose lines are errors of a log: ``STDOUT: text``."""

    def __init__(self, log: Log, label: str):
        self._log = log
        self._label = label
        self._rest = ""
        #: A log that fails to write reports it on standard error, which is this stream.
        self._is_writing = False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Log the lines that are complete now; returns the number of characters."""
        *lines, self._rest = (self._rest + text).split("\n")
        if not self._is_writing:
            self._is_writing = True
            try:
                for line in lines:
                    if line.strip():
                        self._log.error(f"{self._label}: {line}")
            finally:
                self._is_writing = False
        return len(text)


def detach_streams(log: Log, *, console: bool) -> None:
    """Leave the standard streams of the starting process; with ``console``, keep standard error for the log.

    A process without a terminal also becomes the leader of a session, as managers of OpenStack Swift are.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if not (console and os.isatty(STDERR)):
        # Fails for the leader of a process group, which a shell or supervisor has set apart already.
        with contextlib.suppress(PermissionError):
            os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1) if console else (0, 1, STDERR):
        os.dup2(null, fd)
    os.close(null)
    sys.stdout = LogStream(log, "STDOUT")
    if not console:
        sys.stderr = LogStream(log, "STDERR")

        def report(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
            log.exception("unexpected error; the process ends", error)

        sys.excepthook = report
