"""swift/store/packed/conf.py: from a file to the options."""

from __future__ import annotations

import pytest

from swift.base.errors import ConfigError
from swift.store.packed.conf import packed_settings_of
from swift.store.packed.settings import PackedSettings


def test_without_a_file_or_a_section_all_is_as_by_default(tmp_path):
    (tmp_path / "object-server.conf").write_text("[app:object-server]\nuse = egg:swift#object\n")
    assert packed_settings_of("") == PackedSettings()
    assert packed_settings_of(str(tmp_path / "object-server.conf")) == PackedSettings()


def test_options_are_read_and_others_ignored(tmp_path):
    path = tmp_path / "object-server.conf"
    path.write_text("[packed]\nobject_max_kb = 64\nindex_path = /ssd\nother = 1\n")
    settings = packed_settings_of(str(path))
    assert (settings.object_max_kb, settings.index_path) == (64, "/ssd")


def test_a_senseless_value_is_refused_with_the_file(tmp_path):
    path = tmp_path / "object-server.conf"
    path.write_text("[packed]\nvolume_mb = many\n")
    with pytest.raises(ConfigError, match="volume_mb"):
        packed_settings_of(str(path))
