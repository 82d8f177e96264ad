"""Interface of filters: one method from a request to its response.

``handle`` gets a ``Request`` and returns a ``Response``; ``forward`` sends the request to the rest of the
pipeline. A filter stores nothing on itself between requests. For foreign servers and filters it is a plain
WSGI app.

The contract (``test/contract/test_filter.py``):

* A filter refuses a request by returning a response or by raising ``HTTPError``. Either way the filters to
  its left get a ``Response`` from their ``forward``. An error with a response (``HTTPError``, ``BodyError``)
  never passes a filter's boundary.
* Other exceptions are programming errors; they pass all filters and become a 500 in the outermost one.
* A filter sends sub-requests by ``gateway.subrequest.open_response``, which releases the response.
* ``http.transform`` changes the body of a response, and ``on_response_end`` watches its end.
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

#: ``required_after`` of filters that send requests of their own for objects.
OUTER_FILTERS = (
    *("staticweb", "tempauth", "swiftauth", "keystoneauth"),
    *("catch_errors", "gatekeeper", "proxy_logging"),
)
#: ``right_of`` of filters that rely on the caller's rights.
AUTHORIZED_BEFORE = {
    name: f"{name} authorizes the user" for name in ("tempauth", "swiftauth", "keystoneauth")
}
App = WSGIApplication
Handle = Callable[[Request], Response]
SettingsT = TypeVar("SettingsT", bound=Settings)


class Filter:
    """Base class of all filters; forwards everything."""

    def __init__(self, app: App):
        # Filters are declared, sampled and documented without the server's modules.
        from swift.runtime.wsgi import handle_of_app

        self.app = app
        #: Forwards to the next filter or the app; never raises an error that has a response.
        self.forward: Handle = _return_error_responses(handle_of_app(app))

    def handle(self, request: Request) -> Response:
        """Return the response to a request."""
        return self.forward(request)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a WSGI request."""
        from swift.runtime.wsgi import serve_wsgi

        return serve_wsgi(self.handle, environ, start_response)


def _return_error_responses(handle: Handle) -> Handle:
    """Wrap the rest of the pipeline so that errors with a response become responses."""

    def forward(request: Request) -> Response:
        try:
            return handle(request)
        except HTTPError as error:
            return error.response
        except BodyError as error:
            return error_response(error.status)

    return forward


def _no_info(_settings: Settings) -> None:
    """Register nothing."""


@dataclass(frozen=True)
class FilterDeclaration(Generic[SettingsT]):
    """A filter with everything that is generated from it; the value of ``FILTER`` in its module.

    ``python -m tools.generate`` finds the declarations and writes samples, reference and ``declared.json``.
    ``setup.py`` generates entry points from it, ``swift-aio`` its pipeline, and ``runtime.pipeline`` its
    rules. A declaration is a PasteDeploy filter factory.
    """

    #: Name of the entry point, of its log and metrics, and of its section of ``/info``.
    name: str
    settings: type[SettingsT]
    #: Creates the filter; raises ``ConfigError``.
    make: Callable[[App, SettingsT, Services], Filter]
    #: Position in the recommended pipeline: smaller is nearer to the client.
    position: int
    #: Returns the entry in ``/info``; None for no entry.
    info: Callable[[SettingsT], Mapping[str, object] | None] = _no_info
    #: Name of the section in samples, if not ``name``.
    section: str = ""
    #: Servers with the filter in their pipeline: ``proxy``, ``storage`` or both.
    servers: tuple[str, ...] = ("proxy",)
    #: True if pipelines of ``swift-aio`` include the filter.
    default: bool = False
    #: Additional lines of the section in the sample.
    sample_lines: tuple[str, ...] = ()
    #: Options of the section in clusters of ``swift-aio``.
    small_cluster: Mapping[str, str] = field(default_factory=dict)
    #: Filters that must be to the right, and to the left: name → the harm of the wrong order.
    left_of: Mapping[str, str] = field(default_factory=dict)
    right_of: Mapping[str, str] = field(default_factory=dict)
    #: Added to a proxy that lacks it, to the right of these filters; None: not added.
    required_after: tuple[str, ...] | None = None

    def __call__(self, global_conf: Conf, **local_conf: str) -> Callable[[App], Filter]:
        """Return the PasteDeploy filter function, which wraps an application in the filter."""
        conf = {**global_conf, **local_conf}
        return lambda app: self.build(app, conf)

    def build(self, app: App, conf: Conf) -> Filter:
        """Return the filter for a section over ``[DEFAULT]``; raises ``ConfigError`` naming the option."""
        from swift.compose import Services

        services = Services.of(conf, self.name)
        settings = self.settings.parse(services.conf, source=f"[filter:{self.section or self.name}]")
        entry = self.info(settings)
        if entry is not None:
            services.info.register(self.name, entry)
        return self.make(app, settings, services)
