"""Uploads in which a slow node does not pace the others (``upload_memory``, doc/explanation/striping.md).

Each node has a ``SendQueue``: the bytes that it has not been sent, and a green thread that sends them. The
client is read on while as many nodes as the upload needs keep up, and what is held for the others fits into
the memory. When that is full the upload waits for the nodes that are behind; after it has waited for one of
them longer than the patience in all, it goes on without that node. So slow nodes make an upload longer by the
patience at most, as long as there are enough others, and replication gives them their copy later. The content
of what is sent does not matter here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swift import green
from swift.base.clock import Clock
from swift.http.response import HTTPError
from swift.proxy.context import ProxyContext
from swift.proxy.obj.location import ObjectLocation
from swift.proxy.obj.write.targets import UploadTarget

#: Nodes that are waited for are looked at again after so many seconds if nothing is heard of them.
LOOK_S = 1.0


def _nothing() -> None:
    pass


class SendQueue:
    """The bytes that one node has not been sent (``targets.TargetQueue``)."""

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
        return f"<SendQueue {self.behind} bytes behind, waited for {self.waited_s:.1f} s>"


class QueueLimits(NamedTuple):
    """The limits of the queues of one upload."""

    #: What a node gets at a time, in bytes.
    unit: int
    #: Bytes that are held for slow nodes at most.
    memory: int
    #: How long the upload waits for one node in all.
    patience_s: float


class SendQueues:
    """The queues of one upload."""

    def __init__(
        self,
        targets: Sequence[UploadTarget],
        need: int,
        limits: QueueLimits,
        *,
        is_shared: bool,
        clock: Clock,
        leave: Callable[[UploadTarget, SendQueue], None],
    ):
        """Bytes that all nodes get are ``is_shared``: in memory once.

        ``leave`` is called with each node that the upload goes on without.
        """
        self._need = need
        self._unit = limits.unit
        self._memory = limits.memory
        self._patience_s = limits.patience_s
        self._total = max if is_shared else sum
        self._clock = clock
        self._leave = leave
        self._changed = green.Condition()
        self._queues = {target: SendQueue(self._changed.notify_all) for target in targets if target.alive}
        for target, queue in self._queues.items():
            target.queue = queue

    @property
    def held(self) -> int:
        """Bytes in memory for nodes that have not been sent them."""
        return self._total([queue.behind for target, queue in self._queues.items() if target.alive] or [0])

    def send(self, piece: bytes | memoryview, held: int, release: Callable[[], None]) -> None:
        """Send all the same bytes, which hold ``held`` bytes until ``release`` is called after the last."""
        targets = [target for target in self._queues if target.alive]
        left = len(targets)

        def sent() -> None:
            nonlocal left
            left -= 1
            if not left:
                release()

        for target in targets:
            target.send(piece, held=held, sent=sent)

    def await_room(self, size: int) -> None:
        """Wait until ``size`` more bytes may be held.

        Raises ``HTTPError`` 503 when too few nodes are left.
        """
        while True:
            alive = {target: queue for target, queue in self._queues.items() if target.alive}
            if len(alive) < self._need:
                raise HTTPError(503)
            near = sum(queue.behind <= self._unit for queue in alive.values())
            held = self.held
            is_full = held > 0 and held + size > self._memory
            if near >= self._need and not is_full:
                return
            if near < self._need:
                # They are what the upload is made of, however slow.
                self._changed.wait(LOOK_S)
            else:
                # The memory is not full of the bytes for nodes that are only a little behind.
                most = max(self._unit, max(queue.behind for queue in alive.values()) - self._unit)
                self._wait_for({target: queue for target, queue in alive.items() if queue.behind > most})

    def _wait_for(self, slow: dict[UploadTarget, SendQueue]) -> None:
        """Wait for nodes without which there are enough, as long as the patience lasts."""
        left_s = self._patience_s - max((queue.waited_s for queue in slow.values()), default=0.0)
        began = self._clock.monotonic()
        if left_s > 0:
            self._changed.wait(min(left_s, LOOK_S))
        passed = self._clock.monotonic() - began
        for target, queue in slow.items():
            queue.waited_s += passed
            if queue.waited_s >= self._patience_s and queue.behind > self._unit:
                self._leave(target, queue)
                target.leave()

    def __repr__(self) -> str:
        return f"<SendQueues {self.held} of {self._memory} bytes held: {list(self._queues.values())}>"


def send_queues_of(
    context: ProxyContext,
    location: ObjectLocation,
    targets: Sequence[UploadTarget],
    need: int,
    *,
    length: int | None,
    unit: int,
    is_shared: bool,
) -> SendQueues | None:
    """Lines for the nodes of an upload; None when they are all to be kept in step.

    ``length`` is the body's, if it is known; ``unit`` what a node gets of it at a time, in bytes.
    """
    settings = context.planner(location.policy.index).settings
    if not settings.upload_memory or (length is not None and length <= 2 * unit):
        return None

    def leave(target: UploadTarget, queue: SendQueue) -> None:
        context.telemetry.statsd.increment("object.left_behind")
        context.telemetry.log.warning(
            f"upload goes on without {target.node.key}: {queue.behind} bytes behind after"
            f" {queue.waited_s:.1f} s of waiting",
            txid=target.headers.get("x-trans-id"),
        )

    return SendQueues(
        targets,
        need,
        QueueLimits(unit, settings.upload_memory, settings.upload_patience),
        is_shared=is_shared,
        clock=context.clock,
        leave=leave,
    )
