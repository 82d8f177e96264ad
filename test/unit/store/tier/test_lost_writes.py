"""An SSD that refuses writes: an image on a filesystem that gets full."""

import contextlib
import os
import shutil
import subprocess

import pytest

from swift.aio.xfs import attach_image, detach_image, make_image
from swift.store.lmdbindex import IndexFailed, LmdbIndex

pytestmark = pytest.mark.process


@pytest.fixture
def refusing(tmp_path):
    """A mounted XFS that says it is larger than what is behind it."""
    if os.geteuid() != 0 or not shutil.which("mkfs.xfs"):
        pytest.skip("needs root and XFS tools, for a device of its own")
    behind, ssd = tmp_path / "behind", tmp_path / "ssd"
    behind.mkdir()
    ssd.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", behind], check=True)
    device = ""
    try:
        make_image(behind / "image", 320 << 20)
        device = attach_image(behind / "image")
        subprocess.run(["mount", "-o", "noatime", device, ssd], check=True)
        yield ssd
    finally:
        subprocess.run(["umount", "-l", ssd], check=False)
        if device:
            detach_image(device)
        subprocess.run(["umount", "-l", behind], check=False)


@pytest.mark.xfs
def test_writes_that_the_device_refused_are_noticed_though_memory_still_has_them(refusing, tmp_path):
    index = LmdbIndex(str(refusing / "cache"), "boot", str(tmp_path / "memory"))
    index.check()
    for number in range(50):
        with index.writing() as txn:
            for key in range(500):
                txn.put(b"%d-%d" % (number, key), os.urandom(1200))
    assert index.get(b"0-0") is not None
    # As the kernel does by itself after half a minute.
    with contextlib.suppress(OSError), open(next((refusing / "cache").glob("*.mdb")), "rb") as file:
        os.fsync(file.fileno())
    with pytest.raises(IndexFailed, match="refused writes"):
        index.check()
