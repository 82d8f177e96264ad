"""Hearing many nodes that were asked at the same time: what they say, as it arrives, until it is enough.

Each is asked in a green thread of its own, which leaves what came of it in an ``Arrivals``. ``collect`` gives
that to whoever decides; when the decider has enough it waits a moment longer for the rest and ends. It never
waits for those who are late: whoever must do something about them says so with ``Arrivals.abandon``. What an
answer means, and whom to ask next, is the caller's, who may start more while collecting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar, Unpack

from swift import green
from swift.base.calls import Ts

T = TypeVar("T")


class Decider(Protocol):
    """Knows when enough was heard; ``cluster.quorum.WriteQuorum`` is one."""

    @property
    def reached(self) -> bool:
        """Whether nothing further is needed."""


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
    """Where green threads leave what they bring, and how many are awaited."""

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
    """What arrives, in order, until nothing is awaited or ``grace_s`` after the decider has enough.

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
