"""Symbolic links: empty objects that lead to another object (spec: middleware.md §10).

Where a link leads is its system metadata. Reading follows it with the caller's rights, a hop at a time; a
static link also says what the target's ETag must be. Everything else (DELETE, POST, ``symlink=get``) is about
the link itself.
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
from swift.middleware.versioned_writes.names import shown_path

SOURCE = "SYM"
TYPE = "application/symlink"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
_TARGET, _TARGET_ACCOUNT = "x-symlink-target", "x-symlink-target-account"
_TARGET_ETAG, _TARGET_BYTES = "x-symlink-target-etag", "x-symlink-target-bytes"
#: Client's header → where it is stored.
_STORED = {
    _TARGET: fields.SYSMETA_SYMLINK_TARGET,
    _TARGET_ACCOUNT: fields.SYSMETA_SYMLINK_TARGET_ACCOUNT,
    _TARGET_ETAG: fields.SYSMETA_SYMLINK_TARGET_ETAG,
    _TARGET_BYTES: fields.SYSMETA_SYMLINK_TARGET_BYTES,
}
#: Parameters of the row of a link.
_ROW = ("symlink_target", "symlink_target_account", "symlink_target_etag", "symlink_target_bytes")
_FORM_ERROR = "X-Symlink-Target header must be of the form <container name>/<object name>"
_UNLIKE = "X-Symlink-Target-Etag headers do not match"
_POSTED = (
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
    #: What the target's ETag must be; None when any will do.
    etag: str | None
    #: One more link than usual may be followed.
    extends: bool
    may_be_reserved: bool

    @classmethod
    def of(cls, headers: HeaderMap, path: EntityPath) -> LinkTarget | None:
        """Return the link that an answer of ``path`` is of; None when it is of none."""
        stored = headers.get(fields.SYSMETA_SYMLINK_TARGET)
        if not stored:
            return None
        account = headers.get(fields.SYSMETA_SYMLINK_TARGET_ACCOUNT)
        container, _, name = _decoded(stored).partition("/")
        return cls(
            EntityPath(_decoded(account) if account else path.account, container, name),
            headers.get(fields.SYSMETA_SYMLINK_TARGET_ETAG) or None,
            is_true(headers.get(fields.SYSMETA_SYMLOOP_EXTEND)),
            is_true(headers.get(fields.SYSMETA_ALLOW_RESERVED_NAMES)),
        )


class Symlink(Filter):
    """Makes links and follows them."""

    def __init__(self, app: App, settings: SymlinkSettings):
        super().__init__(app)
        self._hops_max = settings.symloop_max

    def handle(self, request: Request) -> Response:
        """Answer what is about a link, or about what it leads to."""
        entity = request.entity
        if entity is None:
            return self.forward(request)
        if is_true(request.env.get(environkeys.SYMLINK_OVERRIDE)):
            return self._unfollowed(request, entity)
        if entity.path.obj is None:
            response = self.forward(request)
            if request.method == "GET" and entity.path.container is not None:
                move_etag_parameters_to_rows(response, _ROW, lambda row: _shown(row, entity))
            return response
        if request.method in ("GET", "HEAD"):
            if request.params.get("symlink") == "get":
                return self._link_itself(request)
            return self._follow(request, entity)
        if request.method == "PUT" and _TARGET in request.headers:
            return self._make(request, entity)
        if request.method == "POST":
            return self._post(request, entity)
        return self.forward(request)

    def _unfollowed(self, request: Request, entity: Entity) -> Response:
        """Answer a request for what is stored: a link is made as its headers say, whatever its target is."""
        if entity.path.obj is not None:
            if request.method == "PUT" and _TARGET in request.headers:
                return self._make(request, entity, checks=False)
            if request.method in ("GET", "HEAD") and request.params.get("symlink") == "get":
                return self._link_itself(request)
        return self.forward(request)

    # reading

    def _link_itself(self, request: Request) -> Response:
        response = self.forward(request)
        if response.headers.get(fields.SYSMETA_SYMLINK_TARGET):
            for shown, stored in _STORED.items():
                if stored in response.headers:
                    response.headers[shown] = response.headers[stored]
        return response

    def _follow(
        self, request: Request, entity: Entity, *, expected: str | None = None, only_static: bool = False
    ) -> Response:
        """Answer a read of an object, or of what it leads to.

        ``expected`` is the ETag that is to be found; with ``only_static`` a dynamic link is an object.
        """
        hops, hops_max = 0, self._hops_max
        path, response = entity.path, self._read(request)
        wanted = expected
        while True:
            link = LinkTarget.of(response.headers, path)
            if only_static and link is not None and link.etag is None:
                link = None
            if wanted is not None and link is not None and link.etag not in (None, wanted):
                drained(response)
                where = {"content-location": Entity(entity.version, path).raw_path}
                return error_response(409, _UNLIKE, where, content_type=TEXT)
            if wanted is not None and link is None and _was_found(response):
                etag = unquote_etag(response.headers.get("etag", ""))
                if etag != wanted:
                    drained(response)
                    return _mismatch(etag, wanted, Entity(entity.version, path))
            if link is None:
                if hops:
                    response.headers["content-location"] = Entity(entity.version, path).raw_path
                return response
            drained(response)
            hops += 1
            if link.extends:
                hops_max = self._hops_max + 1
            if hops > hops_max:
                text = f"Too many levels of symbolic links, maximum allowed is {self._hops_max}"
                return error_response(409, text, content_type=TEXT)
            hop = self._hop(request, Entity(entity.version, link.target), link, path)
            path, wanted = link.target, link.etag
            response = self._read(hop)

    def _read(self, request: Request) -> Response:
        """Return the answer of one object; a range is for what a link leads to, not for the link."""
        headers = request.headers
        before = headers.get(fields.BACKEND_IGNORE_RANGE)
        own = fields.SYSMETA_SYMLINK_TARGET
        headers[fields.BACKEND_IGNORE_RANGE] = f"{before},{own}" if before else own
        response = self.forward(request)
        if before is None:
            headers.pop(fields.BACKEND_IGNORE_RANGE, None)
        else:
            headers[fields.BACKEND_IGNORE_RANGE] = before
        return response

    def _hop(self, request: Request, target: Entity, link: LinkTarget, path: EntityPath) -> Request:
        """Return the same request for what the link at ``path`` leads to."""
        sub = make_subrequest(
            request,
            request.method,
            target.raw_path,
            query=request.query,
            headers=request.headers,
            source=SOURCE,
        )
        # The target may be in a container of another policy.
        sub.headers.pop(fields.BACKEND_STORAGE_POLICY_INDEX, None)
        if link.may_be_reserved:
            sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
            shown = shown_path(link.target)
            if shown is not None and shown[0] == path:
                # Who may read the object may read the version that it is; a copy of the link gives no rights.
                preauthorise(sub)
        return sub

    # making

    def _make(self, request: Request, entity: Entity, *, checks: bool = True) -> Response:
        """Store a link; with ``checks`` the target of a static one must be there."""
        headers = request.headers
        if request.body.length or (request.body.length is None and request.body.read(1)):
            raise HTTPError(400, "Symlink requests require a zero byte body", content_type=TEXT)
        target = _target_of(headers, entity.path)
        if target == entity.path:
            raise HTTPError(400, "Symlink cannot target itself", content_type=TEXT)
        stored = {_TARGET: _quoted(f"{target.container}/{target.obj}")}
        if _TARGET_ACCOUNT in headers:
            stored[_TARGET_ACCOUNT] = _quoted(target.account)
        etag, slo_row = unquote_etag(headers.get(_TARGET_ETAG, "")), {}
        if etag:
            if ";" in etag or '"' in etag:
                raise HTTPError(400, "Bad X-Symlink-Target-Etag format", content_type=TEXT)
            stored[_TARGET_ETAG] = etag
            if checks:
                found = self._static_target(request, Entity(entity.version, target), etag)
                stored[_TARGET_BYTES] = found["bytes"]
                headers["content-type"] = headers.get("content-type") or found["type"]
                slo_row = {name: found[name] for name in ("slo_etag",) if name in found}
            elif is_digits(headers.get(_TARGET_BYTES, "")):
                stored[_TARGET_BYTES] = headers[_TARGET_BYTES]
        headers["content-type"] = headers.get("content-type") or TYPE
        for name in _STORED:
            headers.pop(name, None)
        headers.update((_STORED[name], value) for name, value in stored.items())
        row = {name.removeprefix("x-").replace("-", "_"): value for name, value in stored.items()} | slo_row
        override = headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, "")
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = add_etag_parameters(override, _EMPTY_MD5, row)
        headers.pop("transfer-encoding", None)
        headers["content-length"] = "0"
        request.body = BytesBody()
        return self.forward(request)

    def _static_target(self, request: Request, target: Entity, etag: str) -> dict[str, str]:
        """Size, type and large object ETag of what a static link is to lead to; raises ``HTTPError``.

        A target that is a static link itself, as the object of a versioned container is, is followed.
        """
        sub = make_subrequest(request, "HEAD", target.raw_path, source=SOURCE)
        for name in ("x-auth-token", "x-storage-token", fields.BACKEND_ALLOW_RESERVED_NAMES):
            if name in request.headers:
                sub.headers[name] = request.headers[name]
        sub.headers["x-newest"] = "true"
        response = self._follow(sub, target, expected=etag, only_static=True)
        if response.status == 409:
            raise HTTPError.of(response)
        status, headers = drained(response).status, response.headers
        if status == 404:
            where = {"content-location": headers.get("content-location", target.raw_path)}
            raise HTTPError(409, "X-Symlink-Target does not exist", where, content_type=TEXT)
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
        if _TARGET in request.headers:
            raise HTTPError(400, "A PUT request is required to set a symlink target", content_type=TEXT)
        response = self.forward(request)
        link = LinkTarget.of(response.headers, entity.path) if response.is_success else None
        if link is None:
            return response
        drained(response)
        location = Entity(entity.version, link.target).raw_path
        moved = error_response(307, _POSTED, {"location": location})
        if link.etag is not None:
            moved.headers[_TARGET_ETAG] = link.etag
        moved.headers.update((n, v) for n, v in response.headers.items() if is_internal(n))
        return moved


def _was_found(response: Response) -> bool:
    """Return True if an answer is of an object that is there."""
    return response.is_success or response.status in (304, 412, 416)


def _mismatch(found: str, wanted: str, target: Entity) -> Response:
    text = f"Object Etag '{found}' does not match X-Symlink-Target-Etag header '{wanted}'"
    return error_response(
        409, text.encode("latin-1", "replace"), {"content-location": target.raw_path}, content_type=TEXT
    )


def _target_of(headers: HeaderMap, path: EntityPath) -> EntityPath:
    """Return the target path of a new symlink; raises ``HTTPError`` 412."""
    text = headers[_TARGET]
    if text.startswith("/"):
        raise HTTPError(412, _FORM_ERROR, content_type=TEXT)
    container, _, name = _utf8(text).partition("/")
    if not container or not name:
        raise HTTPError(412, _FORM_ERROR)
    account = path.account
    if _TARGET_ACCOUNT in headers:
        account = _utf8(headers[_TARGET_ACCOUNT])
        if not account:
            raise HTTPError(412, "Account name cannot be empty")
        if "/" in account:
            raise HTTPError(412, "Account name cannot contain slashes")
    return EntityPath(account, container, name)


def _utf8(value: str) -> str:
    """Return a percent-quoted header value as text; raises ``HTTPError`` 412 when it is not UTF-8."""
    try:
        return unquote_to_bytes(value.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise HTTPError(412, _FORM_ERROR)


def _decoded(stored: str) -> str:
    """Return a stored value of any writer."""
    return unquote_to_bytes(stored.encode("latin-1")).decode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    return quote(text, safe="/~", errors="surrogateescape")


def _shown(row: Mapping[str, str], listing: Entity) -> dict[str, object]:
    """Return the listing entry of a symlink."""
    shown: dict[str, object] = {}
    if "symlink_target_etag" in row:
        shown["symlink_etag"] = row["symlink_target_etag"]
    if row.get("symlink_target_bytes", "").isdecimal():
        shown["symlink_bytes"] = int(row["symlink_target_bytes"])
    if "symlink_target" in row:
        account = row.get("symlink_target_account") or _quoted(listing.path.account)
        shown["symlink_path"] = f"/{listing.version}/{account}/{row['symlink_target']}"
    return shown


FILTER = FilterDeclaration(
    "symlink",
    SymlinkSettings,
    lambda app, settings, _services: Symlink(app, settings),
    position=260,
    default=True,
    info=lambda settings: {"symloop_max": settings.symloop_max, "static_links": True},
    left_of={"encryption": "it would read and write what is encrypted"},
)
