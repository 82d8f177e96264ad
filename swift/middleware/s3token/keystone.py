"""Client of Keystone: validates S3 signatures and reads secret keys.

Responses are small; each request has a connection of its own. Requests are never logged, because they contain
secrets.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

from swift.base.errors import SwiftError
from swift.cluster.outbound import Outbound, OutboundRefused, Trust, default_port
from swift.cluster.transport import TransportError
from swift.middleware.s3token.settings import S3TokenSettings, parse_url

RESPONSE_BYTES_MAX = 1 << 20
#: Seconds for which the filter uses its own token; less than the lifetime of tokens.
_OWN_TOKEN_TTL_S = 600.0
JsonDocument = Mapping[str, object]


class KeystoneUnavailable(SwiftError):
    """The identity service did not return a valid response."""


class Keystone(Protocol):
    """Requests to a Keystone service."""

    def validate_signature(self, credentials: Mapping[str, str]) -> JsonDocument | None:
        """Return the signer's token, or None if the signature is invalid; raises ``KeystoneUnavailable``."""

    def get_secret_key(self, user_id: str, access: str) -> str | None:
        """Return the secret key of a user's access key; raises ``KeystoneUnavailable``."""


class HTTPKeystone:
    """Keystone client over HTTP."""

    def __init__(self, settings: S3TokenSettings, outbound: Outbound | None = None):
        self._settings = settings
        self._outbound = outbound or Outbound()
        self._tls = ssl.create_default_context()
        if settings.insecure:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        if settings.certfile:
            self._tls.load_cert_chain(settings.certfile, settings.keyfile or None)
        #: The filter's own token and the monotonic second until which it is used.
        self._token = "", 0.0

    def validate_signature(self, credentials: Mapping[str, str]) -> JsonDocument | None:
        """Return Keystone's document about the signer; None for a wrong signature."""
        status, _, body = self._request(
            "POST", self._settings.auth_uri, "/s3tokens", {"credentials": credentials}
        )
        if 200 <= status <= 299:
            return _parse_document(body)
        if status >= 500:
            raise KeystoneUnavailable(f"the identity service answered {status}")
        return None

    def get_secret_key(self, user_id: str, access: str) -> str | None:
        """Return the secret of an access key; None if it is unknown."""
        path = f"/users/{quote(user_id, safe='')}/credentials/OS-EC2/{quote(access, safe='')}"
        for _ in range(2):
            headers = {"x-auth-token": self._get_own_token()}
            status, _, body = self._request("GET", self._settings.auth_url, path, None, headers)
            if status != 401:
                break
            # The token was revoked before its expiry.
            self._token = "", 0.0
        if status != 200:
            return None
        credential = _parse_document(body).get("credential")
        secret = credential.get("secret") if isinstance(credential, dict) else None
        return secret if isinstance(secret, str) and secret else None

    def _get_own_token(self) -> str:
        token, expires_s = self._token
        if token and time.monotonic() < expires_s:
            return token
        settings = self._settings
        user = {
            "name": settings.username,
            "domain": {"id": settings.user_domain_id},
            "password": settings.password,
        }
        auth: dict[str, object] = {"identity": {"methods": ["password"], "password": {"user": user}}}
        if settings.project_name:
            domain = {"id": settings.project_domain_id}
            auth["scope"] = {"project": {"name": settings.project_name, "domain": domain}}
        status, headers, _ = self._request("POST", settings.auth_url, "/auth/tokens", {"auth": auth})
        token = headers.get("x-subject-token", "")
        if status != 201 or not token:
            raise KeystoneUnavailable(f"the identity service gives our user no token ({status})")
        self._token = token, time.monotonic() + _OWN_TOKEN_TTL_S
        return token

    def _request(
        self,
        method: str,
        base: str,
        path: str,
        document: JsonDocument | None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body; raises ``KeystoneUnavailable``."""
        parts = parse_url(base, "auth_uri")
        host, port = str(parts.hostname), parts.port or default_port(parts.scheme)
        body = b"" if document is None else json.dumps(document).encode()
        request_headers = {"content-type": "application/json", **(headers or {})}
        try:
            with self._outbound.connection(
                parts.scheme, host, port, Trust.OPERATOR, timeout_s=self._settings.http_timeout, tls=self._tls
            ) as connection:
                target = parts.path.rstrip("/") + path
                reply = connection.request(
                    method, target, request_headers, body, bytes_max=RESPONSE_BYTES_MAX + 1
                )
        except (OutboundRefused, OSError, TransportError) as error:
            raise KeystoneUnavailable(
                f"the identity service at {host}:{port}: {error or type(error).__name__}"
            )
        if len(reply.body) > RESPONSE_BYTES_MAX:
            raise KeystoneUnavailable("the identity service answers too much")
        return reply.status, reply.headers, reply.body


def _parse_document(body: bytes) -> JsonDocument:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        raise KeystoneUnavailable("the identity service does not answer JSON")
    if not isinstance(tree, dict):
        raise KeystoneUnavailable("the identity service answers something else")
    return tree
