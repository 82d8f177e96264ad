"""Repairs the effects that a killed ``swift-load fail`` leaves on a machine.

A run has a directory of its own with a record, which it keeps locked as long as it lives: the lock goes with
the process, however that ends. A directory whose record is not locked is stale: its processes are ended,
what is mounted in it is unmounted, its loop devices and control groups go, and then itself. Nothing else is
touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

PREFIX, RECORD = "swift-load-", "run.pid"
_BLOCKS = Path("/sys/block")
#: Seconds that killed processes may take to end.
_ENDING_S = 10.0


@dataclass(frozen=True)
class StaleRun:
    """The directory of a run that is no more, and the process that it was."""

    folder: Path
    pid: int

    def __str__(self) -> str:
        return f"{self.folder} of process {self.pid or 'unknown'}, which is gone"


@contextlib.contextmanager
def run_folder(parent: Path) -> Iterator[Path]:
    """Make a fresh directory for a run; remove it afterwards with everything that is mounted in it.

    Raises OSError. SIGTERM and SIGINT do not disturb the removal.
    """
    folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
    with open(folder / RECORD, "w") as record:
        # One of POSIX, which children that are forked do not share.
        fcntl.lockf(record, fcntl.LOCK_EX)
        print(os.getpid(), file=record, flush=True)
        try:
            yield folder
        finally:
            with _signals_ignored():
                remove_run(StaleRun(folder, os.getpid()))


@contextlib.contextmanager
def _signals_ignored() -> Iterator[None]:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stale_runs(parent: Path) -> list[StaleRun]:
    """Return the directories below ``parent`` that this user's runs have left; raises OSError."""
    found = []
    for folder in sorted(parent.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):
            if _is_ours(folder) and (pid := _pid_of(folder)) is not None:
                found.append(StaleRun(folder, pid))
    return found


def _is_ours(folder: Path) -> bool:
    """Return True if no other user can have made it or put a link in its place."""
    facts = os.lstat(folder)
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077


def _pid_of(folder: Path) -> int | None:
    """Return the process that a record names, 0 when it names none; None while it lives. Raises OSError."""
    with open(os.open(folder / RECORD, os.O_RDONLY | os.O_NOFOLLOW), "rb") as record:
        try:
            fcntl.lockf(record, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return None
            raise
        text = record.read(20).strip()
    return int(text) if text.isdigit() else 0


def remove_run(left: StaleRun) -> None:
    """End, unmount and remove all of it; raises OSError when something stays."""
    folder = Path(os.path.realpath(left.folder))
    _end_processes(folder)
    for mounted in sorted(_mounts_in(folder), key=len, reverse=True):
        if subprocess.run(["umount", mounted], capture_output=True, check=False).returncode:
            # A process uses it; the kernel removes it after the last use.
            subprocess.run(["umount", "--lazy", mounted], capture_output=True, check=False)
    for device in _loops_on(folder):
        subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
    if left.pid:
        _remove_groups(left.pid)
    if any(_mounts_in(folder)):
        raise OSError(errno.EBUSY, "something in it cannot be unmounted", str(folder))
    shutil.rmtree(folder)


def _end_processes(folder: Path) -> None:
    """Kill what was started with a path in the folder, also what stands still."""
    deadline = time.monotonic() + _ENDING_S
    while pids := [pid for pid in _processes_of(folder) if pid != os.getpid()]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise OSError(errno.EBUSY, f"processes {pids} do not end", str(folder))
        time.sleep(0.05)


def _processes_of(folder: Path) -> Iterator[int]:
    inside = f"{folder}/".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if inside in (entry / "cmdline").read_bytes():
                yield int(entry.name)


def _mounts_in(folder: Path) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        # Blanks and the like stand as three octal digits.
        target = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split()[4])
        if target.startswith(f"{folder}/"):
            yield target


def _loops_on(folder: Path) -> Iterator[str]:
    for backing in _BLOCKS.glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if backing.read_text().startswith(f"{folder}/"):
                yield f"/dev/{backing.parts[-3]}"


def _remove_groups(pid: int) -> None:
    for group in Path("/sys/fs/cgroup").glob(f"*/{group_name(pid, '*')}"):
        with contextlib.suppress(OSError):
            group.rmdir()


def group_name(pid: int, device: str) -> str:
    """Return the name of the control group by which the run ``pid`` slows a device down."""
    return f"swift-load-{pid}-{device}"
