"""XFS, the filesystem of storage nodes, in images that are mounted for a run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swift.aio.cgroups import file_device_number, limit_read_ahead, node_device_number
from swift.base.errors import ConfigError


@contextmanager
def mount_seeking_disk(image: Path, size_bytes: int, target: Path) -> Iterator[str]:
    """Mount an empty XFS at ``target``; yield the device (``major:minor``) to limit.

    Raises ``ConfigError``.
    It is a loop device on a loop device, and the lower one is limited: Linux lets reads of a filesystem's
    metadata pass every limit of cgroups (REQ_META), so that others do not wait for the holder of its locks.
    The upper loop device forgets that they are metadata, and keeps whose they are.
    """
    target.mkdir(parents=True, exist_ok=True)
    try:
        make_image(image, size_bytes)
        disk = attach_image(image)
        try:
            mount_image(Path(disk), target)
            try:
                limit_read_ahead(file_device_number(target))
                yield node_device_number(disk)
            finally:
                unmount_image(target)
        finally:
            detach_image(disk)
    finally:
        image.unlink(missing_ok=True)


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Make SIGTERM end the run like an error, so that nothing stays mounted."""
    before = signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# The loop devices read and write their images directly, as a disk is read and written: otherwise the
# filesystem below keeps a second copy of everything in memory.


#: Bytes that a reserved image leaves free on its filesystem.
LEFT_BYTES = 1 << 30
_TOOLS = (("mkfs.xfs", "xfsprogs"), ("mount", "mount"), ("umount", "mount"), ("losetup", "mount"))


def check_xfs() -> None:
    """Raise ``ConfigError`` when ``--xfs`` cannot work here."""
    if os.geteuid() != 0:
        raise ConfigError("--xfs needs root, because it mounts loop devices")
    for tool, package in _TOOLS:
        if shutil.which(tool) is None:
            raise ConfigError(f"--xfs needs {tool}; install the system package {package}")


def make_image(image: Path, size_bytes: int, *, reserved: bool = False) -> None:
    """Make an empty XFS image, its space ``reserved`` at once or taken as it is written.

    Raises ``ConfigError``.
    """
    if reserved:
        free = shutil.disk_usage(image.parent).free
        if free < size_bytes + LEFT_BYTES:
            raise ConfigError(
                f"{image}: {size_bytes >> 20} MiB are wanted, and {free >> 20} MiB are free; "
                f"{LEFT_BYTES >> 20} MiB are left to others"
            )
        _run("fallocate", "-l", str(size_bytes), str(image))
    else:
        with open(image, "wb") as file:
            file.truncate(size_bytes)
    _run("mkfs.xfs", "-q", "-f", str(image))


def mount_image(image: Path, target: Path) -> None:
    """Mount it; the loop device goes with the mount. Raises ``ConfigError``."""
    device = attach_image(image)
    try:
        _run("mount", "-o", "noatime", device, str(target))
    finally:
        # The kernel does so when the last user of the device, the mount, is gone.
        detach_image(device)


def attach_image(image: Path) -> str:
    """Return the loop device that an image is by now. Raises ``ConfigError``."""
    return _run("losetup", "--direct-io=on", "--find", "--show", str(image)).strip()


def detach_image(device: str) -> None:
    """Let a loop device go after its last use. Raises ``ConfigError``."""
    _run("losetup", "--detach", device)


def unmount_image(target: Path) -> None:
    """Unmount what is mounted there; raises ``ConfigError``."""
    if os.path.ismount(target):
        _run("umount", str(target))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
