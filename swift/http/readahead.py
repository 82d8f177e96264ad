"""Prefetching the next values of a sequence: one window for all kinds, and the pieces of large objects in
it.

``PrefetchWindow`` orders, bounds and waits. It is used for everything that is fetched before a client needs
it: the segments of large objects (``ReadAhead``), the stripes of erasure coded objects and the units that
come from several nodes at once (``proxy.obj.read``). ``ReadAhead`` opens pieces one after the other. It reads
the bodies of those that fit into its memory at the same time, each in a green thread, while the client is
sent the bytes before them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from swift import green
from swift.base.digits import is_digits
from swift.http.body import BodyError, ResponseBody, as_response_body
from swift.http.response import Response

T = TypeVar("T")


def _never_has_room() -> bool:
    return False


def _no_piece() -> None:
    """Stand in for a function that is not needed any more."""


class PrefetchWindow(Generic[T]):
    """Values of a sequence that are fetched before they are needed, in their order.

    Either the window's own green thread fetches them one after the other while ``has_room`` is true, or
    other green threads ``put`` them, in any order. An error takes the place of its value and ends the
    sequence. Values that are left at ``close`` are passed to ``release``.
    """

    def __init__(
        self,
        fetch: Callable[[], T | None] | None = None,
        *,
        has_room: Callable[[], bool] = _never_has_room,
        release: Callable[[T], object] = lambda _value: None,
    ):
        """Take ``fetch``, which returns the next value, None at the end."""
        self._fetch = fetch
        self._has_room = has_room
        self._release = release
        self._values: dict[int, T | Exception | None] = {}
        #: The number of the value that is read next, and of the one that is fetched next.
        self._next_number = 0
        self._next_fetched = 0
        self._task: green.Task[None] | None = None
        self._is_ended = fetch is None
        self.is_closed = False
        self._changed = green.Condition()

    def __len__(self) -> int:
        """Return the number of values that wait."""
        return len(self._values)

    @property
    def last(self) -> T | Exception | None:
        """The value that was fetched last, None if it is not waiting."""
        return self._values.get(self._next_fetched - 1)

    @last.setter
    def last(self, value: T) -> None:
        self._values[self._next_fetched - 1] = value

    def put(self, number: int, value: T | Exception | None) -> None:
        """Store the value of a number, the end (None) or an error."""
        if not self.is_closed:
            self._values[number] = value
            self._changed.notify_all()
        elif value is not None and not isinstance(value, Exception):
            self._release(value)

    def prefetch(self) -> None:
        """Fetch as many values as there is room for, in the background."""
        if self._task is None and self._may_fetch():
            self._task = green.spawn(self._run)

    def _may_fetch(self) -> bool:
        return not self.is_closed and not self._is_ended and self._has_room()

    def _run(self) -> None:
        try:
            while self._may_fetch():
                self._fetch_next()
        finally:
            self._task = None
            self._changed.notify_all()

    def _fetch_next(self) -> None:
        assert self._fetch is not None
        number, self._next_fetched = self._next_fetched, self._next_fetched + 1
        value: T | Exception | None = BodyError("a value was not fetched to its end")
        try:
            value = self._fetch()
        except Exception as error:
            # It is raised when its turn comes.
            value = error
        finally:
            self._is_ended = value is None or isinstance(value, Exception)
            self.put(number, value)

    def get(self, is_fed: Callable[[], bool] = lambda: False) -> T | None:
        """Return the next value, None at the end; raises what fetching it raised.

        Waits while the value is being fetched, or while ``is_fed`` returns True: others may still put it.
        """
        while self._next_number not in self._values and (self._task is not None or is_fed()):
            self._changed.wait()
        if self._next_number not in self._values:
            if self._is_ended or self.is_closed:
                return None
            self._fetch_next()
        value = self._values.pop(self._next_number, None)
        self._next_number += 1
        if isinstance(value, Exception):
            raise value
        return value

    def wait(self, timeout_s: float) -> None:
        """Wait for a change."""
        self._changed.wait(timeout_s)

    def notify(self) -> None:
        """Resume all that wait for a change."""
        self._changed.notify_all()

    def close(self, then: Callable[[], None] | None = None) -> None:
        """Release all values; call ``then`` once nothing is being fetched any more."""
        self.is_closed = True
        # They refer to the owner, whose memory would stay until the garbage collector finds the circle.
        self._fetch, self._has_room = None, _never_has_room
        values, self._values = self._values, {}
        for value in values.values():
            if value is not None and not isinstance(value, Exception):
                self._release(value)
        self._changed.notify_all()
        if then is not None and self._task is not None:
            self._task.on_exit(then)
        elif then is not None:
            then()


def response_size(response: Response) -> int | None:
    """Return the size of a response's body; None when unknown."""
    known = as_response_body(response.body).length
    announced = response.headers.get("content-length", "")
    return int(announced) if known is None and is_digits(announced) else known


