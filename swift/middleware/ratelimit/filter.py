"""Rate limits of accounts and containers: delays or refuses requests (spec: middleware.md §13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from swift import green
from swift.base.clock import Clock, SystemClock
from swift.base.entity import API_VERSIONS, EntityPath
from swift.cluster.memcache import MemcacheError
from swift.compose import Services
from swift.config.kinds import SECONDS, integer
from swift.config.schema import Settings, option
from swift.gateway.info import account_info, container_info
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTML, Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.ratelimit.rates import RatelimitClock, RatesBySize, WaitTooLong
from swift.telemetry.telemetry import Telemetry

#: System metadata of an account with its own rate, WHITELIST or BLACKLIST.
_ACCOUNT_SYSMETA = "global-write-ratelimit"
_WRITE_METHODS = frozenset(("PUT", "DELETE", "POST", "COPY"))


@dataclass(frozen=True)
class RatelimitSettings(Settings):
    """``[filter:ratelimit]`` without its rates by size."""

    option_patterns: ClassVar[tuple[str, ...]] = ("container_ratelimit_*", "container_listing_ratelimit_*")

    account_ratelimit: float = option(0.0, "Containers made or deleted a second; 0 is no limit.")
    max_sleep_time_seconds: float = option(60.0, "A longer wait is refused.", kind=SECONDS)
    log_sleep_time_seconds: float = option(0.0, "Log longer waits; 0 logs none.", kind=SECONDS)
    clock_accuracy: int = option(1000, "Ticks a second of the shared counters.", kind=integer(1))
    rate_buffer_seconds: float = option(5.0, "Seconds that may be caught up after a pause.", kind=SECONDS)
    account_whitelist: tuple[str, ...] = option((), "Accounts without limits.")
    account_blacklist: tuple[str, ...] = option((), "Accounts that are refused.")


class Ratelimit(Filter):
    """Limits the request rates of accounts and containers."""

    def __init__(
        self,
        app: App,
        settings: RatelimitSettings,
        containers: RatesBySize,
        listings: RatesBySize,
        *,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = green.sleep,
    ):
        super().__init__(app)
        self._settings = settings
        self._containers = containers
        self._listings = listings
        self._ratelimit_clock = RatelimitClock(
            settings.clock_accuracy, settings.rate_buffer_seconds, settings.max_sleep_time_seconds
        )
        self._log = (telemetry or Telemetry()).log
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._account_whitelist = frozenset(settings.account_whitelist)
        self._account_blacklist = frozenset(settings.account_blacklist)
        self._warned = False

    def handle(self, request: Request) -> Response:
        """Wait as long as the limits require, once per request."""
        env, entity = request.env, request.entity
        if entity is None or entity.version not in API_VERSIONS or env.get(environkeys.RATELIMIT_HANDLED):
            # An S3 request has bucket and key where a Swift request has version and account.
            return self.forward(request)
        env[environkeys.RATELIMIT_HANDLED] = True
        cache = env.get(environkeys.CACHE)
        if cache is None:
            if not self._warned:
                self._log.warning("ratelimit has no effect: add the cache filter before it to the pipeline")
                self._warned = True
            return self.forward(request)
        rejection = self._apply_limits(request, entity.path, cache)
        return self.forward(request) if rejection is None else rejection

    def _apply_limits(self, request: Request, path: EntityPath, cache: Any) -> Response | None:
        account_setting = account_info(request, self.forward, path.account).sysmeta.get(_ACCOUNT_SYSMETA)
        if path.account in self._account_whitelist or account_setting == "WHITELIST":
            return None
        if path.account in self._account_blacklist or account_setting == "BLACKLIST":
            self._sleep(1.0)
            return _rejection(497, "Blacklisted", b"Your account has been blacklisted")
        try:
            for key, rate in self._applicable_limits(request, path, account_setting):
                wait_s = self._ratelimit_clock.advance(cache, key, rate, self._clock.time())
                if self._settings.log_sleep_time_seconds and wait_s > self._settings.log_sleep_time_seconds:
                    self._log.warning(f"Ratelimit sleep log: {wait_s:g} for {path}")
                if wait_s > 0:
                    self._sleep(wait_s)
        except WaitTooLong:
            return _rejection(498, "Rate Limited", b"Slow down")
        except MemcacheError:
            # Without memcached there are no counters and no limit.
            return None
        return None

    def _applicable_limits(
        self, request: Request, path: EntityPath, account_setting: str | None
    ) -> Iterator[tuple[str, float]]:
        """Yield the key and the rate of each counter that applies to a request."""
        account, container, obj = path
        method, rate = request.method, self._settings.account_ratelimit
        if rate > 0 and container is not None and obj is None and method in ("PUT", "DELETE"):
            yield f"ratelimit/{account}", rate
        if container is not None and (
            (obj is not None and method in _WRITE_METHODS) or (obj is None and method == "GET")
        ):
            sizes, key = (self._containers, "ratelimit") if obj else (self._listings, "ratelimit_listing")
            if sizes.points:
                info = container_info(request, self.forward, account, container)
                size_rate = sizes.get_rate(info.object_count)
                if size_rate:
                    yield f"{key}/{account}/{container}", size_rate
        if account_setting and method in _WRITE_METHODS:
            account_rate = _parse_rate(account_setting)
            if account_rate > 0:
                yield f"ratelimit/global-write/{account}", account_rate


def _parse_rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 < value < float("inf") else 0.0


def _rejection(status: int, reason: str, body: bytes) -> Response:
    return Response(status, {"content-type": HTML}, body, reason=reason)


def _make_filter(app: App, settings: RatelimitSettings, services: Services) -> Ratelimit:
    """Return the filter of a configuration section; raises ``ConfigError``."""
    containers = RatesBySize.parse(services.conf, "container_ratelimit_")
    listings = RatesBySize.parse(services.conf, "container_listing_ratelimit_")
    limits_info = {
        "account_ratelimit": settings.account_ratelimit,
        "max_sleep_time_seconds": settings.max_sleep_time_seconds,
        "container_ratelimits": [list(point) for point in containers.points],
        "container_listing_ratelimits": [list(point) for point in listings.points],
    }
    services.info.register("ratelimit", limits_info)
    return Ratelimit(app, settings, containers, listings, telemetry=services.telemetry())


FILTER = FilterDeclaration(
    "ratelimit",
    RatelimitSettings,
    _make_filter,
    position=110,
    default=True,
    sample_lines=(
        "# container_ratelimit_<objects> = <requests a second>",
        "# container_listing_ratelimit_<objects> = <requests a second>",
    ),
)
