"""Identifies this boot of the kernel: data written in another one may have lost its last pages."""

from __future__ import annotations

from typing import NamedTuple

_ID_FILE = "/proc/sys/kernel/random/boot_id"
_STAT_FILE = "/proc/stat"


class Boot(NamedTuple):
    """One run of a kernel; the id is empty where it cannot be known."""

    id: str = ""
    #: Unix seconds when it began.
    began_s: float = 0.0


def read_boot(id_file: str = _ID_FILE, stat_file: str = _STAT_FILE) -> Boot:
    """Return this run; ``Boot()`` on systems that do not tell."""
    try:
        with open(id_file, encoding="utf-8") as file:
            boot_id = file.read().strip()
        with open(stat_file, encoding="utf-8") as file:
            began = next(line for line in file if line.startswith("btime "))
        return Boot(boot_id, float(began.split()[1]))
    except (OSError, ValueError, IndexError, StopIteration):
        return Boot()
