"""Request rate limits per device of a storage server (spec: middleware.md §13).

Each worker counts on its own. Options come from the filter's section and from a file that is reloaded while
the server runs. Options removed from the file return to the section's values.
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
from swift.platform.regularfiles import FileIdentity, file_identity
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry
from swift.wire import rowbatch

_REJECTED = Event("backend.ratelimit", "Requests rejected by backend_ratelimit.")

METHODS = ("get", "head", "put", "post", "delete", "update", "replicate")
#: Limits that count the rows of batches.
_OF_ROWS = ("", "put", "delete")
#: Devices and methods to remember; more than a node has.
_DEVICES_MAX = 1000
#: Tolerance for rounding errors of added times.
_ROUNDING_S = 1e-5
_CONF_FILE = "backend-ratelimit.conf"


def _rate_option(method: str) -> Any:
    return option(0.0, f"The same for {method.upper()} alone.", kind=SECONDS)


@dataclass(frozen=True)
class BackendRatelimitSettings(Settings):
    """``[filter:backend_ratelimit]`` and ``[backend_ratelimit]`` of its file."""

    requests_per_device_per_second: float = option(
        0.0, "Requests a second for a device, of each worker; 0 is no limit.", kind=SECONDS
    )
    get_requests_per_device_per_second: float = _rate_option("get")
    head_requests_per_device_per_second: float = _rate_option("head")
    put_requests_per_device_per_second: float = _rate_option("put")
    post_requests_per_device_per_second: float = _rate_option("post")
    delete_requests_per_device_per_second: float = _rate_option("delete")
    update_requests_per_device_per_second: float = _rate_option("update")
    replicate_requests_per_device_per_second: float = _rate_option("replicate")
    requests_per_device_rate_buffer: float = option(
        1.0, "Seconds that may be caught up after a pause.", kind=SECONDS
    )
    backend_ratelimit_conf_path: str = option(
        "", "A file whose options override these.", sample="<swift_dir>/backend-ratelimit.conf"
    )
    config_reload_interval: float = option(
        60.0, "Seconds between checks of the file for changes; 0: never.", kind=SECONDS
    )

    def get_rate(self, method: str) -> float:
        """Return the limit of a method (lower case), or of all for an empty one; 0 without a limit."""
        name = "requests_per_device_per_second"
        return float(getattr(self, f"{method}_{name}" if method else name, 0.0))


class _DeviceLimiter:
    """Time of the next allowed request, by device and method."""

    def __init__(self) -> None:
        self._next_allowed_s: OrderedDict[tuple[str, str], float] = OrderedDict()

    def allow(self, device: str, limits: Mapping[str, float], buffer_s: float, now: float) -> bool:
        """Return True if a request is within every limit; then count it under all limits."""
        due = {}
        for method in limits:
            due[method] = max(self._next_allowed_s.get((device, method), 0.0), now - buffer_s)
            if due[method] > now + _ROUNDING_S:
                return False
        for method, rate in limits.items():
            self._next_allowed_s[device, method] = due[method] + 1 / rate
            self._next_allowed_s.move_to_end((device, method))
        while len(self._next_allowed_s) > _DEVICES_MAX:
            self._next_allowed_s.popitem(last=False)
        return True


class BackendRatelimit(Filter):
    """Rejects requests for busy devices with 529."""

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
        self._device_limiter = _DeviceLimiter()
        self._identity = self._find_file()
        self._settings = self._read_settings()
        self._next_check_s = self._clock.monotonic() + self._settings.config_reload_interval

    def handle(self, request: Request) -> Response:
        """Return 529 when a limit of the device is exceeded."""
        self._reload_if_changed()
        settings, method = self._settings, request.method.lower()
        if request.method == rowbatch.METHOD and any(map(settings.get_rate, _OF_ROWS)):
            # The rows come one by one then, and count as what they are.
            return error_response(405)
        segments = request.lossy_path.split("/", 3)
        if len(segments) < 3 or not is_digits(segments[2]):
            return self.forward(request)
        limits = {
            limited_method: rate
            for limited_method in ("", method)
            if (rate := settings.get_rate(limited_method))
        }
        buffer_s = settings.requests_per_device_rate_buffer
        if limits and not self._device_limiter.allow(segments[1], limits, buffer_s, self._clock.monotonic()):
            _REJECTED.count(self._telemetry.statsd)
            return error_response(529)
        return self.forward(request)

    def _reload_if_changed(self) -> None:
        """Reload the file when it changed; an invalid file changes nothing."""
        interval_s = self._settings.config_reload_interval
        if not interval_s or self._clock.monotonic() < self._next_check_s:
            return
        self._next_check_s = self._clock.monotonic() + interval_s
        identity = self._find_file()
        if identity == self._identity:
            return
        self._identity = identity
        try:
            self._settings = self._read_settings()
        except ConfigError as error:
            self._telemetry.log.warning(f"ignored the invalid rates in {self._path}: {error}")

    def _find_file(self) -> FileIdentity | None:
        try:
            return file_identity(self._path)
        except OSError:
            return None

    def _read_settings(self) -> BackendRatelimitSettings:
        texts = dict(self._conf)
        if self._identity is not None:
            texts.update(read_section(self._path, "backend_ratelimit"))
        return BackendRatelimitSettings.parse(texts, source="[filter:backend_ratelimit]")


def _make_filter(app: App, settings: BackendRatelimitSettings, services: Services) -> BackendRatelimit:
    """Return the filter of a configuration section; raises ``ConfigError``."""
    path = settings.backend_ratelimit_conf_path or os.path.join(services.swift_dir, _CONF_FILE)
    section_options = {
        name: str(services.conf[name])
        for name in BackendRatelimitSettings.known_names()
        if name in services.conf
    }
    return BackendRatelimit(app, section_options, path, services.telemetry())


FILTER = FilterDeclaration(
    "backend_ratelimit", BackendRatelimitSettings, _make_filter, position=50, servers=("storage",)
)
