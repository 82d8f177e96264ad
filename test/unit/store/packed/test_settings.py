"""swift/store/packed/settings.py: the options of ``[packed]``."""

from __future__ import annotations

import os

import pytest

from swift.base.errors import ConfigError
from swift.store.packed.entry import VOLUME_UNITS
from swift.store.packed.record import ALIGNMENT, BODY_BYTES_MAX
from swift.store.packed.settings import PackedSettings


def test_sizes_are_told_in_bytes():
    settings = PackedSettings(object_max_kb=2, volume_mb=16)
    assert (settings.object_bytes_max, settings.volume_bytes) == (2048, 16 << 20)


def test_no_setting_is_beyond_the_format():
    largest = PackedSettings.parse({"object_max_kb": "65536", "volume_mb": "1024"}, source="")
    assert largest.object_bytes_max <= BODY_BYTES_MAX
    assert largest.volume_bytes <= VOLUME_UNITS * ALIGNMENT


@pytest.mark.parametrize(
    ("name", "value"), [("object_max_kb", "65537"), ("volume_mb", "1025"), ("volume_mb", "1")]
)
def test_what_is_out_of_bounds_is_refused(name, value):
    with pytest.raises(ConfigError, match=name):
        PackedSettings.parse({name: value}, source="x.conf")


def test_the_locks_of_each_user_have_a_directory_of_their_own():
    assert PackedSettings().state_directory == f"/dev/shm/swift-packed-{os.geteuid()}"
    assert PackedSettings(state_path="/run/swift").state_directory == "/run/swift"
