"""Copies inside the cluster: COPY, and PUT with X-Copy-From (spec: middleware.md §8, public-api.md §13).

A COPY becomes a PUT of its destination. The source is read with the caller's rights and its body becomes that
of the PUT as it arrives; nothing is kept in between. Whatever the caller may not do at either end is refused
where reads and writes are: in the proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from swift.base.entity import Entity, EntityPath, NotUTF8, decode_path
from swift.base.truth import is_true
from swift.compose import Services
from swift.config.kinds import SECONDS
from swift.config.schema import Settings, option
from swift.gateway.subrequest import make_subrequest
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap, title_case
from swift.http.internal import is_internal
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import render_report, status_line
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.transform import ForwardedBody, as_request_body
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.heartbeat import Heartbeat
from swift.telemetry.log import Log

SOURCE = "SSC"
#: Parameters of a request for a copy that are about its source.
_SOURCE_PARAMETERS = ("multipart-manifest", "symlink", "version-id", "part-number")
#: Headers of the request that are about the source, or about asking for a copy.
_ABOUT_SOURCE = (
    *("range", "if-match", "if-modified-since", "if-unmodified-since"),
    *("x-copy-from", "x-copy-from-account", "destination", "destination-account"),
    *("x-fresh-metadata", "x-newest", "etag", "content-length", "transfer-encoding", "expect"),
)
#: Headers of an answer that are not the object's.
_OF_ANSWER = frozenset(
    (
        *("accept-ranges", "connection", "content-length", "content-location", "content-range", "date"),
        *("etag", "last-modified", "transfer-encoding", "vary", "x-timestamp", "x-trans-id"),
        *("x-openstack-request-id", "x-manifest-etag", "x-parts-count", "x-static-large-object"),
        *("x-object-manifest", "x-symlink-target-bytes", "x-object-version-id"),
    )
)
_ANSWER_PREFIXES = ("access-control-", fields.BACKEND)
#: What other filters and the proxy make anew for the copy.
_MADE_ANEW = (
    fields.SYSMETA_EC,
    fields.SYSMETA_SLO_ETAG,
    fields.SYSMETA_SLO_SIZE,
    fields.SYSMETA_SLO_UPLOAD,
    fields.SYSMETA_UPDATE_OVERRIDE,
)
_USER_METADATA = "x-object-meta-"


@dataclass(frozen=True)
class CopySettings(Settings):
    """``[filter:copy]``."""

    yield_frequency: float = option(10.0, "Seconds between signs of life.", kind=SECONDS)


class _Ends(NamedTuple):
    """Source and destination of a copy."""

    source: EntityPath
    target: EntityPath


class Copy(Filter):
    """Turns requests for copies into uploads of what is there."""

    def __init__(self, app: App, settings: CopySettings, size_max: int, log: Log):
        super().__init__(app)
        self._yield_s = settings.yield_frequency
        self._size_max = size_max
        self._log = log

    def handle(self, request: Request) -> Response:
        """Copy, if that is asked for."""
        entity = request.entity
        if entity is None or entity.path.obj is None:
            return self.forward(request)
        if request.method == "COPY":
            return self._copy(request, entity.version, _of_copy(request, entity.path))
        if request.method == "PUT" and request.headers.get("x-copy-from"):
            if request.body.length:
                raise HTTPError(400, "Copy requests require a zero byte body", content_type=TEXT)
            return self._copy(request, entity.version, _of_put(request, entity.path))
        response = self.forward(request)
        if request.method == "OPTIONS" and response.status == 200:
            for name in ("allow", "access-control-allow-methods"):
                if name in response.headers:
                    response.headers[name] += ", COPY"
        return response

    def _copy(self, request: Request, version: str, ends: _Ends) -> Response:
        source = self.forward(self._reading(request, version, ends.source))
        if source.status not in (200, 201, 206):
            return source
        body = as_request_body(source)
        if body.length is not None and body.length > self._size_max:
            body.close()
            return error_response(413)
        told = _told(request, source, ends.source)
        put = _writing(request, version, ends.target, source, body)

        def store() -> Response:
            with body:
                return self.forward(put)

        if is_true(request.params.get("heartbeat")):
            return self._with_heartbeat(request, store, told, body.close)
        response = store()
        if response.is_success:
            response.headers.update(told)
        return response

    def _reading(self, request: Request, version: str, path: EntityPath) -> Request:
        """Return the sub-request for the source."""
        query = "&".join(
            part for part in request.query.split("&") if part.partition("=")[0] in _SOURCE_PARAMETERS
        )
        if request.params.get("multipart-manifest") == "get":
            query += "&format=raw"
        sub = make_subrequest(
            request, "GET", Entity(version, path).raw_path, query=query, source=SOURCE, headers={}
        )
        for name, value in request.headers.items():
            if name == "range" or name.startswith("if-") or name == fields.BACKEND_ALLOW_RESERVED_NAMES:
                sub.headers[name] = value
        for name in ("x-auth-token", "x-storage-token"):
            if name in request.headers:
                sub.headers[name] = request.headers[name]
        sub.headers["x-newest"] = "true"
        return sub

    def _with_heartbeat(
        self,
        request: Request,
        store: Callable[[], Response],
        told: HeaderMap,
        unread: Callable[[], None],
    ) -> Response:
        """202 at once, what came of it as a report in the end."""
        shape = accepted_format(request.headers.get("accept"))
        shape = ListingFormat.JSON if shape is ListingFormat.JSON else ListingFormat.PLAIN

        def report_of(response: Response) -> bytes:
            body = response.read_body()
            response.ended(len(body), True)
            values: dict[str, str | int] = {
                "Response Status": status_line(response.status),
                "Response Body": body.decode("utf-8", "replace"),
            }
            values.update((title_case(name), value) for name, value in told.items())
            response.headers["content-length"] = str(len(body))
            for name, value in response.headers.items():
                if not is_internal(name):
                    values[title_case(name)] = value
            failed = [] if response.is_success else [(told["x-copied-from"], status_line(response.status))]
            return render_report(shape, "copy", values, failed)

        def failed(error: Exception) -> bytes:
            self._log.exception(
                "unexpected error while copying an object", error, txid=request.env.get(environkeys.TRANS_ID)
            )
            return report_of(error_response(500))

        body = Heartbeat(
            lambda: report_of(store()),
            failed,
            interval_s=self._yield_s,
            at_once=True,
            separator=b"",
            unread=unread,
        )
        return Response(202, {"content-type": shape.value}, body)


# --- what is asked for --------------------------------------------------------------------------------


def _of_copy(request: Request, path: EntityPath) -> _Ends:
    """Return the ends of a COPY of ``path``; raises ``HTTPError`` 412."""
    value = request.headers.get("destination")
    if not value:
        raise HTTPError(412, "Destination header required")
    account = request.headers.get("destination-account")
    target = path.account if account is None else _account(account)
    container, name = _names("Destination", value)
    return _Ends(path, EntityPath(target, container, name))


def _of_put(request: Request, path: EntityPath) -> _Ends:
    """Return the ends of a PUT with X-Copy-From; raises ``HTTPError`` 412."""
    account = request.headers.get("x-copy-from-account")
    source = _account(account) if account else path.account
    container, name = _names("X-Copy-From", request.headers["x-copy-from"])
    return _Ends(EntityPath(source, container, name), path)


def _names(header: str, value: str) -> tuple[str, str]:
    """Container and object of a header's value; raises ``HTTPError`` 412."""
    try:
        container, _, name = decode_path(value).removeprefix("/").partition("/")
    except NotUTF8:
        container = name = ""
    if not container or not name:
        raise HTTPError(412, f"{header} header must be of the form <container name>/<object name>")
    return container, name


