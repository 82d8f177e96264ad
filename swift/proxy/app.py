"""The proxy application: the last app of the proxy pipeline (spec: proxy.md §1, §2).

A request is given its timestamp, routed by its path, authorised, and handed to the controller of what it
names. The guided tour goes on in ``proxy.obj.controller``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from swift import __version__
from swift.base.entity import BadPath, EntityPath, NotUTF8
from swift.base.errors import SwiftError
from swift.base.truth import is_true
from swift.base.txid import new_transaction_id
from swift.gateway.info import container_info
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.http.validate import request_timestamp
from swift.proxy.account import AccountController
from swift.proxy.container import ContainerController
from swift.proxy.context import ProxyContext
from swift.proxy.cors import add_cors_headers, preflight_response
from swift.proxy.discovery import InfoController, register_swift_section
from swift.proxy.hints import HINTED, add_hint, front_page
from swift.proxy.obj.controller import ObjectController
from swift.ring.errors import RingError
from swift.runtime.wsgi import serve_wsgi
from swift.telemetry.events import Event
from swift.telemetry.inforegistry import InfoRegistry

_ERRORS = Event("errors", "Requests that ended with an unexpected error.")

Handler = Callable[[Request, EntityPath], Response]

_DELAYED_DENIAL = frozenset(
    (kind, method)
    for kind, methods in {
        "container": ("GET", "HEAD"),
        "object": ("GET", "HEAD", "PUT", "POST", "DELETE"),
    }.items()
    for method in methods
)
_PRIVATE = frozenset((("container", "UPDATE"),))


class ProxyApp:
    """Routes client requests to the account, container and object controllers."""

    def __init__(self, context: ProxyContext, registry: InfoRegistry, *, swift_dir: str = "/etc/swift"):
        self.context = context
        self._versions = frozenset(context.limits.valid_api_versions)
        self._info = InfoController(context, registry)
        accounts = AccountController(context)
        containers = ContainerController(context, accounts, self.handle)
        objects = ObjectController(context, self.handle, TypeGuesser(swift_dir))
        self._handlers = _handler_table(context, accounts, containers, objects)
        self._methods = {
            kind: tuple(m for k, m in self._handlers if k == kind and (k, m) not in _PRIVATE)
            for kind in ("account", "container", "object")
        }
        self._denied_hosts = frozenset(context.settings.deny_host_headers)
        register_swift_section(registry, context, __version__)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a WSGI request."""
        return serve_wsgi(self.handle, environ, start_response)

    def handle(self, request: Request) -> Response:
        """Respond to one request; errors become responses."""
        response = self._respond(request)
        if response.status in HINTED:
            add_hint(request, response)
        return response

    def _respond(self, request: Request) -> Response:
        try:
            return self._route(request)
        except HTTPError as error:
            return error.response
        except (BadPath, NotUTF8):
            return error_response(412, "Invalid UTF8 or contains NULL")
        except BodyError as error:
            return error_response(error.status)
        except RingError as error:
            txid = request.env.get(environkeys.TRANS_ID)
            self.context.telemetry.log.error(
                f"ERROR cannot handle {request.method} {request.path_qs}: {error}", txid=txid
            )
            return error_response(503)
        except SwiftError as error:
            self._log_error(request, error)
            return error_response(503)
        except Exception as error:
            _ERRORS.count(self.context.telemetry.statsd)
            self._log_error(request, error)
            return error_response(500)

    def _log_error(self, request: Request, error: Exception) -> None:
        self.context.telemetry.log.exception(
            f"ERROR cannot handle {request.method} {request.path_qs}",
            error,
            txid=request.env.get(environkeys.TRANS_ID),
        )

    def _route(self, request: Request) -> Response:
        self._prepare(request)
        path = self._parse_entity(request)
        if isinstance(path, Response):
            return path
        if self._denied_hosts:
            host = request.headers.get("host", "")
            host = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
            if host in self._denied_hosts:
                return error_response(403, "Invalid host header")
        kind = path.kind
        if request.method == "OPTIONS":
            return self._handle_options(request, path, kind)
        handler = self._handlers.get((kind, request.method))
        private = (kind, request.method) in _PRIVATE
        allowed_private = private and is_true(request.headers.get(fields.BACKEND_ALLOW_PRIVATE_METHODS))
        if handler is None or (private and not allowed_private):
            return error_response(405, headers={"allow": ", ".join((*self._methods[kind], "OPTIONS"))})
        return self._handle_authorized(request, path, kind, handler)

    def _prepare(self, request: Request) -> None:
        """Set the request's timestamp, token and transaction id."""
        headers = request.headers
        stamp = request_timestamp(headers)
        request.has_generated_timestamp = request.has_generated_timestamp or "x-timestamp" not in headers
        headers["x-timestamp"] = stamp.internal
        request._timestamp = stamp
        if "x-storage-token" in headers and "x-auth-token" not in headers:
            headers["x-auth-token"] = headers["x-storage-token"]
        if environkeys.TRANS_ID not in request.env:
            request.env[environkeys.TRANS_ID] = new_transaction_id()
        headers.setdefault("x-trans-id", request.env[environkeys.TRANS_ID])

    def _parse_entity(self, request: Request) -> EntityPath | Response:
        """Return the entity of the path, or the response to a path without one."""
        entity = request.entity
        if entity is None:
            if request.lossy_path == "/info":
                return self._info.handle(request)
            if request.lossy_path == "/" and not request.query and request.method in ("GET", "HEAD"):
                return front_page(request)
            return _no_entity_response(request)
        if entity.version not in self._versions:
            return error_response(400)
        path = entity.path
        is_reserved = "\0" in "".join(filter(None, path))
        if is_reserved and not is_true(request.headers.get(fields.BACKEND_ALLOW_RESERVED_NAMES)):
            return error_response(412, "Invalid UTF8 or contains NULL")
        return path

    def _handle_authorized(self, request: Request, path: EntityPath, kind: str, handler: Handler) -> Response:
        authorise = request.env.get(environkeys.AUTHORIZE)
        if authorise is None:
            return self._add_cors(request, path, kind, handler(request, path))
        denial = authorise(request)
        if denial is not None:
            if (kind, request.method) not in _DELAYED_DENIAL:
                return denial
            return self._add_cors(request, path, kind, handler(request, path))
        # Granted: the controllers below must not authorize this request again.
        del request.env[environkeys.AUTHORIZE]
        try:
            response = handler(request, path)
        finally:
            request.env[environkeys.AUTHORIZE] = authorise
        return self._add_cors(request, path, kind, response)

    def _add_cors(self, request: Request, path: EntityPath, kind: str, response: Response) -> Response:
        if "origin" in request.headers and kind != "account":
            info = container_info(request, self.handle, path.account, str(path.container))
            add_cors_headers(self.context.settings, info, request, response)
        return response

    def _handle_options(self, request: Request, path: EntityPath, kind: str) -> Response:
        methods = (*self._methods[kind], "OPTIONS")
        info = None
        if kind != "account" and "origin" in request.headers:
            info = container_info(request, self.handle, path.account, str(path.container))
        return preflight_response(self.context.settings, info, request, methods)

    def __repr__(self) -> str:
        return f"<ProxyApp {self.context.rings!r}>"


