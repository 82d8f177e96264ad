"""Reading several pieces of one large object at once: those that fit into a bound wait in memory, in order.

``ReadAhead`` opens the pieces one after the other and reads the bodies of those that fit at the same time,
each in a green thread, while the client is sent what comes before them. A piece that does not fit any more is
opened only, and nothing after it is. It refuses to know what pieces are; a function opens the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from swift import green
from swift.base.digits import is_digits
from swift.http.body import BodyError, ResponseBody, body_of
from swift.http.response import Response


def size_of(response: Response) -> int | None:
    """Bytes of a response's body; None when unknown."""
    known = body_of(response.body).length
    announced = response.headers.get("content-length", "")
    return int(announced) if known is None and is_digits(announced) else known


def release(response: Response | None, taken: int) -> None:
    """Let a response go of which only ``taken`` bytes were wanted."""
    if response is not None:
        response.discard()
        response.ended(taken, False)


class HeldBody(ResponseBody):
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


class _Whole:
    """A piece that is being read into memory."""

    __slots__ = ("size", "_response", "_ready", "_got", "_error", "_buffer", "_is_unwanted")

    def __init__(self, response: Response, size: int):
        self.size = size
        self._response = response
        self._ready = green.Event()
        self._got = 0
        self._error: BodyError | None = None
        self._buffer = memoryview(bytearray(size))
        self._is_unwanted = False
        green.spawn_detached(self._read)

    def _read(self) -> None:
        body = body_of(self._response.body)
        try:
            while self._got < self.size and not self._is_unwanted:
                more = body.read_into(self._buffer[self._got :])
                if not more:
                    break
                self._got += more
        except BodyError as error:
            # The reader of this piece raises it.
            self._error = error
        finally:
            self._response.discard()
            self._response.ended(self._got, self._got == self.size)
            self._ready.set()

    def get(self) -> Response:
        """The piece, in memory; raises ``BodyError``."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        if self._got != self.size:
            raise BodyError(f"a segment gave {self._got} of {self.size} bytes")
        return Response(200, {}, HeldBody(self._buffer))

    def abandon(self) -> None:
        """Discard it."""
        self._is_unwanted = True


class ReadAhead:
    """The next pieces, ``memory`` bytes of them at most; ``take`` opens one, and gives None at the end."""

    def __init__(self, take: Callable[[], Response | None], memory: int):
        self._take = take
        self._memory = memory
        self._queue: deque[_Whole | Response | Exception | None] = deque()
        self._held = 0
        self._sent = 0
        self._is_feeding = False
        self._is_stopped = False
        self._is_closed = False
        self._changed = green.Condition()

    @property
    def held(self) -> int:
        """Bytes in memory, or on their way there, with the piece that is being sent."""
        return self._held + self._sent

    def want(self) -> None:
        """Open more, if there is room."""
        if not self._is_feeding and not self._is_stopped and not self._is_closed:
            self._is_feeding = True
            green.spawn_detached(self._feed)

    def _feed(self) -> None:
        try:
            while not self._is_closed and not self._is_stopped:
                try:
                    found: Response | Exception | None = self._take()
                except Exception as error:
                    # The next read raises it.
                    found = error
                self._put(found)
        finally:
            self._is_feeding = False
            self._changed.notify_all()

    def _put(self, found: Response | Exception | None) -> None:
        if self._is_closed:
            release(found if isinstance(found, Response) else None, 0)
            return
        size = size_of(found) if isinstance(found, Response) else None
        if isinstance(found, Response) and size is not None and self.held + size <= self._memory:
            self._held += size
            self._queue.append(_Whole(found, size))
        else:
            self._is_stopped = True
            self._queue.append(found)
        self._changed.notify_all()

    def get(self) -> Response | None:
        """The next piece, None at the end; raises what opening or reading it raised."""
        self._sent = 0
        self.want()
        while not self._queue:
            self._changed.wait()
        found = self._queue.popleft()
        if isinstance(found, _Whole):
            self._held -= found.size
            self._sent = found.size
            response = found.get()
            self._promote()
            self.want()
            return response
        if isinstance(found, Exception):
            raise found
        # What stopped the others is on its way to the client; its end is the next sign to go on.
        self._is_stopped = found is None
        return found

    def _promote(self) -> None:
        """Read the piece that was only opened, if it fits now."""
        last = self._queue[-1] if self._queue else None
        size = size_of(last) if isinstance(last, Response) else None
        if isinstance(last, Response) and size is not None and self.held + size <= self._memory:
            self._held += size
            self._queue[-1] = _Whole(last, size)
            self._is_stopped = False

    def close(self) -> None:
        """Let go of everything."""
        self._is_closed = True
        while self._queue:
            found = self._queue.popleft()
            if isinstance(found, _Whole):
                found.abandon()
            elif isinstance(found, Response):
                release(found, 0)
        self._changed.notify_all()

    def __repr__(self) -> str:
        return f"<ReadAhead {len(self._queue)} pieces, {self.held} of {self._memory} bytes>"