def _account(value: str) -> str:
    """Return the account of a header's value; raises ``HTTPError`` 412."""
    try:
        name = decode_path(value)
    except NotUTF8:
        raise HTTPError(412, "Account name must be UTF-8")
    if not name:
        raise HTTPError(412, "Account name cannot be empty")
    if "/" in name:
        raise HTTPError(412, "Account name cannot contain slashes")
    return name


# --- what is copied -----------------------------------------------------------------------------------


def _writing(
    request: Request, version: str, path: EntityPath, source: Response, body: ForwardedBody
) -> Request:
    """Return the upload that stores what the source gives; shares the environment of the request."""
    headers = {name: value for name, value in request.headers.items() if name not in _ABOUT_SOURCE}
    fresh = is_true(request.headers.get("x-fresh-metadata"))
    for name, value in source.headers.items():
        if _is_copied(name, fresh=fresh) and _leaves_open(headers, name):
            headers[name] = value
    query = ""
    wants_manifest = request.params.get("multipart-manifest") == "get"
    is_static = is_true(source.headers.get("x-static-large-object"))
    if wants_manifest and is_static:
        query = "multipart-manifest=put"
    elif wants_manifest and "x-object-manifest" in source.headers:
        headers["x-object-manifest"] = source.headers["x-object-manifest"]
    elif source.status == 200 and not is_static and "x-object-manifest" not in source.headers:
        headers["etag"] = source.headers.get("etag", "")
    if body.length is None:
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(body.length)
    if request.params.get("multipart-manifest") == "put":
        query = "multipart-manifest=put"
    put = Request(
        "PUT",
        Entity(version, path).raw_path,
        headers,
        body,
        query=query,
        env=request.env,
        remote_addr=request.remote_addr,
        scheme=request.scheme,
    )
    put.http_minor = request.http_minor
    return put