def _no_entity_response(request: Request) -> Response:
    """Return the response to a path that names no entity."""
    try:
        request.split_path(1, 1)
    except NotUTF8:
        return error_response(412, "Invalid UTF8 or contains NULL")
    except BadPath:
        return error_response(404)
    return error_response(412, "Bad URL")


def _handler_table(
    context: ProxyContext,
    accounts: AccountController,
    containers: ContainerController,
    objects: ObjectController,
) -> dict[tuple[str, str], Handler]:
    """Return handlers by kind and method; all other requests get 405."""
    table: dict[tuple[str, str], Handler] = {
        ("account", "HEAD"): accounts.handle_read,
        ("account", "GET"): accounts.handle_read,
        ("account", "POST"): accounts.handle_post,
        ("container", "HEAD"): containers.handle_read,
        ("container", "GET"): containers.handle_read,
        ("container", "PUT"): containers.handle_put,
        ("container", "POST"): containers.handle_post,
        ("container", "DELETE"): containers.handle_delete,
        ("container", "UPDATE"): containers.handle_update,
        ("object", "HEAD"): objects.handle_read,
        ("object", "GET"): objects.handle_read,
        ("object", "PUT"): objects.handle_put,
        ("object", "POST"): objects.handle_post,
        ("object", "DELETE"): objects.handle_delete,
    }
    if context.settings.allow_account_management:
        table["account", "PUT"] = accounts.handle_put
        table["account", "DELETE"] = accounts.handle_delete
    return table
