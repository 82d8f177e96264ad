"""From the section of a configuration file to the tier of a process."""

from __future__ import annotations

import atexit
from collections import Counter
from collections.abc import Callable

from swift.base.errors import ConfigError
from swift.config.files import read_sections
from swift.platform.disk import Disk
from swift.platform.sharedstate import reports_in
from swift.policy.policy import Policy
from swift.store.api import ObjectStore
from swift.store.engine import FileStore
from swift.store.tier import figures
from swift.store.tier.policy import Refused
from swift.store.tier.settings import SECTION, TierSettings
from swift.store.tier.store import TierStore
from swift.store.tier.tier import CacheTier, TierDependencies
from swift.telemetry.metrics import CounterMetric, GaugeMetric, Registry

_COUNTERS = {
    name: CounterMetric(
        f"swift_cache_tier_{name}_total", f"{about}, by class and device.", ("class", "device")
    )
    for name, about in figures.NAMES.items()
}
_UP = GaugeMetric("swift_cache_tier_up", "1 while this process can use the tier.")


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


def make_tier(
    settings: TierSettings,
    *,
    disk: Disk,
    notice: Callable[[str], None],
    metrics: Registry | None = None,
    at_exit: Callable[[Callable[[], None]], object] = atexit.register,
) -> CacheTier | None:
    """Return the tier of this process, None when it is off. Nothing is opened yet: workers do that as their
    user.

    ``at_exit`` takes what is to be done when the process ends.
    """
    if not settings.enabled:
        return None
    tier = CacheTier(settings, TierDependencies(disk=disk, notice=notice))
    if metrics is not None:
        tier.told = publisher(metrics)
    at_exit(tier.close)
    return tier


def node_figures(settings: TierSettings) -> dict[str, object]:
    """Return the counts of the node's processes, by class. Raises OSError."""
    total, states = figures.merge_reports(reports_in(settings.state_directory))
    by_class: dict[str, object] = {}
    for of in settings.classes:
        counted = {
            name: sum(v for k, v in total.items() if k[0] == of and k[2] == name) for name in figures.NAMES
        }
        by_class[of] = {**counted, "hit_rate": figures.hit_rate(total, of)}
    failures = sorted({str(state["failure"]) for state in states if state.get("failure")})
    return {"processes": len(states), "failures": failures, "classes": by_class}


def publisher(metrics: Registry) -> Callable[[figures.Figures, str], None]:
    """Tells Prometheus what a process counts."""
    told: figures.Figures = Counter()

    def tell(now: figures.Figures, failure: str) -> None:
        for (of, device, name), value in list(now.items()):
            counter = _COUNTERS[name].of(metrics, **{"class": of, "device": device})
            counter.inc(value - told[of, device, name])
            told[of, device, name] = value
        _UP.of(metrics).set(not failure)

    return tell


def tier_factory(tier: CacheTier | None) -> Callable[[FileStore, Policy], ObjectStore] | None:
    """Return the factory for ``EngineParts.tier``."""
    if tier is None:
        return None
    known = tier
    return lambda store, policy: TierStore(store, known, policy)
