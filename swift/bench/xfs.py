"""A filesystem to measure on: XFS, as storage nodes use it, in an image that is mounted for the run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swift.aio.images import attach_image, check_xfs, detach_image, make_image, mount_image, unmount_image
from swift.bench.limits import device_of, device_of_node, read_ahead_as_disks

IMAGE_BYTES = 32 << 30


@contextmanager
def working_folder(root: Path, *, xfs: bool) -> Iterator[Path]:
    """``root``, or with ``xfs`` a folder of a fresh XFS below it that is gone afterwards.

    Raises ``ConfigError``.
    """
    root.mkdir(parents=True, exist_ok=True)
    if not xfs:
        yield root
        return
    check_xfs()
    image, folder = root / "xfs.img", root / "xfs"
    folder.mkdir(exist_ok=True)
    with ending_in_order():
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


@contextmanager
def disk_that_seeks(image: Path, size_bytes: int, target: Path) -> Iterator[str]:
    """An empty XFS at ``target``; what it gives is the device (``major:minor``) to limit.

    Raises ``ConfigError``.
    It is a loop device on a loop device, and the lower one is limited: Linux lets reads of a filesystem's
    metadata pass every limit of cgroups (REQ_META), so that others do not wait for whoever holds its locks.
    The upper loop device forgets that they are metadata, and keeps whose they are.
    """
    target.mkdir(parents=True, exist_ok=True)
    try:
        make_image(image, size_bytes)
        disk = attach_image(image)
        try:
            mount_image(Path(disk), target)
            try:
                read_ahead_as_disks(device_of(target))
                yield device_of_node(disk)
            finally:
                unmount_image(target)
        finally:
            detach_image(disk)
    finally:
        image.unlink(missing_ok=True)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """SIGTERM ends the run like an error, so that nothing stays mounted."""
    before = signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
