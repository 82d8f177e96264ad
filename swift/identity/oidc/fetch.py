"""Requests to a provider: verified TLS, no redirects, and limits on time and size."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlencode

from swift import green
from swift.cluster.outbound import Outbound, OutboundRefused, Trust
from swift.cluster.transport import TransportError
from swift.identity.oidc.errors import OidcCause, OidcError
from swift.identity.oidc.provider import Provider

RESPONSE_BYTES_MAX = 1 << 20
#: Seconds for a whole request, the look-up of the host name included.
TIMEOUT_S = 5.0


@dataclass(frozen=True)
class ProviderResponse:
    """A provider's response; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Fetch(Protocol):
    """Requests to one provider."""

    def __call__(
        self, url: str, form: Mapping[str, str] | None = None, *, authorization: str = ""
    ) -> ProviderResponse:
        """Return the response to a GET, with ``form`` to a POST.

        Raises ``OidcError`` with the cause ``UNAVAILABLE``. URLs are those that ``check_endpoint`` accepts.
        """


class HttpFetch:
    """Requests to one provider over the network."""

    def __init__(self, provider: Provider, outbound: Outbound, *, timeout_s: float = TIMEOUT_S):
        self._provider = provider
        self._outbound = outbound
        self._timeout_s = timeout_s
        self._tls: ssl.SSLContext | None = None

    def __call__(
        self, url: str, form: Mapping[str, str] | None = None, *, authorization: str = ""
    ) -> ProviderResponse:
        """Send one request on a connection of its own."""
        headers = {"accept": "application/json"}
        if authorization:
            headers["authorization"] = authorization
        body = b""
        if form is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
            body = urlencode(form).encode()
        host = "?"
        try:
            parts = self._provider.check_endpoint(url)
            host = str(parts.hostname)
            target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            tls = self._tls_context() if parts.scheme == "https" else None
            with (
                green.Timeout(self._timeout_s),
                self._outbound.connection(
                    parts.scheme, host, parts.port, Trust.OPERATOR, timeout_s=self._timeout_s, tls=tls
                ) as connection,
            ):
                response = connection.request(
                    "GET" if form is None else "POST", target, headers, body, bytes_max=RESPONSE_BYTES_MAX + 1
                )
        except green.DeadlineExceeded:
            raise self._failure(host, f"no response within {self._timeout_s:g} s")
        except (OutboundRefused, OSError, TransportError, ValueError) as error:
            # ValueError: of a URL, or of a host that cannot have a certificate.
            raise self._failure(host, str(error) or type(error).__name__)
        if len(response.body) > RESPONSE_BYTES_MAX:
            raise self._failure(host, f"a response of more than {RESPONSE_BYTES_MAX} bytes")
        return ProviderResponse(response.status, response.headers, response.body)

    def _tls_context(self) -> ssl.SSLContext:
        """Return the TLS context, made at the first request; raises OSError if ``ca_file`` cannot be read."""
        if self._tls is None:
            try:
                self._tls = ssl.create_default_context(cafile=self._provider.ca_file or None)
            except OSError as error:
                raise OSError(f"ca_file: {error}")
        return self._tls

    def _failure(self, host: str, reason: str) -> OidcError:
        return OidcError(f"provider {self._provider.name} at {host}: {reason}", OidcCause.UNAVAILABLE)
