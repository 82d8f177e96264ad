"""Measures the time that this thread was runnable without a CPU (Linux: ``/proc/thread-self/schedstat``).

On a busy machine a call takes long for two reasons, a slow device or no CPU; only the first is the device's
fault. Where the kernel does not tell, the answer is always zero and all of the time counts.
"""

from __future__ import annotations

import os


class RunQueue:
    """For use by one thread, the one that asks first; ``path`` is where the kernel tells."""

    def __init__(self, path: str = "/proc/thread-self/schedstat") -> None:
        self._path = path
        self._fd: int | None = None
        self._pid = 0

    def waited_s(self) -> float:
        """Seconds since the thread began; only differences mean something."""
        if self._pid != os.getpid():
            self._open()
        if self._fd is None:
            return 0.0
        try:
            return int(os.pread(self._fd, 64, 0).split()[1]) * 1e-9
        except (OSError, IndexError, ValueError):
            return 0.0

    def _open(self) -> None:
        self._pid = os.getpid()
        self._fd = None
        try:
            # It lives as long as the process, like the thread it tells about.
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return

    def __repr__(self) -> str:
        return f"<RunQueue {self.waited_s():.3f} s>"
