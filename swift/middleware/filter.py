"""Interface of filters: one method between a request and its response.

``handle`` gets a ``Request`` and returns a ``Response``; ``forward`` asks the rest of the pipeline. A filter
keeps nothing on itself between requests. To foreign servers and filters it is a plain WSGI app.

The contract (``test/contract/test_filter.py``):

* A filter refuses a request by returning a response or by raising ``HTTPError``. Either way the filters to
  its left get a ``Response`` from their ``forward``: an error that carries an answer (``HTTPError``,
  ``BodyError``) never passes a filter's boundary, so that each filter handles the response.
* Other exceptions are programming errors; they pass all filters and become a 500 in the outermost one.
* What a filter asks on its own it asks by ``gateway.subrequest.asked``, which releases the answer.
* The body of a response is changed by ``http.transform``, and its end is watched by ``on_response_end``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from swift.config.schema import Conf, Settings
from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response

if TYPE_CHECKING:
    from swift.compose import Services

App = WSGIApplication
Handle = Callable[[Request], Response]
S = TypeVar("S", bound=Settings)


class Filter:
    """Base of all filters; passes everything through."""

    def __init__(self, app: App):
        # Filters are declared, sampled and documented without the server's modules.
        from swift.runtime.wsgi import handle_of_app

        self.app = app
        #: Ask the next filter or the app; never raises an error that carries an answer.
        self.forward: Handle = _guarded(handle_of_app(app))

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        return self.forward(request)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the WSGI face."""
        from swift.runtime.wsgi import serve_wsgi

        return serve_wsgi(self.handle, environ, start_response)


def _guarded(handle: Handle) -> Handle:
    """Return the boundary of what is right of a filter."""

    def forward(request: Request) -> Response:
        try:
            return handle(request)
        except HTTPError as error:
            return error.response
        except BodyError as error:
            return error_response(error.status)

    return forward


def _no_facts(_settings: Settings) -> None:
    """Register nothing."""


@dataclass(frozen=True)
class FilterDeclaration(Generic[S]):
    """A filter and all that is derived from it, as ``FILTER`` in its module.

    ``python -m tools.generate`` finds the declarations and writes samples, reference and ``declared.json``,
    of which ``setup.py`` makes entry points, ``swift-aio`` its pipeline, and ``runtime.pipeline`` its rules.
    A declaration is a PasteDeploy filter factory.
    """

    #: The name of its entry point, of its log and metrics, and of its section of ``/info``.
    name: str
    settings: type[S]
    #: Makes the filter; raises ``ConfigError``.
    make: Callable[[App, S, Services], Filter]
    #: Its place in the recommended pipeline: smaller is nearer to the client.
    position: int
    #: Its entry in ``/info``; None for no entry.
    info: Callable[[S], Mapping[str, object] | None] = _no_facts
    #: The name of its section in samples where that is not ``name``.
    section: str = ""
    #: Where it stands: ``proxy``, ``storage`` or both.
    servers: tuple[str, ...] = ("proxy",)
    #: True if clusters of ``swift-aio`` have it.
    default: bool = False
    #: Lines of its section in the sample that no option of its settings stands for.
    sample_lines: tuple[str, ...] = ()
    #: Options of its section in clusters of ``swift-aio``.
    small_cluster: Mapping[str, str] = field(default_factory=dict)
    #: Filters that must stand right of it, and left of it: name → the harm of another order.
    left_of: Mapping[str, str] = field(default_factory=dict)
    right_of: Mapping[str, str] = field(default_factory=dict)
    #: A proxy that lacks the filter gets it, right of those of these that it has; None: it does not.
    required_after: tuple[str, ...] | None = None

    def __call__(self, global_conf: Conf, **local_conf: str) -> Callable[[App], Filter]:
        """Return what makes the filter over an application, as PasteDeploy wants it."""
        conf = {**global_conf, **local_conf}
        return lambda app: self.build(app, conf)

    def build(self, app: App, conf: Conf) -> Filter:
        """Return the filter of a section over ``[DEFAULT]``; raises ``ConfigError`` that names the option."""
        from swift.compose import Services

        services = Services.of(conf, self.name)
        settings = self.settings.parse(services.conf, source=f"[filter:{self.section or self.name}]")
        facts = self.info(settings)
        if facts is not None:
            services.info.register(self.name, facts)
        return self.make(app, settings, services)
