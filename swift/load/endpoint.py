"""Target of the load: address, credentials and protocol.

Swift: a storage URL and a token, or an auth URL (v1, or Keystone's v3) to get them from. S3: an endpoint and
a pair of keys.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from swift.base.errors import InvalidValue, SwiftError
from swift.cluster.exchange import HttpTransport
from swift.cluster.outbound import Outbound, OutboundRefused, Trust
from swift.cluster.pool import ConnectionPool
from swift.cluster.transport import TransportError
from swift.telemetry.metrics import Registry
from swift.wire import keystone
from swift.wire.sigv4 import Signer

TIMEOUT_S = 30.0
#: A login is answered with less.
RESPONSE_BYTES_MAX = 16 << 20
#: As many connections may be idle as a process has clients.
CONNECTIONS = 4096


class EndpointRefused(SwiftError):
    """An endpoint that cannot be used; the text is one line with the reason."""


@dataclass(frozen=True)
class LoadEndpoint:
    """Address and credentials for requests; S3 when there is an access key."""

    #: The storage URL, or the S3 endpoint.
    url: str
    token: str = ""
    access_key: str = ""
    secret_key: str = ""
    region: str = "us-east-1"
    #: A file with the certificates of authorities that the endpoint's is checked by; empty: the machine's.
    cacert: str = ""

    @property
    def is_s3(self) -> bool:
        """True if requests are signed for S3."""
        return bool(self.access_key)

    @property
    def is_tls(self) -> bool:
        """True if it is reached by https."""
        return urlsplit(self.url).scheme == "https"

    @property
    def host(self) -> str:
        """Host name or address."""
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        """TCP port."""
        return urlsplit(self.url).port or (443 if self.is_tls else 80)

    def sign_headers(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        now_s: float | None = None,
        *,
        more: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Return the headers of an S3 request, see ``Signer``."""
        address = f"[{self.host}]" if ":" in self.host else self.host
        signer = Signer(self.access_key, self.secret_key, self.region)
        return signer.sign_headers(method, f"{address}:{self.port}", path, query, now_s, more=more)

    @property
    def root(self) -> str:
        """Prefix of every path: ``/v1/AUTH_test``, empty for S3."""
        return urlsplit(self.url).path.rstrip("/")

    def to_json(self) -> dict[str, str]:
        """Return the endpoint for another process."""
        return asdict(self)


def validate_url(url: str) -> str:
    """Return the URL when it is one of http or https; raises ``EndpointRefused``."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url
    except ValueError:
        pass
    raise EndpointRefused(f"{url!r} is not an http or https URL with a host")


def tls_context(cacert: str = "") -> ssl.SSLContext:
    """Return the TLS context that verifies certificates; raises ``EndpointRefused``."""
    try:
        return ssl.create_default_context(cafile=cacert or None)
    except (OSError, ValueError) as error:
        raise EndpointRefused(f"{cacert}: no certificates can be read: {error}")


def log_in(auth_url: str, user: str, key: str, cacert: str = "") -> LoadEndpoint:
    """Return an endpoint by v1 auth, or v3 when the URL's path begins with /v3; raises ``EndpointRefused``.

    ``user`` of Keystone is ``project:user``; domains are the default one.
    """
    parts = urlsplit(validate_url(auth_url))
    if parts.path.startswith("/v3"):
        return _log_in_v3(auth_url, user, key, cacert)
    named = {"X-Auth-User": user, "X-Auth-Key": key}
    status, headers, _body = request_once(auth_url, "GET", named, cacert=cacert)
    if status // 100 != 2 or "x-storage-url" not in headers:
        raise EndpointRefused(f"{auth_url} answered {status} to {user}; are user and key right?")
    return LoadEndpoint(headers["x-storage-url"], headers.get("x-auth-token", ""), cacert=cacert)


def _log_in_v3(auth_url: str, user: str, key: str, cacert: str) -> LoadEndpoint:
    project, _, name = user.rpartition(":")
    url = keystone.tokens_url(auth_url)
    kind = {"Content-Type": "application/json"}
    status, headers, body = request_once(
        url, "POST", kind, keystone.password_login(name, key, project), cacert=cacert
    )
    if status // 100 != 2:
        raise EndpointRefused(f"{url} answered {status} to {user}; are project, user and password right?")
    try:
        storage_url = keystone.storage_url_in(body)
        return LoadEndpoint(validate_url(storage_url), headers["x-subject-token"], cacert=cacert)
    except (InvalidValue, KeyError):
        raise EndpointRefused(f"{url} has no public object-store for {user}")


def request_once(
    url: str, method: str, headers: Mapping[str, str], body: bytes = b"", *, cacert: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """Send one request; return status, headers (lower-case names) and body. Raises ``EndpointRefused``."""
    parts = urlsplit(url)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    tls = tls_context(cacert) if parts.scheme == "https" else None
    try:
        with Outbound().connection(
            parts.scheme, str(parts.hostname), parts.port, Trust.OPERATOR, timeout_s=TIMEOUT_S, tls=tls
        ) as connection:
            sent = {name.lower(): value for name, value in headers.items()}
            answer = connection.request(method, path, sent, body, bytes_max=RESPONSE_BYTES_MAX)
            return answer.status, answer.headers, answer.body
    except (OSError, OutboundRefused, TransportError) as error:
        raise EndpointRefused(f"{url}: {error or type(error).__name__}")


def transport_for(endpoint: LoadEndpoint) -> HttpTransport:
    """Return the servers' own client, which encrypts its connections to an https endpoint."""
    tls = tls_context(endpoint.cacert) if endpoint.is_tls else None
    return HttpTransport(ConnectionPool(Registry(), per_address_max=CONNECTIONS, tls=tls))
