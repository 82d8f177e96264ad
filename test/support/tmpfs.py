"""Temporary folders of a run in memory, if that has room and keeps attributes: a sync costs nothing there."""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
PREFIX = "swift-test-"
#: What a whole run may take.
FREE_BYTES_MIN = 6 << 30


def memory_folder(memory=MEMORY):
    """Return a new folder in memory; None if it is too small or ``SWIFT_TEST_TMP=disk`` forbids it."""
    if os.environ.get("SWIFT_TEST_TMP") == "disk" or not memory.is_dir():
        return None
    _remove_of_dead(memory)
    try:
        room = os.statvfs(memory)
        if room.f_bavail * room.f_frsize < FREE_BYTES_MIN:
            return None
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=memory))
    except OSError:
        return None
    try:
        os.setxattr(folder, "user.swift.test", b"x" * 20_000)
    except OSError:
        folder.rmdir()
        return None
    os.removexattr(folder, "user.swift.test")
    return folder


def _remove_of_dead(memory):
    """Remove folders of runs that were killed or had failures."""
    for folder in memory.glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and folder.stat().st_uid == os.getuid():
            remove(folder)


def remove(folder):
    """Remove a folder with its content."""
    shutil.rmtree(folder, ignore_errors=True)
