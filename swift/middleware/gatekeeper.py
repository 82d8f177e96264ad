"""Keeps internal headers inside: none comes in from clients, none goes out (spec: public-api.md §2, §17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swift.base.truth import is_true
from swift.config.schema import Settings, option
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import Filter, factory_of, parse_options

PREFIXES = (
    "x-account-sysmeta-",
    "x-container-sysmeta-",
    "x-object-sysmeta-",
    "x-object-transient-sysmeta-",
    "x-backend",
)
NAMES = frozenset(
    (
        "x-account-host",
        "x-account-device",
        "x-account-partition",
        "x-container-host",
        "x-container-device",
        "x-container-partition",
        "x-container-root-db-state",
        "x-delete-at-host",
        "x-delete-at-device",
        "x-delete-at-partition",
        "x-delete-at-container",
    )
)


@dataclass(frozen=True)
class GatekeeperSettings(Settings):
    """``[filter:gatekeeper]``."""

    shunt_inbound_x_timestamp: bool = option(True, "Hide a client's X-Timestamp from the proxy.")
    allow_reserved_names_header: bool = option(
        False, "Let X-Allow-Reserved-Names reach names that begin with NUL; for tests only."
    )


class Gatekeeper(Filter):
    """Removes internal headers in both directions."""

    def __init__(self, app: Any, settings: GatekeeperSettings):
        super().__init__(app)
        self._shunt = settings.shunt_inbound_x_timestamp
        self._reserved = settings.allow_reserved_names_header

    def handle(self, request: Request) -> Response:
        """Filter the request's and the response's headers."""
        headers = request.headers
        for name in _internal(headers):
            del headers[name]
        if self._shunt and "x-timestamp" in headers:
            headers["x-backend-inbound-x-timestamp"] = headers.pop("x-timestamp")
        if self._reserved and is_true(headers.pop("x-allow-reserved-names", None)):
            headers["x-backend-allow-reserved-names"] = "true"
        response = self.forward(request)
        outgoing = response.headers
        for name in _internal(outgoing):
            del outgoing[name]
        return response


class _Verdicts(dict[str, bool]):
    """Header name → whether it is internal; every request asks about the same few names."""

    def __missing__(self, name: str) -> bool:
        if len(self) >= _VERDICTS_MAX:
            self.clear()
        verdict = self[name] = name.startswith(PREFIXES) or name in NAMES
        return verdict


_VERDICTS_MAX = 1000
_verdicts = _Verdicts()


def _internal(headers: dict[str, str]) -> list[str]:
    return [name for name in headers if _verdicts[name]]


filter_factory = factory_of(
    lambda app, conf: Gatekeeper(app, parse_options(GatekeeperSettings, conf, "gatekeeper"))
)
