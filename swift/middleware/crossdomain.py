"""Serves the cross-domain policy file of Flash players (spec: middleware.md §15)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.schema import Settings, option
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration

_XML_HEAD = (
    '<?xml version="1.0"?>\n'
    '<!DOCTYPE cross-domain-policy SYSTEM "http://www.adobe.com/xml/dtds/cross-domain-policy.dtd" >\n'
)


@dataclass(frozen=True)
class CrossdomainSettings(Settings):
    """``[filter:crossdomain]``."""

    cross_domain_policy: str = option(
        '<allow-access-from domain="*" secure="false" />', "The inside of the policy file; lines of XML."
    )


class Crossdomain(Filter):
    """Serves ``/crossdomain.xml``."""

    def __init__(self, app: App, settings: CrossdomainSettings):
        super().__init__(app)
        inside = f"<cross-domain-policy>\n{settings.cross_domain_policy}\n</cross-domain-policy>"
        self._page = (_XML_HEAD + inside).encode()

    def handle(self, request: Request) -> Response:
        """Return the policy for a GET; forward all other requests."""
        if request.method != "GET" or request.lossy_path != "/crossdomain.xml":
            return self.forward(request)
        return Response(200, {"content-type": "application/xml"}, self._page)


FILTER = FilterDeclaration(
    "crossdomain",
    CrossdomainSettings,
    lambda app, settings, _services: Crossdomain(app, settings),
    position=120,
    info=lambda _settings: {},
)
