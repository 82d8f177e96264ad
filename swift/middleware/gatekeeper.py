"""Removes internal headers from requests and responses of clients (spec: public-api.md §2, §17)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.truth import is_true
from swift.config.schema import Settings, option
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.internal import is_internal
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration


@dataclass(frozen=True)
class GatekeeperSettings(Settings):
    """``[filter:gatekeeper]``."""

    shunt_inbound_x_timestamp: bool = option(True, "Hide a client's X-Timestamp from the proxy.")
    allow_reserved_names_header: bool = option(
        False, "Let X-Allow-Reserved-Names reach names that begin with NUL; for tests only."
    )


class Gatekeeper(Filter):
    """Removes internal headers in both directions."""

    def __init__(self, app: App, settings: GatekeeperSettings):
        super().__init__(app)
        self._hides_timestamp = settings.shunt_inbound_x_timestamp
        self._allows_reserved_names = settings.allow_reserved_names_header

    def handle(self, request: Request) -> Response:
        """Remove internal headers from the request and the response."""
        headers = request.headers
        if internal_names := _internal_names(headers):
            replaced = request.env.setdefault(environkeys.REPLACED_HEADERS, {})
            replaced.update((name, headers.pop(name)) for name in internal_names)
        if self._hides_timestamp and "x-timestamp" in headers:
            stamp = headers[fields.BACKEND_INBOUND_X_TIMESTAMP] = headers.pop("x-timestamp")
            request.env.setdefault(environkeys.REPLACED_HEADERS, {})["x-timestamp"] = stamp
        if self._allows_reserved_names and is_true(headers.pop("x-allow-reserved-names", None)):
            headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
        response = self.forward(request)
        outgoing = response.headers
        for name in _internal_names(outgoing):
            del outgoing[name]
        return response


def _internal_names(headers: HeaderMap) -> list[str]:
    return [name for name in headers if is_internal(name)]


FILTER = FilterDeclaration(
    "gatekeeper",
    GatekeeperSettings,
    lambda app, settings, _services: Gatekeeper(app, settings),
    position=20,
    default=True,
    required_after=("catch_errors",),
    left_of={
        "tempauth": "gatekeeper removes internal headers of clients",
        "swiftauth": "gatekeeper removes internal headers of clients",
        "keystoneauth": "gatekeeper removes internal headers of clients",
        "encryption": "gatekeeper removes internal headers of clients",
        "s3api": "gatekeeper removes internal headers of clients",
        "container_sync": "gatekeeper removes timestamps of clients",
    },
)
