"""What a filter is: one method between a request and its response.

``handle`` gets a ``Request`` and returns a ``Response``; ``forward`` asks the rest of the pipeline. A filter
keeps nothing on itself between requests. To foreign servers and filters it is a plain WSGI app.

The contract (``test/contract/test_filter.py``):

* A filter refuses a request by returning a response or by raising ``HTTPError``. Either way the filters to
  its left get a ``Response`` from their ``forward``: an error that carries an answer (``HTTPError``,
  ``BodyError``) never passes a filter's boundary, so that nobody's response side is skipped.
* Other exceptions are programming errors; they pass all filters and become a 500 in the outermost one.
* What a filter asks on its own it asks by ``gateway.subrequest.asked``, which releases the answer.
* The body of a response is changed by ``http.transform``, and its end is watched by ``observe_end``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar
from wsgiref.types import StartResponse, WSGIEnvironment

from swift.compose import PROCESS_KEY
from swift.config.schema import Conf as Conf
from swift.config.schema import Settings
from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.runtime.wsgi import App, Handle, native, serve_wsgi

_Settings = TypeVar("_Settings", bound=Settings)


class Filter:
    """Base of all filters; passes everything through."""

    def __init__(self, app: App):
        self.app = app
        #: Ask the next filter or the app; never raises an error that carries an answer.
        self.forward: Handle = _guarded(native(app))

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        return self.forward(request)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI face."""
        return serve_wsgi(self.handle, environ, start_response)


def _guarded(handle: Handle) -> Handle:
    """The boundary of what is right of a filter."""

    def forward(request: Request) -> Response:
        try:
            return handle(request)
        except HTTPError as error:
            return error.response
        except BodyError as error:
            return error_response(error.status)

    return forward


def factory_of(make: Callable[[App, Conf], Filter]) -> Callable[..., Callable[[App], Filter]]:
    """A PasteDeploy filter factory from ``make(app, conf)``."""

    def filter_factory(global_conf: Conf, **local_conf: str) -> Callable[[App], Filter]:
        conf = {**global_conf, **local_conf}
        return lambda app: make(app, conf)

    return filter_factory


def parse_options(settings: type[_Settings], conf: Conf, name: str) -> _Settings:
    """The settings of a filter section; raises ``ConfigError`` naming filter and option."""
    texts = {key: value for key, value in conf.items() if key != PROCESS_KEY}
    return settings.parse(texts, source=f"[filter:{name}]")
