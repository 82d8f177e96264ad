"""Requests to many nodes at the same time: their responses as they arrive, until there are enough.

Each request has a green thread of its own, which leaves its outcome in a ``ResultQueue``. ``collect`` yields
the outcomes and checks a stop condition. When that is reached it waits a moment longer for the rest and ends.
It never waits for late responses: a caller that must handle them uses ``ResultQueue.abandon``. The meaning of
a response, and the next node, are up to the caller, which may start more while collecting.

``fan_out`` is the loop of writes. Each attempt walks the shared node iterator until ``send`` returns a
response that counts, so that a handoff replaces a failing primary. It stops when there is a quorum (plus a
grace period for the rest), and never waits longer than the slowest attempt's own timeouts. Avoided nodes are
used only when there can be no quorum without them, or when those that are used do not respond either: one
that hangs would cost every write its timeout. Unfit for streaming bodies: those are sent in step by
``proxy.obj.write.copies``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar, Unpack

from swift import green
from swift.base.calls import Ts
from swift.cluster.health import SUSPECT_S
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.cluster.transport import BackendResponse
from swift.http.headers import HeaderMap
from swift.ring.device import Node

T = TypeVar("T")


class StopCondition(Protocol):
    """Decides when there are enough results; ``cluster.quorum.WriteQuorum`` is one."""

    @property
    def reached(self) -> bool:
        """Return True if nothing further is needed."""


class Until:
    """A stop condition that calls a function each time."""

    __slots__ = ("_is_enough",)

    def __init__(self, is_enough: Callable[[], bool]):
        self._is_enough = is_enough

    @property
    def reached(self) -> bool:
        """See ``StopCondition``."""
        return self._is_enough()


class ResultQueue(green.Queue[T]):
    """The outcomes of green threads, and the number of those that are awaited."""

    __slots__ = ("waiting",)

    def __init__(self, waiting: int = 0):
        super().__init__()
        #: Results that are still awaited; a caller that starts a producer itself increments it.
        self.waiting = waiting

    def start(self, call: Callable[[Unpack[Ts]], T], *args: *Ts, default: T) -> None:
        """Run ``call(*args)`` in a green thread and queue its result, or ``default`` if it raises."""
        self.waiting += 1
        green.spawn_detached(self._run, call, args, default)

    def _run(self, call: Callable[..., T], args: tuple[object, ...], default: T) -> None:
        value = default
        try:
            value = call(*args)
        finally:
            # The waiting caller needs a result in any case.
            self.put(value)

    def abandon(self, release: Callable[[T], object]) -> None:
        """Pass late results to ``release``, in the background."""
        late, self.waiting = self.waiting, 0

        def wait() -> None:
            for _ in range(late):
                release(self.get())

        if late:
            green.spawn_detached(wait)

    def __repr__(self) -> str:
        return f"<Arrivals {self.waiting} awaited>"


def collect(
    arrivals: ResultQueue[T],
    decider: StopCondition,
    *,
    grace_s: float = 0.0,
    pause_s: float | None = None,
    on_quiet: Callable[[], bool] | None = None,
) -> Iterator[T]:
    """Yield results as they arrive, until none is awaited or ``grace_s`` after the stop condition.

    Whenever nothing arrives for ``pause_s``, ``on_quiet`` may start something more; when it returns False it
    is not called again before the next arrival.
    """
    deadline: float | None = None
    is_quiet_over = pause_s is None
    while arrivals.waiting:
        if deadline is None and decider.reached:
            if not grace_s:
                return
            deadline = time.monotonic() + grace_s
        pause = deadline
        if not is_quiet_over and deadline is None and pause_s is not None:
            pause = time.monotonic() + pause_s
        try:
            value: T = arrivals.get(pause)
        except green.DeadlineExceeded:
            if deadline is not None:
                return
            is_quiet_over = on_quiet is None or not on_quiet()
            continue
        arrivals.waiting -= 1
        is_quiet_over = pause_s is None
        yield value


#: Sends one attempt to a node; None means "try the next node".
Send = Callable[[Node, HeaderMap], BackendResponse | None]


def fan_out(
    attempts: Sequence[HeaderMap],
    nodes: NodeIterator,
    send: Send,
    decider: WriteQuorum,
    *,
    grace_s: float,
) -> list[BackendResponse]:
    """Send every attempt; return the responses in order of arrival, without late ones."""
    arrivals: ResultQueue[tuple[HeaderMap, BackendResponse | None, bool]] = ResultQueue(len(attempts))

    def work(headers: HeaderMap) -> None:
        response = None
        try:
            for node in nodes:
                response = send(node, headers)
                if response is not None:
                    response.node, response.attempt = node, headers
                    break
        finally:
            arrivals.put((headers, response, nodes.uses_avoided))

    nodes.uses_avoided = False
    for headers in attempts:
        green.spawn_detached(work, headers)
    responses: list[BackendResponse] = []
    unsent: list[HeaderMap] = []

    def use_avoided() -> bool:
        """Send the unsent attempts to avoided nodes; return False: that is all that can be done."""
        if unsent:
            nodes.uses_avoided = True
            for headers in unsent:
                green.spawn_detached(work, headers)
            arrivals.waiting += len(unsent)
            unsent.clear()
        return False

    arrived = collect(arrivals, decider, grace_s=grace_s, pause_s=SUSPECT_S, on_quiet=use_avoided)
    for headers, response, asked_all in arrived:
        if response is None:
            if not asked_all:
                unsent.append(headers)
        else:
            responses.append(response)
            decider.add(response.status)
        if nodes.uses_avoided or not decider.is_reachable(arrivals.waiting):
            use_avoided()
    return responses
