"""The times of lines on standard error: a file needs them, a terminal and systemd's journal do not."""

from __future__ import annotations

import os
import time

from swift.base.clock import CachedSecondText

#: The descriptor of standard error, which consoles are.
STDERR = 2


def needs_timestamps(fd: int, journal: str) -> bool:
    """Return True if lines written to a descriptor need a timestamp.

    ``journal`` is ``$JOURNAL_STREAM``: device and inode of what goes to the journal, which notes times itself
    (systemd.exec(5)).
    """
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return not os.isatty(fd) and journal != f"{status.st_dev}:{status.st_ino}"


def has_timestamps(fd: int) -> bool:
    """Return True if the lines of this process to a descriptor need a timestamp."""
    return needs_timestamps(fd, os.environ.get("JOURNAL_STREAM", ""))


#: ``2026-11-24T12:13:15Z`` of a moment in Unix seconds.
line_time = CachedSecondText(lambda utc: time.strftime("%Y-%m-%dT%H:%M:%SZ", utc))
