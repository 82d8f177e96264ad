"""Which chunks of bodies were found right a short while ago, so that hot objects are not checked each time.

A chunk that this process verified, that has not left the page cache since and whose file did not change can
be sent as it is: the check is against what devices do to data, and the device was not asked again.
"""

from __future__ import annotations

from collections import OrderedDict

from swift.base.clock import Clock

#: How long a check is believed, seconds.
BELIEVED_S = 60.0
#: Files remembered; the longest unread is forgotten first.
FILES_MAX = 2048

#: Device, inode and change time of a file in nanoseconds.
Identity = tuple[int, int, int]


class RecentChecks:
    """Chunk numbers by file; for use by one process, from any of its threads."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._files: OrderedDict[Identity, dict[int, float]] = OrderedDict()

    def add(self, file: Identity, chunk: int) -> None:
        """A chunk was just found right."""
        chunks = self._files.get(file)
        if chunks is None:
            chunks = self._files[file] = {}
            if len(self._files) > FILES_MAX:
                self._files.popitem(last=False)
        chunks[chunk] = self._clock.monotonic()

    def knows(self, file: Identity, chunk: int) -> bool:
        """Whether the chunk was found right less than ``BELIEVED_S`` ago."""
        chunks = self._files.get(file)
        checked = None if chunks is None else chunks.get(chunk)
        return checked is not None and self._clock.monotonic() - checked < BELIEVED_S

    def __repr__(self) -> str:
        return f"<RecentChecks of {len(self._files)} files>"
