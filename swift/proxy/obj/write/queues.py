"""Uploads in which a slow node does not pace the others (``upload_memory``, doc/explanation/striping.md).

Each node has a ``SendQueue``: the bytes that it has not been sent, and a green thread that sends them. The
client is read on while as many nodes as the upload needs keep up, and the bytes queued for the others fit
into the memory. When that is full the upload waits for the nodes that are behind. After it has waited for one
of them longer than the patience in all, it goes on without that node. So slow nodes delay an upload by the
patience at most, as long as there are enough others, and replication gives them their copy later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swift import green
from swift.base.clock import Clock
from swift.http.response import HTTPError
from swift.proxy.context import ProxyContext
from swift.proxy.obj.commit.targets import UploadTarget
from swift.proxy.obj.location import WriteLocation
from swift.telemetry.events import Event

_LEFT_BEHIND = Event("object.left_behind", "Slow nodes that an upload went on without.")

#: Slow nodes are checked again after so many seconds without a change.
RECHECK_S = 1.0


def _nothing() -> None:
    pass


class SendQueue:
    """The bytes that one node has not been sent (``targets.TargetQueue``)."""

    def __init__(self, changed: Callable[[], None]):
        #: Bytes that the node has not been sent.
        self.pending_bytes = 0
        #: Seconds that the upload has waited for it.
        self.waited_s = 0.0
        self._changed = changed
        self._items: deque[tuple[Callable[[], None], int, Callable[[], None]]] = deque()
        #: A value for each item, and one more for the end.
        self._wake: green.Queue[None] = green.Queue()
        self._is_over = False
        self._thread = green.spawn(self._run)

    def put(self, send: Callable[[], None], size: int, sent: Callable[[], None] | None = None) -> None:
        """Queue a call of ``send``, which holds ``size`` bytes until then; ``sent`` is called afterwards."""
        if self._is_over:
            (sent or _nothing)()
            return
        self._items.append((send, size, sent or _nothing))
        self.pending_bytes += size
        self._wake.put(None)

    def _run(self) -> None:
        try:
            while self._wake.get() is None and self._items:
                send, _size, _sent = self._items[0]
                send()
                self._pop_sent()
        finally:
            self._is_over = True
            while self._items:
                self._pop_sent()

    def _pop_sent(self) -> None:
        """Remove the oldest item, which was sent."""
        _send, size, sent = self._items.popleft()
        self.pending_bytes -= size
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
        return f"<SendQueue {self.pending_bytes} bytes behind, waited for {self.waited_s:.1f} s>"


class QueueLimits(NamedTuple):
    """The limits of the queues of one upload."""

    #: Bytes that a node is sent at a time.
    unit: int
    #: Bytes that are held for slow nodes at most.
    memory: int
    #: Total time that the upload waits for one node.
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
        """Make the queues; ``is_shared`` says that all nodes get the same bytes, which are in memory once.

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
    def held_bytes(self) -> int:
        """Bytes in memory for nodes that have not been sent them."""
        return self._total(
            [queue.pending_bytes for target, queue in self._queues.items() if target.alive] or [0]
        )

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
            near = sum(queue.pending_bytes <= self._unit for queue in alive.values())
            held = self.held_bytes
            is_full = held > 0 and held + size > self._memory
            if near >= self._need and not is_full:
                return
            if near < self._need:
                # The upload needs these nodes, however slow they are.
                self._changed.wait(RECHECK_S)
            else:
                # Nodes that are only a little behind do not fill the memory.
                most = max(self._unit, max(queue.pending_bytes for queue in alive.values()) - self._unit)
                self._wait_for(
                    {target: queue for target, queue in alive.items() if queue.pending_bytes > most}
                )

    def _wait_for(self, slow: dict[UploadTarget, SendQueue]) -> None:
        """Wait for dispensable nodes as long as the patience lasts, then exclude them."""
        left_s = self._patience_s - max((queue.waited_s for queue in slow.values()), default=0.0)
        began = self._clock.monotonic()
        if left_s > 0:
            self._changed.wait(min(left_s, RECHECK_S))
        passed = self._clock.monotonic() - began
        for target, queue in slow.items():
            queue.waited_s += passed
            if queue.waited_s >= self._patience_s and queue.pending_bytes > self._unit:
                self._leave(target, queue)
                target.exclude()

    def __repr__(self) -> str:
        return f"<SendQueues {self.held_bytes} of {self._memory} bytes held: {list(self._queues.values())}>"


def make_send_queues(
    context: ProxyContext,
    location: WriteLocation,
    targets: Sequence[UploadTarget],
    need: int,
    *,
    length: int | None,
    unit: int,
    is_shared: bool,
) -> SendQueues | None:
    """Return send queues for an upload's nodes; None when all nodes are kept in step.

    ``length`` is the body's, if it is known; ``unit`` what a node gets of it at a time, in bytes.
    """
    settings = context.planner(location.policy.index).settings
    if not settings.upload_memory or (length is not None and length <= 2 * unit):
        return None

    def leave(target: UploadTarget, queue: SendQueue) -> None:
        _LEFT_BEHIND.count(context.telemetry.statsd)
        context.telemetry.log.warning(
            f"upload continues without {target.node.key}: {queue.pending_bytes} bytes behind after"
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
