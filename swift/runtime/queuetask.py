"""What daemons have in common whose work is one queue or registry of the cluster: it is their only share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeVar

from swift.runtime.daemon import PassReport
from swift.runtime.report import Tally
from swift.runtime.share import complain
from swift.telemetry.log import Log

T = TypeVar("T")


class QueueTask:
    """The half of a ``daemon.DaemonTask`` that knows its one share."""

    #: What the share is called, in cursors and reports.
    share: ClassVar = "queue"

    def shares(self) -> list[str]:
        """The queue."""
        return [self.share]

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Nothing beyond how far the pass is."""
        return {}


def as_far_as_readable(rows: Iterator[T], what: str, tally: Tally, log: Log) -> Iterator[T]:
    """The rows of a part of a queue until reading fails: that is told and counted, and ends nothing else."""
    try:
        yield from rows
    except Exception as error:
        tally.add("errors")
        complain(log, f"cannot read {what}", error)
