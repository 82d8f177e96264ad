"""A filesystem to measure on: XFS, as storage nodes use it, in an image that is mounted for the run.

The loop device reads and writes the image directly, like a disk: otherwise the filesystem below keeps a
second copy of everything in memory, and what XFS does not cache costs no disk access either.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swift.base.errors import ConfigError
from swift.cli.aio.make import check_xfs

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
    with _ending_in_order():
        try:
            # Reserved at once, so that the filesystem below has little more to do than to overwrite.
            _run("fallocate", "-l", str(IMAGE_BYTES), str(image))
            _run("mkfs.xfs", "-q", "-f", str(image))
            device = _run("losetup", "--direct-io=on", "--find", "--show", str(image)).strip()
            try:
                _run("mount", "-o", "noatime", device, str(folder))
                try:
                    yield folder
                finally:
                    _run("umount", str(folder))
            finally:
                _run("losetup", "--detach", device)
        finally:
            image.unlink(missing_ok=True)


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """SIGTERM ends the run like an error, so that nothing stays mounted."""
    before = signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
