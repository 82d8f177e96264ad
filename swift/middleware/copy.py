"""Server-side copies: COPY, and PUT with X-Copy-From (spec: middleware.md §8, public-api.md §13).

A COPY becomes a PUT of its destination. The filter reads the source with the caller's rights and streams its
body into the PUT. The proxy authorizes both requests like any read or write.
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
from swift.http.body import length_header
from swift.http.headers import HeaderMap, title_case
from swift.http.internal import is_internal
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import render_report, status_line
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.transform import ForwardedBody, as_request_body
from swift.middleware.filter import OUTER_FILTERS, App, Filter, FilterDeclaration
from swift.middleware.heartbeat import Heartbeat
from swift.telemetry.log import Log

SUBREQUEST_SOURCE = "SSC"
#: Query parameters of a copy request that apply to its source.
_SOURCE_QUERY_PARAMETERS = ("multipart-manifest", "symlink", "version-id", "part-number")
#: Headers of the request that apply to the source or to the copy operation.
_SOURCE_HEADERS = (
    *("range", "if-match", "if-modified-since", "if-unmodified-since"),
    *("x-copy-from", "x-copy-from-account", "destination", "destination-account"),
    *("x-fresh-metadata", "x-newest", "etag", "content-length", "transfer-encoding", "expect"),
)
#: Headers of a response that are not metadata of the object.
_RESPONSE_HEADERS = frozenset(
    (
        *("accept-ranges", "connection", "content-length", "content-location", "content-range", "date"),
        *("etag", "last-modified", "transfer-encoding", "vary", "x-timestamp", "x-trans-id"),
        *("x-openstack-request-id", "x-manifest-etag", "x-parts-count", "x-static-large-object"),
        *("x-object-manifest", "x-symlink-target-bytes", "x-object-version-id"),
    )
)
_RESPONSE_HEADER_PREFIXES = ("access-control-", fields.BACKEND)
#: System metadata that other filters and the proxy set again for the copy.
_REGENERATED_SYSMETA_PREFIXES = (
    fields.SYSMETA_EC,
    fields.SYSMETA_SLO_ETAG,
    fields.SYSMETA_SLO_SIZE,
    fields.SYSMETA_SLO_UPLOAD,
    fields.SYSMETA_UPDATE_OVERRIDE,
)
_USER_METADATA_PREFIX = "x-object-meta-"


@dataclass(frozen=True)
class CopySettings(Settings):
    """``[filter:copy]``."""

    yield_frequency: float = option(10.0, "Seconds between signs of life.", kind=SECONDS)


class _CopyPaths(NamedTuple):
    """Source and destination of a copy."""

    source: EntityPath
    target: EntityPath


class Copy(Filter):
    """Turns copy requests into uploads of the source's body."""

    def __init__(self, app: App, settings: CopySettings, size_max: int, log: Log):
        super().__init__(app)
        self._heartbeat_interval_s = settings.yield_frequency
        self._size_max = size_max
        self._log = log

    def handle(self, request: Request) -> Response:
        """Copy if the request asks for it; forward it otherwise."""
        entity = request.entity
        if entity is None or entity.path.obj is None:
            return self.forward(request)
        if request.method == "COPY":
            return self._copy(request, entity.version, _parse_copy(request, entity.path))
        if request.method == "PUT" and request.headers.get("x-copy-from"):
            if request.body.length:
                raise HTTPError(400, "Copy requests require a zero byte body", content_type=TEXT)
            return self._copy(request, entity.version, _parse_put(request, entity.path))
        response = self.forward(request)
        if request.method == "OPTIONS" and response.status == 200:
            for name in ("allow", "access-control-allow-methods"):
                if name in response.headers:
                    response.headers[name] += ", COPY"
        return response

    def _copy(self, request: Request, version: str, paths: _CopyPaths) -> Response:
        source = self.forward(self._make_source_request(request, version, paths.source))
        if source.status not in (200, 201, 206):
            return source
        body = as_request_body(source)
        if body.length is not None and body.length > self._size_max:
            body.close()
            return error_response(413)
        copied_headers = _copied_from_headers(request, source, paths.source)
        put = _make_destination_request(request, version, paths.target, source, body)

        def store() -> Response:
            with body:
                return self.forward(put)

        if is_true(request.params.get("heartbeat")):
            return self._copy_with_heartbeat(request, store, copied_headers, body.close)
        response = store()
        if response.is_success:
            response.headers.update(copied_headers)
        return response

    def _make_source_request(self, request: Request, version: str, path: EntityPath) -> Request:
        """Return the sub-request for the source."""
        query = "&".join(
            part for part in request.query.split("&") if part.partition("=")[0] in _SOURCE_QUERY_PARAMETERS
        )
        if request.params.get("multipart-manifest") == "get":
            query += "&format=raw"
        sub = make_subrequest(
            request, "GET", Entity(version, path).raw_path, query=query, source=SUBREQUEST_SOURCE, headers={}
        )
        for name, value in request.headers.items():
            if name == "range" or name.startswith("if-") or name == fields.BACKEND_ALLOW_RESERVED_NAMES:
                sub.headers[name] = value
        for name in ("x-auth-token", "x-storage-token"):
            if name in request.headers:
                sub.headers[name] = request.headers[name]
        sub.headers["x-newest"] = "true"
        return sub

    def _copy_with_heartbeat(
        self,
        request: Request,
        store: Callable[[], Response],
        copied_headers: HeaderMap,
        on_unread: Callable[[], None],
    ) -> Response:
        """Send 202 at once and the result as a report at the end."""
        report_format = accepted_format(request.headers.get("accept"))
        report_format = ListingFormat.JSON if report_format is ListingFormat.JSON else ListingFormat.PLAIN

        def render_result(response: Response) -> bytes:
            body = response.read_body()
            response.report_end(len(body), True)
            values: dict[str, str | int] = {
                "Response Status": status_line(response.status),
                "Response Body": body.decode("utf-8", "replace"),
            }
            values.update((title_case(name), value) for name, value in copied_headers.items())
            response.headers["content-length"] = str(len(body))
            for name, value in response.headers.items():
                if not is_internal(name):
                    values[title_case(name)] = value
            failures = (
                []
                if response.is_success
                else [(copied_headers["x-copied-from"], status_line(response.status))]
            )
            return render_report(report_format, "copy", values, failures)

        def render_failure(error: Exception) -> bytes:
            self._log.exception(
                "unexpected error while copying an object", error, txid=request.env.get(environkeys.TRANS_ID)
            )
            return render_result(error_response(500))

        body = Heartbeat(
            lambda: render_result(store()),
            render_failure,
            interval_s=self._heartbeat_interval_s,
            immediate=True,
            separator=b"",
            on_unread=on_unread,
        )
        return Response(202, {"content-type": report_format.value}, body)


