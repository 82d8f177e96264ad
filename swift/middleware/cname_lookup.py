"""Custom host names: CNAME records map them to hosts of the storage domain (spec: middleware.md §15)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.config.kinds import integer
from swift.config.schema import Settings, option
from swift.green import ThreadPool
from swift.http import environkeys
from swift.http.environ import split_host
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration

#: Name → (TTL in seconds, CNAME target or None).
CnameQuery = Callable[[str], tuple[float, str | None]]
#: Seconds for which the absence of a CNAME is cached.
NEGATIVE_TTL_S = 60.0
_NAME_CHARS_MAX = 253
#: dnspython blocks, so it runs in threads.
_dns_threads = ThreadPool(8, "cname")


@dataclass(frozen=True)
class CnameLookupSettings(Settings):
    """``[filter:cname_lookup]``."""

    storage_domain: tuple[str, ...] = option(("example.com",), "Domains of this service.")
    lookup_depth: int = option(1, "Number of chained aliases to follow.", kind=integer(1, 10))
    nameservers: tuple[str, ...] = option((), "Name servers, address or address:port; the system's if none.")


class CnameLookup(Filter):
    """Replaces the host of a request by the storage domain host that its CNAME names."""

    def __init__(self, app: App, settings: CnameLookupSettings, lookup: CnameQuery):
        super().__init__(app)
        self._domains = ["." + domain.lstrip(".").lower() for domain in settings.storage_domain]
        self._depth = settings.lookup_depth
        self._lookup = lookup

    def handle(self, request: Request) -> Response:
        """Follow CNAME records to a storage domain; return 400 when none leads there."""
        original_host = request.headers.get("host", "")
        host, port = split_host(original_host)
        host = host.lower().rstrip(".")
        if not host or self._is_storage_host(host) or _is_address(host) or len(host) > _NAME_CHARS_MAX:
            return self.forward(request)
        target: str | None = host
        for _ in range(self._depth):
            target = self._resolve_cname(request, str(target))
            if target is None:
                return error_response(
                    400, "CNAME lookup failed to resolve to a valid domain", content_type=TEXT
                )
            if self._is_storage_host(target):
                return self._forward_as_host(request, original_host, f"{target}:{port}" if port else target)
        return error_response(400, f"CNAME lookup failed after {self._depth} tries", content_type=TEXT)

    def _forward_as_host(self, request: Request, original_host: str, storage_host: str) -> Response:
        request.headers["host"] = storage_host
        response = self.forward(request)
        location = response.headers.get("location", "")
        base_url = f"{request.scheme}://{storage_host}"
        if location.startswith((base_url + "/", base_url + "?")) or location == base_url:
            response.headers["location"] = f"{request.scheme}://{original_host}{location[len(base_url) :]}"
        return response

    def _is_storage_host(self, host: str) -> bool:
        return any(host == domain[1:] or host.endswith(domain) for domain in self._domains)

    def _resolve_cname(self, request: Request, name: str) -> str | None:
        cache = request.env.get(environkeys.CACHE)
        key = f"cname-{name}"
        cached = cache.get(key) if cache is not None else None
        if isinstance(cached, str):
            return cached or None
        ttl_s, alias = self._lookup(name)
        if cache is not None and ttl_s > 0:
            cache.set(key, alias or "", ttl_s=ttl_s)
        return alias


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def dns_lookup(nameservers: Sequence[str]) -> CnameQuery:
    """Return a lookup by dnspython; raises ``ConfigError`` when that is not installed."""
    try:
        import dns.exception
        import dns.resolver
    except ImportError:
        raise ConfigError("[filter:cname_lookup] needs the Python package dnspython")
    resolver = dns.resolver.Resolver(configure=not nameservers)
    if nameservers:
        resolver.nameservers = [split_host(server)[0] for server in nameservers]
        ports = {split_host(server)[0]: int(split_host(server)[1] or 53) for server in nameservers}
        resolver.nameserver_ports = ports

    def lookup(name: str) -> tuple[float, str | None]:
        try:
            answer = _dns_threads.call(resolver.resolve, name, "CNAME")
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return NEGATIVE_TTL_S, None
        except (dns.exception.DNSException, OSError, ValueError):
            return 0.0, None
        if answer.rrset is None or not answer.rrset:
            return NEGATIVE_TTL_S, None
        return float(answer.rrset.ttl), str(answer.rrset[0].target).rstrip(".").lower()

    return lookup


FILTER = FilterDeclaration(
    "cname_lookup",
    CnameLookupSettings,
    lambda app, settings, _services: CnameLookup(app, settings, dns_lookup(settings.nameservers)),
    position=70,
    info=lambda settings: {"lookup_depth": settings.lookup_depth},
    left_of={"domain_remap": "domain_remap reads the host that cname_lookup finds"},
)
