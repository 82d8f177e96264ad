"""Responses that start before their end is known: spaces keep the connection alive, the report comes last.

For operations on many objects that take longer than the timeouts of clients and load balancers. The status
line is sent before the work has ended, so the report contains the final status. A client that reads only the
status line sends ``heartbeat=off``: ``requires_final_status`` (decision 0023).
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


def requires_final_status(request: Request) -> bool:
    """Return True if the status line must wait for the end of the work: ``heartbeat=off``."""
    value = request.params.get("heartbeat")
    return value is not None and not is_true(value)


class Heartbeat(ResponseBody):
    """A body that sends a space every ``interval_s`` seconds until ``work`` returns the report.

    ``immediate`` sends the first space before the work starts, ``separator`` separates spaces and report. The
    work starts when the body is read, or with ``start``. ``render_failure`` renders the report of an
    exception. The work continues to its end when the client disconnects, unless it ``is_cancelled`` then.
    ``on_unread`` releases resources when the body is never read. ``first`` stands for the first space.
    """

    def __init__(
        self,
        work: Callable[[], bytes],
        render_failure: Callable[[Exception], bytes],
        *,
        interval_s: float,
        immediate: bool = False,
        first: bytes = SPACE,
        separator: bytes = SEPARATOR,
        is_cancelled: bool = False,
        on_unread: Callable[[], None] | None = None,
    ):
        self.length = None
        self._work = work
        self._render_failure = render_failure
        self._interval_s = interval_s
        self._immediate = immediate
        self._first = first
        self._separator = separator
        self._is_cancelled = is_cancelled
        self._on_unread = on_unread
        self._task: green.Task[None] | None = None
        self._queue: green.Queue[bytes] | None = None

    def start(self, wait_s: float | None) -> bytes | None:
        """Start the work; return its report if it is ready within ``wait_s`` seconds, None otherwise.

        ``wait_s`` None waits for the end.
        """
        queue = self._begin()
        try:
            return queue.get(None if wait_s is None else time.monotonic() + wait_s)
        except green.DeadlineExceeded:
            # The first space is due.
            self._immediate = True
            return None

    def _begin(self) -> green.Queue[bytes]:
        """Return the queue of the report; start the work unless it has begun."""
        self._on_unread = None
        if self._queue is None:
            self._queue = green.Queue()
            self._task = green.spawn(self._run, self._queue)
        return self._queue

    def __iter__(self) -> Iterator[bytes]:
        queue = self._begin()
        has_sent_space = self._immediate
        if has_sent_space:
            yield self._first
        while True:
            try:
                report = queue.get(time.monotonic() + self._interval_s)
            except green.DeadlineExceeded:
                has_sent_space = True
                yield SPACE
                continue
            if has_sent_space and self._separator:
                yield self._separator
            yield report
            return

    def close(self) -> None:
        """Report that the body was not read, or stop the work of a client that disconnected."""
        if self._is_cancelled and self._task is not None:
            self._task.kill()
        on_unread, self._on_unread = self._on_unread, None
        if on_unread is not None:
            on_unread()

    def _run(self, queue: green.Queue[bytes]) -> None:
        try:
            report = self._work()
        except Exception as error:
            # The status line has been sent: only this filter can respond.
            report = self._render_failure(error)
        queue.put(report)