# --- parsing of the request ----------------------------------------------------------------------------


def _parse_copy(request: Request, path: EntityPath) -> _CopyPaths:
    """Return source and destination of a COPY of ``path``; raises ``HTTPError`` 412."""
    value = request.headers.get("destination")
    if not value:
        raise HTTPError(412, "Destination header required")
    account = request.headers.get("destination-account")
    target = path.account if account is None else _parse_account(account)
    container, name = _parse_object_name("Destination", value)
    return _CopyPaths(path, EntityPath(target, container, name))


def _parse_put(request: Request, path: EntityPath) -> _CopyPaths:
    """Return source and destination of a PUT with X-Copy-From; raises ``HTTPError`` 412."""
    account = request.headers.get("x-copy-from-account")
    source = _parse_account(account) if account else path.account
    container, name = _parse_object_name("X-Copy-From", request.headers["x-copy-from"])
    return _CopyPaths(EntityPath(source, container, name), path)


def _parse_object_name(header: str, value: str) -> tuple[str, str]:
    """Return container and object of a header's value; raises ``HTTPError`` 412."""
    try:
        container, _, name = decode_path(value).removeprefix("/").partition("/")
    except NotUTF8:
        container = name = ""
    if not container or not name:
        raise HTTPError(412, f"{header} header must be of the form <container name>/<object name>")
    return container, name


def _parse_account(value: str) -> str:
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


# --- headers of the copy ------------------------------------------------------------------------------


def _make_destination_request(
    request: Request, version: str, path: EntityPath, source: Response, body: ForwardedBody
) -> Request:
    """Return the upload that stores the source's body; it shares the environment of the request."""
    headers = {name: value for name, value in request.headers.items() if name not in _SOURCE_HEADERS}
    fresh = is_true(request.headers.get("x-fresh-metadata"))
    for name, value in source.headers.items():
        if _is_inherited(name, fresh=fresh) and _is_unset(headers, name):
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
    headers.update(length_header(body))
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


def _is_inherited(name: str, *, fresh: bool) -> bool:
    """Return True if the copy inherits a header of the source."""
    if (
        name in _RESPONSE_HEADERS
        or name.startswith(_RESPONSE_HEADER_PREFIXES)
        or name.startswith(_REGENERATED_SYSMETA_PREFIXES)
    ):
        return False
    if name == fields.TRANSIENT_S3_LOCK:
        # The lock protects the source only.
        return False
    if name == "content-type" or name.startswith((fields.OBJECT_SYSMETA, "x-symlink-target")):
        return True
    return not fresh


def _is_unset(headers: HeaderMap, name: str) -> bool:
    """Return True if the request does not set a header itself; an empty type counts as not set."""
    return name not in headers or (name == "content-type" and not headers[name])


def _copied_from_headers(request: Request, source: Response, path: EntityPath) -> HeaderMap:
    """Return the response headers that name the source and the metadata of the copy."""
    quoted = path.quoted.split("/", 2)
    copied_headers = {"x-copied-from-account": quoted[1], "x-copied-from": quoted[2]}
    if "last-modified" in source.headers:
        copied_headers["x-copied-from-last-modified"] = source.headers["last-modified"]
    if "x-object-version-id" in source.headers:
        copied_headers["x-copied-from-version-id"] = source.headers["x-object-version-id"]
    fresh = is_true(request.headers.get("x-fresh-metadata"))
    for headers in (request.headers, {} if fresh else source.headers):
        for name, value in headers.items():
            if name.startswith(_USER_METADATA_PREFIX) or name == "x-delete-at":
                copied_headers.setdefault(name, value)
    return copied_headers


def _make_filter(app: App, settings: CopySettings, services: Services) -> Copy:
    """Return the filter of a configuration section."""
    size_max = services.cluster.config.limits.max_file_size
    return Copy(app, settings, size_max, services.telemetry().log)


FILTER = FilterDeclaration(
    "copy",
    CopySettings,
    _make_filter,
    position=200,
    default=True,
    required_after=OUTER_FILTERS,
    left_of={"encryption": "its own requests must pass through encryption"},
)
