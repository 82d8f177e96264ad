"""Executors of an engine's blocking calls: they decide which calls may run on the event loop.

The interface declares the ``effort`` of each method. The engine translates an effort to a ``Run``, because
only it knows if such a call waits for a disk, for another node or for nothing. ``store.handle`` puts both
together; callers outside of ``store`` have handles only.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeVar

from swift.base.calls import Attempt, Run, run_inline

F = TypeVar("F", bound=Callable[..., object])


class Effort(Enum):
    """Expected duration of a call; the value is its thread pool's purpose."""

    #: Looking at an object, opening it, beginning a body: often served from memory.
    LOOK = "look"
    #: A few system calls: a small body, metadata, a tombstone, an update.
    SHORT = "short"
    #: A decision about an object and a change of it, which waits until it is durable.
    CHANGE = "change"
    #: A large body, or the end of one.
    LONG = ""
    #: Hashing the suffixes of a partition.
    HASHES = "hashes"
    #: Calls for data that other nodes push.
    SSYNC = "ssync"
    #: Reading everything that is there.
    AUDIT = "audit"


def effort(value: Effort) -> Callable[[F], F]:
    """Declare how long a method of an interface may take."""

    def declare(method: F) -> F:
        vars(method)["effort"] = value
        return method

    return declare


class Pools(Protocol):
    """The threads of a process, by device."""

    def run(self, device: str) -> Run:
        """For short calls; it may run them where they are made."""

    def threads(self, device: str, purpose: str = "") -> Run:
        """For long calls; those of a ``purpose`` have threads of their own."""

    def attempt(self, device: str) -> Attempt:
        """For calls that answer from memory or return None."""


class InlinePools:
    """``Pools`` without threads."""

    def run(self, device: str) -> Run:
        return run_inline

    def threads(self, device: str, purpose: str = "") -> Run:
        return run_inline

    def attempt(self, device: str) -> Attempt:
        """Return an executor that always tries."""
        return run_inline