def release_response(response: Response | None, taken: int) -> None:
    """Release a response of which only ``taken`` bytes were read."""
    if response is not None:
        response.discard()
        response.report_end(taken, False)


class MemoryViewBody(ResponseBody):
    """Bytes in memory that are read piece by piece."""

    __slots__ = ("length", "_rest")

    def __init__(self, data: memoryview):
        self.length: int | None = len(data)
        self._rest = data

    def read_into(self, buffer: memoryview) -> int:
        """See ``ResponseBody``."""
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


class _BufferedResponse:
    """A piece that is being read into memory."""

    __slots__ = ("size", "_response", "_ready", "_received", "_error", "_buffer", "_is_abandoned")

    def __init__(self, response: Response, size: int):
        self.size = size
        self._response = response
        self._ready = green.Event()
        self._received = 0
        self._error: BodyError | None = None
        self._buffer = memoryview(bytearray(size))
        self._is_abandoned = False
        green.spawn_detached(self._read)

    def _read(self) -> None:
        body = as_response_body(self._response.body)
        try:
            while self._received < self.size and not self._is_abandoned:
                more = body.read_into(self._buffer[self._received :])
                if not more:
                    break
                self._received += more
        except BodyError as error:
            # The reader of this piece raises it.
            self._error = error
        finally:
            self._response.discard()
            self._response.report_end(self._received, self._received == self.size)
            self._ready.set()

    def get(self) -> Response:
        """Wait for the piece and return it from memory; raises ``BodyError``."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        if self._received != self.size:
            raise BodyError(f"a segment sent {self._received} of {self.size} bytes")
        return Response(200, {}, MemoryViewBody(self._buffer))

    def abandon(self) -> None:
        """Discard it."""
        self._is_abandoned = True


class ReadAhead:
    """The next pieces, ``memory`` bytes of them at most; ``take`` opens one, and gives None at the end.

    A piece that does not fit is opened only, and no piece after it is, until it was sent. So without memory
    one piece is open ahead.
    """

    def __init__(self, take: Callable[[], Response | None], memory: int):
        self._fetch_piece = take
        self._memory = memory
        self._window: PrefetchWindow[_BufferedResponse | Response] = PrefetchWindow(
            self._open, has_room=lambda: not self._is_full, release=_release_piece
        )
        self._buffered_bytes = 0
        self._sent = 0
        self._is_full = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes in memory, or on their way there, with the piece that is being sent."""
        return self._buffered_bytes + self._sent

    def prefetch(self) -> None:
        """Open more, if there is room."""
        self._window.prefetch()

    def _open(self) -> _BufferedResponse | Response | None:
        found = self._fetch_piece()
        # A piece that was opened after the close is released by the window.
        return found if found is None or self._window.is_closed else self._buffer_if_it_fits(found)

    def _buffer_if_it_fits(self, found: Response) -> _BufferedResponse | Response:
        """Read a piece into memory if it fits."""
        size = response_size(found)
        if size is None or self.buffered_bytes + size > self._memory:
            self._is_full = True
            return found
        self._buffered_bytes += size
        self._is_full = False
        return _BufferedResponse(found, size)

    def get(self) -> Response | None:
        """Return the next piece, None at the end; raises what opening or reading it raised."""
        self._sent = 0
        self.prefetch()
        found = self._window.get()
        if not isinstance(found, _BufferedResponse):
            # The piece that filled the window goes to the client; prefetching resumes at its end.
            self._is_full = False
            return found
        self._buffered_bytes -= found.size
        self._sent = found.size
        response = found.get()
        last = self._window.last
        if isinstance(last, Response):
            self._window.last = self._buffer_if_it_fits(last)
        self.prefetch()
        return response

    def close(self) -> None:
        """Let go of everything."""
        self._window.close()
        self._fetch_piece = _no_piece

    def __repr__(self) -> str:
        return f"<ReadAhead {len(self._window)} pieces, {self.buffered_bytes} of {self._memory} bytes>"


def _release_piece(found: _BufferedResponse | Response) -> None:
    if isinstance(found, _BufferedResponse):
        found.abandon()
    else:
        release_response(found, 0)
