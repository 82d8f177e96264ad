"""The object engines of a storage node, for its server and its daemons."""

from __future__ import annotations

import atexit
from collections.abc import Callable

from swift.config.common import StorageSettings
from swift.obj.settings import ObjectSettings
from swift.platform.disk import Disk
from swift.runtime.backendapp import BackendContext
from swift.store.registry import EngineParts, StoreRegistry
from swift.store.tier.conf import make_tier, tier_factory
from swift.store.tier.settings import TierSettings


def make_stores(
    context: BackendContext,
    settings: ObjectSettings,
    storage: StorageSettings | None = None,
    *,
    tier: TierSettings | None = None,
    at_exit: Callable[[Callable[[], None]], object] = atexit.register,
) -> StoreRegistry:
    """Return the engines of all policies by the settings; daemons parse ``settings`` from their own section.

    ``tier`` is the node's: every process that changes objects needs it. ``at_exit`` registers calls for the
    end of the process. Raises ``ConfigError``.
    """
    storage = storage or StorageSettings()
    disk, notice = Disk(), context.telemetry.log.warning
    return StoreRegistry(
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
            tier=tier_factory(
                None
                if tier is None
                else make_tier(
                    tier, disk=disk, notice=notice, metrics=context.telemetry.metrics, at_exit=at_exit
                )
            ),
        )
    )
