"""``/healthcheck`` for load balancers (spec: public-api.md §18)."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swift.config.schema import Settings, option
from swift.http.request import Request
from swift.http.response import TEXT, Response
from swift.middleware.filter import App, Filter, FilterDeclaration


@dataclass(frozen=True)
class HealthcheckSettings(Settings):
    """``[filter:healthcheck]``."""

    disable_path: str = option("", "While this file exists the response is 503 DISABLED BY FILE.")


class Healthcheck(Filter):
    """Serves ``/healthcheck``."""

    def __init__(self, app: App, settings: HealthcheckSettings):
        super().__init__(app)
        self._disable_path = settings.disable_path

    def handle(self, request: Request) -> Response:
        """Return OK, or 503 while the disable file exists."""
        if request.lossy_path != "/healthcheck":
            return self.forward(request)
        if self._disable_path and os.path.exists(self._disable_path):
            return Response(503, {"content-type": TEXT}, b"DISABLED BY FILE")
        return Response(200, {"content-type": TEXT}, b"OK")


FILTER = FilterDeclaration(
    "healthcheck",
    HealthcheckSettings,
    lambda app, settings, _services: Healthcheck(app, settings),
    position=30,
    default=True,
    servers=("proxy", "storage"),
)
