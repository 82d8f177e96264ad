"""From the section of a configuration file to the options of the packed engine."""

from __future__ import annotations

from swift.config.files import read_sections
from swift.store.packed.settings import SECTION, PackedSettings


def packed_settings_of(conf_path: str) -> PackedSettings:
    """``[packed]`` of a file, the defaults where there is no section. Raises ``ConfigError``."""
    values = read_sections(conf_path).get(SECTION, {}) if conf_path else {}
    known = PackedSettings.known_names()
    return PackedSettings.parse({k: v for k, v in values.items() if k in known}, source=conf_path)
