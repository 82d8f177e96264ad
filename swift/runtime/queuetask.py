"""What daemons have in common whose work is one queue or registry of the cluster: it is their only share."""

from __future__ import annotations

from typing import ClassVar

from swift.runtime.daemon import PassReport


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
