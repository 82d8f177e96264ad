"""Images of devices (swift/aio/xfs.py)."""

import shutil

import pytest

from swift.aio.xfs import make_image
from swift.base.errors import ConfigError


def test_an_image_that_would_fill_the_disk_is_refused_before_a_byte_is_taken(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(ConfigError, match="MiB are free"):
        make_image(tmp_path / "sdb1.img", free - 1000, reserved=True)
    assert not list(tmp_path.iterdir())
