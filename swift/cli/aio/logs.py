"""The log files of a cluster on one machine: none grows beyond a limit.

Processes append to their files for as long as they live. So a file that is too long is copied to ``NAME.1``,
which replaces the copy before it, and emptied; a line that is written in between is lost.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

#: Bytes of a log file after which it begins anew; its former content is kept once.
LOG_BYTES_MAX = 64 << 20
#: Seconds between two looks at their sizes.
ROTATED_EVERY_S = 60.0


def rotate(directory: Path, bytes_max: int = LOG_BYTES_MAX) -> list[str]:
    """Empty the log files that are too long, after copying them; their names. Raises OSError."""
    rotated = []
    for path in sorted(directory.glob("*.log")):
        if path.stat().st_size <= bytes_max:
            continue
        copy = path.with_name(f"{path.name}.new")
        shutil.copyfile(path, copy)
        os.truncate(path, 0)
        copy.replace(path.with_name(f"{path.name}.1"))
        rotated.append(path.name)
    return rotated
