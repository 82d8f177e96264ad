"""The filter ``console``: pages below ``/console`` (doc/howto/console.md).

It stands left of all that identifies and limits callers. Whatever a page shows or changes is a request
through the rest of the pipeline with the token of the person who has logged in; pages for operators also
read the servers' recon data.

Objects have the origin of the console's pages. A browser that loads one as a page gets it in a sandbox, so
that scripts in objects cannot use the session of a person who looks at them.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from swift.compose import Services
from swift.config.kinds import LIST
from swift.config.schema import Settings, option
from swift.console.core.api import ApiError, SessionSigners
from swift.console.core.cluster import ClusterWatch
from swift.console.core.rendering import Renderer, load_texts
from swift.console.core.session import Session, Sessions, SessionUnknown
from swift.console.core.visit import Access, ConsoleParts, Route, Visit, route_table
from swift.console.core.web import (
    ROOT,
    BadForm,
    is_own_origin,
    is_page_load,
    is_presigned,
    link,
    sandboxed,
)
from swift.console.operators import accounts, audit, daemons, devices, health, rings
from swift.console.static import STATIC
from swift.console.users import (
    browse,
    buckets,
    content,
    deletion,
    keys,
    login,
    objects,
    people,
    settings,
    sharing,
    uploads,
    usage,
)
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration

#: Seconds for which the temporary access keys of a session are kept; they end with it.
_SIGNERS_S = 300.0
_SAFE_METHODS = frozenset(("GET", "HEAD"))
ROUTES: tuple[Route, ...] = (
    *STATIC,
    *login.ROUTES,
    *buckets.ROUTES,
    *settings.ROUTES,
    *keys.ROUTES,
    *people.ROUTES,
    *usage.ROUTES,
    *browse.ROUTES,
    *objects.ROUTES,
    *content.ROUTES,
    *uploads.ROUTES,
    *deletion.ROUTES,
    *sharing.ROUTES,
    *health.ROUTES,
    *rings.ROUTES,
    *devices.ROUTES,
    *daemons.ROUTES,
    *accounts.ROUTES,
    *audit.ROUTES,
)


@dataclass(frozen=True)
class ConsoleSettings(Settings):
    """``[filter:console]``."""

    public: bool = option(
        False,
        "Also serve the console where bind_ip is not of the loopback interface. Browsers need TLS there.",
    )
    s3_region: str = option("us-east-1", "The location of [filter:s3api].")
    oidc_providers: tuple[str, ...] = option(
        (), "Names of identity providers that the log-in page offers.", kind=LIST
    )
    capacity_history: str = option(
        "",
        "File in which the disk usage is kept once an hour while an operator looks, for the forecast; "
        "one of swift-health --history is read and continued.",
    )
    audit_log: str = option("/var/log/swift/audit.log", "The path of [filter:audit_log], for its search.")


class Console(Filter):
    """Serves the pages."""

    def __init__(self, app: App, settings: ConsoleSettings, cluster: ClusterWatch):
        super().__init__(app)
        texts = load_texts()
        self._routes = route_table(ROUTES)
        self._paths = {route.path for route in ROUTES}
        self._parts = ConsoleParts(
            self.forward,
            Renderer(texts),
            texts,
            Sessions(self.forward),
            SessionSigners(_SIGNERS_S),
            settings.s3_region,
            cluster,
            settings.audit_log,
            settings.oidc_providers,
        )

    def handle(self, request: Request) -> Response:
        """Serve a page; requests for other paths, and signed requests for a bucket, go on."""
        path = request.raw_path
        if path.startswith("/auth/oidc/"):
            return login.finish_oidc(request, self._parts)
        is_own = path == ROOT or path.startswith(f"{ROOT}/")
        if not is_own or "authorization" in request.headers or is_presigned(request):
            response = self.forward(request)
            if is_page_load(request):
                response.headers = sandboxed(response.headers)
            return response
        try:
            return self._serve(request)
        except BadForm as error:
            # The query cannot be read, so no page can be made with it.
            request.query = ""
            return Visit(request, self._parts, None).form_refusal(error)

    def _serve(self, request: Request) -> Response:
        path = request.raw_path[len(ROOT) :].rstrip("/") or "/"
        method = "GET" if request.method == "HEAD" else request.method
        route = self._routes.get((method, path))
        try:
            session = None
            if route is None or route.access is not Access.ANYONE or path == "/login":
                session = self._parts.sessions.find(request)
        except SessionUnknown as error:
            return self._storage_refusal(request, error.status)
        visit = Visit(request, self._parts, session)
        if route is None:
            status = 405 if path in self._paths else 404
            return visit.refusal(visit.text(f"errors.page_{status}"), status)
        if session is not None:
            request.env[environkeys.ACCESS_LOGGING] = {"user_id": session.name}
        try:
            return self._refuse(visit, route, session) or self._respond(visit, route)
        except BadForm as error:
            return visit.form_refusal(error)

    def _refuse(self, visit: Visit, route: Route, session: Session | None) -> Response | None:
        """Return the refusal of a visit that may not be; None if it may."""
        if route.method not in _SAFE_METHODS and not is_own_origin(visit.request):
            return visit.refusal(visit.text("errors.other_site"), 403)
        if route.access is Access.ANYONE:
            return None
        if session is None:
            return _lead_to_log_in(visit, route)
        if route.method not in _SAFE_METHODS and not session.is_csrf_token(_csrf_token(visit)):
            return visit.refusal(visit.text("errors.stale_page"), 403)
        if route.access is Access.OPERATORS and not session.is_operator:
            return visit.refusal(visit.text("errors.operators_only"), 403)
        return None

    def _respond(self, visit: Visit, route: Route) -> Response:
        try:
            return route.respond(visit)
        except ApiError as error:
            if error.status == 401:
                self._parts.sessions.end(visit.session)
                return _lead_to_log_in(visit, route)
            return visit.api_refusal(error)

    def _storage_refusal(self, request: Request, status: int) -> Response:
        visit = Visit(request, self._parts, None)
        transaction = str(request.env.get(environkeys.TRANS_ID, ""))
        return visit.api_refusal(ApiError(max(status, 500), "", transaction))


def _lead_to_log_in(visit: Visit, route: Route) -> Response:
    """Return the response to a visit whose session has ended."""
    if visit.wants_json:
        return visit.json({"error": visit.text("errors.401"), "log_in": link("/login")}, 401)
    # A form that was sent is lost; its page is where the way goes on.
    back = visit.address if route.method in _SAFE_METHODS else _page_of_form(visit)
    return visit.redirect("/login", next=back)


def _csrf_token(visit: Visit) -> str:
    """Return the token of a request, from the header of scripts or the field of a form."""
    found = visit.request.headers.get("x-csrf-token")
    return visit.form.text("csrf") if found is None else found


def _page_of_form(visit: Visit) -> str:
    """Return the console's page that sent a form, from the Referer; the first page if it is another."""
    _, mark, path = visit.request.headers.get("referer", "").partition(visit.api.host)
    return path if mark else ROOT


class _Off(Filter):
    """Stands where the console is off: its pages are not there."""

    def handle(self, request: Request) -> Response:
        """Tell operators why there are no pages."""
        if request.raw_path == ROOT and request.method == "GET":
            return error_response(404, "The console is off here: set public = true in [filter:console].")
        return self.forward(request)


def _make_filter(app: App, settings: ConsoleSettings, services: Services) -> Filter:
    """Return the filter of a configuration section."""
    if settings.public or _is_loopback(services.conf.get("bind_ip", "")):
        cluster = ClusterWatch(
            services.swift_dir,
            services.cluster.policies,
            history=settings.capacity_history,
            nodes=services.node_health,
        )
        return Console(app, settings, cluster)
    return _Off(app)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address or "0.0.0.0").is_loopback
    except ValueError:
        return address == "localhost"


FILTER = FilterDeclaration(
    "console",
    ConsoleSettings,
    _make_filter,
    position=41,
    default=True,
    left_of={
        "audit_log": "the audit log would not have what people do in the console",
        "swiftauth": "the console's requests would have no rights",
    },
)
