"""The object engines of a storage node, for its server and its daemons."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from dataclasses import dataclass, field

from swift.config.common import StorageSettings
from swift.obj.settings import ObjectSettings
from swift.platform.nativedisk import NativeDisk, machine_disk
from swift.runtime.backendapp import BackendContext
from swift.runtime.declaration import DaemonParts
from swift.store.lmdbindex import lmdb_version, require_lmdb
from swift.store.packed.conf import packed_settings_of
from swift.store.packed.opening import index_path_error
from swift.store.packed.settings import PackedSettings
from swift.store.registry import EngineParts, StoreRegistry, is_packed
from swift.store.tier.conf import make_tier, tier_factory
from swift.store.tier.conf import settings_of as tier_settings_of
from swift.store.tier.settings import TierSettings
from swift.telemetry.metrics import GaugeMetric

_NATIVE = GaugeMetric(
    "swift_native_disk", "1 if the process takes several steps on a disk in one native call."
)


@dataclass(frozen=True)
class EngineSettings:
    """Sections of object-server.conf about engines, which server and daemons of a node share."""

    tier: TierSettings = field(default_factory=TierSettings)
    packed: PackedSettings = field(default_factory=PackedSettings)
    #: The release of lmdb that is installed; empty: none.
    lmdb_version: str = field(default_factory=lmdb_version)

    @classmethod
    def read(cls, conf_path: str) -> EngineSettings:
        """Return those of a file, the defaults where it has none or is not given. Raises ``ConfigError``."""
        return cls(tier_settings_of(conf_path), packed_settings_of(conf_path))


def make_stores(
    context: BackendContext,
    settings: ObjectSettings,
    storage: StorageSettings | None = None,
    *,
    engines: EngineSettings | None = None,
    at_exit: Callable[[Callable[[], None]], object] = atexit.register,
) -> StoreRegistry:
    """Return the engines of all policies by the settings; daemons parse ``settings`` from their own section.

    ``engines`` are the node's: every process that changes objects needs them. ``at_exit`` registers calls for
    the end of the process. Raises ``ConfigError``.
    """
    storage, engines = storage or StorageSettings(), engines or EngineSettings()
    tier = engines.tier
    disk, notice = machine_disk(), context.telemetry.log.warning
    _NATIVE.of(context.telemetry.metrics).set(isinstance(disk, NativeDisk))
    stores = StoreRegistry(
        EngineParts(
            devices=context.devices,
            hasher=context.hasher,
            clock=context.clock,
            reserve=storage.fallocate_reserve,
            preallocate=not storage.disable_fallocate,
            reclaim_age_s=settings.reclaim_age,
            commit_window_s=settings.commit_window,
            sync_every_bytes=settings.mb_per_sync << 20,
            shared_sync_dirty_limit=settings.shared_sync_dirty_limit,
            read_bytes=settings.disk_chunk_size,
            replications_per_device=settings.replication_concurrency_per_device,
            pools=context.pools,
            wrappers=settings.store_wrappers,
            disk=disk,
            notice=notice,
            metrics=context.telemetry.metrics,
            packed=engines.packed,
            tier=tier_factory(
                make_tier(tier, disk=disk, notice=notice, metrics=context.telemetry.metrics, at_exit=at_exit)
            ),
        )
    )
    at_exit(stores.close)
    has_packed = any(map(is_packed, context.policies))
    if has_packed or tier.enabled:
        # Now, not at each request.
        require_lmdb(engines.lmdb_version)
    if has_packed and (error := index_path_error(engines.packed)):
        # Devices can be used as soon as it is there.
        notice(f"ERROR requests to packed devices fail: {error}")
    return stores


def daemon_stores(parts: DaemonParts, context: BackendContext | None = None) -> StoreRegistry:
    """Return the engines of a daemon of a storage node; ``context`` is its own unless given.

    Raises ``ConfigError``.
    """
    return make_stores(
        context or parts.context,
        ObjectSettings.parse(parts.conf),
        parts.storage,
        engines=EngineSettings.read(parts.conf_path),
    )
