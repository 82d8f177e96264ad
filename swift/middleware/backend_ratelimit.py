"""Storage servers that take only so many requests for a device (spec: middleware.md §13).

Each worker counts for itself. Options come from the filter's section and from a file that is read again while
the server runs; what is taken out of the file is as it was before.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swift.base.clock import Clock, SystemClock
from swift.base.digits import is_digits
from swift.base.errors import ConfigError
from swift.compose import Services
from swift.config.files import read_section
from swift.config.kinds import SECONDS
from swift.config.schema import Settings, option
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.telemetry import Telemetry

METHODS = ("get", "head", "put", "post", "delete", "update", "replicate")
#: More devices than a node has.
_DEVICES_MAX = 1000
#: Times are added up; two that differ by no more are the same.
_ROUNDING_S = 1e-5
_FILE = "backend-ratelimit.conf"


def _rate(method: str) -> Any:
    return option(0.0, f"The same for {method.upper()} alone.", kind=SECONDS)


@dataclass(frozen=True)
class BackendRatelimitSettings(Settings):
    """``[filter:backend_ratelimit]`` and ``[backend_ratelimit]`` of its file."""

    requests_per_device_per_second: float = option(
        0.0, "Requests a second for a device, of each worker; 0 is no limit.", kind=SECONDS
    )
    get_requests_per_device_per_second: float = _rate("get")
    head_requests_per_device_per_second: float = _rate("head")
    put_requests_per_device_per_second: float = _rate("put")
    post_requests_per_device_per_second: float = _rate("post")
    delete_requests_per_device_per_second: float = _rate("delete")
    update_requests_per_device_per_second: float = _rate("update")
    replicate_requests_per_device_per_second: float = _rate("replicate")
    requests_per_device_rate_buffer: float = option(
        1.0, "Seconds that may be caught up after a pause.", kind=SECONDS
    )
    backend_ratelimit_conf_path: str = option(
        "", "A file whose options override these.", sample="<swift_dir>/backend-ratelimit.conf"
    )
    config_reload_interval: float = option(
        60.0, "Seconds between looks at the file; 0 never looks again.", kind=SECONDS
    )

    def rate_of(self, method: str) -> float:
        """Return the limit of a method (lower case), or of all for an empty one; 0 when there is none."""
        name = "requests_per_device_per_second"
        return float(getattr(self, f"{method}_{name}" if method else name, 0.0))


class _Devices:
    """When each device takes its next request, by device and method."""

    def __init__(self) -> None:
        self._next: OrderedDict[tuple[str, str], float] = OrderedDict()

    def takes(self, device: str, limits: Mapping[str, float], buffer_s: float, now: float) -> bool:
        """Return True if a request may come in under every limit; one that may is counted under all."""
        due = {}
        for method in limits:
            due[method] = max(self._next.get((device, method), 0.0), now - buffer_s)
            if due[method] > now + _ROUNDING_S:
                return False
        for method, rate in limits.items():
            self._next[device, method] = due[method] + 1 / rate
            self._next.move_to_end((device, method))
        while len(self._next) > _DEVICES_MAX:
            self._next.popitem(last=False)
        return True


class BackendRatelimit(Filter):
    """Refuses requests for busy devices with 529."""

    def __init__(
        self,
        app: App,
        conf: Mapping[str, str],
        path: str,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
    ):
        super().__init__(app)
        self._conf = dict(conf)
        self._path = path
        self._telemetry = telemetry or Telemetry()
        self._clock = clock or SystemClock()
        self._devices = _Devices()
        self._mtime = self._mtime_now()
        self._settings = self._read()
        self._look_at = self._clock.monotonic() + self._settings.config_reload_interval

    def handle(self, request: Request) -> Response:
        """529 when a device has had enough."""
        self._follow()
        words = request.loose_path.split("/", 3)
        if len(words) < 3 or not is_digits(words[2]):
            return self.forward(request)
        settings, method = self._settings, request.method.lower()
        limits = {word: rate for word in ("", method) if (rate := settings.rate_of(word))}
        buffer_s = settings.requests_per_device_rate_buffer
        if limits and not self._devices.takes(words[1], limits, buffer_s, self._clock.monotonic()):
            self._telemetry.statsd.increment("backend.ratelimit")
            return error_response(529)
        return self.forward(request)

    def _follow(self) -> None:
        """Read the file again when it changed; one that cannot be used changes nothing."""
        interval_s = self._settings.config_reload_interval
        if not interval_s or self._clock.monotonic() < self._look_at:
            return
        self._look_at = self._clock.monotonic() + interval_s
        mtime = self._mtime_now()
        if mtime == self._mtime:
            return
        self._mtime = mtime
        try:
            self._settings = self._read()
        except ConfigError as error:
            self._telemetry.log.warning(f"ignored the invalid rates in {self._path}: {error}")

    def _mtime_now(self) -> float | None:
        try:
            return os.stat(self._path).st_mtime
        except OSError:
            return None

    def _read(self) -> BackendRatelimitSettings:
        texts = dict(self._conf)
        if self._mtime is not None:
            texts.update(read_section(self._path, "backend_ratelimit"))
        return BackendRatelimitSettings.parse(texts, source="[filter:backend_ratelimit]")


def _make(app: App, settings: BackendRatelimitSettings, services: Services) -> BackendRatelimit:
    """Return the filter of a configuration section; raises ``ConfigError``."""
    path = settings.backend_ratelimit_conf_path or os.path.join(services.swift_dir, _FILE)
    own = {
        name: str(services.conf[name])
        for name in BackendRatelimitSettings.known_names()
        if name in services.conf
    }
    return BackendRatelimit(app, own, path, services.telemetry())


FILTER = FilterDeclaration(
    "backend_ratelimit",
    BackendRatelimitSettings,
    _make,
    position=50,
    servers=("storage",),
)
