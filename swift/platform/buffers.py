"""Buffers that are used again: fresh memory costs several microseconds a page, as much as filling it.

A body of a megabyte goes through buffers of half a megabyte. Made anew for every request they would be given
back to the kernel each time, and be cleared by it page by page for the next one.

A new buffer is a mapping of its own: it takes memory only for the pages that were filled, so an upload that
stalls after a few bytes takes a page, and the kernel has all of it back once the buffer is let go.
"""

from __future__ import annotations

import mmap


class BufferPool:
    """Equal buffers of ``size`` bytes; at most ``kept_max`` of them are kept while unused."""

    def __init__(self, size: int, kept_max: int):
        self.size = size
        self._kept_max = kept_max
        self._kept: list[memoryview] = []

    def acquire(self) -> memoryview:
        """Return a buffer with unknown content."""
        if self._kept:
            return self._kept.pop()
        return memoryview(mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))

    def release(self, *buffers: memoryview) -> None:
        """Return buffers from their only user. A buffer that may still be in use is not returned."""
        self._kept += buffers[: max(0, self._kept_max - len(self._kept))]

    def __repr__(self) -> str:
        return f"<Buffers {len(self._kept)} x {self.size}>"
