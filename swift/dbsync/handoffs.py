"""Removing databases that are not needed on a device any more, and what is left around them.

A database is removed by renaming its whole directory away while it is locked, so that a row
which arrives at that moment either stops the removal or finds no database here and is refused.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable

from swift.db.broker import Broker
from swift.platform.disk import Disk
from swift.platform.durable import make_directories

#: Age at which an empty directory is removed, seconds.
EMPTY_FOR_S = 3600.0


def remove(broker: Broker, may_go: Callable[[sqlite3.Connection], bool]) -> bool:
    """Remove the database unless ``may_go``, asked with the directory locked, says no; whether it went.

    Raises the errors of ``db.connection`` and OSError.
    """
    place = broker.place
    temporary = f"{place.device_path}/tmp"
    away = f"{temporary}/{secrets.token_hex(8)}.removed"

    def work(connection: sqlite3.Connection, disk: Disk) -> bool:
        if not may_go(connection):
            return False
        make_directories(disk, temporary, below=place.device_path)
        disk.rename(place.directory, away)
        return True

    if not broker.alone(work):
        return False
    broker.close()
    broker.call(_clean_up, away, place.directory)
    return True


def _clean_up(disk: Disk, away: str, directory: str) -> None:
    shutil.rmtree(away, ignore_errors=True)
    suffix = os.path.dirname(directory)
    for parent in (suffix, os.path.dirname(suffix)):
        try:
            disk.rmdir(parent)
        except OSError:
            # Others live there.
            return


def remove_empty(disk: Disk, directory: str, now_s: float) -> None:
    """Remove an empty directory that is not about to be used; ``now_s`` is Unix time."""
    try:
        if disk.stat(directory).st_mtime < now_s - EMPTY_FOR_S:
            disk.rmdir(directory)
    except OSError:
        # Another process removed it or has created an entry.
        return


def clean_temporary(disk: Disk, directory: str, before_s: float) -> None:
    """Remove stale files from a device's temporary directory: older than Unix ``before_s``."""
    try:
        names = disk.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        path = f"{directory}/{name}"
        try:
            if disk.stat(path).st_mtime >= before_s:
                continue
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                disk.unlink(path)
        except FileNotFoundError:
            continue
