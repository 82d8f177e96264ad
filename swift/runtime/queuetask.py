"""Base of daemons whose work is one queue or registry of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeVar

from swift.runtime.daemon import Pass, PassContext, PassReport
from swift.runtime.report import Counters
from swift.runtime.sharerun import log_failure
from swift.telemetry.log import Log

T = TypeVar("T")


class QueueTask:
    """The half of a ``daemon.DaemonTask`` that knows its one share."""

    #: Name of the share in cursors and reports.
    share: ClassVar = "queue"

    def shares(self) -> list[str]:
        """Return the queue."""
        return [self.share]

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Return nothing beyond the progress of the pass."""
        return {}


def iterate_until_error(rows: Iterator[T], what: str, counters: Counters, log: Log) -> Iterator[T]:
    """Yield the rows of a part of a queue until a read fails; the failure is logged and counted."""
    try:
        yield from rows
    except Exception as error:
        counters.add("errors")
        log_failure(log, f"cannot read {what}", error)


class IdleTask:
    """The task of a daemon that its configuration turns off on this node."""

    def __init__(self, name: str):
        self.name = name

    def shares(self) -> list[str]:
        """Return no shares."""
        return []

    def begin(self, share: str, context: PassContext) -> Pass[object]:
        """Raise LookupError: there are no shares."""
        raise LookupError(share)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return nothing."""
        return {}

    progress = report
