"""XFS, the filesystem of storage nodes, in images that are mounted by loop devices.

The loop devices read and write their images directly, as a disk is read and written: otherwise the filesystem
below keeps a second copy of everything in memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from swift.base.errors import ConfigError

#: What a reserved image leaves free on the filesystem that it lies on.
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
    """An empty XFS, its space ``reserved`` at once or taken as it is written; raises ``ConfigError``."""
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
    """The loop device that an image is by now. Raises ``ConfigError``."""
    return _run("losetup", "--direct-io=on", "--find", "--show", str(image)).strip()


def detach_image(device: str) -> None:
    """Let a loop device go once nobody uses it. Raises ``ConfigError``."""
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
