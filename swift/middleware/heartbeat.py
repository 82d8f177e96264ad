"""Answers that begin before their end is known: spaces keep the connection awake, the report comes last.

For operations on many objects that take longer than clients and load balancers wait in silence. The status
line goes out before the work has ended, so what came of it is said in the report. A client that reads only
the status asks for none of it: ``wants_true_status`` (decision 0023).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from swift import green
from swift.base.truth import is_true
from swift.http.body import ResponseBody
from swift.http.request import Request

SPACE = b" "
SEPARATOR = b"\r\n\r\n"


def wants_true_status(request: Request) -> bool:
    """Return True if the client wants the status line to wait for the work: ``heartbeat=off``."""
    value = request.params.get("heartbeat")
    return value is not None and not is_true(value)


class Heartbeat(ResponseBody):
    """The report that ``work`` makes, with a space before it every ``interval_s`` seconds.

    ``at_once`` sends the first space before anything is done, ``separator`` comes between spaces and report.
    The work begins when the body is read, or with ``begin``; what it raises becomes the report that
    ``failed`` makes. A client that goes away does not end it: what was begun is finished. ``unread`` releases
    what the work would have used when the body is not read.
    """

    def __init__(
        self,
        work: Callable[[], bytes],
        failed: Callable[[Exception], bytes],
        *,
        interval_s: float,
        at_once: bool = False,
        separator: bytes = SEPARATOR,
        unread: Callable[[], None] | None = None,
    ):
        self.length = None
        self._work = work
        self._failed = failed
        self._interval_s = interval_s
        self._at_once = at_once
        self._separator = separator
        self._unread = unread
        self._box: green.Queue[bytes] | None = None

    def begin(self, wait_s: float | None) -> bytes | None:
        """Begin the work; its report if that comes within ``wait_s`` seconds, None waits for the end."""
        self._unread = None
        self._box = green.Queue()
        green.spawn_detached(self._run, self._box)
        try:
            return self._box.get(None if wait_s is None else time.monotonic() + wait_s)
        except green.DeadlineExceeded:
            # The first space is due.
            self._at_once = True
            return None

    def __iter__(self) -> Iterator[bytes]:
        self._unread = None
        box = self._box
        if box is None:
            box = green.Queue()
            green.spawn_detached(self._run, box)
        spaced = self._at_once
        if spaced:
            yield SPACE
        while True:
            try:
                report = box.get(time.monotonic() + self._interval_s)
            except green.DeadlineExceeded:
                spaced = True
                yield SPACE
                continue
            if spaced and self._separator:
                yield self._separator
            yield report
            return

    def close(self) -> None:
        """See ``ResponseBody``."""
        unread, self._unread = self._unread, None
        if unread is not None:
            unread()

    def _run(self, box: green.Queue[bytes]) -> None:
        try:
            report = self._work()
        except Exception as error:
            # The status line has been sent: only this filter can respond.
            report = self._failed(error)
        box.put(report)