def _is_copied(name: str, *, fresh: bool) -> bool:
    """Return True if a header of the source becomes one of the copy."""
    if name in _OF_ANSWER or name.startswith(_ANSWER_PREFIXES) or name.startswith(_MADE_ANEW):
        return False
    if name == fields.TRANSIENT_S3_LOCK:
        # What is kept is the source.
        return False
    if name == "content-type" or name.startswith((fields.OBJECT_SYSMETA, "x-symlink-target")):
        return True
    return not fresh


def _leaves_open(headers: HeaderMap, name: str) -> bool:
    """Return True if the request does not say itself what the copy gets: an empty type says nothing."""
    return name not in headers or (name == "content-type" and not headers[name])


def _told(request: Request, source: Response, path: EntityPath) -> HeaderMap:
    """Return the response headers that name the source and the metadata of the copy."""
    quoted = path.quoted.split("/", 2)
    told = {
        "x-copied-from-account": quoted[1],
        "x-copied-from": quoted[2],
    }
    if "last-modified" in source.headers:
        told["x-copied-from-last-modified"] = source.headers["last-modified"]
    if "x-object-version-id" in source.headers:
        told["x-copied-from-version-id"] = source.headers["x-object-version-id"]
    fresh = is_true(request.headers.get("x-fresh-metadata"))
    for headers in (request.headers, {} if fresh else source.headers):
        for name, value in headers.items():
            if name.startswith(_USER_METADATA) or name == "x-delete-at":
                told.setdefault(name, value)
    return told


def _make(app: App, settings: CopySettings, services: Services) -> Copy:
    """Return the filter of a configuration section."""
    size_max = services.cluster.config.limits.max_file_size
    return Copy(app, settings, size_max, services.telemetry().log)


FILTER = FilterDeclaration(
    "copy",
    CopySettings,
    _make,
    position=200,
    default=True,
    required_after=(
        *("staticweb", "tempauth", "keystoneauth"),
        *("catch_errors", "gatekeeper", "proxy_logging"),
    ),
    left_of={"encryption": "it would read and write what is encrypted"},
)
