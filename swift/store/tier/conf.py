"""From the section of a configuration file to the tier of a process."""

from __future__ import annotations

import atexit
from collections.abc import Callable

from swift.base.errors import ConfigError
from swift.config.files import read_sections
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.api import ObjectStore
from swift.store.engine import FileStore
from swift.store.tier.policy import Refused
from swift.store.tier.settings import SECTION, TierSettings
from swift.store.tier.store import TierStore
from swift.store.tier.tier import Seams, Tier


def settings_of(conf_path: str) -> TierSettings:
    """``[cache-tier]`` of a file, the defaults where there is no section. Raises ``ConfigError``."""
    values = read_sections(conf_path).get(SECTION, {}) if conf_path else {}
    settings = TierSettings.parse(
        {k: v for k, v in values.items() if k in TierSettings.known_names()}, source=conf_path
    )
    try:
        settings.check()
    except Refused as error:
        raise ConfigError(f"{conf_path}: [{SECTION}] {error}")
    return settings


def make_tier(settings: TierSettings, *, disk: Disk, notice: Callable[[str], None]) -> Tier | None:
    """The tier of this process, None when it is off. Nothing is opened yet: workers do that as their user."""
    if not settings.enabled:
        return None
    tier = Tier(settings, Seams(disk=disk, notice=notice))
    atexit.register(tier.close)
    return tier


def tier_factory(tier: Tier | None) -> Callable[[FileStore, Policy], ObjectStore] | None:
    """What ``EngineParts.tier`` wants."""
    if tier is None:
        return None
    known = tier
    return lambda store, policy: TierStore(store, known, policy)
