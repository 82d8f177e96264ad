"""Types of functions that run a call which may block: in place, or in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple, Unpack

#: The result and the arguments of a call in another thread.
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
#: A function and its arguments, to be called later.
Call = tuple[Callable[..., object], tuple[object, ...]]


class Run(Protocol):
    """Runs a call and returns its result or raises its error: ``run(function, *args)``."""

    def __call__(self, function: Callable[[Unpack[Ts]], T], /, *args: *Ts) -> T:
        """Return the result of ``function(*args)``."""


class Attempt(Protocol):
    """Makes a call that answers from memory, or returns None: ``attempt(function, *args)``."""

    def __call__(self, function: Callable[[Unpack[Ts]], T | None], /, *args: *Ts) -> T | None:
        """Return the result of ``function(*args)``; None if it has none, or while calls take too long."""


def never(_function: Callable[[Unpack[Ts]], T | None], *_args: *Ts) -> T | None:
    """Return None: the ``Attempt`` of what memory never answers."""
    return None


def run_inline(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Return the ``Run`` of what waits for nothing."""
    return function(*args)
