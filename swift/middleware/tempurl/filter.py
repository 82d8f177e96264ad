"""Temporary URLs: a request with a valid signature may do what was signed (spec: middleware.md §3).

The signature covers method, time, address range and either the whole path or a prefix of it, but no other
query parameter. Parameters that change the kind of request are refused, others are removed. ``tempurl.scope``
limits the request and the sub-requests of other filters.
"""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

from swift.base.clock import Clock, SystemClock
from swift.base.entity import EntityPath
from swift.config.kinds import WORDS
from swift.config.schema import Settings, option
from swift.gateway.info import container_info
from swift.http import environkeys
from swift.http.headers import HeaderMap, title_case
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.tempurl.scope import READ_METHODS, SignedScope, invalid_link_response
from swift.middleware.tempurl.signature import (
    DEPRECATED_DIGESTS,
    DIGESTS_KIND,
    find_signing_key,
    get_keys,
    parse_expiry,
    parse_signature,
)
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry

_DIGEST = Event("tempurl.digests.{digest}", "Temporary URLs, by the digest of their signature.")

TEMPURL_USER = ".wsgi.tempurl"
#: Query parameters that requests with a link may have, by method; no signature covers them.
_PASSED_PARAMETERS = {"GET": ("part-number",), "HEAD": ("part-number",)}
#: Query parameters that change the kind of request.
_REFUSED_PARAMETERS = frozenset(
    ("multipart-manifest", "version-id", "versions", "symlink", "bulk-delete", "extract-archive")
)
#: Headers that make an object refer to others: a signature for one object does not allow them.
REFERENCE_HEADERS = ("x-object-manifest", "x-symlink-target", "x-copy-from")
#: Methods whose signatures are valid for a HEAD too.
_METHODS_VALID_FOR_HEAD = ("HEAD", "GET", "POST", "PUT")


@dataclass(frozen=True)
class TempURLSettings(Settings):
    """``[filter:tempurl]``."""

    methods: tuple[str, ...] = option(
        ("GET", "HEAD", "PUT", "POST", "DELETE"), "Methods that links may be for.", kind=WORDS
    )
    incoming_remove_headers: tuple[str, ...] = option(
        ("x-timestamp", "x-open-expired"),
        "Request headers that are dropped; a name that ends in * stands for all that begin so.",
        kind=WORDS,
    )
    incoming_allow_headers: tuple[str, ...] = option(
        (), "Request headers to keep, as exceptions.", kind=WORDS
    )
    outgoing_remove_headers: tuple[str, ...] = option(
        ("x-object-meta-*",), "Response headers that are dropped.", kind=WORDS
    )
    outgoing_allow_headers: tuple[str, ...] = option(
        ("x-object-meta-public-*",), "Response headers to keep, as exceptions.", kind=WORDS
    )
    allowed_digests: tuple[str, ...] = option(
        "sha1 sha256 sha512", "Digests of signatures.", kind=DIGESTS_KIND
    )


@dataclass(frozen=True, slots=True)
class SignedLink:
    """Parameters of a temporary URL; texts are Latin-1 views, None for absent ones."""

    signature: str
    expires: str
    prefix: str | None
    ip_range: str | None
    filename: str | None
    inline: bool

    @property
    def query(self) -> str:
        """The query by which the same link reaches another object of its prefix, in the peer's order."""
        parameters = [
            f"{name}={quote(value.encode('latin-1'), safe='/')}"
            for name, value in (
                ("temp_url_prefix", self.prefix),
                ("temp_url_expires", self.expires),
                ("temp_url_sig", self.signature),
                ("temp_url_ip_range", self.ip_range),
            )
            if value is not None
        ]
        return "&".join([*parameters, *(("inline",) if self.inline else ())])

    @classmethod
    def from_query(cls, query: str) -> SignedLink | None:
        """Return the link in a query, None without one; the first of repeated parameters counts."""
        pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1")
        params = dict(reversed(pairs))
        if "temp_url_sig" not in params and "temp_url_expires" not in params:
            return None
        return cls(
            params.get("temp_url_sig", ""),
            params.get("temp_url_expires", ""),
            params.get("temp_url_prefix"),
            params.get("temp_url_ip_range") or None,
            params.get("filename"),
            "inline" in params,
        )


