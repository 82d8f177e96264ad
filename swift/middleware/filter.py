"""What a filter is: one method between a request and its response.

``handle`` gets a ``Request`` and returns a ``Response``; ``forward`` asks the rest of the pipeline. A filter
keeps nothing on itself between requests. To foreign servers and filters it is a plain WSGI app.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from swift.compose import PROCESS_KEY
from swift.config.schema import Settings
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import native, serve_wsgi

Conf = dict[str, Any]


class Filter:
    """Base of all filters; passes everything through."""

    def __init__(self, app: Any):
        self.app = app
        #: Ask the next filter or the app.
        self.forward: Callable[[Request], Response] = native(app)

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        return self.forward(request)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """The WSGI face."""
        return serve_wsgi(self.handle, environ, start_response)


def factory_of(make: Callable[[Any, Conf], Filter]) -> Callable[..., Callable[[Any], Filter]]:
    """A PasteDeploy filter factory from ``make(app, conf)``."""

    def filter_factory(global_conf: Mapping[str, Any], **local_conf: Any) -> Callable[[Any], Filter]:
        conf = {**global_conf, **local_conf}
        return lambda app: make(app, conf)

    return filter_factory


def parse_options(settings: type[Settings], conf: Conf, name: str) -> Any:
    """The settings of a filter section; raises ``ConfigError`` naming filter and option."""
    texts = {key: value for key, value in conf.items() if key != PROCESS_KEY}
    return settings.parse(texts, source=f"[filter:{name}]")
