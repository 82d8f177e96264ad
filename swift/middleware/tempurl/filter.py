"""Lets a request with a good signature do what was signed, and no more (spec: middleware.md §3).

The signature covers method, time, address range and either the whole path or its beginning, but no other
parameter of the query: those that change what a request does are refused, others are dropped. What a valid
request and the sub-requests of other filters may do is bounded by ``tempurl.scope``.
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
from swift.middleware.tempurl.scope import READING, SignedScope, refusal
from swift.middleware.tempurl.signature import (
    DEPRECATED_DIGESTS,
    DIGESTS,
    keys_of,
    parse_expiry,
    parse_signature,
    signing_key,
)
from swift.telemetry.telemetry import Telemetry

USER = ".wsgi.tempurl"
#: Parameters that a link passes on, by method; no signature covers them.
_PASSED = {"GET": ("part-number",), "HEAD": ("part-number",)}
#: Parameters that make another request of it.
_REFUSED = frozenset(
    ("multipart-manifest", "version-id", "versions", "symlink", "bulk-delete", "extract-archive")
)
#: Headers by which an object refers to others: the right to write one object does not include them.
POINTERS = ("x-object-manifest", "x-symlink-target", "x-copy-from")
#: Methods whose signature is good for a HEAD too.
_HEAD_BY = ("HEAD", "GET", "POST", "PUT")


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
    allowed_digests: tuple[str, ...] = option("sha1 sha256 sha512", "Digests of signatures.", kind=DIGESTS)


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
        """The query by which the same link leads to another object of its prefix, in the peer's order."""
        words = [
            f"{name}={quote(value.encode('latin-1'), safe='/')}"
            for name, value in (
                ("temp_url_prefix", self.prefix),
                ("temp_url_expires", self.expires),
                ("temp_url_sig", self.signature),
                ("temp_url_ip_range", self.ip_range),
            )
            if value is not None
        ]
        return "&".join([*words, *(("inline",) if self.inline else ())])

    @classmethod
    def of(cls, query: str) -> SignedLink | None:
        """Return the link of a query, None when there is none; of a repeated parameter the first counts."""
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
    """Checks links and bounds what they allow."""

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
        self._incoming = HeaderRule(settings.incoming_remove_headers, settings.incoming_allow_headers)
        self._outgoing = HeaderRule(settings.outgoing_remove_headers, settings.outgoing_allow_headers)

    def handle(self, request: Request) -> Response:
        """Let a valid link pass; everything without one is not this filter's business."""
        link = None if request.method == "OPTIONS" or not request.query else SignedLink.of(request.query)
        if link is None:
            return self.forward(request)
        expires = parse_expiry(link.expires)
        scope = None if expires is None else self._scope_of(request, link, expires)
        if scope is None or expires is None:
            return self._refused(request, refusal(request))
        pointer = next((name for name in POINTERS if name in request.headers), None)
        if pointer is not None and request.method not in READING:
            text = f"The header {title_case(pointer)!r} is not allowed in this tempurl"
            return self._refused(request, error_response(400, text))
        refused = next((name for name in request.params if name in _REFUSED), None)
        if refused is not None:
            text = f"The parameter {refused!r} is not allowed in this tempurl"
            return self._refused(request, error_response(400, text))
        self._admit(request, scope, link)
        response = self.forward(request)
        self._outgoing.apply(response.headers)
        if request.method in READING and response.is_success:
            self._dispose(request, response, link, expires)
        return response

    def _refused(self, request: Request, response: Response) -> Response:
        """Return a refusal that the scripts of the container's origins may read."""
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

    def _scope_of(self, request: Request, link: SignedLink, expires: int) -> SignedScope | None:
        """Return the bounds of the link; None for a bad one."""
        entity = request.entity
        signature = parse_signature(link.signature, self._settings.allowed_digests)
        if signature is None or entity is None or entity.version != "v1":
            return None
        if expires < self._clock.time() or request.method not in self._settings.methods:
            return None
        prefix = _prefix_of(link)
        signed = _signed_path(entity.path, prefix, request.method)
        if signed is None or not _comes_from(request, link.ip_range):
            return None
        verbs = _HEAD_BY if request.method == "HEAD" else (request.method,)
        address = "" if link.ip_range is None else f"ip={link.ip_range}\n"
        messages = [f"{address}{verb}\n{expires}\n".encode("latin-1") + signed for verb in verbs]
        key = signing_key(signature, messages, keys_of(request, self.forward, entity.path))
        if key is None:
            return None
        self._statsd.increment(f"tempurl.digests.{signature.digest}")
        return SignedScope(
            key.scope,
            entity.path._replace(obj=None),
            entity.path.obj or "" if prefix is None else prefix,
            is_prefix=prefix is not None,
            is_reading=request.method in READING,
        )

    def _admit(self, request: Request, scope: SignedScope, link: SignedLink) -> None:
        """Make the request what the signer allowed."""
        env, headers = request.env, request.headers
        env[environkeys.AUTHORIZE] = scope.authorise
        env[environkeys.AUTHORIZE_OVERRIDE] = True
        env[environkeys.REMOTE_USER] = USER
        env[environkeys.OWNER] = False
        self._incoming.apply(headers)
        headers["user-agent"] = f"{headers.get('user-agent', '')} TempURL".strip()
        if scope.is_prefix:
            env[environkeys.TEMPURL_LINK] = link.query, scope.name
        kept = {
            name: request.params[name] for name in _PASSED.get(request.method, ()) if name in request.params
        }
        request.set_query("&".join(f"{name}={quote(kept[name].encode('latin-1'))}" for name in kept))

    def _dispose(self, request: Request, response: Response, link: SignedLink, expires: int) -> None:
        """Set the headers that name the downloaded file and limit caching to the URL's lifetime."""
        headers = response.headers
        headers["expires"] = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(expires))
        name = link.filename
        if link.inline:
            headers["content-disposition"] = _disposition("inline", name) if name else "inline"
        elif name:
            headers["content-disposition"] = _disposition("attachment", name)
        elif not headers.get("content-disposition"):
            last = request.lossy_path.rstrip("/").rpartition("/")[2]
            raw = last.encode("utf-8", "surrogateescape").decode("latin-1")
            headers["content-disposition"] = _disposition("attachment", raw)


