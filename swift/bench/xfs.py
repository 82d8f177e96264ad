"""A filesystem to measure on: XFS, as storage nodes use it, in an image that is mounted for the run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swift.cli.aio.images import check_xfs, make_image, mount_image, unmount_image

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
def ending_in_order() -> Iterator[None]:
    """SIGTERM ends the run like an error, so that nothing stays mounted."""
    before = signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
