"""Answers that begin before their end is known: spaces keep the connection awake, the report comes last.

For operations on many objects that take longer than clients and load balancers wait in silence. The status
line is sent at once, so what came of it is said in the report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from swift import green
from swift.http.body import ResponseBody

SPACE = b" "
SEPARATOR = b"\r\n\r\n"


class Heartbeat(ResponseBody):
    """The report that ``work`` makes, with a space before it every ``interval_s`` seconds.

    ``at_once`` sends the first space before anything is done, ``separator`` comes between spaces and report.
    The work begins when the body is read; what it raises becomes the report that ``failed`` makes. A client
    that goes away does not end it: what was begun is finished. ``unread`` releases what the work would have
    used when nobody reads the body.
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

    def __iter__(self) -> Iterator[bytes]:
        self._unread = None
        box: green.Mailbox[bytes] = green.Mailbox()
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

    def _run(self, box: green.Mailbox[bytes]) -> None:
        try:
            report = self._work()
        except Exception as error:
            # Nobody else can answer: the status line is out.
            report = self._failed(error)
        box.put(report)