class TempURL(Filter):
    """Validates temporary URLs and limits requests to their scope."""

    def __init__(
        self,
        app: App,
        settings: TempURLSettings,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
    ):
        super().__init__(app)
        self._settings = settings
        self._statsd = (telemetry or Telemetry()).statsd
        self._clock = clock or SystemClock()
        self._request_header_filter = HeaderFilter(
            settings.incoming_remove_headers, settings.incoming_allow_headers
        )
        self._response_header_filter = HeaderFilter(
            settings.outgoing_remove_headers, settings.outgoing_allow_headers
        )

    def handle(self, request: Request) -> Response:
        """Authorize a request with a valid signature; forward requests without one."""
        link = (
            None if request.method == "OPTIONS" or not request.query else SignedLink.from_query(request.query)
        )
        if link is None:
            return self.forward(request)
        expires = parse_expiry(link.expires)
        scope = None if expires is None else self._validate_link(request, link, expires)
        if scope is None or expires is None:
            return self._add_cors_headers(request, invalid_link_response(request))
        reference_header = next((name for name in REFERENCE_HEADERS if name in request.headers), None)
        if reference_header is not None and request.method not in READ_METHODS:
            text = f"The header {title_case(reference_header)!r} is not allowed in this tempurl"
            return self._add_cors_headers(request, error_response(400, text))
        refused = next((name for name in request.params if name in _REFUSED_PARAMETERS), None)
        if refused is not None:
            text = f"The parameter {refused!r} is not allowed in this tempurl"
            return self._add_cors_headers(request, error_response(400, text))
        self._restrict_request(request, scope, link)
        response = self.forward(request)
        self._response_header_filter.apply(response.headers)
        if request.method in READ_METHODS and response.is_success:
            self._set_download_headers(request, response, link, expires)
        return response

    def _add_cors_headers(self, request: Request, response: Response) -> Response:
        """Return a refusal that scripts of the container's allowed CORS origins may read."""
        origin, entity = request.headers.get("origin"), request.entity
        if origin is None or entity is None or entity.path.container is None:
            return response
        info = container_info(request, self.forward, entity.path.account, entity.path.container)
        allowed = (info.cors.get("allow_origin") or "").split()
        if "*" in allowed:
            response.headers["access-control-allow-origin"] = "*"
        elif origin in allowed:
            response.headers.update({"access-control-allow-origin": origin, "vary": "Origin"})
        return response

    def _validate_link(self, request: Request, link: SignedLink, expires: int) -> SignedScope | None:
        """Return the scope of a valid link; None for an invalid one."""
        entity = request.entity
        signature = parse_signature(link.signature, self._settings.allowed_digests)
        if signature is None or entity is None or entity.version != "v1":
            return None
        if expires < self._clock.time() or request.method not in self._settings.methods:
            return None
        prefix = _link_prefix(link)
        signed = _signed_path(entity.path, prefix, request.method)
        if signed is None or not _is_address_allowed(request, link.ip_range):
            return None
        verbs = _METHODS_VALID_FOR_HEAD if request.method == "HEAD" else (request.method,)
        address = "" if link.ip_range is None else f"ip={link.ip_range}\n"
        messages = [f"{address}{verb}\n{expires}\n".encode("latin-1") + signed for verb in verbs]
        key = find_signing_key(signature, messages, get_keys(request, self.forward, entity.path))
        if key is None:
            return None
        _DIGEST.count(self._statsd, digest=signature.digest)
        return SignedScope(
            key.scope,
            entity.path._replace(obj=None),
            entity.path.obj or "" if prefix is None else prefix,
            is_prefix=prefix is not None,
            is_reading=request.method in READ_METHODS,
        )

    def _restrict_request(self, request: Request, scope: SignedScope, link: SignedLink) -> None:
        """Restrict the request to its scope: callbacks, headers and query."""
        env, headers = request.env, request.headers
        scope.restrict(request, TEMPURL_USER)
        self._request_header_filter.apply(headers)
        headers["user-agent"] = f"{headers.get('user-agent', '')} TempURL".strip()
        if scope.is_prefix:
            env[environkeys.TEMPURL_LINK] = link.query, scope.name
        passed = {
            name: request.params[name]
            for name in _PASSED_PARAMETERS.get(request.method, ())
            if name in request.params
        }
        request.set_query("&".join(f"{name}={quote(passed[name].encode('latin-1'))}" for name in passed))

    def _set_download_headers(
        self, request: Request, response: Response, link: SignedLink, expires: int
    ) -> None:
        """Set the headers that name the downloaded file and limit caching to the link's lifetime."""
        headers = response.headers
        headers["expires"] = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(expires))
        name = link.filename
        if link.inline:
            headers["content-disposition"] = _format_disposition("inline", name) if name else "inline"
        elif name:
            headers["content-disposition"] = _format_disposition("attachment", name)
        elif not headers.get("content-disposition"):
            last = request.lossy_path.rstrip("/").rpartition("/")[2]
            raw = last.encode("utf-8", "surrogateescape").decode("latin-1")
            headers["content-disposition"] = _format_disposition("attachment", raw)


