"""A disk that seeks and a machine with little memory, where there are neither: by cgroups, of both versions.

Linux counts what a disk reads in ``/proc/diskstats``. All of it needs root.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from swift.base.errors import ConfigError

CGROUPS = Path("/sys/fs/cgroup")
#: Read-ahead of disks, KiB; that of loop devices varies.
READ_AHEAD_KIB = 128


def file_device_number(path: Path) -> str:
    """Return ``major:minor`` of the device on which a file is."""
    number = os.stat(path).st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def node_device_number(path: str) -> str:
    """Return ``major:minor`` of the device that a file below ``/dev`` stands for."""
    number = os.stat(path).st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


def read_count(device: str) -> int:
    """Read requests that a device has served so far. Raises ``ConfigError``."""
    return int(_device_counters(device)[0])


def write_count(device: str) -> int:
    """Write requests that a device has served so far. Raises ``ConfigError``."""
    return int(_device_counters(device)[4])


def _device_counters(device: str) -> list[str]:
    for line in Path("/proc/diskstats").read_text().splitlines():
        words = line.split()
        if f"{words[0]}:{words[1]}" == device:
            return words[3:]
    raise ConfigError(f"/proc/diskstats has no device {device}")


def limit_read_ahead(device: str) -> None:
    """Have the kernel read ahead as little on a loop device as on a disk. Raises ``ConfigError``."""
    write_value(Path(f"/sys/dev/block/{device}/bdi/read_ahead_kb"), str(READ_AHEAD_KIB))


def drop_caches() -> None:
    """Have the kernel forget what it read: bodies, directories and inodes."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def check_cgroups() -> None:
    """Raise ``ConfigError`` when nothing can be limited here."""
    if os.geteuid() != 0:
        raise ConfigError("it needs root, to mount loop devices, to limit them and to drop caches")
    if not (has_cgroup_v1() or _has_cgroup_v2()):
        raise ConfigError(f"{CGROUPS} has neither the controllers blkio and memory nor io and memory")


def has_cgroup_v1() -> bool:
    """Return True if the controllers of version 1 are mounted."""
    return all((CGROUPS / name / "cgroup.procs").exists() for name in ("blkio", "memory"))


def _has_cgroup_v2() -> bool:
    try:
        return {"io", "memory"} <= set((CGROUPS / "cgroup.controllers").read_text().split())
    except OSError:
        return False


@contextlib.contextmanager
def made_groups(values: Sequence[tuple[Path, str]]) -> Iterator[tuple[Path, ...]]:
    """Make the groups that these files of settings are in, and write the settings; yield the groups."""
    groups = tuple(dict.fromkeys(path.parent for path, _ in values))
    try:
        for group in groups:
            group.mkdir(exist_ok=True)
        for path, value in values:
            write_value(path, value)
        yield groups
    finally:
        for group in groups:
            with contextlib.suppress(OSError):
                group.rmdir()


@contextlib.contextmanager
def throttled_group(
    name: str, devices: Sequence[str], bytes_per_s: int
) -> Iterator[Callable[[], contextlib.AbstractContextManager[None]]]:
    """Make a group with these rates of each device in bytes a second.

    What it gives is a block in which this process is in the group, so that those it starts are and stay in
    it.
    """
    if has_cgroup_v1():
        home = CGROUPS / "blkio"
        names = [f"blkio.throttle.{direction}_bps_device" for direction in ("read", "write")]
        values = [(home / name / each, f"{dev} {bytes_per_s}") for dev in devices for each in names]
    else:
        home = CGROUPS
        write_value(CGROUPS / "cgroup.subtree_control", "+io")
        values = [(home / name / "io.max", f"{dev} rbps={bytes_per_s} wbps={bytes_per_s}") for dev in devices]

    @contextlib.contextmanager
    def inside() -> Iterator[None]:
        write_value(home / name / "cgroup.procs", str(os.getpid()))
        try:
            yield
        finally:
            write_value(home / "cgroup.procs", str(os.getpid()))

    with made_groups(values):
        yield inside


@dataclass(frozen=True)
class MachinePart:
    """A part of this machine: cores, and what a device does a second in each direction."""

    cores: float
    #: ``major:minor``; empty: no device is limited.
    device: str = ""
    iops: int = 0
    bytes_per_s: int = 0


@contextlib.contextmanager
def confined_group(name: str, part: MachinePart) -> Iterator[Callable[[int], None]]:
    """Make a group limited to this; yield the function that moves a process there, with all its threads.

    Raises ``ConfigError``.
    """
    # Longer periods for small parts: the kernel grants no less than a millisecond in each.
    period_us = 100_000 if part.cores >= 0.02 else 1_000_000
    quota_us = max(1000, round(part.cores * period_us))
    if has_cgroup_v1():
        cpu, blkio = CGROUPS / "cpu" / name, CGROUPS / "blkio" / name
        values = [(cpu / "cpu.cfs_period_us", str(period_us)), (cpu / "cpu.cfs_quota_us", str(quota_us))]
        for verb in ("read", "write") if part.device else ():
            limit = f"blkio.throttle.{verb}"
            values.append((blkio / f"{limit}_bps_device", f"{part.device} {part.bytes_per_s}"))
            values.append((blkio / f"{limit}_iops_device", f"{part.device} {part.iops}"))
    else:
        write_value(CGROUPS / "cgroup.subtree_control", "+io +cpu")
        values = [(CGROUPS / name / "cpu.max", f"{quota_us} {period_us}")]
        if part.device:
            rates = f"rbps={part.bytes_per_s} wbps={part.bytes_per_s} riops={part.iops} wiops={part.iops}"
            values.append((CGROUPS / name / "io.max", f"{part.device} {rates}"))
    with made_groups(values) as groups:

        def move(pid: int) -> None:
            for group in groups:
                write_value(group / "cgroup.procs", str(pid))

        yield move


def drop_page_cache() -> None:
    """Have the kernel forget what files hold, but not directories and inodes."""
    Path("/proc/sys/vm/drop_caches").write_text("1\n")


def write_value(path: Path, value: str) -> None:
    """Write a setting of the kernel. Raises ``ConfigError``."""
    try:
        path.write_text(value)
    except OSError as error:
        raise ConfigError(f"cannot write {value!r} to {path}: {error.strerror}")