class HeaderRule:
    """Header names to remove, with exceptions."""

    def __init__(self, removed: tuple[str, ...], allowed: tuple[str, ...]):
        self._removed = _Names(removed)
        self._allowed = _Names(allowed)

    def apply(self, headers: HeaderMap) -> None:
        """Drop them."""
        for name in [name for name in headers if name in self._removed and name not in self._allowed]:
            del headers[name]


class _Names:
    """Header names, and beginnings of such."""

    def __init__(self, patterns: tuple[str, ...]):
        lower = [pattern.lower() for pattern in patterns]
        self._exact = frozenset(pattern for pattern in lower if not pattern.endswith("*"))
        self._starts = tuple(pattern[:-1] for pattern in lower if pattern.endswith("*"))

    def __contains__(self, name: str) -> bool:
        return name in self._exact or name.startswith(self._starts)


def _prefix_of(link: SignedLink) -> str | None:
    """Return the prefix of a link as text; None when it is for one object."""
    return None if link.prefix is None else link.prefix.encode("latin-1").decode("utf-8", "surrogateescape")


def _signed_path(path: EntityPath, prefix: str | None, method: str) -> bytes | None:
    """Return the path as it was signed; None when the link cannot be for this one."""
    if path.container is None:
        return None
    if prefix is None:
        return None if path.obj is None else f"/v1{path}".encode("utf-8", "surrogateescape")
    if path.obj is None and (prefix or method not in READING):
        return None
    if not (path.obj or "").startswith(prefix):
        return None
    try:
        return f"prefix:/v1{path.parent if path.obj else path}/{prefix}".encode()
    except UnicodeEncodeError:
        # It is not UTF-8.
        return None


def _comes_from(request: Request, ip_range: str | None) -> bool:
    """Return True if the client's address is in the range that was signed, if one was."""
    if ip_range is None:
        return True
    try:
        return ipaddress.ip_address(request.remote_addr) in ipaddress.ip_network(ip_range)
    except ValueError:
        return False


def _disposition(kind: str, name: str) -> str:
    """Return a Content-Disposition with a file name, in the old form and in that of RFC 6266."""
    text = name.encode("latin-1").decode("utf-8", "replace")
    return f"{kind}; filename=\"{quote(text, safe='/ ')}\"; filename*=UTF-8''{quote(text)}"


def _facts(settings: TempURLSettings) -> dict[str, object]:
    """Return what ``/info`` says."""
    return {
        "methods": list(settings.methods),
        "incoming_remove_headers": list(settings.incoming_remove_headers),
        "incoming_allow_headers": list(settings.incoming_allow_headers),
        "outgoing_remove_headers": list(settings.outgoing_remove_headers),
        "outgoing_allow_headers": list(settings.outgoing_allow_headers),
        **digest_facts(settings.allowed_digests),
    }


def digest_facts(digests: tuple[str, ...]) -> dict[str, list[str]]:
    """Return what ``/info`` says of allowed digests."""
    facts = {"allowed_digests": sorted(digests)}
    old = sorted(DEPRECATED_DIGESTS & set(digests))
    if old:
        facts["deprecated_digests"] = old
    return facts


FILTER = FilterDeclaration(
    "tempurl",
    TempURLSettings,
    lambda app, settings, services: TempURL(app, settings, services.telemetry()),
    position=100,
    default=True,
    info=_facts,
    left_of={
        "tempauth": "what it lets in would be refused",
        "keystoneauth": "what it lets in would be refused",
    },
)
