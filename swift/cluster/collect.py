"""Requests to many nodes at the same time: their responses as they arrive, until there are enough.

Each request has a green thread of its own, which leaves its outcome in an ``Arrivals``. ``collect`` gives
that to a decider; when the decider has enough it waits a moment longer for the rest and ends. It never waits
for late responses: a caller that must do something about them says so with ``Arrivals.abandon``. The meaning
of a response, and the next node, are up to the caller, which may start more while collecting.

``fan_out`` is the loop of writes. Each attempt walks the shared node iterator until ``send`` gives a response
worth counting, so that a handoff replaces a failing primary. It stops when the decider has its quorum (plus a
grace for the rest), and never waits longer than the slowest attempt's own timeouts. Avoided nodes are used
only when there can be no quorum without them: one that hangs would cost every write its time. Unfit for
streaming bodies: those are driven in step by ``proxy.obj.write.copies``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar, Unpack

from swift import green
from swift.base.calls import Ts
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.cluster.transport import BackendResponse
from swift.http.headers import HeaderMap
from swift.ring.device import Node

T = TypeVar("T")


class Decider(Protocol):
    """Knows when enough was heard; ``cluster.quorum.WriteQuorum`` is one."""

    @property
    def reached(self) -> bool:
        """Return True if nothing further is needed."""


class Until:
    """A decider that asks a function each time."""

    __slots__ = ("_is_enough",)

    def __init__(self, is_enough: Callable[[], bool]):
        self._is_enough = is_enough

    @property
    def reached(self) -> bool:
        """See ``Decider``."""
        return self._is_enough()


#: Everything that comes is wanted.
EVERYTHING = Until(lambda: False)


class Arrivals(green.Queue[T]):
    """The outcomes of green threads, and the number of those that are awaited."""

    __slots__ = ("waiting",)

    def __init__(self, waiting: int = 0):
        super().__init__()
        #: Values that were not heard yet; who lets others put values raises it.
        self.waiting = waiting

    def start(self, call: Callable[[Unpack[Ts]], T], *args: *Ts, otherwise: T) -> None:
        """Have a green thread bring what ``call(*args)`` returns, or ``otherwise`` when that raises."""
        self.waiting += 1
        green.spawn_detached(self._bring, call, args, otherwise)

    def _bring(self, call: Callable[..., T], args: tuple[object, ...], otherwise: T) -> None:
        value = otherwise
        try:
            value = call(*args)
        finally:
            # Whatever happens to it, the one that waits must hear of it.
            self.put(value)

    def abandon(self, release: Callable[[T], object]) -> None:
        """Pass what still arrives to ``release``, in the background."""
        late, self.waiting = self.waiting, 0

        def wait() -> None:
            for _ in range(late):
                release(self.get())

        if late:
            green.spawn_detached(wait)

    def __repr__(self) -> str:
        return f"<Arrivals {self.waiting} awaited>"


def collect(
    arrivals: Arrivals[T],
    decider: Decider,
    *,
    grace_s: float = 0.0,
    pause_s: float | None = None,
    on_quiet: Callable[[], bool] | None = None,
) -> Iterator[T]:
    """Yield what arrives, in order, until nothing is awaited or ``grace_s`` after the decider has enough.

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
    """Send every attempt; the answers in order of arrival, without those that came too late."""
    arrivals: Arrivals[tuple[HeaderMap, BackendResponse | None, bool]] = Arrivals(len(attempts))

    def work(headers: HeaderMap) -> None:
        answer = None
        try:
            for node in nodes:
                answer = send(node, headers)
                if answer is not None:
                    answer.node, answer.attempt = node, headers
                    break
        finally:
            arrivals.put((headers, answer, nodes.asks_avoided))

    nodes.asks_avoided = False
    for headers in attempts:
        green.spawn_detached(work, headers)
    answers: list[BackendResponse] = []
    stranded: list[HeaderMap] = []
    for headers, answer, asked_all in collect(arrivals, decider, grace_s=grace_s):
        if answer is None:
            if not asked_all:
                stranded.append(headers)
        else:
            answers.append(answer)
            decider.add(answer.status)
        if stranded and (nodes.asks_avoided or not decider.within_reach(arrivals.waiting)):
            nodes.asks_avoided = True
            for headers in stranded:
                green.spawn_detached(work, headers)
            arrivals.waiting += len(stranded)
            stranded.clear()
    return answers
