"""Machines that benches emulate on this one: a fresh filesystem, a disk that seeks, little memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from swift.aio.cgroups import CGROUPS, has_cgroup_v1, made_groups, write_value
from swift.aio.xfs import check_xfs, exit_on_sigterm, make_image, mount_image, unmount_image

IMAGE_BYTES = 32 << 30


@contextmanager
def working_folder(root: Path, *, xfs: bool) -> Iterator[Path]:
    """Yield ``root``, or with ``xfs`` a folder of a fresh XFS below it that is removed afterwards.

    Raises ``ConfigError``.
    """
    root.mkdir(parents=True, exist_ok=True)
    if not xfs:
        yield root
        return
    check_xfs()
    image, folder = root / "xfs.img", root / "xfs"
    folder.mkdir(exist_ok=True)
    with exit_on_sigterm():
        try:
            # Reserved at once, so that the filesystem below has little more to do than to overwrite.
            make_image(image, IMAGE_BYTES, reserved=True)
            mount_image(image, folder)
            try:
                yield folder
            finally:
                unmount_image(folder)
        finally:
            image.unlink(missing_ok=True)


@dataclass(frozen=True)
class MachineLimits:
    """Resource limits of a run's processes."""

    device: str
    iops: int
    memory_bytes: int


@contextmanager
def limited_group(name: str, limits: MachineLimits) -> Iterator[Callable[[], None]]:
    """Make a group with limits; a new process calls the yielded function to enter it."""
    if has_cgroup_v1():
        blkio, memory = CGROUPS / "blkio" / name, CGROUPS / "memory" / name
        values = [
            (blkio / "blkio.throttle.read_iops_device", f"{limits.device} {limits.iops}"),
            (memory / "memory.limit_in_bytes", str(limits.memory_bytes)),
        ]
    else:
        write_value(CGROUPS / "cgroup.subtree_control", "+io +memory")
        values = [
            (CGROUPS / name / "io.max", f"{limits.device} riops={limits.iops}"),
            (CGROUPS / name / "memory.max", str(limits.memory_bytes)),
        ]
    with made_groups(values) as groups:

        def enter() -> None:
            for group in groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        yield enter
