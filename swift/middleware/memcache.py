"""Provides ``swift.cache``, the memcached client, to every request (spec: proxy.md §15)."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swift.cluster.memcache import MemcacheRing, MemcacheSettings
from swift.compose import Services
from swift.config.files import read_section
from swift.config.kinds import SECONDS
from swift.config.schema import option
from swift.gateway.infocache import Cache, LocalCache
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration


@dataclass(frozen=True)
class CacheSettings(MemcacheSettings):
    """``[filter:cache]``."""

    local_cache_seconds: float = option(
        1.0,
        "Seconds to cache a value in this process; changes made through this server are visible at "
        "once. 0: request memcached each time.",
        kind=SECONDS,
    )


class Memcache(Filter):
    """Adds the cache client to the environment of requests."""

    def __init__(self, app: App, cache: Cache):
        super().__init__(app)
        self._cache = cache

    def handle(self, request: Request) -> Response:
        """Set ``swift.cache``."""
        request.env[environkeys.CACHE] = self._cache
        return self.forward(request)


def _make_filter(app: App, _settings: CacheSettings, services: Services) -> Memcache:
    """Return the filter over the servers of ``memcache.conf``, whose options the filter section overrides."""
    path = os.path.join(services.swift_dir, "memcache.conf")
    shared = read_section(path, "memcache") if os.path.exists(path) else {}
    settings = CacheSettings.parse({**shared, **services.conf}, source="[filter:cache]")
    ring: Cache = MemcacheRing(settings, services.telemetry("proxy-server"))
    if settings.local_cache_seconds:
        ring = LocalCache(ring, ttl_s=settings.local_cache_seconds)
    return Memcache(app, ring)


FILTER = FilterDeclaration(
    "memcache",
    CacheSettings,
    _make_filter,
    position=50,
    default=True,
    section="cache",
    left_of={
        "tempauth": "tokens are cached",
        "keystoneauth": "tokens are cached",
        "ratelimit": "requests are counted in the cache",
        "admission": "proxies exchange their usage in the cache",
    },
)
