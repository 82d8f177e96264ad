"""Symbolic links: empty objects that point to another object (spec: middleware.md §10).

The target of a symlink is stored in its system metadata. GET and HEAD follow it with the caller's rights, one
hop at a time. A static symlink also states the ETag that the target must have. Everything else (DELETE, POST,
``symlink=get``) applies to the symlink itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from swift.base.digits import is_digits
from swift.base.entity import Entity, EntityPath
from swift.base.etag import unquote_etag
from swift.base.truth import is_true
from swift.config.kinds import integer
from swift.config.schema import Settings, option
from swift.gateway.subrequest import drained, make_subrequest, preauthorise
from swift.http import environkeys, fields
from swift.http.body import BytesBody
from swift.http.etagparameters import add_etag_parameters, move_etag_parameters_to_rows
from swift.http.headers import HeaderMap
from swift.http.internal import is_internal
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.versioned_writes.names import visible_path

SUBREQUEST_SOURCE = "SYM"
SYMLINK_TYPE = "application/symlink"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
_TARGET_HEADER, _TARGET_ACCOUNT_HEADER = "x-symlink-target", "x-symlink-target-account"
_TARGET_ETAG_HEADER, _TARGET_BYTES_HEADER = "x-symlink-target-etag", "x-symlink-target-bytes"
#: Client's header → header that stores it.
_SYSMETA_BY_HEADER = {
    _TARGET_HEADER: fields.SYSMETA_SYMLINK_TARGET,
    _TARGET_ACCOUNT_HEADER: fields.SYSMETA_SYMLINK_TARGET_ACCOUNT,
    _TARGET_ETAG_HEADER: fields.SYSMETA_SYMLINK_TARGET_ETAG,
    _TARGET_BYTES_HEADER: fields.SYSMETA_SYMLINK_TARGET_BYTES,
}
#: Parameters in the listing row of a symlink.
_ROW_PARAMETERS = ("symlink_target", "symlink_target_account", "symlink_target_etag", "symlink_target_bytes")
_FORM_ERROR = "X-Symlink-Target header must be of the form <container name>/<object name>"
_ETAG_MISMATCH_ERROR = "X-Symlink-Target-Etag headers do not match"
_POST_ERROR = (
    "The requested POST was applied to a symlink. POST directly to the target to apply requested metadata."
)


@dataclass(frozen=True)
class SymlinkSettings(Settings):
    """``[filter:symlink]``."""

    symloop_max: int = option(2, "Links that are followed one after the other.", kind=integer(1))


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """Target of a symlink."""

    target: EntityPath
    #: The required ETag of the target; None accepts any.
    etag: str | None
    #: True if one more link than ``symloop_max`` may be followed.
    extends_loop_limit: bool
    allows_reserved_names: bool

    @classmethod
    def from_headers(cls, headers: HeaderMap, path: EntityPath) -> LinkTarget | None:
        """Return the target in the response for ``path``; None when it is not a symlink."""
        stored = headers.get(fields.SYSMETA_SYMLINK_TARGET)
        if not stored:
            return None
        account = headers.get(fields.SYSMETA_SYMLINK_TARGET_ACCOUNT)
        container, _, name = _unquote_stored(stored).partition("/")
        return cls(
            EntityPath(_unquote_stored(account) if account else path.account, container, name),
            headers.get(fields.SYSMETA_SYMLINK_TARGET_ETAG) or None,
            is_true(headers.get(fields.SYSMETA_SYMLOOP_EXTEND)),
            is_true(headers.get(fields.SYSMETA_ALLOW_RESERVED_NAMES)),
        )


class Symlink(Filter):
    """Stores symlinks and follows them."""

    def __init__(self, app: App, settings: SymlinkSettings):
        super().__init__(app)
        self._symloop_max = settings.symloop_max

    def handle(self, request: Request) -> Response:
        """Store a symlink, or follow one; forward all other requests."""
        entity = request.entity
        if entity is None:
            return self.forward(request)
        if is_true(request.env.get(environkeys.SYMLINK_OVERRIDE)):
            return self._handle_override(request, entity)
        if entity.path.obj is None:
            response = self.forward(request)
            if request.method == "GET" and entity.path.container is not None:
                move_etag_parameters_to_rows(
                    response, _ROW_PARAMETERS, lambda row: _listing_fields(row, entity)
                )
            return response
        if request.method in ("GET", "HEAD"):
            if request.params.get("symlink") == "get":
                return self._read_link(request)
            return self._follow_links(request, entity)
        if request.method == "PUT" and _TARGET_HEADER in request.headers:
            return self._put_link(request, entity)
        if request.method == "POST":
            return self._post(request, entity)
        return self.forward(request)

    def _handle_override(self, request: Request, entity: Entity) -> Response:
        """Handle a request without following symlinks; a new one is stored without a check of its target."""
        if entity.path.obj is not None:
            if request.method == "PUT" and _TARGET_HEADER in request.headers:
                return self._put_link(request, entity, check_target=False)
            if request.method in ("GET", "HEAD") and request.params.get("symlink") == "get":
                return self._read_link(request)
        return self.forward(request)

    # reading

    def _read_link(self, request: Request) -> Response:
        response = self.forward(request)
        if response.headers.get(fields.SYSMETA_SYMLINK_TARGET):
            for header, sysmeta in _SYSMETA_BY_HEADER.items():
                if sysmeta in response.headers:
                    response.headers[header] = response.headers[sysmeta]
        return response

    def _follow_links(
        self, request: Request, entity: Entity, *, expected: str | None = None, only_static: bool = False
    ) -> Response:
        """Return the response of an object, or of the target of a symlink.

        ``expected`` is the ETag that the target must have. With ``only_static`` a dynamic symlink counts as
        an object.
        """
        hops, hops_max = 0, self._symloop_max
        path, response = entity.path, self._forward_ignoring_range(request)
        required_etag = expected
        while True:
            link = LinkTarget.from_headers(response.headers, path)
            if only_static and link is not None and link.etag is None:
                link = None
            if required_etag is not None and link is not None and link.etag not in (None, required_etag):
                drained(response)
                location_header = {"content-location": Entity(entity.version, path).raw_path}
                return error_response(409, _ETAG_MISMATCH_ERROR, location_header, content_type=TEXT)
            if required_etag is not None and link is None and _was_found(response):
                etag = unquote_etag(response.headers.get("etag", ""))
                if etag != required_etag:
                    drained(response)
                    return _etag_mismatch_response(etag, required_etag, Entity(entity.version, path))
            if link is None:
                if hops:
                    response.headers["content-location"] = Entity(entity.version, path).raw_path
                return response
            drained(response)
            hops += 1
            if link.extends_loop_limit:
                hops_max = self._symloop_max + 1
            if hops > hops_max:
                text = f"Too many levels of symbolic links, maximum allowed is {self._symloop_max}"
                return error_response(409, text, content_type=TEXT)
            hop = self._make_hop_request(request, Entity(entity.version, link.target), link, path)
            path, required_etag = link.target, link.etag
            response = self._forward_ignoring_range(hop)

    def _forward_ignoring_range(self, request: Request) -> Response:
        """Return the response of one object; a Range applies to the target, not to the symlink."""
        headers = request.headers
        original = headers.get(fields.BACKEND_IGNORE_RANGE)
        ignored_for = fields.SYSMETA_SYMLINK_TARGET
        headers[fields.BACKEND_IGNORE_RANGE] = f"{original},{ignored_for}" if original else ignored_for
        response = self.forward(request)
        if original is None:
            headers.pop(fields.BACKEND_IGNORE_RANGE, None)
        else:
            headers[fields.BACKEND_IGNORE_RANGE] = original
        return response

    def _make_hop_request(
        self, request: Request, target: Entity, link: LinkTarget, path: EntityPath
    ) -> Request:
        """Return the same request for the target of the symlink at ``path``."""
        sub = make_subrequest(
            request,
            request.method,
            target.raw_path,
            query=request.query,
            headers=request.headers,
            source=SUBREQUEST_SOURCE,
        )
        # The target may be in a container of another policy.
        sub.headers.pop(fields.BACKEND_STORAGE_POLICY_INDEX, None)
        if link.allows_reserved_names:
            sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
            visible = visible_path(link.target)
            if visible is not None and visible[0] == path:
                # A caller who may read the object may read its version; a copied link grants nothing.
                preauthorise(sub)
        return sub

    # making

    def _put_link(self, request: Request, entity: Entity, *, check_target: bool = True) -> Response:
        """Store a symlink; with ``check_target`` the target of a static one must exist."""
        headers = request.headers
        if request.body.length or (request.body.length is None and request.body.read(1)):
            raise HTTPError(400, "Symlink requests require a zero byte body", content_type=TEXT)
        target = _parse_target(headers, entity.path)
        if target == entity.path:
            raise HTTPError(400, "Symlink cannot target itself", content_type=TEXT)
        stored = {_TARGET_HEADER: _quoted(f"{target.container}/{target.obj}")}
        if _TARGET_ACCOUNT_HEADER in headers:
            stored[_TARGET_ACCOUNT_HEADER] = _quoted(target.account)
        etag, slo_row = unquote_etag(headers.get(_TARGET_ETAG_HEADER, "")), {}
        if etag:
            if ";" in etag or '"' in etag:
                raise HTTPError(400, "Bad X-Symlink-Target-Etag format", content_type=TEXT)
            stored[_TARGET_ETAG_HEADER] = etag
            if check_target:
                found = self._head_static_target(request, Entity(entity.version, target), etag)
                stored[_TARGET_BYTES_HEADER] = found["bytes"]
                headers["content-type"] = headers.get("content-type") or found["type"]
                slo_row = {name: found[name] for name in ("slo_etag",) if name in found}
            elif is_digits(headers.get(_TARGET_BYTES_HEADER, "")):
                stored[_TARGET_BYTES_HEADER] = headers[_TARGET_BYTES_HEADER]
        headers["content-type"] = headers.get("content-type") or SYMLINK_TYPE
        for name in _SYSMETA_BY_HEADER:
            headers.pop(name, None)
        headers.update((_SYSMETA_BY_HEADER[name], value) for name, value in stored.items())
        row = {name.removeprefix("x-").replace("-", "_"): value for name, value in stored.items()} | slo_row
        override = headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, "")
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = add_etag_parameters(override, _EMPTY_MD5, row)
        headers.pop("transfer-encoding", None)
        headers["content-length"] = "0"
        request.body = BytesBody()
        return self.forward(request)

    def _head_static_target(self, request: Request, target: Entity, etag: str) -> dict[str, str]:
        """Return size, type and large object ETag of a static link's target; raises ``HTTPError``.

        A target that is a static link itself is followed, such as an object with versions.
        """
        sub = make_subrequest(request, "HEAD", target.raw_path, source=SUBREQUEST_SOURCE)
        for name in ("x-auth-token", "x-storage-token", fields.BACKEND_ALLOW_RESERVED_NAMES):
            if name in request.headers:
                sub.headers[name] = request.headers[name]
        sub.headers["x-newest"] = "true"
        response = self._follow_links(sub, target, expected=etag, only_static=True)
        if response.status == 409:
            raise HTTPError.of(response)
        status, headers = drained(response).status, response.headers
        if status == 404:
            location_header = {"content-location": headers.get("content-location", target.raw_path)}
            raise HTTPError(409, "X-Symlink-Target does not exist", location_header, content_type=TEXT)
        if not response.is_success:
            denied = {n: v for n, v in headers.items() if n == "www-authenticate"}
            raise HTTPError(status, headers=denied)
        found = {
            "bytes": headers.get(fields.SYSMETA_SLO_SIZE) or headers.get("content-length", "0"),
            "type": headers.get("content-type", ""),
        }
        if fields.SYSMETA_SLO_ETAG in headers:
            found["slo_etag"] = headers[fields.SYSMETA_SLO_ETAG]
        return found

    # metadata

    def _post(self, request: Request, entity: Entity) -> Response:
        if _TARGET_HEADER in request.headers:
            raise HTTPError(400, "A PUT request is required to set a symlink target", content_type=TEXT)
        response = self.forward(request)
        link = LinkTarget.from_headers(response.headers, entity.path) if response.is_success else None
        if link is None:
            return response
        drained(response)
        location = Entity(entity.version, link.target).raw_path
        redirect = error_response(307, _POST_ERROR, {"location": location})
        if link.etag is not None:
            redirect.headers[_TARGET_ETAG_HEADER] = link.etag
        redirect.headers.update((n, v) for n, v in response.headers.items() if is_internal(n))
        return redirect


def _was_found(response: Response) -> bool:
    """Return True if the response is of an existing object."""
    return response.is_success or response.status in (304, 412, 416)


def _etag_mismatch_response(found: str, required: str, target: Entity) -> Response:
    text = f"Object Etag '{found}' does not match X-Symlink-Target-Etag header '{required}'"
    return error_response(
        409, text.encode("latin-1", "replace"), {"content-location": target.raw_path}, content_type=TEXT
    )


def _parse_target(headers: HeaderMap, path: EntityPath) -> EntityPath:
    """Return the target path of a new symlink; raises ``HTTPError`` 412."""
    text = headers[_TARGET_HEADER]
    if text.startswith("/"):
        raise HTTPError(412, _FORM_ERROR, content_type=TEXT)
    container, _, name = _unquote_utf8(text).partition("/")
    if not container or not name:
        raise HTTPError(412, _FORM_ERROR)
    account = path.account
    if _TARGET_ACCOUNT_HEADER in headers:
        account = _unquote_utf8(headers[_TARGET_ACCOUNT_HEADER])
        if not account:
            raise HTTPError(412, "Account name cannot be empty")
        if "/" in account:
            raise HTTPError(412, "Account name cannot contain slashes")
    return EntityPath(account, container, name)


def _unquote_utf8(value: str) -> str:
    """Return a percent-quoted header value as text; raises ``HTTPError`` 412 when it is not UTF-8."""
    try:
        return unquote_to_bytes(value.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise HTTPError(412, _FORM_ERROR)


def _unquote_stored(stored: str) -> str:
    """Return a stored value of any writer as text."""
    return unquote_to_bytes(stored.encode("latin-1")).decode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    return quote(text, safe="/~", errors="surrogateescape")


def _listing_fields(row: Mapping[str, str], listing: Entity) -> dict[str, object]:
    """Return the additional listing fields of a symlink."""
    listed: dict[str, object] = {}
    if "symlink_target_etag" in row:
        listed["symlink_etag"] = row["symlink_target_etag"]
    if row.get("symlink_target_bytes", "").isdecimal():
        listed["symlink_bytes"] = int(row["symlink_target_bytes"])
    if "symlink_target" in row:
        account = row.get("symlink_target_account") or _quoted(listing.path.account)
        listed["symlink_path"] = f"/{listing.version}/{account}/{row['symlink_target']}"
    return listed


FILTER = FilterDeclaration(
    "symlink",
    SymlinkSettings,
    lambda app, settings, _services: Symlink(app, settings),
    position=260,
    default=True,
    info=lambda settings: {"symloop_max": settings.symloop_max, "static_links": True},
    left_of={"encryption": "its own requests must pass through encryption"},
)