class HeaderFilter:
    """Header names to remove, with exceptions."""

    def __init__(self, removed: tuple[str, ...], allowed: tuple[str, ...]):
        self._removed = _HeaderPatterns(removed)
        self._allowed = _HeaderPatterns(allowed)

    def apply(self, headers: HeaderMap) -> None:
        """Remove the headers that match."""
        for name in [name for name in headers if name in self._removed and name not in self._allowed]:
            del headers[name]


class _HeaderPatterns:
    """Set of header names and name prefixes."""

    def __init__(self, patterns: tuple[str, ...]):
        lower = [pattern.lower() for pattern in patterns]
        self._exact = frozenset(pattern for pattern in lower if not pattern.endswith("*"))
        self._starts = tuple(pattern[:-1] for pattern in lower if pattern.endswith("*"))

    def __contains__(self, name: str) -> bool:
        return name in self._exact or name.startswith(self._starts)


def _link_prefix(link: SignedLink) -> str | None:
    """Return the prefix of a link as text; None for a link to one object."""
    return None if link.prefix is None else link.prefix.encode("latin-1").decode("utf-8", "surrogateescape")


def _signed_path(path: EntityPath, prefix: str | None, method: str) -> bytes | None:
    """Return the path as it was signed; None when the link does not cover ``path``."""
    if path.container is None:
        return None
    if prefix is None:
        return None if path.obj is None else f"/v1{path}".encode("utf-8", "surrogateescape")
    if path.obj is None and (prefix or method not in READ_METHODS):
        return None
    if not (path.obj or "").startswith(prefix):
        return None
    try:
        return f"prefix:/v1{path.parent if path.obj else path}/{prefix}".encode()
    except UnicodeEncodeError:
        # The prefix is not UTF-8.
        return None


def _is_address_allowed(request: Request, ip_range: str | None) -> bool:
    """Return True if the client's address is in the signed range, if any."""
    if ip_range is None:
        return True
    try:
        address = ipaddress.ip_address(request.remote_addr)
        # A server that listens on :: has clients of IPv4 so.
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return (mapped or address) in ipaddress.ip_network(ip_range)
    except ValueError:
        return False


def _format_disposition(kind: str, name: str) -> str:
    """Return a Content-Disposition with a file name, in the old format and in that of RFC 6266."""
    text = name.encode("latin-1").decode("utf-8", "replace")
    return f"{kind}; filename=\"{quote(text, safe='/ ')}\"; filename*=UTF-8''{quote(text)}"


def _info_entry(settings: TempURLSettings) -> dict[str, object]:
    """Return the entry of the filter in ``/info``."""
    headers = [f"{way}_{kind}_headers" for way in ("incoming", "outgoing") for kind in ("remove", "allow")]
    lists = {name: list(getattr(settings, name)) for name in ("methods", *headers)}
    return {**lists, **digests_info(settings.allowed_digests)}


def digests_info(digests: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the entry of allowed digests in ``/info``."""
    entry = {"allowed_digests": sorted(digests)}
    deprecated = sorted(DEPRECATED_DIGESTS & set(digests))
    if deprecated:
        entry["deprecated_digests"] = deprecated
    return entry


FILTER = FilterDeclaration(
    "tempurl",
    TempURLSettings,
    lambda app, settings, services: TempURL(app, settings, services.telemetry()),
    position=100,
    default=True,
    info=_info_entry,
    left_of={
        "tempauth": "tempurl authorizes signed links",
        "swiftauth": "tempurl authorizes signed links",
        "keystoneauth": "tempurl authorizes signed links",
    },
)
