"""A filesystem to measure on: XFS, as storage nodes use it, in an image that is mounted for the run."""

from __future__ import annotations

import subprocess
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
    try:
        # Reserved at once, so that the filesystem below has little more to do than to overwrite.
        _run("fallocate", "-l", str(IMAGE_BYTES), str(image))
        _run("mkfs.xfs", "-q", "-f", str(image))
        _run("mount", "-o", "loop,noatime", str(image), str(folder))
        try:
            yield folder
        finally:
            _run("umount", str(folder))
    finally:
        image.unlink(missing_ok=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"{' '.join(command)} failed: {done.stderr.strip()}")
