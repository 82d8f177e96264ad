"""Who is told before what an engine keeps is changed: the seam on which caches of it stand.

Every part of the filesystem engine that changes what a hash directory holds, whoever asked for it, does so
within ``change``. What the watcher does before is done before the disk is touched; what it does afterwards is
done before the caller hears that the change happened.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Changes(Protocol):
    """Told of every change; entering never raises, so that no change fails for want of a cache."""

    def change(self, device_path: str, directory: str) -> AbstractContextManager[object]:
        """A block in which a hash directory, or a suffix or partition with all below it, changes."""


class Unwatched:
    """Nobody wants to know."""

    def change(self, device_path: str, directory: str) -> AbstractContextManager[object]:
        """See ``Changes``."""
        return _NOTHING


_NOTHING: AbstractContextManager[object] = nullcontext()
