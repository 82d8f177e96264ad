"""Where an engine's blocking calls run: the one answer to "may this call run on the event loop?".

Whoever calls an engine says what kind of call it is (``Effort``); the engine answers with a ``Run``, because
only it knows whether a call of this kind waits for a disk, for another node or for nothing at all.
"""

from __future__ import annotations

from enum import Enum

from swift.base.calls import Protocol
from swift.base.calls import Run as Run
from swift.base.calls import run_inline as run_inline


class Effort(Enum):
    """How long a call may take; the value is the purpose under which ``Pools`` keep threads apart."""

    #: A few system calls: looking, opening, a small body, metadata, a tombstone, an update.
    SHORT = "short"
    #: A large body, or the end of one.
    LONG = ""
    #: Hashing the suffixes of a partition.
    HASHES = "hashes"
    #: What other nodes push here.
    SSYNC = "ssync"
    #: Reading everything that is there.
    AUDIT = "audit"


class Pools(Protocol):
    """The threads of a process, by device."""

    def run(self, device: str) -> Run:
        """For short calls; it may run them where they are made."""

    def threads(self, device: str, purpose: str = "") -> Run:
        """For long calls; those of a ``purpose`` have threads of their own."""


class InlinePools:
    """``Pools`` without threads."""

    def run(self, device: str) -> Run:
        """See ``Pools``."""
        return run_inline

    def threads(self, device: str, purpose: str = "") -> Run:
        """See ``Pools``."""
        return run_inline
