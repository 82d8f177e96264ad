"""Signed requests to the proxy of another cluster, perhaps through a proxy (account-container.md §17).

Each request has its address checked (``cluster.outbound``). Through a proxy only hosts that resolve here are
checked; where they do not, the proxy is what decides.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from random import choice
from urllib.parse import SplitResult, urlsplit

from swift.base.entity import quote_path
from swift.base.errors import SwiftError
from swift.cluster.outbound import Outbound, OutboundConnection, OutboundRefused, Trust, default_port
from swift.cluster.syncrealms import SyncTo
from swift.cluster.transport import BackendResponse, TransportError
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap

_CHUNK_BYTES = 65536


class RemoteError(SwiftError):
    """The other cluster could not be asked, or broke off."""


@dataclass(frozen=True)
class SyncTarget:
    """A container of another cluster and the key that it shares with ours."""

    sync_to: SyncTo
    user_key: str

    def url_of(self, name: str) -> str:
        """Return the quoted URL of an object."""
        return f"{self.sync_to.url}/{quote_path(name)}"

    def credentials(self, method: str, name: str, timestamp: str, nonce: str = "") -> HeaderMap:
        """Return the headers by which the other cluster knows the request for one of ours."""
        headers = {"x-timestamp": timestamp}
        if self.sync_to.realm is None:
            return {**headers, "x-container-sync-key": self.user_key}
        nonce = nonce or secrets.token_hex(16)
        signature = sign(
            method,
            urlsplit(self.url_of(name)).path,
            timestamp,
            nonce,
            self.sync_to.realm_key or "",
            self.user_key,
        )
        return {**headers, "x-container-sync-auth": f"{self.sync_to.realm} {nonce} {signature}"}


def sign(method: str, path: str, timestamp: str, nonce: str, realm_key: str, user_key: str) -> str:
    """Return the signature of a request of a realm."""
    text = "\n".join((method, path, timestamp, nonce, user_key))
    return hmac.new(realm_key.encode(), text.encode("utf-8", "surrogateescape"), "sha1").hexdigest()


class RemoteCluster:
    """Asks other clusters; each request has a connection of its own."""

    def __init__(self, timeout_s: float, proxies: Sequence[str] = (), *, outbound: Outbound | None = None):
        self._timeout_s = timeout_s
        self._proxies = [urlsplit(text if "//" in text else f"http://{text}") for text in proxies]
        self._outbound = outbound or Outbound()

    def ask(
        self,
        method: str,
        target: SyncTarget,
        name: str,
        timestamp: str,
        headers: HeaderMap,
        body: RequestBody | None = None,
        *,
        query: str = "",
    ) -> BackendResponse:
        """One request about an object; raises ``RemoteError``, and ``BodyError`` of ``body``.

        No signature covers ``query``.
        """
        url = urlsplit(target.url_of(name))
        sent = {**headers, **target.credentials(method, name, timestamp)}
        try:
            connection, selector = self._open(url, target.sync_to.trust)
            with connection:
                return _send(connection, method, selector + (f"?{query}" if query else ""), sent, body)
        except OutboundRefused as error:
            raise RemoteError(f"{method} {url.scheme}://{url.netloc}{url.path} is not sent: {error}")
        except (OSError, TransportError, ValueError) as error:
            raise RemoteError(f"{method} {url.scheme}://{url.netloc}{url.path}: {error!r}")

    def _open(self, url: SplitResult, trust: Trust) -> tuple[OutboundConnection, str]:
        """Return a connection and the target of a request on it; raises ``OutboundRefused``."""
        host = url.hostname or ""
        if not self._proxies:
            made = self._outbound.connection(url.scheme, host, url.port, trust, timeout_s=self._timeout_s)
            return made, url.path
        self._check_behind_proxy(host, url.port or default_port(url.scheme), trust)
        proxy = choice(self._proxies)
        if url.scheme == "https":
            return self._outbound.tunnel(proxy, host, url.port, timeout_s=self._timeout_s), url.path
        made = self._outbound.connection(
            "http",
            proxy.hostname or "",
            proxy.port,
            Trust.OPERATOR,
            timeout_s=self._timeout_s,
            host_header=url.netloc,
        )
        return made, f"http://{url.netloc}{url.path}"

    def _check_behind_proxy(self, host: str, port: int, trust: Trust) -> None:
        try:
            self._outbound.addresses(host, port, trust)
        except OSError:
            # The name means nothing here, so it is none of this cluster's.
            self._outbound.check_literal(host, port, trust)


def _send(
    connection: OutboundConnection, method: str, selector: str, headers: HeaderMap, body: RequestBody | None
) -> BackendResponse:
    length = 0 if body is None else body.length
    framing = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
    exchange = connection.stream(method, selector, {**headers, **framing})
    while body is not None and (piece := body.read(_CHUNK_BYTES)):
        exchange.send(piece)
    exchange.finish()
    # The body of the response is not read: it may have no end, and the connection is used once.
    reply = exchange.response()
    return BackendResponse(reply.status, reply.headers)
