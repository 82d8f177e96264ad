"""Uploads in which a slow node does not pace the others (``upload_memory``, doc/explanation/striping.md).

Each node has a ``Line``: what it is still to be sent, and a green thread that sends it. The client is read on
while as many nodes as the upload needs keep up, and what is held for the others fits into the memory. When
that is full the upload waits for those that are behind; has it waited for one of them longer than the
patience in all, it goes on without that node. So nodes that are slow make an upload longer by the patience at
most, as long as there are enough others, and replication gives them their copy later. It refuses to know
what is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from swift import green
from swift.base.clock import Clock
from swift.http.response import HTTPError
from swift.proxy.context import ProxyContext
from swift.proxy.obj.sinks import Sink
from swift.proxy.obj.target import ObjectTarget

#: Nodes that are waited for are looked at again after so many seconds if nothing is heard of them.
LOOK_S = 1.0


def _nothing() -> None:
    pass


class Line:
    """What one node is still to be sent; ``proxy.obj.sinks.Queue``."""

    def __init__(self, changed: Callable[[], None]):
        #: Bytes that the node has not been sent.
        self.behind = 0
        #: Seconds that the upload has waited for it.
        self.waited_s = 0.0
        self._changed = changed
        self._items: deque[tuple[Callable[[], None], int, Callable[[], None]]] = deque()
        #: A value for each item, and one more for the end.
        self._wake: green.Queue[None] = green.Queue()
        self._is_over = False
        self._thread = green.spawn(self._run)

    def put(self, send: Callable[[], None], size: int, sent: Callable[[], None] | None = None) -> None:
        """Have ``send`` called when it is its turn, which holds ``size`` bytes until then; then ``sent``."""
        if self._is_over:
            (sent or _nothing)()
            return
        self._items.append((send, size, sent or _nothing))
        self.behind += size
        self._wake.put(None)

    def _run(self) -> None:
        try:
            while self._wake.get() is None and self._items:
                send, _size, _sent = self._items[0]
                send()
                self._settle()
        finally:
            self._is_over = True
            while self._items:
                self._settle()

    def _settle(self) -> None:
        """The oldest item is done with."""
        _send, size, sent = self._items.popleft()
        self.behind -= size
        sent()
        self._changed()

    def end(self) -> None:
        """Wait until everything was sent; nothing may be put any more."""
        self._wake.put(None)
        self._thread.wait()

    def drop(self) -> None:
        """Send nothing any more."""
        if not self._thread.done:
            self._thread.kill()

    def __repr__(self) -> str:
        return f"<Line {self.behind} bytes behind, waited for {self.waited_s:.1f} s>"


class UploadLines:
    """The lines of one upload."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        need: int,
        *,
        unit: int,
        memory: int,
        patience_s: float,
        is_shared: bool,
        clock: Clock,
        leave: Callable[[Sink, Line], None],
    ):
        """``unit`` is what a node gets at a time, in bytes; what all get ``is_shared``, in memory once.

        ``leave`` is told whom the upload goes on without.
        """
        self._need = need
        self._unit = unit
        self._memory = memory
        self._patience_s = patience_s
        self._total = max if is_shared else sum
        self._clock = clock
        self._leave = leave
        self._changed = green.Condition()
        self._lines = {sink: Line(self._changed.notify_all) for sink in sinks if sink.alive}
        for sink, line in self._lines.items():
            sink.queue = line

    @property
    def held(self) -> int:
        """Bytes in memory for nodes that have not been sent them."""
        return self._total([line.behind for sink, line in self._lines.items() if sink.alive] or [0])

    def send(self, piece: bytes | memoryview, held: int, release: Callable[[], None]) -> None:
        """Give all the same bytes; ``held`` is what they hold until nobody needs them and it is released."""
        sinks = [sink for sink in self._lines if sink.alive]
        left = len(sinks)

        def sent() -> None:
            nonlocal left
            left -= 1
            if not left:
                release()

        for sink in sinks:
            sink.send(piece, held=held, sent=sent)

    def await_room(self, size: int) -> None:
        """Wait until ``size`` more bytes may be held.

        Raises ``HTTPError`` 503 when too few nodes are left.
        """
        while True:
            alive = {sink: line for sink, line in self._lines.items() if sink.alive}
            if len(alive) < self._need:
                raise HTTPError(503)
            near = sum(line.behind <= self._unit for line in alive.values())
            held = self.held
            is_full = held > 0 and held + size > self._memory
            if near >= self._need and not is_full:
                return
            if near < self._need:
                # They are what the upload is made of, however slow.
                self._changed.wait(LOOK_S)
            else:
                # Whoever is only a little behind is not what the memory is full of.
                most = max(self._unit, max(line.behind for line in alive.values()) - self._unit)
                self._wait_for({sink: line for sink, line in alive.items() if line.behind > most})

    def _wait_for(self, slow: dict[Sink, Line]) -> None:
        """Wait for nodes without which there are enough, as long as the patience lasts."""
        left_s = self._patience_s - max((line.waited_s for line in slow.values()), default=0.0)
        began = self._clock.monotonic()
        if left_s > 0:
            self._changed.wait(min(left_s, LOOK_S))
        passed = self._clock.monotonic() - began
        for sink, line in slow.items():
            line.waited_s += passed
            if line.waited_s >= self._patience_s and line.behind > self._unit:
                self._leave(sink, line)
                sink.leave()

    def __repr__(self) -> str:
        return f"<Lines {self.held} of {self._memory} bytes held: {list(self._lines.values())}>"


def lines_of(
    context: ProxyContext,
    target: ObjectTarget,
    sinks: Sequence[Sink],
    need: int,
    *,
    length: int | None,
    unit: int,
    is_shared: bool,
) -> UploadLines | None:
    """Lines for the nodes of an upload; None when they are all to be kept in step.

    ``length`` is the body's, if it is known; ``unit`` what a node gets of it at a time, in bytes.
    """
    settings = context.planner(target.policy.index).settings
    if not settings.upload_memory or (length is not None and length <= 2 * unit):
        return None

    def leave(sink: Sink, line: Line) -> None:
        context.telemetry.statsd.increment("object.left_behind")
        context.telemetry.log.warning(
            f"upload goes on without {sink.node.key}: {line.behind} bytes behind after"
            f" {line.waited_s:.1f} s of waiting",
            txid=sink.headers.get("x-trans-id"),
        )

    return UploadLines(
        sinks,
        need,
        unit=unit,
        memory=settings.upload_memory,
        patience_s=settings.upload_patience,
        is_shared=is_shared,
        clock=context.clock,
        leave=leave,
    )
