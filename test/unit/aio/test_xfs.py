"""Filesystems to measure on."""

import os
import shutil
from pathlib import Path

import pytest

from swift.aio.cgroups import file_device_number, read_count
from swift.aio.xfs import mount_seeking_disk


@pytest.mark.xfs
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.xfs"), reason="needs root and XFS tools")
def test_what_is_limited_is_a_device_below_the_one_that_is_mounted(tmp_path):
    image, target = tmp_path / "sd0.img", tmp_path / "n0" / "sd0"
    with mount_seeking_disk(image, 320 << 20, target) as device:
        assert os.path.ismount(target)
        assert device != file_device_number(target)
        # The superblock, at least, came through both.
        assert read_count(device) > 0
        assert Path(f"/sys/dev/block/{device}/loop/backing_file").read_text().strip() == str(image)
    assert not os.path.ismount(target)
    assert not image.exists()
    assert not Path(f"/sys/dev/block/{device}/loop").exists()
