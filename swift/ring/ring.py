"""A ring as a server sees it: always the current file, without asking the disk on every request.

``Ring`` keeps one immutable ``RingView`` and replaces it when the file has changed, at most once per reload
interval. A file that is missing, unreadable or damaged is reported and does not replace the
ring in memory. While partitions are being split it looks at every use, so that all processes of a
machine turn to the new partitions at the same moment. Construction touches nothing; the first use (or
``load``) reads the file. It knows no policies: a caller that needs a certain replica count passes
``validate``.
spec: ring.md §7
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from swift.base.clock import Clock, SystemClock
from swift.platform.regularfiles import FileIdentity, file_identity
from swift.ring.device import Node
from swift.ring.errors import RingError, RingFileError
from swift.ring.ringfile import load_table
from swift.ring.table import check_usable
from swift.ring.view import RingView

RELOAD_INTERVAL_S = 15.0


class Ring:
    """Lookups in a ring file that is followed through its changes.

    ``validate`` gets a freshly read view and raises a RingError to refuse it. The first load raises what is
    wrong with the file: RingFileError or the error of ``validate``. Later ones keep the view in
    memory and ``report`` the reason, once per reason.
    """

    def __init__(
        self,
        path: str,
        *,
        reload_interval_s: float = RELOAD_INTERVAL_S,
        validate: Callable[[RingView], None] | None = None,
        report: Callable[[str], None] = lambda _message: None,
        clock: Clock | None = None,
    ):
        self.path = path
        self._reload_interval_s = reload_interval_s
        self._validate = validate
        self._report = report
        self._reported = ""
        self._monotonic = (clock or SystemClock()).monotonic
        #: When the file is looked at again, and from when on a file that cannot be used is reported.
        self._deadline_s = self._due_s = float("-inf")
        self._identity: FileIdentity | None = None
        #: Of a file that cannot be used: it is read again when the interval is over.
        self._refused: FileIdentity | None = None
        self._view: RingView | None = None

    def __repr__(self) -> str:
        return f"<Ring {self.path} {self._view!r}>"

    def load(self) -> Ring:
        """Read the file now, whatever the deadline says; returns itself."""
        self._identity, self._due_s = None, float("-inf")
        self._refresh()
        return self

    def view(self) -> RingView:
        """Return the current state; take it once when several lookups must agree with each other."""
        if self._view is None or self._monotonic() >= self._deadline_s:
            return self._refresh()
        return self._view

    def _refresh(self) -> RingView:
        now_s = self._monotonic()
        is_due = now_s >= self._due_s
        if is_due:
            self._due_s = now_s + self._reload_interval_s
            self._refused = None
        try:
            view = self._read()
        except (OSError, RingError) as error:
            if self._view is None:
                if isinstance(error, RingError):
                    raise
                raise RingFileError(self.path, f"cannot be read ({error.strerror})") from error
            view = self._view
            # Before the interval is over the file may be being replaced.
            if is_due:
                self._report_once(str(error))
        self._deadline_s = self._due_s if view.next_part_power is None else float("-inf")
        return view

    def _read(self) -> RingView:
        identity = file_identity(self.path)
        if self._view is not None and identity == self._identity:
            self._reported = ""
            return self._view
        if self._view is not None and identity == self._refused:
            return self._view
        self._refused = identity
        # At the start one wrong entry must not take the others down; entries are checked at each look-up.
        table = load_table(self.path, thorough=self._view is not None)
        if self._view is not None:
            check_usable(table)
        fresh = RingView(table)
        if self._validate is not None:
            self._validate(fresh)
        self._identity, self._refused = identity, None
        self._view = fresh
        self._reported = ""
        return fresh

    def _report_once(self, reason: str) -> None:
        if reason != self._reported:
            self._reported = reason
            self._report(f"{self.path} cannot be used, the ring in memory stays in use: {reason}")

    def partition_of(self, digest: bytes) -> int:
        """Return the partition of a path digest (16 bytes of MD5; spec: ring.md §1)."""
        return self.view().partition_of(digest)

    def primaries(self, part: int) -> tuple[Node, ...]:
        """Return the nodes that should hold ``part``; ``index`` counts from 0."""
        return self.view().primaries(part)

    def nodes(self, digest: bytes) -> tuple[int, tuple[Node, ...]]:
        """Return the partition of a digest and its primaries, from the same state of the ring."""
        view = self._view
        if view is None or self._monotonic() >= self._deadline_s:
            view = self._refresh()
        part = int.from_bytes(digest[:4], "big") >> view.part_shift
        return part, view.primaries(part)

    def handoffs(self, part: int) -> Iterator[Node]:
        """Every other device that holds partitions, in the order in which to try them; lazy."""
        return self.view().handoffs(part)
